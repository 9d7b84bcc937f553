//! Windows of every kind against plain recomputation, and what is emitted when.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::collections::BTreeMap;
use std::time::Duration;

use streams_core::runtime::RuntimeSettings;
use streams_core::test_driver::LogRecord;
use streams_dsl::{
    DriverOptions, EmitStrategy, Headers, KTable, Materialized, SessionWindows, SlidingWindows, StreamsBuilder,
    Suppressed, TimeWindows, TopologyTestDriver, UnlimitedWindows, Windowed,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A row that came out: key, window start and end, value, event time.
type Row = (String, i64, i64, Option<i64>, i64);

struct Run(TopologyTestDriver);

impl Run {
    fn of(build: impl FnOnce(&StreamsBuilder) -> KTable<Windowed<String>, i64>) -> Self {
        Self::with(DriverOptions::default(), build)
    }

    fn with(options: DriverOptions, build: impl FnOnce(&StreamsBuilder) -> KTable<Windowed<String>, i64>) -> Self {
        let builder = StreamsBuilder::new();
        let rows = build(&builder).to_stream();
        rows.map(|key, value| {
            let window = key.window;
            (format!("{}@{}/{}", key.key, window.start_ms, window.end_ms), *value)
        })
        .to("out");
        Run(TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap())
    }

    fn pipe(&mut self, key: &str, value: i64, time: i64) -> Vec<Row> {
        let bytes = value.to_be_bytes();
        self.0
            .pipe("in", Some(key.as_bytes()), Some(&bytes), time, Headers::empty())
            .unwrap();
        self.rows()
    }

    fn rows(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        while let Some(record) = self.0.read_record("out") {
            rows.push(row(&record));
        }
        rows
    }
}

fn row(record: &LogRecord) -> Row {
    let key = String::from_utf8(record.key.clone().unwrap()).unwrap();
    let (key, window) = key.split_once('@').unwrap();
    let (start, end) = window.split_once('/').unwrap();
    let value = record
        .value
        .as_deref()
        .map(|bytes| i64::from_be_bytes(bytes.try_into().unwrap()));
    (
        key.to_owned(),
        start.parse().unwrap(),
        end.parse().unwrap(),
        value,
        record.timestamp_ms,
    )
}

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Records of two keys with times that mostly go forward.
    fn records(&mut self, count: usize, spread: u64) -> Vec<(&'static str, i64, i64)> {
        let mut base = 0;
        (0..count)
            .map(|_| {
                base += self.below(spread / 2);
                let time = base + self.below(spread);
                let key = if self.below(3) == 0 { "b" } else { "a" };
                (key, 1 + self.below(9) as i64, time as i64)
            })
            .collect()
    }
}

/// The last row of each window: what a table of the output holds.
fn table(rows: impl IntoIterator<Item = Row>) -> BTreeMap<(String, i64, i64), (i64, i64)> {
    let mut table = BTreeMap::new();
    for (key, start, end, value, time) in rows {
        match value {
            Some(value) => table.insert((key, start, end), (value, time)),
            None => table.remove(&(key, start, end)),
        };
    }
    table
}

fn sum(_: &String, value: &i64, sum: i64) -> i64 {
    sum + value
}

fn sliding(difference: u64, grace: u64, emit: EmitStrategy, store: Materialized<String, i64>) -> Run {
    Run::of(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key();
        let windows = SlidingWindows::of(ms(difference)).grace(ms(grace));
        grouped
            .windowed_by(windows)
            .emit_strategy(emit)
            .aggregate(|| 0, sum, store)
    })
}

/// Every set of records within the difference, by the definition: windows `[t - d, t]`, and `[t + 1, t + 1 + d]` where it
/// is not empty; none starts before the epoch.
fn sliding_by_definition(records: &[(&str, i64, i64)], d: i64) -> BTreeMap<(String, i64, i64), (i64, i64)> {
    let mut windows = BTreeMap::new();
    for (key, _, time) in records {
        for start in [(time - d).max(0), time + 1] {
            let inside: Vec<_> = records
                .iter()
                .filter(|(other, _, t)| other == key && (start..=start + d).contains(t))
                .collect();
            if let Some(latest) = inside.iter().map(|(_, _, t)| *t).max() {
                let sum = inside.iter().map(|(_, value, _)| value).sum();
                windows.insert(((*key).to_owned(), start, start + d), (sum, latest));
            }
        }
    }
    windows
}

