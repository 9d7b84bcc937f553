//! Bad use: `build` tells everything that is wrong, each with what to change.

use streams_dsl::prelude::*;

/// What is wrong with what `build` builds, one finding a line; empty: nothing.
fn findings(build: impl FnOnce(&StreamsBuilder)) -> String {
    let builder = StreamsBuilder::new();
    build(&builder);
    builder
        .build()
        .err()
        .map_or_else(String::new, |error| error.to_string())
}

fn numbers(builder: &StreamsBuilder, topic: &str) -> streams_dsl::KStream<String, i64> {
    builder.stream(topic)
}

/// Each kind of mistake, with words that its finding says.
type Mistake = (&'static str, fn(&StreamsBuilder));

const MISTAKES: [Mistake; 15] = [
    ("two stores named `s`", |b| {
        numbers(b, "in").group_by_key().count("s");
        numbers(b, "in2").group_by_key().count("s");
    }),
    ("two nodes named `n`", |b| {
        let in_ = numbers(b, "in");
        in_.filter(|_, _| true).named("n").to("a");
        in_.filter(|_, _| true).named("n").to("b");
    }),
    ("`unused` was added, but no processor is connected", |b| {
        b.add_state_store(Stores::key_value::<String, i64>("unused"));
        numbers(b, "in").to("out");
    }),
    ("the retention of 10 ms is too short", |b| {
        let windows = TimeWindows::of(SECOND).grace(SECOND);
        let short = Materialized::named("short").retention(10 * MILLISECOND);
        numbers(b, "in").group_by_key().windowed_by(windows).count(short);
    }),
    ("the rows of windows have no versions", |b| {
        let windows = TimeWindows::of(SECOND);
        numbers(b, "in")
            .group_by_key()
            .windowed_by(windows)
            .count(Materialized::named("v").versioned(HOUR));
    }),
    ("equal partition counts: l-repartition: 2, r-repartition: 3", |b| {
        let left = numbers(b, "l").repartition_with(Repartitioned::named("l").partitions(2));
        let right = numbers(b, "r").repartition_with(Repartitioned::named("r").partitions(3));
        left.join(&right, |_, l, r| l + r, JoinWindows::of(SECOND)).to("out");
    }),
    ("hold nothing", |b| {
        let windows = JoinWindows::of(SECOND).later_by_at_least(MINUTE);
        numbers(b, "l")
            .join(&numbers(b, "r"), |_, l, r| l + r, windows)
            .to("out");
    }),
    ("offset resets Earliest and Latest", |b| {
        b.stream_with(
            "reset",
            Consumed::<String, i64>::default().reset(AutoOffsetReset::Earliest),
        )
        .to("a");
        b.stream_with(
            "reset",
            Consumed::<String, i64>::default().reset(AutoOffsetReset::Latest),
        )
        .to("b");
    }),
    ("a topic has one type", |b| {
        numbers(b, "typed").to("a");
        b.stream::<String, String>("typed").to("b");
    }),
    ("topic `twice` is read by", |b| {
        numbers(b, "twice").to("a");
        b.table::<String, i64>("twice").to_stream().to("b");
    }),
    ("versioned tables can't be suppressed", |b| {
        let table = b.table_with::<String, i64>("t", Consumed::default(), Materialized::named("v").versioned(HOUR));
        table
            .suppress(Suppressed::until_time_limit(SECOND))
            .to_stream()
            .to("out");
    }),
    (
        "waits for 7200000 ms, but the versions of its table are kept for 3600000 ms",
        |b| {
            let table = b.table_with::<String, i64>("t", Consumed::default(), Materialized::named("v").versioned(HOUR));
            let joined = Joined::named("late").grace(2 * HOUR);
            numbers(b, "in")
                .join_table_with(&table, |_, a, b| a + b, joined)
                .to("out");
        },
    ),
    ("can't be a name", |b| {
        numbers(b, "in").group_by_key().count("my store");
    }),
    ("no regular expression", |b| {
        b.stream_pattern::<String, i64>("in-[", Consumed::default()).to("out");
    }),
    ("topic `in-a` is read by name, and by source", |b| {
        numbers(b, "in-a").to("a");
        b.stream_pattern::<String, i64>("in-.*", Consumed::default()).to("b");
    }),
];

#[test]
fn what_does_not_fit_together_is_found() {
    for (told, mistake) in MISTAKES {
        let found = findings(mistake);
        assert!(found.contains(told), "{told}: {found:?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    // Those that are no mistake any more when others are made beside them would hide here.
    let beside: Vec<Mistake> = MISTAKES
        .into_iter()
        .filter(|(told, _)| !told.contains("equal partition"))
        .collect();
    for (first, one) in &beside {
        for (second, other) in &beside {
            let found = findings(|b| {
                one(b);
                other(b);
            });
            assert!(
                found.contains(first) && found.contains(second),
                "{first}, {second}: {found}"
            );
        }
    }
}
