//! Windows, sessions, results on close, suppressed and cached ones, with what they must give by plain recomputation.

use std::collections::BTreeMap;

use streams_core::murmur2::partition_for_key;
use streams_dsl::{EmitStrategy, KTable, SECOND, SessionWindows, SlidingWindows, Suppressed, TimeWindows, Windowed};
use streams_testkit::Seeded;
use streams_testkit::simulate::{Compare, InputRecord, Simulation};

use super::{Entry, built, records, some};

/// All of this file.
pub(super) const ALL: [Entry; 3] = [
    Entry {
        name: "sessions",
        share: 2,
        make: sessions,
    },
    Entry {
        name: "final-results",
        share: 2,
        make: final_results,
    },
    Entry {
        name: "cached-windows",
        share: 2,
        make: cached_windows,
    },
];

/// Windows of 2 s with a grace of 1 s.
const SIZE_MS: i64 = 2_000;
const GRACE_MS: i64 = 1_000;
/// Sessions with a gap of 600 ms and the same grace.
const GAP_MS: i64 = 600;

fn of_2_seconds() -> TimeWindows {
    TimeWindows::of(2 * SECOND).grace(SECOND)
}

fn with_gaps() -> SessionWindows {
    SessionWindows::of(std::time::Duration::from_millis(600)).grace(SECOND)
}

/// The counts of windows under readable keys: the key, and from when to when.
fn send(counts: &KTable<Windowed<String>, i64>, topic: &str) {
    counts
        .to_stream()
        .map(|key, count| {
            let (from_ms, to_ms) = (key.window.start_ms, key.window.end_ms);
            (
                format!("{}@{from_ms}-{to_ms}", key.key),
                count.map(|count| format!("{count}")),
            )
        })
        .to(topic);
}

/// Records, and far behind them one of each of some keys, which closes all windows of before in every partition.
fn closed(mut given: Vec<InputRecord>) -> Vec<InputRecord> {
    given.extend((0..10).map(|number| InputRecord::new("in", format!("c{number}"), "closes", 10_000_000)));
    given
}

/// Sessions at each update and on close, and sliding windows. Sessions merge, their old rows are deleted, and what is late is
/// dropped by the operator's stream time.
fn sessions(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        send(&grouped.windowed_by(with_gaps()).count("sessions"), "sessions");
        let on_close = grouped
            .windowed_by(with_gaps())
            .emit_strategy(EmitStrategy::OnWindowClose);
        send(&on_close.count("closed"), "closed-sessions");
        let sliding = SlidingWindows::of(SECOND).grace(SECOND);
        send(&grouped.windowed_by(sliding).count("sliding"), "sliding");
    });
    let late_ms = if rng.below(2) == 0 { 4_000 } else { 0 };
    let count = some(rng);
    let given = closed(records(rng, "in", count, 0, late_ms));
    let expected = (late_ms == 0).then(|| sessions_of(&given));
    let simulation = Simulation::new(topology, vec![given]).compare(Compare::Exact);
    match expected {
        Some(expected) => simulation.expect(expected),
        None => simulation,
    }
}

/// The sessions on close of records in order; the last ones stay open.
fn sessions_of(given: &[InputRecord]) -> Vec<InputRecord> {
    let mut open: BTreeMap<Vec<u8>, (i64, i64, u64)> = BTreeMap::new();
    let mut results = Vec::new();
    let mut close = |key: &[u8], (from_ms, to_ms, count): (i64, i64, u64)| {
        let key = format!("{}@{from_ms}-{to_ms}", String::from_utf8_lossy(key));
        results.push(InputRecord::new("closed-sessions", key, count.to_string(), to_ms));
    };
    for record in given {
        let (key, at_ms) = (record.key.clone().unwrap_or_default(), record.timestamp_ms);
        match open.get_mut(&key) {
            Some((_, to_ms, count)) if at_ms - *to_ms <= GAP_MS => (*to_ms, *count) = (at_ms, *count + 1),
            Some(session) => close(&key, std::mem::replace(session, (at_ms, at_ms, 1))),
            None => {
                open.insert(key, (at_ms, at_ms, 1));
            }
        }
    }
    let ended = open.iter().filter(|(_, (_, to_ms, _))| *to_ms < 5_000_000);
    ended.for_each(|(key, session)| close(key, *session));
    results
}

