//! Counts words: of standard input on the test driver, or on a broker with `--bootstrap`.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};

/// How long the last commit may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// Counts the words of standard input, or, with a broker, those of topic `lines` into topic `counts-by-word`.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// The broker, host:port; both topics have to exist there
    #[arg(long)]
    bootstrap: Option<String>,
    /// Where local state lies
    #[arg(long, default_value = "word-count-state")]
    state_dir: PathBuf,
}

fn main() -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG").unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let args = Args::parse();
    match args.bootstrap {
        None => on_the_test_driver(),
        Some(bootstrap) => on_a_broker(bootstrap, args.state_dir),
    }
}

fn on_the_test_driver() -> Result<()> {
    let mut counter = word_count::Counter::new()?;
    for line in std::io::stdin().lock().lines() {
        for (word, count) in counter.count(&line?)? {
            println!("{word}\t{count}");
        }
    }
    Ok(())
}

fn on_a_broker(bootstrap: String, state_dir: PathBuf) -> Result<()> {
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
