//! The peer application: the same topologies, arguments and environment as `StreamsPeer.java run`, to be measured
//! beside it. `peer run MODE APP IN OUT THREADS [IN2]`; see `tests/peers/README.md`.

mod modes;

use anyhow::bail;
use benches::{env, extra_properties, log_to_stderr, run};
use streams_dsl::StreamsConfig;

fn main() -> anyhow::Result<()> {
    log_to_stderr("warn");
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
    let extra = extra_properties()?;
    properties.extend(extra.iter().map(|(key, value)| (key.as_str(), value.clone())));
    Ok(StreamsConfig::from_properties(properties)?)
}
