//! The peer application: the same topologies, arguments and environment as `StreamsPeer.java run`, to be measured
//! beside it. `peer run MODE APP IN OUT THREADS [IN2]`; see `tests/peers/README.md`.

mod modes;

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use streams_dsl::{KafkaStreams, State, StreamsConfig};
use tokio::signal::unix::{SignalKind, signal};

fn env(key: &str, default: &str) -> String {
    std::env::var(key)
        .ok()
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| default.to_owned())
}

fn main() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::new(env("LOG", "warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|first| first == "run") {
        args.remove(0);
    }
    let [mode, app, input, output, rest @ ..] = &args[..] else {
        bail!(
            "usage: peer run MODE APP IN OUT [THREADS [IN2]]; modes: {}",
            modes::NAMES.join(" ")
        );
    };
    let threads = rest.first().cloned().unwrap_or_else(|| env("THREADS", "1"));
    let second = rest.get(1).cloned().unwrap_or_else(|| env("IN2", ""));
    let topology = modes::topology(mode, input, output, &second)?;
    if env("DESCRIBE", "0") != "0" {
        println!("{}", topology.describe());
    }
    run(topology, config(app, &threads)?)
}

fn config(app: &str, threads: &str) -> anyhow::Result<StreamsConfig> {
    let mut properties = vec![
        ("application.id", app.to_owned()),
        ("bootstrap.servers", env("KAFKA_BOOTSTRAP", "127.0.0.1:9092")),
        ("processing.guarantee", env("GUARANTEE", "exactly_once_v2")),
        ("num.stream.threads", threads.to_owned()),
        ("state.dir", env("STATE_DIR", "/tmp/streams-peer-state-rust")),
        ("auto.offset.reset", "earliest".to_owned()),
        // Beside Java, which has no such commits.
        ("commit.adaptive", env("ADAPTIVE", "false")),
        ("commit.pipelined", env("PIPELINED", "true")),
    ];
    let optional = [
        ("CLIENT_ID", "client.id"),
        ("COMMIT_MS", "commit.interval.ms"),
        ("CACHE", "statestore.cache.max.bytes"),
        ("MEMORY", "memory.max.bytes"),
    ];
    for (variable, key) in optional {
        if let Ok(value) = std::env::var(variable) {
            properties.push((key, value));
        }
    }
    let extra = env("EXTRA", "");
    for pair in extra.split(',').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("EXTRA: `{pair}` is not key=value"))?;
        properties.push((key, value.to_owned()));
    }
    Ok(StreamsConfig::from_properties(properties)?)
}

#[allow(clippy::disallowed_methods, reason = "a program that measures its own start")]
fn run(topology: streams_dsl::Topology, config: StreamsConfig) -> anyhow::Result<()> {
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
                    if state == State::Running {
                        let restored: u64 = streams.threads().iter().filter_map(|t| t.status.as_ref()).map(|s| s.totals.restored_records).sum();
                        println!("STATE RUNNING t={:.2} restored={restored} restore_s=0", started.elapsed().as_secs_f64());
                    } else {
                        println!("STATE {state} t={:.2}", started.elapsed().as_secs_f64());
                    }
                    if state.is_final() {
                        break;
                    }
                }
            }
        }
        if let Some(error) = streams.error() {
            bail!("{error}");
        }
        if !streams.close_async(Duration::from_secs(60)).await {
            bail!("not closed within 60 s");
        }
        Ok(())
    })
}
