//! The whole January sample through the test driver equals the plain recomputation.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use usage_billing::data::DataDir;
use usage_billing::feed::Feed;
use usage_billing::topics::Names;
use usage_billing::{offline, plain, sample_dir, topology};

#[test]
fn every_total_of_the_sample_equals_the_plain_recomputation() {
    let data = DataDir::new(sample_dir());
    let (feed, expected) = (
        Feed::read(&data, |_| true).unwrap(),
        plain::compute(&data, |_| true).unwrap(),
    );
    let taken = Arc::new(AtomicU64::new(0));
    let results = offline::run(&feed, &Names::default(), topology::counting(Arc::clone(&taken))).unwrap();
    assert_eq!(results.differences(&expected, &feed), Vec::<String>::new());
    assert_eq!(taken.load(Ordering::Relaxed), 27_004);
    assert_eq!(results.dead_letters.len(), 5);
}

#[test]
fn the_topology_has_four_parts_and_three_repartition_topics() {
    let topology = topology::build(&Names::default(), topology::counting(Arc::default())).unwrap();
    let text = topology.describe();
    for name in [
        "by-tail-repartition",
        "by-origin-repartition",
        "by-month-repartition",
        "billing.daily",
        "billing.invoice-candidates",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(
        text.contains("Sub-topology: 3") || text.contains("Sub-topology: 4"),
        "{text}"
    );
}

#[test]
fn the_readme_shows_this_topology() {
    let chart = topology::build(&Names::default(), topology::counting(Arc::default()))
        .unwrap()
        .to_mermaid();
    let readme = include_str!("../README.md");
    assert!(
        readme.contains(&format!("```mermaid\n{chart}```")),
        "README.md should show\n{chart}"
    );
}

#[test]
fn state_survives_this_version() {
    let topology = topology::build(&Names::default(), topology::counting(Arc::default())).unwrap();
    let lockfile = concat!(env!("CARGO_MANIFEST_DIR"), "/topology.lock");
    if let Err(error) = streams_dsl::lock::check(&topology, lockfile) {
        panic!("{error}");
    }
}