#[test]
fn sliding_windows_are_those_of_the_definition_in_whatever_order_records_come() {
    for seed in 0..8 {
        let records = Random(seed).records(60, 40);
        let mut run = sliding(10, 1_000_000, EmitStrategy::OnWindowUpdate, "s".into());
        let rows: Vec<Row> = records
            .iter()
            .flat_map(|(key, value, time)| run.pipe(key, *value, *time))
            .collect();
        assert_eq!(table(rows), sliding_by_definition(&records, 10), "seed {seed}");
    }
}

#[test]
fn sliding_windows_drop_what_is_closed() {
    let mut run = sliding(10, 0, EmitStrategy::OnWindowUpdate, "s".into());
    run.pipe("a", 1, 100);
    // The left window of 99 is closed, its right one [100, 110] holds the record at 100.
    assert_eq!(
        run.pipe("a", 2, 99),
        [
            ("a".into(), 90, 100, Some(3), 100),
            ("a".into(), 100, 110, Some(1), 100)
        ]
    );
    assert_eq!(run.0.dropped_records(), 1);
    assert_eq!(run.pipe("a", 4, 89), []);
    assert_eq!(run.0.dropped_records(), 2);
}

fn sessions(gap: u64, grace: u64, emit: EmitStrategy, store: Materialized<String, i64>) -> Run {
    Run::of(|b| {
        let grouped = b.stream::<String, i64>("in").group_by_key();
        let windows = SessionWindows::of(ms(gap)).grace(ms(grace));
        grouped
            .windowed_by(windows)
            .emit_strategy(emit)
            .aggregate(|| 0, sum, |_, one, other| one + other, store)
    })
}

#[test]
fn a_closed_session_takes_no_record_even_if_that_is_in_time_for_itself() {
    let mut run = sessions(7, 9, EmitStrategy::OnWindowClose, "s".into());
    assert_eq!(run.pipe("a", 1, 160), []);
    assert_eq!(run.pipe("b", 1, 177), [("a".into(), 160, 160, Some(1), 160)]);
    // Within the gap of the session that was emitted, and itself not late before 181.
    assert_eq!(run.pipe("a", 2, 164), []);
    assert_eq!(run.pipe("b", 1, 181), [("a".into(), 164, 164, Some(2), 164)]);
    assert_eq!(run.0.dropped_records(), 0);
}

fn sessions_by_definition(records: &[(&str, i64, i64)], gap: i64) -> BTreeMap<(String, i64, i64), (i64, i64)> {
    let mut sessions = BTreeMap::new();
    for key in ["a", "b"] {
        let mut times: Vec<_> = records
            .iter()
            .filter(|record| record.0 == key)
            .map(|(_, value, time)| (*time, *value))
            .collect();
        times.sort_unstable();
        let mut open: Option<(i64, i64, i64)> = None;
        for (time, value) in times {
            open = match open {
                Some((start, end, sum)) if time - end <= gap => Some((start, time, sum + value)),
                closed => {
                    sessions.extend(closed.map(|(start, end, sum)| ((key.to_owned(), start, end), (sum, end))));
                    Some((time, time, value))
                }
            };
        }
        sessions.extend(open.map(|(start, end, sum)| ((key.to_owned(), start, end), (sum, end))));
    }
    sessions
}

#[test]
fn sessions_are_those_of_the_definition_in_whatever_order_records_come() {
    for seed in 0..8 {
        let records = Random(seed).records(60, 40);
        let mut run = sessions(7, 1_000_000, EmitStrategy::OnWindowUpdate, "s".into());
        let rows: Vec<Row> = records
            .iter()
            .flat_map(|(key, value, time)| run.pipe(key, *value, *time))
            .collect();
        assert_eq!(table(rows), sessions_by_definition(&records, 7), "seed {seed}");
    }
}

