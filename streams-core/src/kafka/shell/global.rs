//! The global thread: fills the global stores, first to the end of their topics, then as they grow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use streams_state::ChangelogFacts;

use super::clock::Clock;
use super::cluster::Cluster;
use crate::TopicPartition;
use crate::error::{Error, ProcessResult};
use crate::kafka::admin::{Isolation, OffsetSpec};
use crate::kafka::consumer::{AssignedPartition, BatchConsumer};
use crate::kafka::errors::{ClientError, ClientErrorKind};
use crate::runtime::{CoreParts, GlobalCore, GlobalState};
use crate::topology::TopologyPlan;

/// Records applied in one batch.
const BATCH_RECORDS: usize = 10_000;
/// The longest wait for records before the thread looks whether it has to stop, milliseconds.
const WAIT_MS: u64 = 100;

/// The running global thread.
pub(super) struct GlobalThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for GlobalThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn client(error: ClientError) -> Box<Error> {
    Box::new(Error::Kafka {
        what: "reading global tables".to_owned(),
        code: error.name.clone(),
        message: error.to_string(),
    })
}

/// Starts the global thread and waits until its stores have what was in the topics, at most `timeout_ms` without
/// progress. `failed` is called if it dies later.
pub(super) fn start(
    parts: CoreParts,
    mut state: GlobalState,
    cluster: &mut Cluster,
    consumer: &[(String, String)],
    name: String,
    timeout_ms: i64,
    failed: impl FnOnce(Box<Error>) + Send + 'static,
) -> ProcessResult<GlobalThread> {
    let (logs, facts) = logs(&parts.plan, cluster)?;
    state.compare(&parts.plan, &facts, Clock::new().now_ms())?;
    let consumer = consumer.to_vec();
    let stop = Arc::new(AtomicBool::new(false));
    let (ready, readiness) = std::sync::mpsc::channel();
    let stopped = Arc::clone(&stop);
    let worker = move || {
        let result = run(&parts, state, &logs, &consumer, &stopped, &ready);
        if let Err(error) = result {
            tracing::error!(%error, "the global thread stops");
            // Whoever still waits for the stores hears it first.
            if let Err(unheard) = ready.send(Progress::Failed(error)) {
                if let Progress::Failed(error) = unheard.0 {
                    failed(error);
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name(name).spawn(worker);
    let thread = thread.map_err(|error| Error::Bug {
        what: format!("no global thread: {error}"),
    })?;
    let running = GlobalThread {
        stop,
        thread: Some(thread),
    };
    let bound = std::time::Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    loop {
        match readiness.recv_timeout(bound) {
            Ok(Progress::Ready) => return Ok(running),
            Ok(Progress::Applied(remaining)) => tracing::info!(remaining, "global stores are being filled"),
            Ok(Progress::Failed(error)) => return Err(error),
            Err(_) => {
                return Err(Box::new(Error::Timeout {
                    what: "filling the global stores".to_owned(),
                    waited_ms: timeout_ms,
                    setting: "task.timeout.ms",
                }));
            }
        }
    }
}

enum Progress {
    Applied(i64),
    Ready,
    Failed(Box<Error>),
}

/// Start and end (committed) of a partition.
type Log = (TopicPartition, i64, i64);

fn logs(
    plan: &TopologyPlan,
    cluster: &mut Cluster,
) -> ProcessResult<(Vec<Log>, Vec<(TopicPartition, ChangelogFacts)>)> {
    let topics = cluster.topics(plan).map_err(client)?;
    let mut partitions = Vec::new();
    for global in &plan.global {
        let count = topics.partitions(&global.topic);
        let count = count.ok_or_else(|| Error::Topics {
            message: format!("the topic {} of a global table does not exist: create it", global.topic),
        })?;
        partitions.extend((0..count).map(|partition| TopicPartition::new(&*global.topic, partition)));
    }
    let starts = cluster
        .offsets(&partitions, OffsetSpec::Earliest, Isolation::ReadUncommitted)
        .map_err(client)?;
    let facts = match cluster.changelogs(&partitions) {
        Ok(facts) => facts,
        // Whoever may read a table may not always look at its settings.
        Err(error) if matches!(error.kind, ClientErrorKind::Denied(_)) => {
            tracing::warn!(%error, "the global stores are not compared with their topics: rows that were deleted while this instance was away for longer than delete.retention.ms may stay");
            Vec::new()
        }
        Err(error) => return Err(client(error)),
    };
    let ends = cluster
        .offsets(&partitions, OffsetSpec::Latest, Isolation::ReadCommitted)
        .map_err(client)?;
    let of = |map: &BTreeMap<TopicPartition, i64>, at: &TopicPartition| map.get(at).copied().unwrap_or(0);
    let log = |at: TopicPartition| {
        let (start, end) = (of(&starts, &at), of(&ends, &at));
        (at, start, end)
    };
    Ok((partitions.into_iter().map(log).collect(), facts))
}

fn run(
    parts: &CoreParts,
    state: GlobalState,
    logs: &[(TopicPartition, i64, i64)],
    config: &[(String, String)],
    stop: &AtomicBool,
    progress: &std::sync::mpsc::Sender<Progress>,
) -> ProcessResult {
    let clock = Clock::new();
    let mut core = GlobalCore::new(parts, state, logs, clock.now_ms())?;
    let mut consumer = BatchConsumer::new(config).map_err(client)?;
    let assigned = core.assignments().iter().map(|a| AssignedPartition {
        topic: a.topic_partition.topic.to_string(),
        partition: a.topic_partition.partition,
        start_offset: a.start_offset,
        id: a.id,
        incarnation: a.incarnation,
    });
    consumer.assign(&assigned.collect::<Vec<_>>()).map_err(client)?;
    let mut fetched = Vec::new();
    let mut waited_for = true;
    while !stop.load(Ordering::Relaxed) {
        if waited_for && core.is_restored() {
            waited_for = false;
            let _ = progress.send(Progress::Ready);
        }
        consumer.fetch(BATCH_RECORDS, WAIT_MS, &mut fetched).map_err(client)?;
        let applied = core.apply(&mut fetched, clock.now_ms())?;
        if waited_for && applied > 0 {
            let _ = progress.send(Progress::Applied(core.remaining()));
        }
    }
    Ok(())
}
