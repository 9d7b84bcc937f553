//! A broker that is away for longer than a transaction may take: the application waits for it and goes on.

use std::process::Command;
use std::time::Duration;

use streams_dsl::{KafkaStreams, State};
use streams_testkit::{Kafka, KafkaOptions, wait_until};
use streams_tests::local::{LIMIT, Local, expected, stop, wait_running};

/// Longer than the transactions' timeout, and than the controller lets a broker be silent (3 s): when it goes on, it leads
/// nothing and coordinates nothing until the controller has it back.
const AWAY: Duration = Duration::from_secs(7);

fn signal(kafka: &Kafka, name: &str) {
    let pid = kafka.pid().unwrap().to_string();
    let sent = Command::new("kill").args([name, &pid]).status().unwrap();
    assert!(sent.success());
}

fn commits(streams: &KafkaStreams) -> u64 {
    let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
    statuses.map(|status| status.totals.commits).sum()
}

/// Also a system under load does that to its broker: one was seen to answer NOT_COORDINATOR for 30 s.
#[test]
fn a_broker_that_stands_still_for_longer_than_a_transaction_may_ends_no_application() {
    let kafka: &'static Kafka = Box::leak(Box::new(Kafka::start(KafkaOptions::own_broker()).unwrap()));
    let mut app = Local::on(kafka, "standing-still", |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.group_by_key().count("c").to_stream().to(names.of("out"));
    })
    .with("producer.transaction.timeout.ms", "3000");
    app.topic("in", 1, &[]);
    app.topic("out", 1, &[]);
    let streams = app.start_running();
    let mut rows = Vec::new();
    for round in 1..=2_i64 {
        let before = commits(&streams);
        let (at, next) = (round * 10, round * 10 + 1);
        app.produce("in", &[("a", Some("x"), at)]);
        // It stands still in the middle of the work.
        wait_until("work", LIMIT, || {
            Ok(commits(&streams) > before || streams.state().is_final())
        })
        .unwrap();
        app.produce("in", &[("a", Some("x"), next)]);
        signal(kafka, "-STOP");
        std::thread::sleep(AWAY);
        signal(kafka, "-CONT");
        app.wait_committed(&streams, "in", round * 2);
        wait_running(&streams);
        rows.extend([at, next]);
    }
    assert_eq!(streams.state(), State::Running, "{:?}", streams.error());
    stop(&streams);
    let texts: Vec<String> = (1..=rows.len()).map(|count| count.to_string()).collect();
    let counted: Vec<(&str, &str, i64)> = texts
        .iter()
        .zip(rows)
        .map(|(text, at)| ("a", text.as_str(), at))
        .collect();
    assert_eq!(app.counts("out"), expected(&counted));
}
