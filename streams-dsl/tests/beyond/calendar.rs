//! Days and months in a time zone.

use streams_dsl::doctest::{at, run, window};
use streams_dsl::prelude::*;
use streams_dsl::serdes::{Long, Utf8};

const HOUR_MS: i64 = 3_600_000;
/// Midnight in Berlin, 30 March 2025: a day of 23 hours begins.
const SPRING_MS: i64 = 1_743_289_200_000;
/// Midnight in Berlin, 26 October 2025: a day of 25 hours begins.
const AUTUMN_MS: i64 = 1_761_429_600_000;

fn days() -> CalendarWindows {
    CalendarWindows::of(Calendar::days("Europe/Berlin"))
}

fn sums(builder: &StreamsBuilder, windows: CalendarWindows, emit: EmitStrategy) {
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    let sums = grouped.windowed_by(windows).emit_strategy(emit);
    sums.reduce(|_, new, sum| sum + new, "sums").to_stream().to("out");
}

#[test]
fn a_day_of_23_hours_and_one_of_25_hold_their_records_to_the_last_millisecond() {
    for (start, hours) in [(SPRING_MS, 23), (AUTUMN_MS, 25)] {
        let next = start + hours * HOUR_MS;
        run(|b| sums(b, days(), EmitStrategy::OnWindowUpdate))
            .pipe(
                "in",
                [
                    ("a", 1, at(start - 1)),
                    ("a", 2, at(start)),
                    ("a", 4, at(next - 1)),
                    ("a", 8, at(next)),
                ],
            )
            .gives(
                "out",
                [
                    (window("a", start - 24 * HOUR_MS), 1, at(start - 1)),
                    (window("a", start), 2, at(start)),
                    (window("a", start), 6, at(next - 1)),
                    (window("a", next), 8, at(next)),
                ],
            );
    }
}

#[test]
fn a_day_is_emitted_when_its_own_end_and_the_grace_are_over() {
    for (start, hours) in [(SPRING_MS, 23), (AUTUMN_MS, 25)] {
        let closes = start + hours * HOUR_MS + HOUR_MS;
        let windows = days().grace(HOUR);
        run(|b| sums(b, windows, EmitStrategy::OnWindowClose))
            .pipe(
                "in",
                [("a", 1, at(start)), ("b", 2, at(closes - 1)), ("a", 4, at(start + 5))],
            )
            .restart()
            .pipe("in", [("b", 8, at(closes)), ("a", 16, at(start + 6))])
            .gives("out", [(window("a", start), 5, at(start + 5))]);
    }
}

#[test]
fn several_days_that_close_at_once_are_emitted_in_the_order_of_their_ends() {
    run(|b| sums(b, days(), EmitStrategy::OnWindowClose))
        .pipe(
            "in",
            [
                ("b", 1, at(SPRING_MS)),
                ("a", 2, at(SPRING_MS + 23 * HOUR_MS)),
                ("a", 4, at(SPRING_MS + 500 * HOUR_MS)),
            ],
        )
        .gives(
            "out",
            [
                (window("b", SPRING_MS), 1, at(SPRING_MS)),
                (window("a", SPRING_MS + 23 * HOUR_MS), 2, at(SPRING_MS + 23 * HOUR_MS)),
            ],
        );
}

#[test]
fn suppress_waits_for_the_end_of_the_day_and_reads_it_back_from_the_changelog() {
    let end = AUTUMN_MS + 25 * HOUR_MS;
    run(|b| {
        let counts = b
            .stream::<String, i64>("in")
            .group_by_key()
            .windowed_by(days())
            .count("counts");
        counts
            .suppress(Suppressed::until_window_closes().with_name("final"))
            .to_stream()
            .to("out");
    })
    .pipe("in", [("a", 1, at(AUTUMN_MS)), ("a", 1, at(end - 1))])
    .restart()
    .pipe("in", [("b", 1, at(end - 2)), ("b", 1, at(end))])
    .gives(
        "out",
        [
            (window("a", AUTUMN_MS), 2, at(end - 1)),
            (window("b", AUTUMN_MS), 1, at(end - 2)),
        ],
    );
}

#[test]
fn a_table_of_days_knows_their_ends_with_and_without_cache() {
    for cache_bytes in [0, 1 << 20] {
        let builder = StreamsBuilder::new();
        let counts = builder
            .stream::<String, i64>("in")
            .group_by_key()
            .windowed_by(days())
            .count("counts");
        let lengths = counts
            .to_stream()
            .map(|day, _| (day.key.clone(), (day.window.end_ms - day.window.start_ms) / HOUR_MS));
        lengths.to("out");
        let mut options = DriverOptions::default();
        options.settings.cache_bytes = cache_bytes;
        let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
        let input = TestInput::<String, i64>::of("in");
        input.pipe(&mut driver, "a", 1, SPRING_MS).unwrap();
        input.pipe(&mut driver, "a", 1, AUTUMN_MS).unwrap();
        let out = TestOutput::<String, i64>::of("out")
            .read_values_to_list(&mut driver)
            .unwrap();
        assert_eq!(out, [23, 25]);
    }
}

