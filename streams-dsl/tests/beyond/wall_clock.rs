//! Closing by the wall clock, exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use streams_dsl::doctest::{At, at, run, session, window};
use streams_dsl::prelude::*;

const NONE: [(Windowed<&str>, i64, At); 0] = [];

fn counts(builder: &StreamsBuilder, close: impl FnOnce(Minutes) -> Minutes) {
    let minutes = builder.stream::<String, i64>("in").group_by_key();
    let minutes = minutes
        .windowed_by(TimeWindows::of(MINUTE))
        .emit_strategy(EmitStrategy::OnWindowClose);
    let minutes = close(minutes);
    let counts = minutes.count("counts");
    counts.to_stream().to("out");
    minutes.late(&counts).to("late");
}

type Minutes = streams_dsl::TimeWindowedKStream<String, i64>;

#[test]
fn a_silent_source_gives_its_last_results_and_what_comes_late_then_is_late_after_a_restart_too() {
    run(|b| counts(b, |minutes| minutes.close_when_idle(10 * SECOND)))
        .advance(50_000)
        .pipe("in", [("a", 1, at(50_000)), ("b", 1, at(50_001))])
        .advance(19_000)
        .gives("out", NONE)
        .advance(1_000)
        .gives(
            "out",
            [(window("a", 0), 1, at(50_000)), (window("b", 0), 1, at(50_001))],
        )
        .restart()
        .pipe("in", [("a", 2, at(59_999)), ("a", 3, at(60_000))])
        .advance(1_000_000)
        .gives("late", [(window("a", 0), 2, at(59_999))])
        .gives("out", [(window("a", 60_000), 1, at(60_000))]);
}

#[test]
fn while_records_come_an_idle_source_is_not_closed_and_a_wall_clock_goes_on() {
    // A second of wall clock between records that are an hour old.
    let busy = |close: fn(Minutes) -> Minutes| {
        let mut run = run(|b| counts(b, close)).advance(3_600_000);
        for second in 0..30 {
            run = run.pipe("in", [("a", second, at(second))]).advance(1_000);
        }
        run
    };
    busy(|minutes| minutes.close_when_idle(10 * SECOND)).gives("out", NONE);
    busy(|minutes| minutes.close_by_wall_clock(10 * SECOND)).gives("out", [(window("a", 0), 3, at(2))]);
}

#[test]
fn before_the_first_record_nothing_is_closed() {
    run(|b| counts(b, |minutes| minutes.close_when_idle(SECOND)))
        .advance(3_600_000)
        .pipe("in", [("a", 1, at(5))])
        .gives("late", NONE)
        .advance(2_000)
        .gives("out", [(window("a", 0), 1, at(5))]);
}

#[test]
fn sessions_and_sliding_windows_close_too() {
    run(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key();
        let sessions = grouped
            .windowed_by(SessionWindows::of(10 * SECOND))
            .emit_strategy(EmitStrategy::OnWindowClose);
        sessions
            .close_when_idle(5 * SECOND)
            .count("sessions")
            .to_stream()
            .to("sessions-out");
        let sliding = grouped
            .windowed_by(SlidingWindows::of(10 * SECOND))
            .emit_strategy(EmitStrategy::OnWindowClose);
        sliding
            .close_by_wall_clock(5 * SECOND)
            .count("sliding")
            .to_stream()
            .to("sliding-out");
    })
    .advance(20_000)
    .pipe("in", [("a", 1, at(20_000)), ("a", 1, at(21_000))])
    .advance(60_000)
    .gives("sessions-out", [(session("a", 20_000, 21_000), 2, at(21_000))])
    .gives(
        "sliding-out",
        [
            (window("a", 10_000), 1, at(20_000)),
            (window("a", 11_000), 2, at(21_000)),
            (window("a", 20_001), 1, at(21_000)),
        ],
    );
}

#[test]
fn rule_2_2_a_crash_in_the_middle_takes_the_decision_back_with_the_results() {
    let fails = Arc::new(AtomicBool::new(true));
    let builder = StreamsBuilder::new();
    let minutes = builder.stream::<String, i64>("in").group_by_key();
    let minutes = minutes
        .windowed_by(TimeWindows::of(MINUTE))
        .emit_strategy(EmitStrategy::OnWindowClose);
    let shared = Arc::clone(&fails);
    let counts = minutes.close_when_idle(10 * SECOND).count("counts").to_stream();
    counts
        .peek(move |key, _| assert!(!(shared.load(Ordering::Relaxed) && key.key == "b"), "told to"))
        .to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let input = TestInput::<String, i64>::of("in");
    input.pipe_all(&mut driver, [("a", 1, 1), ("b", 1, 2)]).unwrap();
    // `a` is emitted, then `b` fails: the transaction has to go as a whole.
    driver.advance_wall_clock_time(100 * SECOND).unwrap_err();
    let output = TestOutput::<Windowed<String>, i64>::of("out");
    assert!(output.is_empty(&driver));
    fails.store(false, Ordering::Relaxed);
    driver.restart().unwrap();
    // The window is open again: the decision was not committed.
    input.pipe(&mut driver, "a", 1, 3).unwrap();
    driver.advance_wall_clock_time(100 * SECOND).unwrap();
    let told: Vec<(String, i64)> = output
        .read_key_values_to_list(&mut driver)
        .unwrap()
        .into_iter()
        .map(|(key, count)| (key.key, count))
        .collect();
    assert_eq!(told, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    driver.restart().unwrap();
    driver.advance_wall_clock_time(100 * SECOND).unwrap();
    assert!(output.is_empty(&driver), "told once");
}

#[test]
fn days_close_by_the_wall_clock_at_their_own_midnight() {
    let day = 1_743_289_200_000_i64;
    run(|b| {
        let days = CalendarWindows::of(Calendar::days("Europe/Berlin"));
        let daily = b.stream::<String, i64>("in").group_by_key().windowed_by(days);
        let daily = daily.emit_strategy(EmitStrategy::OnWindowClose).close_when_idle(MINUTE);
        daily.count("counts").to_stream().to("out");
    })
    .advance(day + 5)
    .pipe("in", [("a", 1, at(day + 5))])
    .advance(23 * 3_600_000 - 10)
    .gives("out", NONE)
    .advance(120_000)
    .gives("out", [(window("a", day), 1, at(day + 5))]);
}

#[test]
fn without_emission_on_close_the_build_says_so() {
    let builder = StreamsBuilder::new();
    let minutes = builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(TimeWindows::of(MINUTE));
    minutes.close_when_idle(SECOND).count("counts").to_stream().to("out");
    let sessions = builder
        .stream::<String, i64>("in")
        .group_by_key()
        .windowed_by(SessionWindows::of(MINUTE));
    sessions
        .close_by_wall_clock(SECOND)
        .count("sessions")
        .to_stream()
        .to("sessions-out");
    let error = builder.build().err().unwrap().to_string();
    assert_eq!(error.matches("must be emitted on close").count(), 2, "{error}");
}
