//! Prices orders on a broker until SIGTERM or ctrl-c, and stops gracefully.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};

/// How long the last commit may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// Prices the orders of topic `orders` into topic `orders.priced`; both have to exist.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// The broker, host:port
    #[arg(long, env = "KAFKA_BOOTSTRAP")]
    bootstrap: String,
    /// Where local state lies; this topology has none but its identity
    #[arg(long, default_value = "order-enrichment-state")]
    state_dir: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let args = Args::parse();
    let topology = order_enrichment::topology(|customer, priced| println!("{customer}: {} cents", priced.total_cents))?;
    let config = StreamsConfig::new("order-enrichment", args.bootstrap).state_dir(args.state_dir);
    let streams = KafkaStreams::new(topology, config)?;
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut changes = streams.state_changes();
    streams.start()?;
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = changes.wait_for(|state| *state == State::Error) => {}
    }
    // Finishes the records in hand, commits them and leaves the group, so that another instance takes over at once.
    if !streams.close_async(CLOSE_LIMIT).await {
        bail!("not closed within {} s", CLOSE_LIMIT.as_secs());
    }
    match streams.error() {
        Some(error) => bail!("{error}"),
        None => Ok(()),
    }
}
