//! The application under test: a copy or a count by the DSL, as a process of its own, with topics of its own.

use std::cell::RefCell;
use std::time::Duration;

use streams_dsl::{KafkaStreams, State, StreamsBuilder, StreamsConfig, Topology};
use streams_testkit::{ChildApp, Exit, NewRecord, RunningApp, is_child_of_test, wait_until};
use streams_tests::{broker, topic, unique};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::exact::assert_exact;

const APP: &str = "application::application";
/// Partitions of inputs and outputs, and so tasks.
pub(crate) const PARTITIONS: i32 = 2;
/// The longest wait for anything; a busy machine is slow.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// What the application does with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every record as it is.
    Copy,
    /// Records per key, every update written.
    CountEach,
    /// Records per key behind the record cache: an update per key and commit.
    CountCached,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Copy => "copy",
            Kind::CountEach => "count-each",
            Kind::CountCached => "count-cached",
        }
    }
}

/// An application with what it has on the broker and on disk.
pub(crate) struct Application {
    pub(crate) kind: Kind,
    /// `processing.guarantee`.
    pub(crate) guarantee: &'static str,
    pub(crate) id: String,
    pub(crate) input: String,
    pub(crate) output: String,
    state: TempDir,
    /// The keys of everything produced, in order, by number; what comes out is computed from it.
    pub(crate) produced: RefCell<Vec<u32>>,
}

impl Application {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::under(kind, "exactly_once_v2")
    }

    /// As `new`, with this guarantee.
    pub(crate) fn under(kind: Kind, guarantee: &'static str) -> Self {
        Application {
            kind,
            guarantee,
            id: unique(kind.name()),
            input: topic(&format!("{}-in", kind.name()), PARTITIONS),
            output: topic(&format!("{}-out", kind.name()), PARTITIONS),
            state: TempDir::new().unwrap(),
            produced: RefCell::default(),
        }
    }

    /// The changelog of the counts.
    pub(crate) fn changelog(&self) -> String {
        format!("{}-counts-changelog", self.id)
    }

    /// Writes a record for each key; the value tells its place in the whole input. Event time is now: a transaction marker
    /// behind old records would roll the segment, and the broker would compact the changelog that is compared.
    pub(crate) fn produce(&self, keys: impl IntoIterator<Item = u32>) {
        let mut produced = self.produced.borrow_mut();
        let first = produced.len();
        produced.extend(keys);
        let records = produced[first..].iter().zip(first..);
        let records = records.map(|(key, place)| NewRecord::new(format!("k{key:07}"), format!("{place:08}")));
        broker().produce(&self.input, records).unwrap();
    }

    /// How it is started; `hooks` arms crash points.
    pub(crate) fn child(&self, hooks: &str, log: &str) -> ChildApp {
        let state = self.state.path().to_str().unwrap();
        ChildApp::this_test(APP)
            .unwrap()
            .env("KAFKA_BOOTSTRAP", broker().bootstrap())
            .env(
                "APPLICATION",
                format!(
                    "{} {} {} {} {} {state}",
                    self.kind.name(),
                    self.guarantee,
                    self.id,
                    self.input,
                    self.output
                ),
            )
            .env("STREAMS_TEST_HOOKS", hooks)
            .env("RUST_LOG", log)
    }

    pub(crate) fn start(&self) -> RunningApp {
        self.child("", "info").start().unwrap()
    }

    /// Waits until every record of the input is committed.
    pub(crate) fn wait_committed(&self, running: &mut RunningApp) {
        let topics = broker().topics();
        let end = topics.end_offsets(&self.input).unwrap();
        let done = wait_until("the whole input to be committed", LIMIT, || {
            Ok(topics.committed_offsets(&self.id, &self.input)? == end)
        });
        if let Err(error) = done {
            panic!("{error}; the process printed:\n{}", running.lines().join("\n"));
        }
    }

    /// Forgets the local state, as a lost disk does.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn lose_stores(&self) {
        fn remove_tasks(folder: &std::path::Path) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && name.starts_with("0_") {
                    std::fs::remove_dir_all(&path).unwrap();
                } else if path.is_dir() {
                    remove_tasks(&path);
                }
            }
        }
        remove_tasks(self.state.path());
    }
}

/// The number behind `name=` in a line.
pub(crate) fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line
        .split_once(&format!("{name}="))
        .unwrap_or_else(|| panic!("no {name} in {line}"));
    rest.split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// Waits until all tasks run; answers how many changelog records were applied on the way.
pub(crate) fn wait_running(running: &mut RunningApp) -> u64 {
    let line = running
        .wait_for_line(LIMIT, |line| line.contains("RUNNING restored="))
        .unwrap();
    number(&line, "restored")
}

#[test]
fn an_application_that_nobody_kills_copies_and_closes() {
    let app = Application::new(Kind::Copy);
    let mut running = app.start();
    assert_eq!(wait_running(&mut running), 0);
    app.produce(0..100);
    app.wait_committed(&mut running);
    assert_eq!(running.terminate(LIMIT).unwrap(), Exit::Code(0));
    assert_exact(&app);
}

#[test]
#[ignore = "run by an_application_that_nobody_kills_copies_and_closes"]
fn application() {
    if !is_child_of_test(APP) {
        return;
    }
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let orders = std::env::var("APPLICATION").unwrap();
    let [kind, guarantee, id, input, output, state] = orders.split(' ').collect::<Vec<_>>()[..] else {
        panic!("APPLICATION={orders}")
    };
    let mut properties = vec![
        ("application.id", id.to_owned()),
        ("bootstrap.servers", std::env::var("KAFKA_BOOTSTRAP").unwrap()),
        ("state.dir", state.to_owned()),
        ("processing.guarantee", guarantee.to_owned()),
        ("auto.offset.reset", "earliest".to_owned()),
    ];
    if kind == Kind::CountEach.name() {
        properties.push(("statestore.cache.max.bytes", "0".to_owned()));
    }
    run(
        topology(kind, input, output),
        StreamsConfig::from_properties(properties).unwrap(),
    );
}

fn topology(kind: &str, input: &str, output: &str) -> Topology {
    let builder = StreamsBuilder::new();
    let first = std::sync::Once::new();
    let stream = builder
        .stream::<String, String>(input)
        .peek(move |_, _| first.call_once(|| println!("FIRST RECORD")));
    if kind == Kind::Copy.name() {
        stream.to(output);
    } else {
        stream.group_by_key().count("counts").to_stream().to(output);
    }
    builder.build().unwrap()
}

/// Runs until SIGTERM, then closes in an orderly way. An instance that fails ends the process badly.
fn run(topology: Topology, config: StreamsConfig) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let streams = KafkaStreams::new(topology, config).unwrap();
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
                        let restored: u64 = streams.threads().iter().filter_map(|thread| thread.status.as_ref()).map(|status| status.totals.restored_records).sum();
                        println!("RUNNING restored={restored}");
                    }
                    assert!(!state.is_final(), "{state}: {:?}", streams.error());
                }
            }
        }
        assert!(streams.close_async(LIMIT).await, "not closed in time");
        if let Some(error) = streams.error() {
            panic!("{error}");
        }
    });
}
