//! Late records as a stream.

use streams_dsl::doctest::{at, run, session, window};
use streams_dsl::prelude::*;

#[test]
fn a_record_is_told_once_for_each_window_that_it_misses() {
    run(|b| {
        let windows = TimeWindows::of(10 * MILLISECOND).advance_by(5 * MILLISECOND);
        let hopping = b.stream::<String, i64>("in").group_by_key().windowed_by(windows);
        let counts = hopping.count("counts");
        counts.to_stream().to("counts-out");
        hopping.late(&counts).to("late");
    })
    // At 20 the windows [0,10), [5,15) and [10,20) are closed.
    .pipe("in", [("a", 1, at(20)), ("a", 2, at(14)), ("a", 3, at(16))])
    .gives(
        "late",
        [
            (window("a", 5), 2, at(14)),
            (window("a", 10), 2, at(14)),
            (window("a", 10), 3, at(16)),
        ],
    )
    .gives(
        "counts-out",
        [
            (window("a", 15), 1, at(20)),
            (window("a", 20), 1, at(20)),
            (window("a", 15), 2, at(20)),
        ],
    )
    .dropped(3);
}

#[test]
fn a_restart_knows_what_is_late() {
    run(|b| {
        let minutes = b
            .stream::<String, i64>("in")
            .group_by_key()
            .windowed_by(TimeWindows::of(MINUTE));
        let minutes = minutes.emit_strategy(EmitStrategy::OnWindowClose);
        let counts = minutes.count("counts");
        minutes.late(&counts).to("late");
    })
    .pipe("in", [("a", 1, at(59_000)), ("a", 2, at(60_000))])
    .restart()
    .pipe("in", [("a", 3, at(1)), ("a", 4, at(119_999)), ("a", 5, at(2))])
    .gives("late", [(window("a", 0), 3, at(1)), (window("a", 0), 5, at(2))]);
}

#[test]
fn sliding_windows_tell_the_window_that_the_record_would_have_ended() {
    run(|b| {
        let sliding = b.stream::<String, i64>("in").group_by_key();
        let sliding = sliding.windowed_by(SlidingWindows::of(10 * MILLISECOND));
        let sums = sliding.reduce(|_, new, sum| sum + new, "sums");
        sliding.late(&sums).to("late");
    })
    .pipe(
        "in",
        [("a", 1, at(100)), ("a", 2, at(89)), ("a", 3, at(90)), ("a", 4, at(5))],
    )
    // 90 is in time for the window from it to 100, and late for the one that it ends.
    .gives(
        "late",
        [
            (window("a", 79), 2, at(89)),
            (window("a", 80), 3, at(90)),
            (window("a", 0), 4, at(5)),
        ],
    )
    .dropped(3);
}

#[test]
fn sessions_tell_the_session_that_the_record_would_have_made() {
    run(|b| {
        let sessions = b.stream::<String, i64>("in").group_by_key();
        let sessions = sessions.windowed_by(SessionWindows::of(10 * MILLISECOND));
        let counts = sessions.count("counts");
        sessions.late(&counts).to("late");
    })
    .pipe("in", [("a", 1, at(100)), ("a", 2, at(50)), ("a", 3, at(95))])
    .restart()
    .pipe("in", [("a", 4, at(80))])
    .gives(
        "late",
        [(session("a", 50, 50), 2, at(50)), (session("a", 80, 80), 4, at(80))],
    );
}

#[test]
fn nulls_are_dropped_and_are_not_late() {
    run(|b| {
        let minutes = b.stream::<Option<String>, i64>("in").group_by_key();
        let minutes = minutes.windowed_by(TimeWindows::of(MINUTE));
        let counts = minutes.count("counts");
        minutes.late(&counts).to("late");
    })
    .pipe("in", [(Some("a"), 1, at(60_000)), (None, 2, at(1))])
    .gives(
        "late",
        [] as [(streams_dsl::Windowed<Option<&str>>, i64, streams_dsl::doctest::At); 0],
    )
    .dropped(1);
}

#[test]
fn late_records_behind_a_repartition_are_those_of_the_aggregation() {
    run(|b| {
        let by_parity = b.stream::<String, i64>("in").group_by(|_, value| value % 2);
        let minutes = by_parity.windowed_by(TimeWindows::of(MINUTE));
        let sums = minutes.reduce(|_, new, sum| sum + new, "sums");
        sums.to_stream().to("sums-out");
        minutes.late(&sums).to("late");
    })
    .pipe("in", [("a", 2, at(60_000)), ("b", 4, at(0)), ("c", 6, at(60_001))])
    .gives("late", [(window(0, 0), 4, at(0))])
    .gives(
        "sums-out",
        [(window(0, 60_000), 2, at(60_000)), (window(0, 60_000), 8, at(60_001))],
    );
}

#[test]
fn late_records_can_be_grouped_and_keep_their_partition() {
    let builder = StreamsBuilder::new();
    let minutes = builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(TimeWindows::of(MINUTE));
    let sums = minutes.reduce(|_, new, sum| sum + new, "sums");
    let late = minutes.late(&sums).named("late-usage");
    late.group_by_key()
        .count("late-counts")
        .to_stream()
        .to("late-counts-out");
    let described = builder.build().unwrap().describe();
    assert!(
        described.contains("Processor: late-usage") && !described.contains("repartition"),
        "{described}"
    );
}

#[test]
fn only_the_table_of_an_aggregation_of_the_stream_has_late_records() {
    let builder = StreamsBuilder::new();
    let minutes = builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(TimeWindows::of(MINUTE));
    let large = minutes.count("counts").filter(|_, count| *count > 1);
    minutes.late(&large).to("late");
    let error = builder.build().err().unwrap().to_string();
    assert!(
        error.contains("`late` takes the table that an aggregation of this windowed stream made"),
        "{error}"
    );

    let builder = StreamsBuilder::new();
    let minutes = builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(TimeWindows::of(MINUTE));
    let words = builder
        .stream::<String, String>("words")
        .group_by_key()
        .windowed_by(TimeWindows::of(MINUTE));
    minutes.late(&words.count("counts")).to("late");
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("`late` takes the table"), "other values: {error}");
}
