//! How large a record may be (design rule 4.4), with a broker's own answers.

use std::sync::Arc;

use rdkafka::admin::{AdminOptions, AlterConfig, ResourceSpecifier};
use streams_dsl::{ErrorHandlers, KafkaStreams, LogAndContinue, StreamsBuilder};
use streams_testkit::NewRecord;
use streams_tests::local::{Local, Names, stop, wait_error, wait_running};

use crate::cases::{admin, wait};

/// A copy to a topic whose batches have `bytes` at most.
fn copying(case: &str, bytes: usize, topology: impl Fn(&StreamsBuilder, &Names) + Send + Sync + 'static) -> Local {
    let mut app = Local::without_topics(case, topology);
    app.topic("in", 1, &[]);
    app.topic("out", 1, &[("max.message.bytes", &bytes.to_string())]);
    app
}

fn copy(builder: &StreamsBuilder, names: &Names) {
    builder.stream::<String, String>(names.of("in")).to(names.of("out"));
}

/// Writes a record with the key `k` and a value of so many bytes for each of `lengths`.
fn produce(app: &Local, lengths: impl IntoIterator<Item = usize>) {
    let records = lengths
        .into_iter()
        .map(|length| NewRecord::new("k", vec![b'x'; length]));
    app.kafka()
        .produce(app.name("in"), records.collect::<Vec<_>>())
        .unwrap();
}

fn start_resuming(app: &Local) -> KafkaStreams {
    let streams = app.instance_at(app.state.path());
    streams.set_error_handlers(ErrorHandlers {
        production: Arc::new(LogAndContinue),
        ..ErrorHandlers::default()
    });
    streams.start().unwrap();
    wait_running(&streams);
    streams
}

fn counts(streams: &KafkaStreams) -> (u64, u64) {
    let statuses = streams.threads().into_iter().filter_map(|thread| thread.status);
    statuses.fold((0, 0), |(dropped, fenced), status| {
        (
            dropped + status.counters.dropped_records,
            fenced + status.totals.producers,
        )
    })
}

/// The size of a batch with the key `k` and one value of 128 to 8,191 bytes.
const fn batch_of(value: usize) -> usize {
    61 + 2 + 3 + 2 + 2 + value + 1
}

#[test]
fn rule_4_4_a_broker_takes_what_is_as_large_as_its_limit_and_the_next_byte_is_refused_before_it_is_sent() {
    let app = copying("exact-size", batch_of(5_000), copy);
    produce(&app, [5_000, 5_001, 5_000]);
    let streams = start_resuming(&app);
    app.wait_committed(&streams, "in", 3);
    assert_eq!(counts(&streams), (1, 0), "dropped, and no producer was replaced");
    stop(&streams);
    let lengths: Vec<usize> = app.rows("out").iter().map(|row| row.1.len()).collect();
    assert_eq!(lengths, [5_000, 5_000]);
}

/// librdkafka makes batches of up to a million bytes for every topic, and does not split one that is refused.
#[test]
fn rule_4_4_small_records_go_to_a_topic_of_small_batches_in_batches_that_it_takes() {
    let app = copying("small-batches", 4_000, copy);
    produce(&app, (0..5_000).map(|_| 100));
    let streams = app.start_running();
    app.wait_committed(&streams, "in", 5_000);
    assert_eq!(counts(&streams), (0, 0));
    stop(&streams);
    assert_eq!(app.rows("out").len(), 5_000);
}

#[test]
fn rule_4_4_a_limit_that_shrinks_while_the_application_runs_is_learned_by_the_refusal() {
    let app = copying("shrinking", 1_000_000, copy);
    produce(&app, [2_000]);
    let streams = start_resuming(&app);
    app.wait_committed(&streams, "in", 1);
    let smaller = AlterConfig::new(ResourceSpecifier::Topic(app.name("out"))).set("max.message.bytes", "1000");
    wait(admin().alter_configs([&smaller], &AdminOptions::new())).unwrap();
    produce(&app, [500, 2_000, 600]);
    app.wait_committed(&streams, "in", 4);
    assert_eq!(counts(&streams), (1, 1), "one record dropped, one producer replaced");
    stop(&streams);
    let lengths: Vec<usize> = app.rows("out").iter().map(|row| row.1.len()).collect();
    assert_eq!(lengths, [2_000, 500, 600]);
}

/// A topic that is chosen for each record is known only when a record comes.
#[test]
fn rule_4_4_the_limit_of_a_chosen_topic_is_learned_by_the_refusal() {
    let app = copying("chosen", 1_000, |builder, names| {
        let out = names.of("out").to_owned();
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.to_dynamic(move |_, _, _| out.clone());
    });
    produce(&app, [500, 2_000, 600]);
    let streams = start_resuming(&app);
    app.wait_committed(&streams, "in", 3);
    assert_eq!(counts(&streams), (1, 1));
    stop(&streams);
    assert_eq!(app.rows("out").len(), 2);
}

#[test]
fn rule_4_4_a_row_that_its_changelog_does_not_take_stops_the_application_and_names_both_sizes() {
    let mut app = Local::without_topics("large-row", |builder, names| {
        let grouped = builder.stream::<String, String>(names.of("in")).group_by_key();
        let all = grouped.reduce(|_, new, all: String| all + new, "all");
        all.to_stream().to(names.of("out"));
    });
    app.topic("in", 1, &[]);
    app.topic("out", 1, &[]);
    let changelog = app.changelog("all");
    let configs = [("cleanup.policy", "compact"), ("max.message.bytes", "1000")];
    app.kafka().create_topic(&changelog, 1, &configs).unwrap();
    // The row grows: the third makes it too large.
    produce(&app, [400, 400, 400]);
    let streams = app.instance_at(app.state.path());
    streams.set_error_handlers(ErrorHandlers {
        production: Arc::new(LogAndContinue),
        processing: Arc::new(LogAndContinue),
        ..ErrorHandlers::default()
    });
    streams.start().unwrap();
    let error = wait_error(&streams);
    let bytes = format!("{} bytes", batch_of(1_200));
    for words in [
        &*changelog,
        &bytes,
        "takes 1000",
        "max.message.bytes",
        "murmur2",
        "no handler",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(app.kafka().collect(&changelog).unwrap().len() <= 2);
}
