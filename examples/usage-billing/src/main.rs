//! `usage-billing`: feeds departures, bills them, ends when everything is committed.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use anyhow::{Result, bail};
use clap::Parser;
use streams_testkit::{Kafka, KafkaOptions};
use usage_billing::data::DataDir;
use usage_billing::feed::Feed;
use usage_billing::report::Results;
use usage_billing::run::{RunOptions, run};
use usage_billing::topics::Names;
use usage_billing::{demo, endpoint, offline, plain, sample_dir, topology};

/// Bills airlines for departures, exactly once. The broker is the one that KAFKA_BOOTSTRAP names, else one is started.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// Folder with flights.csv, planes.csv and airlines.csv (also .gz, .zip) [default: the January sample]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep running when everything is billed, with http://127.0.0.1:9404/metrics for Prometheus
    #[arg(long)]
    serve: bool,
    /// The port of /metrics (0: a free one)
    #[arg(long, value_name = "PORT", default_value_t = endpoint::ADDRESS.port(), requires = "serve")]
    metrics_port: u16,
    /// The address of /metrics; any but 127.0.0.1 shows it to the network
    #[arg(long, value_name = "IP", default_value_t = endpoint::ADDRESS.ip(), requires = "serve")]
    metrics_host: IpAddr,
    /// Kill this process with SIGKILL, once, after N departures; the same command again goes on
    #[arg(long, value_name = "N")]
    kill_after: Option<u64>,
    /// Show it all: a SIGKILL and a restart in the middle, every total checked
    #[arg(long)]
    demo: bool,
    /// Before the names of topics and group, so that several runs can share a broker
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Where local state lies [default: ./usage-billing-state, or a temporary folder beside a broker started here]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Stream threads. More processes share the work too: the same command with --fed and another --state-dir
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// The topics are fed already
    #[arg(long)]
    fed: bool,
}

fn main() -> Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("LOG").unwrap_or_else(|_| "error".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let args = Args::parse();
    let data = DataDir::new(args.data.clone().unwrap_or_else(sample_dir));
    match Kafka::start(KafkaOptions::default()) {
        Ok(kafka) if args.demo => demo::run(&kafka, &demo_prefix(&kafka, &args.prefix), &data),
        Ok(kafka) => bill(&kafka, &args, &data),
        Err(error) if error.is_missing_tool() => {
            println!("{error}\n\nUntil then, the same topology on the test driver, without a broker:");
            without_broker(&data)
        }
        Err(error) => Err(error.into()),
    }
}

/// A demonstration on a broker that outlives it takes topics of its own, so that it can be shown again.
#[allow(clippy::disallowed_methods, reason = "a name that no other run has")]
fn demo_prefix(kafka: &Kafka, prefix: &str) -> String {
    if !kafka.is_external() || !prefix.is_empty() {
        return prefix.to_owned();
    }
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("demo-{}.", now.as_millis())
}

fn bill(kafka: &Kafka, args: &Args, data: &DataDir) -> Result<()> {
    if args.kill_after.is_some() && !kafka.is_external() {
        bail!(
            "--kill-after needs a broker that outlives this process: set KAFKA_BOOTSTRAP=host:port (a run with --serve \
             prints the address of its broker, use --prefix beside it), or see --demo"
        );
    }
    let names = Names::with_prefix(&args.prefix);
    if !args.fed {
        let feed = Feed::read(data, |_| true)?;
        println!("feeding {} departures to {}", feed.departures.len(), kafka.bootstrap());
        names.create(kafka)?;
        feed.write_tables(kafka, &names)?;
        feed.write_departures(kafka, &names)?;
    }
    // State without its broker is worth nothing: beside a broker that ends with this process it ends too.
    let temporary = tempfile::tempdir()?;
    let usual = if kafka.is_external() {
        PathBuf::from("usage-billing-state")
    } else {
        temporary.path().join("state")
    };
    let options = RunOptions {
        bootstrap: kafka.bootstrap().to_owned(),
        names: names.clone(),
        state_dir: args.state_dir.clone().unwrap_or(usual),
        threads: args.threads,
        kill_after: args.kill_after,
        serve: args
            .serve
            .then_some(SocketAddr::new(args.metrics_host, args.metrics_port)),
    };
    run(&options)?;
    if !args.fed {
        println!("\n{}", Results::read(kafka, &names)?.invoice_table());
    }
    Ok(())
}

fn without_broker(data: &DataDir) -> Result<()> {
    let names = Names::default();
    let (feed, expected) = (Feed::read(data, |_| true)?, plain::compute(data, |_| true)?);
    let results = offline::run(&feed, &names, topology::counting(Arc::new(AtomicU64::new(0))))?;
    println!("\n{}", results.invoice_table());
    println!(
        "cancelled, not billed: {}; dead letters: {}",
        results.cancelled,
        results.dead_letters.len()
    );
    demo::verdict(&results, &expected, &feed)
}
