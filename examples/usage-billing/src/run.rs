//! Billing on a broker, in this process: start, follow, stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, channel};

use crate::endpoint::Endpoint;
use crate::statistics::Statistics;
use crate::topics::Names;
use crate::topology::{self, OnDeparture};
use crate::watch;

/// How often the statistics are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often progress is printed, in looks.
const PRINT_LOOKS: u64 = 10;
/// How long a graceful stop may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// How to bill.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The broker.
    pub bootstrap: String,
    /// The topics.
    pub names: Names,
    /// Where local state lies. Each process of an application has a directory of its own.
    pub state_dir: PathBuf,
    /// Stream threads of this process (`num.stream.threads`).
    pub threads: u16,
    /// Kill this process, once, when it has taken so many departures.
    pub kill_after: Option<u64>,
    /// Go on when everything is billed, with metrics served here (port 0: a free one).
    pub serve: Option<SocketAddr>,
}

/// Bills until everything that was fed is committed, or, with `serve`, until SIGTERM or ctrl-c.
///
/// # Errors
/// When the application fails, or nothing moves any more although something is left.
#[allow(clippy::disallowed_methods, reason = "a program that tells how long it took")]
pub fn run(options: &RunOptions) -> Result<Statistics> {
    let started = Instant::now();
    let taken = Arc::new(AtomicU64::new(0));
    let on_departure = on_departure(options, Arc::clone(&taken));
    // Before the start: what is counted without a recorder is counted nowhere.
    let endpoint = options.serve.map(Endpoint::install).transpose()?;
    if let Some(endpoint) = &endpoint {
        println!("METRICS http://{}/metrics", endpoint.address());
    }
    let streams = KafkaStreams::new(topology::build(&options.names, on_departure)?, config(options)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // The start waits for the global table, before there is anything asynchronous to hold up.
    streams.start()?;
    let statistics = runtime.block_on(follow(&streams, options, &taken, started))?;
    println!("{statistics}");
    Ok(statistics)
}

fn config(options: &RunOptions) -> Result<StreamsConfig> {
    let properties = [
        ("application.id", options.names.application_id()),
        ("bootstrap.servers", options.bootstrap.clone()),
        ("state.dir", options.state_dir.display().to_string()),
        ("num.stream.threads", options.threads.to_string()),
        ("processing.guarantee", "exactly_once_v2".to_owned()),
        ("auto.offset.reset", "earliest".to_owned()),
        (
            "deserialization.exception.handler",
            "LogAndContinueExceptionHandler".to_owned(),
        ),
        ("errors.dead.letter.queue.topic.name", options.names.dead_letters()),
    ];
    // What the environment says (STREAMS_COMMIT_INTERVAL_MS=50) comes on top.
    let mut config = StreamsConfig::from_properties(properties)?;
    for (key, value) in streams_dsl::env_properties(std::env::vars()) {
        config = config.property(&key, &value)?;
    }
    Ok(config)
}

/// Counts departures, and kills the process in the middle of a transaction if it is told to.
fn on_departure(options: &RunOptions, taken: Arc<AtomicU64>) -> OnDeparture {
    let marker = options.state_dir.join("killed");
    match options.kill_after.filter(|_| !marker.exists()) {
        None => topology::counting(taken),
        Some(limit) => Arc::new(move || {
            if taken.fetch_add(1, Ordering::Relaxed) + 1 == limit {
                kill(&marker, limit);
            }
        }),
    }
}

/// SIGKILL, with a file left behind so that the same command goes on next time.
fn kill(marker: &Path, limit: u64) {
    println!("KILLED after {limit} departures");
    let marked = std::fs::write(marker, b"");
    if marked.is_ok() {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

async fn follow(
    streams: &KafkaStreams,
    options: &RunOptions,
    taken: &AtomicU64,
    started: Instant,
) -> Result<Statistics> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut changes = streams.state_changes();
    let mut statistics = Statistics::default();
    let mut look = tokio::time::interval(LOOK);
    let mut looks = 0;
    // Nothing is sent before there is a watcher; it is started when the tasks run, and so the internal topics exist.
    let (done, mut finished) = channel(1);
    let mut done = Some(done).filter(|_| options.serve.is_none());
    loop {
        tokio::select! {
            _ = term.recv() => break,
            _ = int.recv() => break,
            Some(result) = finished.recv() => {
                result?;
                break;
            }
            changed = changes.changed() => {
                changed?;
                let state = *changes.borrow_and_update();
                statistics.look(streams, taken, started);
                println!("STATE {state} t={:.2} restored={}", started.elapsed().as_secs_f64(), statistics.restored);
                if state == State::Running && let Some(done) = done.take() {
                    watch::until_committed(&options.bootstrap, &options.names, done)?;
                }
                if state.is_final() {
                    break;
                }
            }
            _ = look.tick() => {
                statistics.look(streams, taken, started);
                looks += 1;
                if looks % PRINT_LOOKS == 0 {
                    println!("PROGRESS {} departures, {} commits", statistics.taken, statistics.commits);
                }
            }
        }
    }
    statistics.look(streams, taken, started);
    close(streams, finished).await?;
    Ok(statistics)
}

async fn close(streams: &KafkaStreams, finished: Receiver<Result<()>>) -> Result<()> {
    drop(finished);
    let closed = streams.close_async(CLOSE_LIMIT).await;
    if let Some(error) = streams.error() {
        return Err(anyhow::anyhow!("{error}")).context("billing stopped");
    }
    if !closed {
        bail!("the application did not close within {} s", CLOSE_LIMIT.as_secs());
    }
    Ok(())
}