/// Final results of windows in two ways, which must be equal, and counts held back for a time.
fn final_results(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let grouped = b.stream::<String, String>("in").group_by_key();
        let counts = grouped.windowed_by(of_2_seconds()).count("windows");
        send(&counts.suppress(Suppressed::until_window_closes()), "suppressed");
        let on_close = grouped
            .windowed_by(of_2_seconds())
            .emit_strategy(EmitStrategy::OnWindowClose);
        send(&on_close.count("closed"), "closed-windows");
        let limit = Suppressed::until_time_limit(3 * SECOND).max_records(4);
        grouped.count("counts").suppress(limit).to_stream().to("limited");
    });
    let count = some(rng);
    let given = closed(records(rng, "in", count, 0, 5_000));
    let expected = windows_of(&given);
    Simulation::new(topology, vec![given])
        .compare(Compare::Exact)
        .expect(expected)
}

/// The windows that are closed, each by its partition's time; a late record does not count.
fn windows_of(given: &[InputRecord]) -> Vec<InputRecord> {
    let mut times_ms = BTreeMap::new();
    let mut counts: BTreeMap<(Vec<u8>, i64), (u64, i64)> = BTreeMap::new();
    for record in given {
        let key = record.key.clone().unwrap_or_default();
        let time_ms = times_ms.entry(partition_for_key(&key, 2)).or_insert(0);
        *time_ms = record.timestamp_ms.max(*time_ms);
        let start_ms = record.timestamp_ms - record.timestamp_ms % SIZE_MS;
        if start_ms + SIZE_MS > *time_ms - GRACE_MS {
            let (count, last_ms) = counts.entry((key, start_ms)).or_default();
            (*count, *last_ms) = (*count + 1, record.timestamp_ms.max(*last_ms));
        }
    }
    let closed = counts.iter().filter(|((_, start_ms), _)| *start_ms < 5_000_000);
    let each = closed.flat_map(|((key, start_ms), (count, last_ms))| {
        let key = format!("{}@{start_ms}-{}", String::from_utf8_lossy(key), start_ms + SIZE_MS);
        ["suppressed", "closed-windows"].map(|topic| InputRecord::new(topic, key.clone(), count.to_string(), *last_ms))
    });
    each.collect()
}

/// With the record cache and without: windows, sessions, and two streams in one aggregate. What a cache leaves out are steps
/// between, so the last values alone are compared.
fn cached_windows(rng: &mut Seeded) -> Simulation {
    let topology = built(|b| {
        let stream = b.stream::<String, String>("in");
        let grouped = stream.group_by_key();
        send(&grouped.windowed_by(of_2_seconds()).count("windows"), "windows");
        send(&grouped.windowed_by(with_gaps()).count("sessions"), "sessions");
        let others = b.stream::<String, String>("others").group_by_key();
        grouped
            .cogroup(|_, value, sum: i64| sum + value.len() as i64)
            .cogroup(&others, |_, value, sum| sum - value.len() as i64)
            .aggregate(|| 0, "sums")
            .to_stream()
            .map_values(|_, sum| sum.map(|sum| sum.to_string()))
            .to("sums");
    });
    let (first, second) = (some(rng), some(rng) / 2);
    let mut given = records(rng, "in", first, 0, 5_000);
    // The others come in between, in any order.
    for record in records(rng, "others", second, 0, 5_000) {
        let at = usize::try_from(rng.below(given.len() as u64 + 1)).unwrap_or(0);
        given.insert(at.min(given.len()), record);
    }
    let expected = sums_of(&given);
    Simulation::new(topology, vec![given])
        .compare(Compare::Latest)
        .expect(expected)
}

fn sums_of(given: &[InputRecord]) -> Vec<InputRecord> {
    let mut sums: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    for record in given {
        let sum = sums.entry(record.key.clone().unwrap_or_default()).or_default();
        let length = record.value.as_ref().map_or(0, Vec::len) as i64;
        *sum += if record.topic == "in" { length } else { -length };
    }
    let each = sums.into_iter();
    each.map(|(key, sum)| InputRecord::new("sums", key, sum.to_string(), 0))
        .collect()
}
