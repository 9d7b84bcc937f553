//! A Kafka Streams application as a process of its own: orders by environment, states on standard output, SIGTERM to stop.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use streams_dsl::{KafkaStreams, State, StreamsConfig, Topology};
use tokio::signal::unix::{SignalKind, signal};

/// How long an orderly stop may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// An environment variable; one that is empty counts as not set.
#[must_use]
pub fn env(key: &str, default: &str) -> String {
    std::env::var(key)
        .ok()
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| default.to_owned())
}

/// The settings in `EXTRA`: `key=value`, several separated by commas.
///
/// # Errors
/// When a part has no `=`.
pub fn extra_properties() -> anyhow::Result<Vec<(String, String)>> {
    let extra = env("EXTRA", "");
    let pairs = extra.split(',').filter(|pair| !pair.is_empty());
    let split = |pair: &str| {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("EXTRA: `{pair}` is not key=value"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    pairs.map(split).collect()
}

/// Logs to standard error, filtered by `LOG` (else `default`).
pub fn log_to_stderr(default: &str) {
    let filter = tracing_subscriber::EnvFilter::new(env("LOG", default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
}

/// Runs until SIGTERM or ctrl-c, then closes in an orderly way. Each state is a line `STATE …` on standard output.
///
/// # Errors
/// When the application can't start, fails, or does not close in time.
#[allow(clippy::disallowed_methods, reason = "a program that measures its own start")]
pub fn run(topology: Topology, config: StreamsConfig) -> anyhow::Result<()> {
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let streams = KafkaStreams::new(topology, config)?;
    runtime.block_on(async {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut changes = streams.state_changes();
        streams.start()?;
        loop {
            tokio::select! {
                _ = term.recv() => break,
                _ = int.recv() => break,
                changed = changes.changed() => {
                    changed?;
                    let state = *changes.borrow_and_update();
                    tell(&streams, state, started.elapsed());
                    if state.is_final() {
                        break;
                    }
                }
            }
        }
        if let Some(error) = streams.error() {
            bail!("{error}");
        }
        if !streams.close_async(CLOSE_LIMIT).await {
            bail!("not closed within {} s", CLOSE_LIMIT.as_secs());
        }
        Ok(())
    })
}

fn tell(streams: &KafkaStreams, state: State, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    if state != State::Running {
        println!("STATE {state} t={seconds:.2}");
        return;
    }
    let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
    let restored: u64 = statuses.map(|status| status.totals.restored_records).sum();
    println!("STATE RUNNING t={seconds:.2} restored={restored} restore_s=0");
}
