//! The same topology on a broker, until SIGTERM or ctrl-c.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};

/// How long the last commit may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// Counts until it is told to stop.
pub(crate) fn run(bootstrap: String, state_dir: PathBuf) -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let streams = KafkaStreams::new(
        word_count::topology()?,
        StreamsConfig::new("word-count", bootstrap).state_dir(state_dir),
    )?;
    streams.start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let mut changes = streams.state_changes();
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = changes.wait_for(|state| *state == State::Error) => {}
        }
        if !streams.close_async(CLOSE_LIMIT).await {
            bail!("not closed within {} s", CLOSE_LIMIT.as_secs());
        }
        match streams.error() {
            Some(error) => bail!("{error}"),
            None => Ok(()),
        }
    })
}