#[test]
fn a_cached_session_store_ends_with_the_same_rows() {
    for seed in 0..4 {
        let records = Random(seed).records(60, 40);
        let settings = RuntimeSettings {
            cache_bytes: 1 << 20,
            commit_adaptive: false,
            commit_interval_ms: 60_000,
            ..RuntimeSettings::default()
        };
        let options = DriverOptions {
            settings,
            commit_each: false,
            ..DriverOptions::default()
        };
        let mut run = Run::with(options, |b| {
            let windows = SessionWindows::of(ms(7)).grace(ms(1_000_000));
            let grouped = b.stream::<String, i64>("in").group_by_key();
            grouped
                .windowed_by(windows)
                .aggregate(|| 0, sum, |_, one, other| one + other, "s")
        });
        let keys: Vec<_> = records.iter().map(|record| record.0.as_bytes()).collect();
        let values: Vec<_> = records.iter().map(|record| record.1.to_be_bytes()).collect();
        let piped = keys
            .iter()
            .zip(&values)
            .zip(&records)
            .map(|((key, value), record)| (Some(*key), Some(&value[..]), record.2));
        run.0.pipe_all("in", piped).unwrap();
        let rows = run.rows();
        assert!(rows.len() < 60, "each session is emitted once: {}", rows.len());
        assert_eq!(table(rows), sessions_by_definition(&records, 7), "seed {seed}");
    }
}

#[test]
fn a_session_grows_by_a_delete_and_a_longer_one_and_its_changelog_holds_javas_bytes() {
    let mut run = sessions(10, 0, EmitStrategy::OnWindowUpdate, "sess".into());
    run.pipe("k", 1, 10_000);
    let grown = run.pipe("k", 1, 10_001);
    let expected = [
        ("k".to_owned(), 10_000, 10_000, None, 10_000),
        ("k".to_owned(), 10_000, 10_001, Some(2), 10_001),
    ];
    assert_eq!(grown, expected);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let log: Vec<_> = run
        .0
        .read_all("app-sess-changelog")
        .into_iter()
        .map(|record| {
            (
                hex(&record.key.unwrap()),
                record.value.as_deref().map(hex),
                record.timestamp_ms,
            )
        })
        .collect();
    let expected = [
        ("6b00000000000027100000000000002710", Some("0000000000000001"), 10_000),
        ("6b00000000000027100000000000002710", None, 10_001),
        ("6b00000000000027110000000000002710", Some("0000000000000002"), 10_001),
    ];
    let expected = expected.map(|(key, value, time)| (key.to_owned(), value.map(str::to_owned), time));
    assert_eq!(log, expected);
}

#[test]
fn a_session_that_joins_two_takes_the_earlier_one_first() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, String>("in").group_by_key();
    grouped
        .windowed_by(SessionWindows::of(ms(10)).grace(ms(100)))
        .reduce(|_, new, all| all + new, "s")
        .to_stream()
        .map(|key, value| (key.key.clone(), value.clone()))
        .to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    for (value, time) in [("1", 0), ("3", 20), ("2", 10)] {
        driver
            .pipe("in", Some(b"k"), Some(value.as_bytes()), time, Headers::empty())
            .unwrap();
    }
    let last = driver.read_all("out").pop().unwrap();
    assert_eq!((last.value.unwrap(), last.timestamp_ms), (b"132".to_vec(), 20));
}

/// What is emitted on close, whatever the windows: each window once, when it is closed, with the value that updates end
/// with.
fn final_results(seed: u64, run: impl Fn(EmitStrategy) -> Run, is_closed: impl Fn(i64, i64) -> bool) {
    let records = Random(seed).records(80, 40);
    let (mut updates, mut finals) = (run(EmitStrategy::OnWindowUpdate), run(EmitStrategy::OnWindowClose));
    let (mut updated, mut emitted): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
    let mut stream_time = 0;
    for (key, value, time) in &records {
        updated.extend(updates.pipe(key, *value, *time));
        stream_time = stream_time.max(*time);
        let rows = finals.pipe(key, *value, *time);
        let order: Vec<_> = rows.iter().map(|row| (row.2, row.1, row.0.clone())).collect();
        assert!(order.is_sorted(), "seed {seed}: {order:?}");
        emitted.extend(rows);
        let closed = table(updated.clone())
            .into_iter()
            .filter(|((_, _, end), _)| is_closed(*end, stream_time));
        assert_eq!(table(emitted.clone()), closed.collect(), "seed {seed} at {time}");
    }
    assert!(!emitted.is_empty());
    assert_eq!(
        table(emitted.clone()).len(),
        emitted.len(),
        "seed {seed}: no window twice"
    );
    assert_eq!(updates.0.dropped_records(), finals.0.dropped_records());
}

