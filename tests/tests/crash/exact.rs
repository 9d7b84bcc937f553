//! What must be in the topics, computed from what was produced.

use std::collections::BTreeMap;

use streams_testkit::Record;
use streams_tests::broker;

use crate::application::{Application, Kind};

/// Compares outputs and changelog (both read-committed) with the input. A repeated or a lost record shows in each kind:
/// a copy has another list of places, a count another last value, or one value twice.
pub(crate) fn assert_exact(app: &Application) {
    let outputs = by_key(&broker().collect(&app.output).unwrap());
    let mut expected: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (place, key) in app.produced.borrow().iter().enumerate() {
        let values = expected.entry(format!("k{key:07}")).or_default();
        let count = (values.len() as i64 + 1).to_be_bytes();
        values.push(if app.kind == Kind::Copy {
            format!("{place:08}").into_bytes()
        } else {
            count.to_vec()
        });
    }
    match app.kind {
        Kind::Copy => assert_same(&outputs, &expected),
        Kind::CountEach => {
            assert_same(&outputs, &expected);
            assert_same(&by_key(&broker().collect(&app.changelog()).unwrap()), &expected);
        }
        Kind::CountCached => {
            // Every key once a commit at most: rising, and the last one right.
            assert_eq!(outputs.len(), expected.len());
            for (key, values) in &outputs {
                assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{key}: {values:?}");
                assert_eq!(values.last(), expected[key].last(), "{key}");
            }
            assert_same(&by_key(&broker().collect(&app.changelog()).unwrap()), &outputs);
        }
    }
}

/// How often each record of the input was copied, by its place.
pub(crate) fn copies(app: &Application) -> Vec<usize> {
    let mut copies = vec![0; app.produced.borrow().len()];
    for record in broker().collect(&app.output).unwrap() {
        copies[record.value_text().parse::<usize>().unwrap()] += 1;
    }
    copies
}

/// The last count of each key in the output, beside the number of its records in the input. The changelog says the same as
/// the output, but for at-most-once: there a kill between the two deliveries leaves one of them alone for good.
pub(crate) fn counts(app: &Application) -> BTreeMap<String, (i64, i64)> {
    let last = |topic: &str| {
        let values = by_key(&broker().collect(topic).unwrap()).into_iter();
        let number = |values: Vec<Vec<u8>>| i64::from_be_bytes(values.last().unwrap().as_slice().try_into().unwrap());
        values
            .map(|(key, values)| (key, number(values)))
            .collect::<BTreeMap<_, _>>()
    };
    let outputs = last(&app.output);
    if app.guarantee != "at_most_once" {
        assert_eq!(last(&app.changelog()), outputs);
    }
    let mut counts: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for key in app.produced.borrow().iter() {
        counts.entry(format!("k{key:07}")).or_default().1 += 1;
    }
    for (key, count) in outputs {
        counts.get_mut(&key).expect("a key that was never produced").0 = count;
    }
    counts
}

fn by_key(records: &[Record]) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut keys: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for record in records {
        keys.entry(record.key_text())
            .or_default()
            .push(record.value.clone().unwrap());
    }
    keys
}

/// As `assert_eq`, with one key in the message instead of a million.
fn assert_same(found: &BTreeMap<String, Vec<Vec<u8>>>, expected: &BTreeMap<String, Vec<Vec<u8>>>) {
    for (key, values) in expected {
        assert_eq!(found.get(key), Some(values), "{key}");
    }
    assert_eq!(found.len(), expected.len());
}

/// Committed transactions of a changelog partition, as runs of offsets `first..end`: markers and aborted records leave
/// gaps. Adjacent runs would be one transaction.
pub(crate) struct Transactions(BTreeMap<i32, Vec<(i64, i64)>>);

impl Transactions {
    pub(crate) fn of(changelog: &str) -> Self {
        let mut runs: BTreeMap<i32, Vec<(i64, i64)>> = BTreeMap::new();
        for record in broker().collect(changelog).unwrap() {
            let runs = runs.entry(record.partition).or_default();
            match runs.last_mut() {
                Some((_, end)) if *end == record.offset => *end += 1,
                _ => runs.push((record.offset, record.offset + 1)),
            }
        }
        Transactions(runs)
    }

    /// The most records that the last transaction of each partition had, as the log stood at `ends`.
    pub(crate) fn last_before(&self, ends: &BTreeMap<i32, i64>) -> u64 {
        let last = |(partition, end): (&i32, &i64)| {
            let run = self.0.get(partition)?.iter().rev().find(|(first, _)| first < end)?;
            u64::try_from(run.1 - run.0).ok()
        };
        ends.iter().filter_map(last).sum()
    }

    /// The records that were committed between two ends of the log.
    #[cfg(feature = "test-hooks")]
    pub(crate) fn records_between(&self, began: &BTreeMap<i32, i64>, ends: &BTreeMap<i32, i64>) -> u64 {
        let within = |(partition, end): (&i32, &i64)| {
            let from = began.get(partition).copied().unwrap_or(0);
            let runs = self.0.get(partition)?.iter();
            let records: i64 = runs.map(|run| (run.1.min(*end) - run.0.max(from)).max(0)).sum();
            u64::try_from(records).ok()
        };
        ends.iter().filter_map(within).sum()
    }

    /// The largest transaction.
    pub(crate) fn largest(&self) -> i64 {
        self.0
            .values()
            .flatten()
            .map(|(first, end)| end - first)
            .max()
            .unwrap_or(0)
    }
}
