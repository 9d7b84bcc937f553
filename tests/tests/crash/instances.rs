//! Several instances of one application, each a process with a directory of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use streams_core::kafka::group::{GroupTarget, describe_group};
use streams_core::membership::codec::describe::DescribedGroup;
use streams_dsl::{
    BoxError, KafkaStreams, MINUTE, Processor, ProcessorContext, PunctuationType, PunctuatorId, Record, State,
    StreamsBuilder, StreamsConfig, TimeWindows, Topology,
};
use streams_testkit::{ChildApp, Exit, Kafka, KafkaOptions, NewRecord, RunningApp, is_child_of_test, wait_until};
use streams_tests::{broker, unique};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::application::{LIMIT, number};

const APP: &str = "instances::instance";
/// How often the punctuating application writes.
const EVERY: Duration = Duration::from_millis(200);

/// A broker that gives a silent member up after 6 s instead of 45, for tests in which it has to.
pub(crate) fn impatient_broker() -> &'static Kafka {
    static BROKER: OnceLock<Result<Kafka, String>> = OnceLock::new();
    let started = BROKER.get_or_init(|| {
        let options = KafkaOptions::own_broker()
            .setting("group.streams.session.timeout.ms", "6000")
            .setting("group.streams.heartbeat.interval.ms", "1000")
            // Event times of the cases are old, so `min.compaction.lag.ms` spares nothing: versions of a row would go at the
            // cleaner's next round, 15 s after the last.
            .setting("log.cleaner.backoff.ms", "86400000");
        Kafka::start(options).map_err(|error| error.to_string())
    });
    match started {
        Ok(kafka) => kafka,
        Err(error) => panic!("{error}"),
    }
}

/// What an application does with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Counts per key, every update written.
    Count,
    /// Counts per key and minute, with a minute of grace.
    Windows,
    /// Nothing but a record of the name of the instance every 200 ms.
    Punctuate,
    /// Counts per key and session.
    Sessions,
    /// Counts per key and window of 10 ms, emitted when the window is closed.
    OnClose,
    /// A table with its versions, and lookups in it.
    Versions,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Count => "count",
            Work::Windows => "windows",
            Work::Punctuate => "punctuate",
            Work::Sessions => "sessions",
            Work::OnClose => "on-close",
            Work::Versions => "versions",
        }
    }

    fn of(name: &str) -> Self {
        let all = [
            Work::Count,
            Work::Windows,
            Work::Punctuate,
            Work::Sessions,
            Work::OnClose,
            Work::Versions,
        ];
        let found = all.into_iter().find(|work| work.name() == name);
        found.unwrap_or_else(|| panic!("there is no work {name}"))
    }
}

/// An application and what it has on the broker and on disk.
pub(crate) struct Group {
    pub(crate) kafka: &'static Kafka,
    work: Work,
    pub(crate) id: String,
    pub(crate) input: String,
    pub(crate) output: String,
    properties: BTreeMap<String, String>,
    root: TempDir,
    /// How often each key was produced.
    produced: RefCell<BTreeMap<String, i64>>,
}

impl Group {
    pub(crate) fn new(work: Work, partitions: i32) -> Self {
        Self::on(broker(), work, partitions)
    }

    pub(crate) fn on(kafka: &'static Kafka, work: Work, partitions: i32) -> Self {
        let id = unique(work.name());
        let (input, output) = (format!("{id}.in"), format!("{id}.out"));
        for topic in [&input, &output] {
            kafka.create_topic(topic, partitions, &[]).unwrap();
        }
        let settings = [
            ("application.id", &*id),
            ("bootstrap.servers", kafka.bootstrap()),
            ("processing.guarantee", "exactly_once_v2"),
            ("auto.offset.reset", "earliest"),
            ("statestore.cache.max.bytes", "0"),
            ("streams.heartbeat.max.ms", "500"),
        ];
        let properties = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Group {
            kafka,
            work,
            id,
            input,
            output,
            properties,
            root: TempDir::new().unwrap(),
            produced: RefCell::default(),
        }
    }