#[test]
fn on_close_each_time_window_is_emitted_once_with_its_final_value() {
    for seed in 0..4 {
        for (size, advance, grace) in [(10, 10, 0), (10, 10, 7), (12, 5, 3), (3, 1, 20)] {
            let run = |emit| {
                Run::of(|b| {
                    let windows = TimeWindows::of(ms(size)).advance_by(ms(advance)).grace(ms(grace));
                    let grouped = b.stream::<String, i64>("in").group_by_key();
                    grouped
                        .windowed_by(windows)
                        .emit_strategy(emit)
                        .aggregate(|| 0, sum, "s")
                })
            };
            final_results(seed, run, |end, time| end + grace as i64 <= time);
        }
    }
}

#[test]
fn on_close_each_sliding_window_is_emitted_once_with_its_final_value() {
    for seed in 0..4 {
        let run = |emit| sliding(10, 15, emit, "s".into());
        final_results(seed, run, |end, time| end + 15 < time);
    }
}

#[test]
fn on_close_each_session_is_emitted_once_with_its_final_value() {
    for seed in 0..4 {
        for store in [Materialized::named("s"), Materialized::named("s").in_memory()] {
            let store = std::cell::RefCell::new(Some(store));
            let run = |emit| {
                let store = store.borrow_mut().take().unwrap_or_else(|| Materialized::named("s"));
                sessions(7, 9, emit, store)
            };
            final_results(seed, run, |end, time| end + 7 + 9 < time);
        }
    }
}

#[test]
fn suppressed_windows_give_what_emission_on_close_gives() {
    for seed in 0..4 {
        let records = Random(seed).records(80, 40);
        let of = |suppressed: bool| {
            Run::of(|b| {
                let grouped = b.stream::<String, i64>("in").group_by_key();
                let windows = grouped.windowed_by(SlidingWindows::of(ms(10)).grace(ms(5)));
                if suppressed {
                    return windows
                        .aggregate(|| 0, sum, "s")
                        .suppress(Suppressed::until_window_closes());
                }
                windows
                    .emit_strategy(EmitStrategy::OnWindowClose)
                    .aggregate(|| 0, sum, "s")
            })
        };
        let (mut suppressed, mut on_close) = (of(true), of(false));
        let mut all: (Vec<Row>, Vec<Row>) = Default::default();
        for (key, value, time) in records {
            all.0.extend(suppressed.pipe(key, value, time));
            all.1.extend(on_close.pipe(key, value, time));
        }
        // A late record can't close windows for `suppress` alone, which sees updates only.
        let seen = table(all.0.clone());
        assert!(!seen.is_empty());
        assert_eq!(seen.len(), all.0.len(), "seed {seed}: no window twice");
        let emitted = table(all.1);
        for (window, row) in seen {
            assert_eq!(emitted.get(&window), Some(&row), "seed {seed}");
        }
    }
}

#[test]
fn unlimited_windows_can_not_be_emitted_on_close() {
    let builder = StreamsBuilder::new();
    let grouped = builder.stream::<String, i64>("in").group_by_key();
    grouped
        .windowed_by(UnlimitedWindows::new())
        .emit_strategy(EmitStrategy::OnWindowClose)
        .count("s");
    let error = builder.build().err().unwrap().to_string();
    assert!(error.contains("never closed"), "{error}");
}

mod suppress {
    use super::*;

    fn table_of(suppressed: Suppressed<String>) -> TopologyTestDriver {
        let builder = StreamsBuilder::new();
        let table = builder.table::<String, String>("in");
        table.suppress(suppressed).to_stream().to("out");
        TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
    }

