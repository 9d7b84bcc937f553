//! What of the comparison needs no broker.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use guarantees::tally::{Tally, head};
use guarantees::{GUARANTEES, Names, app, topology};
use streams_dsl::{DriverOptions, ProcessingGuarantee, TestInput, TopologyTestDriver};

const ORDERS: usize = 250;

/// Runs all orders through the topology on the test driver.
fn without_kills(guarantee: ProcessingGuarantee) -> (Tally, u64) {
    let (names, seen) = (Names::new("test"), Arc::new(AtomicU64::new(0)));
    let told = Arc::clone(&seen);
    let on_order = Arc::new(move || {
        told.fetch_add(1, Ordering::Relaxed);
    });
    let topology = topology(&names, on_order).unwrap();
    let mut options = DriverOptions::default();
    options.settings.guarantee = guarantee;
    let mut driver = TopologyTestDriver::new(&topology, options).unwrap();
    let orders = TestInput::<String, String>::of(&names.orders());
    for number in 0..ORDERS {
        let customer = format!("customer-{}", number % 7);
        orders.pipe(&mut driver, customer, number.to_string(), 1_000).unwrap();
    }
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
    let shipped = driver.read_all(&names.shipped()).into_iter();
    let numbers: Vec<usize> = shipped.map(|record| text(record.value).parse().unwrap()).collect();
    let mut counts = BTreeMap::new();
    for record in driver.read_all(&names.counts()) {
        let count: [u8; 8] = record.value.unwrap().try_into().unwrap();
        counts.insert(text(record.key), i64::from_be_bytes(count));
    }
    (
        Tally::new(ORDERS, numbers, counts.into_values()),
        seen.load(Ordering::Relaxed),
    )
}

#[test]
fn without_a_kill_every_guarantee_gives_the_same() {
    for (guarantee, name) in GUARANTEES {
        let (tally, seen) = without_kills(guarantee);
        let exact = Tally {
            orders: ORDERS,
            lost: 0,
            doubled: 0,
            counted: ORDERS as i64,
        };
        assert_eq!((tally, seen), (exact, ORDERS as u64), "{name}");
        assert!(tally.broken(guarantee).is_empty());
    }
}

#[test]
fn each_guarantee_allows_what_it_allows_and_nothing_else() {
    let lossy = Tally::new(4, [0, 1, 3], [1, 2]);
    let doubling = Tally::new(4, [0, 1, 1, 2, 3, 3, 3], [3, 4]);
    assert_eq!((lossy.lost, lossy.doubled, lossy.counted), (1, 0, 3));
    assert_eq!((doubling.lost, doubling.doubled, doubling.counted), (0, 2, 7));
    let broken = |tally: &Tally| GUARANTEES.map(|(guarantee, _)| tally.broken(guarantee).len());
    assert_eq!(broken(&lossy), [2, 2, 0]);
    assert_eq!(broken(&doubling), [2, 0, 2]);
}

#[test]
fn rows_stand_under_their_heads() {
    let tally = Tally::new(3, [0, 1], [2]);
    let row = format!("{:<18} {tally}", "at_most_once");
    assert_eq!(row.len(), head().len());
    assert!(row.ends_with("-1"), "{row}");
}

#[test]
fn the_three_are_configured_alike() {
    for (guarantee, name) in GUARANTEES {
        let config = app::config("localhost:9092", name, &Names::new("test"), Path::new("/var/lib/test")).unwrap();
        assert_eq!(config.processing_guarantee, guarantee);
        assert_eq!(config.effective_commit_interval_ms(), 200);
        assert!(config.validate().unwrap().is_empty());
    }
}