#[test]
fn keys_have_the_bytes_of_javas_time_windows_on_topics_and_in_the_changelog() {
    let builder = StreamsBuilder::new();
    sums(&builder, days(), EmitStrategy::OnWindowUpdate);
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "ann", 1, SPRING_MS + 7)
        .unwrap();
    let key = [&b"ann"[..], &SPRING_MS.to_be_bytes()].concat();
    assert_eq!(driver.read_all("out")[0].key, Some(key.clone()));
    assert_eq!(
        driver.read_all("app-sums-changelog")[0].key,
        Some([&key[..], &[0; 4]].concat())
    );
    let output = TestOutput::with("out", days().key_serde(Utf8), Long);
    let (day, _): (Windowed<String>, i64) = output.read_key_value(&mut driver).unwrap().unwrap();
    assert_eq!(day.window, Window::new(SPRING_MS, SPRING_MS + 23 * HOUR_MS));
}

#[test]
fn months_that_close_with_the_year_take_late_records_until_then() {
    let day = 24 * HOUR_MS;
    let months = CalendarWindows::of(Calendar::months("UTC"))
        .close_with(Calendar::years("UTC"))
        .grace(DAY);
    run(|b| sums(b, months, EmitStrategy::OnWindowClose))
        .pipe(
            "in",
            [
                ("a", 1, at(0)),
                ("a", 2, at(364 * day)),
                ("a", 4, at(365 * day)),
                ("a", 8, at(30 * day)),
            ],
        )
        .restart()
        .pipe("in", [("a", 16, at(366 * day)), ("a", 32, at(1))])
        .gives(
            "out",
            [
                (window("a", 0), 9, at(30 * day)),
                (window("a", 334 * day), 2, at(364 * day)),
            ],
        )
        .dropped(1);
}

#[test]
fn hours_that_close_with_the_month_are_kept_until_it_is_over() {
    let hours = TimeWindows::of(HOUR).close_with(Calendar::months("UTC"));
    run(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key().windowed_by(hours);
        let sums = grouped.emit_strategy(EmitStrategy::OnWindowClose);
        sums.reduce(|_, new, sum| sum + new, "sums").to_stream().to("out");
    })
    .pipe(
        "in",
        [("a", 1, at(5)), ("a", 2, at(30 * 24 * HOUR_MS)), ("a", 4, at(6))],
    )
    .restart()
    .pipe("in", [("a", 8, at(31 * 24 * HOUR_MS))])
    .gives(
        "out",
        [
            (window("a", 0), 5, at(6)),
            (window("a", 30 * 24 * HOUR_MS), 2, at(30 * 24 * HOUR_MS)),
        ],
    );
}

#[test]
fn late_records_of_days_are_told_with_their_day() {
    run(|b| {
        let daily = b.stream::<String, i64>("in").group_by_key().windowed_by(days());
        let counts = daily.count("counts");
        daily.late(&counts).to("late");
    })
    .pipe(
        "in",
        [("a", 1, at(SPRING_MS + 23 * HOUR_MS)), ("a", 2, at(SPRING_MS + 9))],
    )
    .gives("late", [(window("a", SPRING_MS), 2, at(SPRING_MS + 9))]);
}

#[test]
fn days_of_another_zone_need_a_reset_says_the_lockfile() {
    let lock = |zone| {
        let builder = StreamsBuilder::new();
        let windows = CalendarWindows::of(Calendar::days(zone));
        sums(&builder, windows, EmitStrategy::OnWindowUpdate);
        streams_dsl::lock::TopologyLock::of(&builder.build().unwrap()).unwrap()
    };
    let (berlin, new_york) = (lock("Europe/Berlin"), lock("America/New_York"));
    assert_eq!(lock("Europe/Berlin").compare(&berlin).verdict(), None);
    let report = new_york.compare(&berlin);
    assert_eq!(
        report.verdict(),
        Some(streams_dsl::lock::LockVerdict::NeedsReset),
        "{report}"
    );
}

#[test]
fn an_unknown_zone_is_found_by_the_build() {
    let builder = StreamsBuilder::new();
    sums(
        &builder,
        CalendarWindows::of(Calendar::days("Europe/Atlantis")),
        EmitStrategy::OnWindowUpdate,
    );
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("`Europe/Atlantis` is no time zone"), "{error}");
}
