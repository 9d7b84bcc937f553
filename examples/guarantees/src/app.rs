//! The application as a process of its own: it works until it is told to stop, or kills itself before.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};

use crate::{Names, OnOrder, topology};

/// The work on one order.
const WORK: Duration = Duration::from_micros(300);
/// How long a graceful stop may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// Runs until SIGTERM, or until it kills itself in the middle of order number `kill_at` of this process.
///
/// # Errors
/// When the application fails or does not close in time.
pub fn run(bootstrap: &str, guarantee: &str, names: &Names, state_dir: &Path, kill_at: Option<u64>) -> Result<()> {
    let config = config(bootstrap, guarantee, names, state_dir)?;
    let streams = KafkaStreams::new(topology(names, on_order(kill_at))?, config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    streams.start()?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut changes = streams.state_changes();
        tokio::select! {
            _ = term.recv() => {}
            _ = changes.wait_for(|state| *state == State::Error) => {}
        }
        let closed = streams.close_async(CLOSE_LIMIT).await;
        if let Some(error) = streams.error() {
            return Err(anyhow::anyhow!("{error}")).context("the application stopped");
        }
        if !closed {
            bail!("not closed within {} s", CLOSE_LIMIT.as_secs());
        }
        Ok(())
    })
}

/// The same for all three, but for the guarantee.
///
/// # Errors
/// When a setting is wrong.
pub fn config(bootstrap: &str, guarantee: &str, names: &Names, state_dir: &Path) -> Result<StreamsConfig> {
    let config = StreamsConfig::from_properties([
        ("application.id", names.prefix().to_owned()),
        ("bootstrap.servers", bootstrap.to_owned()),
        ("processing.guarantee", guarantee.to_owned()),
        ("state.dir", state_dir.display().to_string()),
        ("auto.offset.reset", "earliest".to_owned()),
        // 100 ms under exactly-once and 30 s otherwise, if nothing is said: comparable here.
        ("commit.interval.ms", "200".to_owned()),
        // As much as one claim of at-most-once takes of a partition.
        ("buffered.records.per.partition", "200".to_owned()),
        ("producer.linger.ms", "5".to_owned()),
    ])?;
    Ok(config)
}

fn on_order(kill_at: Option<u64>) -> OnOrder {
    let seen = AtomicU64::new(0);
    Arc::new(move || {
        work();
        if Some(seen.fetch_add(1, Ordering::Relaxed) + 1) == kill_at {
            // Nothing of this process goes on after this.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    })
}

#[allow(clippy::disallowed_methods, reason = "stands for the work on an order")]
fn work() {
    std::thread::sleep(WORK);
}
