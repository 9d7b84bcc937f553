//! Records that can't be used, and rows that leave the cache.

use streams_dsl::{Consumed, Timestamps};
use streams_tests::local::{Local, expected, record, stop, wait_error};

#[test]
fn case_cache_evict_context() {
    let app = Local::new("evict-context", &[("in", 1), ("out", 1)], |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        let sum = |left: &String, right: &String| {
            let number = |text: &String| text.parse::<i64>().unwrap();
            (number(left) + number(right)).to_string()
        };
        stream
            .group_by_key()
            .reduce(move |_, value, so_far| sum(&so_far, value), "c")
            .to_stream()
            .to(names.of("out"));
    })
    // The case has 30 s; the cache is full long before these 3 s are over.
    .with("commit.interval.ms", "3000")
    .with("commit.adaptive", "false")
    .with("statestore.cache.max.bytes", "20000");
    app.produce("in", &[("a", Some("1"), 10)]);
    let many = (0..5_000).map(|at| record(&(&format!("k{at:04}"), Some("1"), 100)).partition(0));
    app.kafka().produce(app.name("in"), many.collect::<Vec<_>>()).unwrap();
    let streams = app.start();
    // The row leaves the cache in the middle of the transaction, long before its commit.
    let evicted = || Ok(app.uncommitted("out").iter().any(|record| record.key_text() == "a"));
    streams_testkit::wait_until("the eviction", streams_tests::local::LIMIT, evicted).unwrap();
    app.wait_committed(&streams, "in", 5_001);
    stop(&streams);
    assert!(app.rows("out").contains(&("a".to_owned(), "1".to_owned(), 10)));
    let changelog = app.kafka().collect(&app.changelog("c")).unwrap();
    let row = changelog.iter().find(|record| record.key_text() == "a").unwrap();
    assert_eq!(row.timestamp, 10);
    assert_eq!(changelog.len(), 5_001);
}

/// A record without a usable time, as an old producer writes it.
fn minus_one(case: &str, timestamps: Option<Timestamps<String, String>>) -> Local {
    let app = Local::new(case, &[("in", 1), ("out", 1)], move |builder, names| {
        let consumed = match timestamps.clone() {
            Some(timestamps) => Consumed::default().timestamps(timestamps),
            None => Consumed::default(),
        };
        let stream = builder.stream_with::<String, String>(names.of("in"), consumed);
        stream.map_values(|_, value| value.to_uppercase()).to(names.of("out"));
    });
    app.produce("in", &[("a", Some("x"), 7), ("b", Some("y"), -1), ("c", Some("z"), 9)]);
    app
}

#[test]
fn case_ts_minus_one_stops_and_names_the_record() {
    let app = minus_one("ts-fail", None);
    let error = wait_error(&app.start());
    assert!(error.contains(&format!("{}-0 at offset 1", app.name("in"))), "{error}");
    let rows = app.rows("out");
    assert!(rows.is_empty() || rows == expected(&[("a", "X", 7)]), "{rows:?}");
}

#[test]
fn case_ts_minus_one_is_skipped_or_dated_where_that_is_asked_for() {
    let skipped = minus_one("ts-skip", Some(Timestamps::SkipInvalid));
    let streams = skipped.start();
    skipped.wait_committed(&streams, "in", 3);
    stop(&streams);
    assert_eq!(skipped.rows("out"), expected(&[("a", "X", 7), ("c", "Z", 9)]));
    let counters = streams.threads()[0].status.as_ref().unwrap().counters;
    assert_eq!(counters.dropped_records, 1);
    let dated = minus_one("ts-partition-time", Some(Timestamps::PartitionTimeOnInvalid));
    let streams = dated.start();
    dated.wait_committed(&streams, "in", 3);
    stop(&streams);
    assert_eq!(
        dated.rows("out"),
        expected(&[("a", "X", 7), ("b", "Y", 7), ("c", "Z", 9)])
    );
}

/// `in` → upper case → `out`, which takes batches of 100,000 bytes; the second of three records has 500,000.
fn with_a_large_record(case: &str) -> Local {
    let mut app = Local::without_topics(case, |builder, names| {
        let stream = builder.stream::<String, String>(names.of("in"));
        stream.map_values(|_, value| value.to_uppercase()).to(names.of("out"));
    });
    app.topic("in", 1, &[]);
    app.topic("out", 1, &[("max.message.bytes", "100000")]);
    let large = "x".repeat(500_000);
    app.produce(
        "in",
        &[
            ("a", Some("small1"), 1),
            ("b", Some(&large), 2),
            ("c", Some("small2"), 3),
        ],
    );
    app
}

#[test]
fn case_eos_record_too_large_stops_and_names_topic_and_sizes() {
    let app = with_a_large_record("large-fail");
    let error = wait_error(&app.start());
    // 61 for the batch, and 11 beside key and value.
    for words in [
        app.name("out"),
        "500073 bytes",
        "takes 100000",
        "max.message.bytes",
        "murmur2",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    let rows = app.rows("out");
    assert!(rows.is_empty() || rows == expected(&[("a", "SMALL1", 1)]), "{rows:?}");
    let committed = app.kafka().topics().committed_offsets(&app.id, app.name("in")).unwrap();
    assert!(committed.get(&0).is_none_or(|offset| *offset <= 1), "{committed:?}");
}

#[test]
fn case_eos_record_too_large_is_dropped_and_counted_where_a_handler_says_so() {
    let app = with_a_large_record("large-resume");
    let handlers = streams_dsl::ErrorHandlers {
        production: std::sync::Arc::new(streams_dsl::LogAndContinue),
        ..streams_dsl::ErrorHandlers::default()
    };
    let streams = app.instance_at(app.state.path());
    streams.set_error_handlers(handlers);
    streams.start().unwrap();
    app.wait_committed(&streams, "in", 3);
    stop(&streams);
    assert_eq!(app.rows("out"), expected(&[("a", "SMALL1", 1), ("c", "SMALL2", 3)]));
    let status = streams.threads()[0].status.clone().unwrap();
    assert_eq!((status.counters.dropped_records, status.totals.aborts), (1, 0));
}
