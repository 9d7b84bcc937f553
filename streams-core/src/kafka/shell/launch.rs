//! Makes a stream thread with its clients, at the start and when one takes another's place.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use streams_state::StateDirectory;

use super::clock::Clock;
use super::cluster::Cluster;
use super::committer::Committer;
use super::effects::Clients;
use super::instance::{Inner, ThreadHandle};
use super::restorer::Restorer;
use super::sizes::Sizes;
use super::state::State;
use super::thread::{Shared, StreamThread, ThreadEvent, admin};
use crate::config::{ClientIds, ProcessingGuarantee};
use crate::error::{Error, ProcessResult};
use crate::kafka::consumer::BatchConsumer;
use crate::kafka::group::{GroupTarget, MembershipConfig, StreamsMembership, leave_surplus};
use crate::membership::TaskGate;
use crate::metrics::publish::ThreadMetrics;
use crate::runtime::StreamThreadCore;
use crate::stores::GlobalStores;

/// What every stream thread of an instance is started with.
pub(super) struct Launcher {
    pub(super) inner: Arc<Inner>,
    pub(super) directory: Arc<StateDirectory>,
    pub(super) ids: ClientIds,
    pub(super) globals: Arc<GlobalStores>,
    pub(super) report: Sender<ThreadEvent>,
}

impl Launcher {
    /// Under exactly-once the stored one, so that a restart goes on at once: the transactional id fences a second process of
    /// the same identity. Otherwise nothing does, and a member has an id that nobody had before (design rule 6.1); the one
    /// before it, of a process that is gone, leaves the group, so that its tasks need not wait for its session time-out.
    fn member_id(&self, number: usize) -> ProcessResult<String> {
        let config = &self.inner.config;
        let failed = |source| Error::State {
            task: "this process".to_owned(),
            source,
        };
        if config.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2 {
            return Ok(self.directory.member_id(number).map_err(failed)?);
        }
        let (member_id, before) = self.directory.renew_member_id(number).map_err(failed)?;
        if let Some(before) = before {
            let target = GroupTarget::new(&config.bootstrap_servers, &config.application_id);
            if let Err(error) = leave_surplus(&target, &before) {
                tracing::warn!(thread = number, %error, "the member of the process before this one could not leave; its tasks wait for the session time-out");
            }
        }
        Ok(member_id)
    }

    /// Starts the thread of this number, from 1.
    pub(super) fn start(&self, number: usize) -> ProcessResult<ThreadHandle> {
        let Launcher {
            inner,
            directory,
            ids,
            globals,
            report,
        } = self;
        let config = &inner.config;
        let kafka = |what: &str, error: crate::kafka::errors::ClientError| Error::Kafka {
            what: what.to_owned(),
            code: error.name.clone(),
            message: error.to_string(),
        };
        let member_id = self.member_id(number)?;
        let mut consumer = BatchConsumer::new(&config.main_consumer_properties(ids, number))
            .map_err(|error| kafka("making a consumer", error))?;
        // Leaders are looked for while the thread joins its group, or the first fetch would wait for it.
        let sources = inner.plan.subtopologies.iter().flat_map(|sub| sub.source_topics.keys());
        consumer.know(sources.map(|topic| &**topic));
        let mut target = GroupTarget::new(&config.bootstrap_servers, &config.application_id);
        target.client_id = ids.main_consumer(number);
        let mut membership = MembershipConfig::new(
            target,
            member_id,
            &directory.identity().process_id,
            inner.plan.group_topology(),
        );
        membership.max_poll_interval_ms = config.max_poll_interval_ms();
        membership.rebalance_timeout_ms = i32::try_from(config.max_poll_interval_ms()).unwrap_or(i32::MAX);
        membership.heartbeat_max_ms = config.streams_heartbeat_max_ms;
        membership.client_tags = config
            .client_tags()
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let (events, commands) = StreamsMembership::start(membership).map_err(|error| Error::Membership {
            message: error.to_string(),
        })?;
        let committer = Committer::start(&ids.stream_thread(number), consumer.wake_handle())?;
        let clients = Clients {
            group_id: config.application_id.clone(),
            consumer,
            producer: None,
            committer,
            pipelined: config.commit_pipelined,
            transactional: config.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2,
            sizes: Sizes::new(
                &inner.plan,
                config.errors_dead_letter_queue_topic_name.as_deref(),
                &config.producer_properties(ids, number),
            ),
            producer_config: config.producer_properties(ids, number),
            cluster: Cluster::new(admin(&config.admin_properties(ids))?),
            restorer: Restorer::new(
                config.restore_consumer_properties(ids, number),
                ids.state_updater(number),
                ids.stream_thread(number),
            ),
            membership: commands,
            assignment: 0,
            producer_epoch: 0,
            sent_epoch: None,
            flushing_epoch: 0,
            took_ns: Vec::new(),
        };
        let shared = Arc::new(Shared::default());
        let (inner, shared_in, directory, globals) = (
            Arc::clone(inner),
            Arc::clone(&shared),
            Arc::clone(directory),
            Arc::clone(globals),
        );
        let report = report.clone();
        let poll_ms = config.poll_ms.max(1);
        let level = config.metrics_recording_level;
        let inner_timeout_ms = config.task_timeout_ms;
        let name = ids.stream_thread(number);
        let thread_id = name.clone();
        let body = move || {
            // The core and its tasks are made here and never leave this thread.
            let clock = Clock::new();
            let core = StreamThreadCore::new(inner.parts(&directory, &globals), clock.now_ms());
            let (plan, uncaught) = (Arc::clone(&inner.plan), Arc::clone(&inner.uncaught));
            let (shares, memory) = (Arc::clone(&inner.shares), *directory.memory());
            drop(inner);
            let metrics = ThreadMetrics::new(level, &thread_id, clock.now_ms(), Clock::now_ns());
            let thread = StreamThread {
                number,
                core,
                clients,
                events,
                plan,
                shared: shared_in,
                report,
                clock,
                poll_ms,
                state: State::Created,
                alive_ms: 0,
                published_ms: 0,
                published_ns: Clock::now_ns(),
                deep_ms: 0,
                fetched: Vec::new(),
                chunk: 100,
                gate: TaskGate::default(),
                closing: false,
                waiting: None,
                unanswered_since_ms: None,
                task_timeout_ms: inner_timeout_ms,
                metrics,
                uncaught,
                share: shares.of(&memory),
                shares,
                memory,
            };
            thread.run();
        };
        let thread = std::thread::Builder::new().name(name.clone()).spawn(body);
        let thread = thread.map_err(|error| Error::Bug {
            what: format!("no stream thread: {error}"),
        })?;
        Ok(ThreadHandle {
            name,
            shared,
            thread: Some(thread),
            state: State::Rebalancing,
            ended: false,
            replacing: false,
            leaving: false,
        })
    }
}