    pub(crate) fn with(mut self, key: &str, value: &str) -> Self {
        self.properties.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The changelog of the counts.
    pub(crate) fn changelog(&self) -> String {
        format!("{}-counts-changelog", self.id)
    }

    /// The state directory of an instance.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// An instance, by the name of its directory.
    pub(crate) fn child(&self, name: &str) -> ChildApp {
        let mut orders = vec![
            self.work.name().to_owned(),
            name.to_owned(),
            self.input.clone(),
            self.output.clone(),
        ];
        orders.push(format!("state.dir={}", self.directory(name).display()));
        orders.extend(self.properties.iter().map(|(key, value)| format!("{key}={value}")));
        ChildApp::this_test(APP)
            .unwrap()
            .env("INSTANCE", orders.join("\n"))
            .env("RUST_LOG", "info")
    }

    pub(crate) fn start(&self, name: &str) -> RunningApp {
        self.child(name).start().unwrap()
    }

    /// Starts an instance that dies at a crash point.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn start_to_die_at(&self, name: &str, point: &str) -> RunningApp {
        let hook = format!("{point}=abort");
        self.child(name).env("STREAMS_TEST_HOOKS", hook).start().unwrap()
    }

    /// Writes one record for each of `keys` keys.
    pub(crate) fn feed(&self, keys: usize) {
        let keys: Vec<String> = (0..keys).map(|key| format!("k{key:03}")).collect();
        let records = keys.iter().map(|key| NewRecord::new(key.as_str(), "x"));
        self.kafka.produce(&self.input, records).unwrap();
        let mut produced = self.produced.borrow_mut();
        for key in keys {
            *produced.entry(key).or_default() += 1;
        }
    }

    /// Offsets of the input that the group has committed.
    pub(crate) fn committed(&self) -> BTreeMap<i32, i64> {
        self.kafka.topics().committed_offsets(&self.id, &self.input).unwrap()
    }

    /// Waits until the whole input is committed.
    pub(crate) fn wait_committed(&self, limit: Duration, running: &[&RunningApp]) {
        let mut end = self.kafka.topics().end_offsets(&self.input).unwrap();
        end.retain(|_, end| *end > 0);
        let done = wait_until("the whole input to be committed", limit, || {
            let committed = self.committed();
            Ok(end.iter().all(|(partition, end)| committed.get(partition) >= Some(end)))
        });
        if let Err(error) = done {
            let printed: Vec<String> = running.iter().map(|running| running.lines().join("\n")).collect();
            panic!("{error}; the processes printed:\n{}", printed.join("\n=====\n"));
        }
    }

    /// What the coordinator says about the group.
    pub(crate) fn described(&self) -> DescribedGroup {
        describe_group(&self.target()).unwrap()
    }

    fn target(&self) -> GroupTarget {
        GroupTarget::new(self.kafka.bootstrap(), &self.id)
    }

    /// Waits until the group is stable with so many tasks for each of its members; `meanwhile` is done between looks.
    pub(crate) fn wait_shared(&self, tasks: &[usize], meanwhile: impl Fn()) {
        let mut seen = Vec::new();
        let shared = wait_until("the tasks to be shared out", LIMIT, || {
            meanwhile();
            // At first there is no such group.
            let Ok(group) = describe_group(&self.target()) else {
                return Ok(false);
            };
            let active = |member: &streams_core::membership::codec::describe::DescribedMember| {
                let active = member.assignment.active.iter();
                active.map(|task| task.partitions.len()).sum::<usize>()
            };
            seen = group.members.iter().map(active).collect();
            seen.sort_unstable();
            Ok(group.state == "Stable" && seen == tasks)
        });
        shared.unwrap_or_else(|error| panic!("{error}: {seen:?}"));
    }

    /// The member ids and the process ids in the group.
    pub(crate) fn identities(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let members = self.described().members;
        let ids = members.iter().map(|member| member.member_id.clone()).collect();
        (ids, members.into_iter().map(|member| member.process_id).collect())
    }

    /// Every key was counted from 1 to the number of its records, in order, in output and changelog.
    pub(crate) fn assert_exact(&self) {
        for topic in [self.output.clone(), self.changelog()] {
            let mut counts: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            for record in self.kafka.collect(&topic).unwrap() {
                let value = record.value.as_deref().and_then(|value| value.try_into().ok()).unwrap();
                let count = i64::from_be_bytes(value);
                counts.entry(record.key_text()).or_default().push(count);
            }
            let produced = self.produced.borrow();
            assert_eq!(counts.len(), produced.len(), "{topic}");
            for (key, records) in &*produced {
                assert_eq!(counts[key], (1..=*records).collect::<Vec<_>>(), "{key} in {topic}");
            }
        }
    }
}

