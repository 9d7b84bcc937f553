//! `guarantees`: what each guarantee lost or doubled, as a table.

use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use clap::Parser;
use guarantees::{Names, app, demo};
use streams_testkit::{Kafka, KafkaOptions};

/// Runs one application under the three guarantees with the same kills, and shows what each lost or doubled. The broker is
/// the one that KAFKA_BOOTSTRAP names, else one is started.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Before the names of topics and groups, so that several runs can share a broker
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Be the application, under this guarantee
    #[arg(long, hide = true, value_name = "GUARANTEE", requires = "state_dir")]
    as_application: Option<String>,
    /// Where local state lies
    #[arg(long, hide = true)]
    state_dir: Option<PathBuf>,
    /// Kill this process in the middle of this order
    #[arg(long, hide = true)]
    kill_at: Option<u64>,
}

fn main() -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG").unwrap_or_else(|_| "error".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let args = Args::parse();
    if let (Some(guarantee), Some(state_dir)) = (&args.as_application, &args.state_dir) {
        let bootstrap = std::env::var("KAFKA_BOOTSTRAP").context("KAFKA_BOOTSTRAP names the broker")?;
        return app::run(
            &bootstrap,
            guarantee,
            &Names::new(&args.prefix),
            state_dir,
            args.kill_at,
        );
    }
    let kafka = Kafka::start(KafkaOptions::default())?;
    demo::run(&kafka, &prefix(&kafka, &args.prefix))
}

/// On a broker that outlives it, each run has topics of its own.
#[allow(clippy::disallowed_methods, reason = "a name that no other run has")]
fn prefix(kafka: &Kafka, given: &str) -> String {
    if !kafka.is_external() || !given.is_empty() {
        return given.to_owned();
    }
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("guarantees-{}.", now.as_millis())
}
