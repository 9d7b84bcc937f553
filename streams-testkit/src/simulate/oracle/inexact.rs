//! What must hold without transactions: at least once nothing is lost, at most once nothing is doubled, and neither
//! happens in a run in which nothing was given up.

use std::collections::BTreeMap;

use streams_core::config::ProcessingGuarantee;
use streams_core::test_driver::LogRecord;

use super::{Written, latest, shown, text};
use crate::simulate::scenario::Compare;

/// How often each record is there.
type Times = BTreeMap<String, usize>;

impl Written {
    /// How many output records there are too many, and too few, by what they are counted as.
    pub(in crate::simulate) fn more_and_less(&self, expected: &Written) -> [(&'static str, u64); 2] {
        let (mut more, mut less) = (0, 0);
        for (topic, records) in &expected.outputs {
            let found = times(self.of_topic(topic), Compare::AnyOrder);
            let expected = times(records, Compare::AnyOrder);
            let over = |of: &Times, than: &Times| -> usize {
                let each = of.iter();
                each.map(|(record, times)| times.saturating_sub(than.get(record).copied().unwrap_or(0)))
                    .sum()
            };
            more += over(&found, &expected) as u64;
            less += over(&expected, &found) as u64;
        }
        [
            ("output records more than without faults", more),
            ("output records less than without faults", less),
        ]
    }

    /// The first thing that a run without transactions must not have led to; `gave_up` is whether something in it was given
    /// up that was not committed.
    pub(in crate::simulate) fn breaks(
        &self,
        expected: &Written,
        compare: impl Fn(&str) -> Compare,
        guarantee: ProcessingGuarantee,
        gave_up: bool,
    ) -> Option<String> {
        if !gave_up {
            let difference = self.difference(expected, compare);
            return difference.map(|what| format!("although nothing was given up: {what}"));
        }
        let at_least = guarantee == ProcessingGuarantee::AtLeastOnce;
        for (topic, records) in &expected.outputs {
            let (found, compare) = (self.of_topic(topic), compare(topic));
            let what = match (compare, at_least) {
                (Compare::Latest, true) => latest_differs(found, records),
                // What was lost is missing in results too; what they may be is for the topology to say.
                (Compare::Latest, false) => None,
                (_, true) => lost(found, records, compare),
                (_, false) => doubled(found, records, compare),
            };
            if let Some(what) = what {
                return Some(format!("{topic} (compared by {compare:?}): {what}"));
            }
        }
        // Repeated records may not change a result, so they don't change what is stored either.
        let results = expected.outputs.keys().all(|topic| compare(topic) == Compare::Latest);
        at_least
            .then(|| self.changelogs_differ(expected))
            .flatten()
            .filter(|_| results)
    }
}

fn latest_differs(found: &[(i32, LogRecord)], expected: &[(i32, LogRecord)]) -> Option<String> {
    super::first_difference(&shown(&latest(found)), &shown(&latest(expected)))
}

fn times(records: &[(i32, LogRecord)], compare: Compare) -> Times {
    let mut times = Times::new();
    for (partition, record) in records {
        let (key, value) = (text(record.key.as_deref()), text(record.value.as_deref()));
        let record = match compare {
            Compare::Values => format!("{key}/{partition}: {value}"),
            _ => format!("{key}/{partition}: {value} at {}", record.timestamp_ms),
        };
        *times.entry(record).or_default() += 1;
    }
    times
}

fn lost(found: &[(i32, LogRecord)], expected: &[(i32, LogRecord)], compare: Compare) -> Option<String> {
    let (found, expected) = (times(found, compare), times(expected, compare));
    let of = |record: &String| found.get(record).copied().unwrap_or(0);
    let lost = expected.iter().find(|(record, times)| of(record) < **times);
    let unknown = found.keys().find(|record| !expected.contains_key(*record));
    lost.map(|(record, times)| format!("{record} is there {} times of {times}: it was lost", of(record)))
        .or_else(|| unknown.map(|record| format!("{record} comes from nowhere")))
}

fn doubled(found: &[(i32, LogRecord)], expected: &[(i32, LogRecord)], compare: Compare) -> Option<String> {
    let (found, expected) = (times(found, compare), times(expected, compare));
    let of = |record: &String| expected.get(record).copied().unwrap_or(0);
    let doubled = found.iter().find(|(record, times)| of(record) < **times);
    doubled.map(|(record, times)| format!("{record} is there {times} times instead of {}", of(record)))
}