    fn pipe(driver: &mut TopologyTestDriver, key: &str, value: &str, time: i64) -> Vec<String> {
        let value = (value != "-").then_some(value.as_bytes());
        driver
            .pipe("in", Some(key.as_bytes()), value, time, Headers::empty())
            .unwrap();
        let mut out = Vec::new();
        while let Some(record) = driver.read_record("out") {
            let text = |bytes: Option<Vec<u8>>| bytes.map_or("-".to_owned(), |b| String::from_utf8(b).unwrap());
            out.push(format!(
                "{}={}@{}",
                text(record.key),
                text(record.value),
                record.timestamp_ms
            ));
        }
        out
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn an_update_waits_at_the_place_of_the_first_one_of_its_key() {
        let mut driver = table_of(Suppressed::until_time_limit(ms(10)));
        assert_eq!(pipe(&mut driver, "a", "1", 0), NONE);
        assert_eq!(pipe(&mut driver, "b", "1", 5), NONE);
        assert_eq!(pipe(&mut driver, "a", "2", 9), NONE);
        assert_eq!(pipe(&mut driver, "c", "1", 10), ["a=2@9"]);
        assert_eq!(pipe(&mut driver, "b", "-", 11), NONE);
        assert_eq!(pipe(&mut driver, "d", "1", 20), ["b=-@11", "c=1@10"]);
    }

    #[test]
    fn a_full_buffer_emits_its_first_updates_or_fails() {
        let mut early = table_of(Suppressed::until_time_limit(ms(1_000)).max_records(2));
        assert_eq!(pipe(&mut early, "a", "1", 3), NONE);
        assert_eq!(pipe(&mut early, "b", "1", 1), NONE);
        assert_eq!(pipe(&mut early, "c", "1", 2), ["b=1@1"]);
        // 28 bytes of numbers, 2 of the topic, a key and a value of one byte each.
        let mut bytes = table_of(Suppressed::until_time_limit(ms(1_000)).max_bytes(64));
        assert_eq!(pipe(&mut bytes, "a", "1", 3), NONE);
        assert_eq!(pipe(&mut bytes, "b", "1", 4), NONE);
        assert_eq!(pipe(&mut bytes, "b", "2", 4), ["a=1@3"]);
        let mut strict = table_of(
            Suppressed::until_time_limit(ms(1_000))
                .max_records(1)
                .shut_down_when_full(),
        );
        pipe(&mut strict, "a", "1", 0);
        let failed = strict.pipe("in", Some(b"b"), Some(b"1"), 1, Headers::empty());
        assert!(failed.unwrap_err().to_string().contains("the buffer holds 2 keys"));
    }

    #[test]
    fn the_changelog_holds_javas_bytes_and_a_delete_without_headers() {
        let mut driver = table_of(Suppressed::until_time_limit(ms(10)).with_name("sup"));
        pipe(&mut driver, "k", "v", 60_000);
        pipe(&mut driver, "l", "w", 60_010);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let log: Vec<_> = driver
            .read_all("app-sup-store-changelog")
            .into_iter()
            .map(|record| {
                let version = record
                    .headers
                    .last("v")
                    .and_then(|header| header.value.as_deref().map(hex));
                (hex(&record.key.unwrap()), record.value.as_deref().map(hex), version)
            })
            .collect();
        // Context (time, offset, topic `in`, partition, no headers), no prior and no old value, the new one, the time.
        let value = "000000000000ea60 0000000000000000 00000002 696e 00000000 00000000 ffffffff ffffffff 00000001 76 000000000000ea60";
        assert_eq!(
            log[0],
            ("6b".to_owned(), Some(value.replace(' ', "")), Some("03".to_owned()))
        );
        assert_eq!(log[1], ("6b".to_owned(), None, None));
        assert_eq!(log.len(), 3);
    }

    #[test]
    fn final_results_need_windows_and_a_strict_buffer() {
        let builder = StreamsBuilder::new();
        let grouped = builder.stream::<String, i64>("in").group_by_key();
        let windows = grouped.windowed_by(TimeWindows::of(ms(10)));
        let _ = windows
            .count("s")
            .suppress(Suppressed::until_window_closes().emit_early_when_full());
        let error = builder.build().err().unwrap().to_string();
        assert!(error.contains("can't be emitted early"), "{error}");
    }
}