/// Waits until an instance runs all its tasks; answers how many changelog records were applied on the way.
pub(crate) fn wait_running(running: &mut RunningApp, limit: Duration) -> u64 {
    let line = running
        .wait_for_line(limit, |line| line.contains("RUNNING restored="))
        .unwrap();
    number(&line, "restored")
}

/// Stops an instance in an orderly way; answers how often its producers were fenced.
pub(crate) fn stop(running: &mut RunningApp) -> u64 {
    let exit = running.terminate(LIMIT).unwrap();
    let lines = running.lines();
    assert_eq!(exit, Exit::Code(0), "{}", lines.join("\n"));
    let closed = lines.iter().find(|line| line.contains("CLOSED fenced=")).unwrap();
    number(closed, "fenced")
}

#[test]
fn an_instance_alone_counts_and_closes() {
    let group = Group::new(Work::Count, 1);
    let mut running = group.start("A");
    group.feed(3);
    group.wait_committed(LIMIT, &[&running]);
    assert_eq!(stop(&mut running), 0);
    group.assert_exact();
}

#[test]
#[ignore = "run by an_instance_alone_counts_and_closes"]
fn instance() {
    if !is_child_of_test(APP) {
        return;
    }
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let orders = std::env::var("INSTANCE").unwrap();
    let lines: Vec<&str> = orders.lines().collect();
    let [work, name, input, output, properties @ ..] = &lines[..] else {
        panic!("INSTANCE={orders}")
    };
    let properties = properties.iter().map(|line| line.split_once('=').unwrap());
    let config = StreamsConfig::from_properties(properties).unwrap();
    run(topology(Work::of(work), name, input, output), config);
}

fn topology(work: Work, name: &str, input: &str, output: &str) -> Topology {
    let builder = StreamsBuilder::new();
    match work {
        Work::Count => {
            let stream = builder.stream::<String, String>(input);
            stream.group_by_key().count("counts").to_stream().to(output);
        }
        Work::Windows => {
            let windows = TimeWindows::of(MINUTE).grace(MINUTE);
            let grouped = builder.stream::<String, String>(input).group_by_key();
            let counts = grouped.windowed_by(windows).count("counts").to_stream();
            let plain = counts.select_key(|windowed, _| format!("{}@{}", windowed.key, windowed.window.start_ms));
            plain.to(output);
        }
        Work::Punctuate => {
            let name = name.to_owned();
            let stream = builder.stream::<String, String>(input);
            stream.process(move || Punctuate { name: name.clone() }).to(output);
        }
        Work::Sessions | Work::OnClose | Work::Versions => crate::restores::topology(work, &builder, input, output),
    }
    builder.build().unwrap()
}

/// Writes its name again and again, whatever comes in.
struct Punctuate {
    name: String,
}

impl Processor<String, String, String, String> for Punctuate {
    fn init(&mut self, cx: &mut ProcessorContext<'_, String, String>) -> Result<(), BoxError> {
        cx.schedule_every(EVERY, PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        _: &mut ProcessorContext<'_, String, String>,
        _: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        Ok(())
    }

    fn punctuate(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        _: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        let (key, value) = ("punct".to_owned(), format!("{} {timestamp_ms}", self.name));
        Ok(cx.forward(Record::new(&key, &value, timestamp_ms))?)
    }
}

/// Runs until SIGTERM, then closes in an orderly way. An instance that fails ends the process badly.
fn run(topology: Topology, config: StreamsConfig) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let streams = KafkaStreams::new(topology, config).unwrap();
    let total = |of: fn(&streams_core::runtime::CoreTotals) -> u64| -> u64 {
        let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
        statuses.map(|status| of(&status.totals)).sum()
    };
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate()).unwrap();
        let mut changes = streams.state_changes();
        streams.start().unwrap();
        loop {
            tokio::select! {
                _ = term.recv() => break,
                changed = changes.changed() => {
                    changed.unwrap();
                    let state = *changes.borrow_and_update();
                    if state == State::Running {
                        println!("RUNNING restored={}", total(|totals| totals.restored_records));
                    }
                    assert!(!state.is_final(), "{state}: {:?}", streams.error());
                }
            }
        }
        assert!(streams.close_async(LIMIT).await, "not closed in time");
        if let Some(error) = streams.error() {
            panic!("{error}");
        }
        println!("CLOSED fenced={}", total(|totals| totals.producers_fenced));
    });
}
