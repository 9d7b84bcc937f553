#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::*;

const PAGE: &str = include_str!("../../../docs/metrics.md");

#[test]
fn the_page_is_up_to_date() {
    let page = render_documentation();
    if std::env::var_os("UPDATE_DOCUMENTATION").is_some() {
        // Of the checkout that runs, which need not be the one that compiled this.
        let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        std::fs::write(format!("{package}/../docs/metrics.md"), &page).unwrap();
    } else {
        assert!(
            page == PAGE,
            "docs/metrics.md is old: run this test with UPDATE_DOCUMENTATION=1"
        );
    }
}

#[test]
fn names_are_unique_and_fit_every_recorder() {
    let names: BTreeSet<String> = METRICS.iter().map(Metric::published_name).collect();
    assert_eq!(names.len(), METRICS.len());
    for name in &names {
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "{name}"
        );
    }
}

#[test]
fn counters_end_in_total_except_javas_one_without() {
    for metric in METRICS.iter().filter(|metric| metric.kind == Kind::Counter) {
        assert!(
            metric.name.ends_with("-total") || metric.name == FAILED_STREAM_THREADS.name,
            "{}",
            metric.name
        );
    }
}

#[test]
fn the_group_becomes_part_of_the_name() {
    assert_eq!(CLIENT_STATE.published_name(), "kafka_streams_client_state");
    assert_eq!(
        DROPPED_RECORDS_TOTAL.published_name(),
        "kafka_streams_task_dropped_records_total"
    );
    assert_eq!(
        ACTIVE_RESTORING_TASKS.published_name(),
        "kafka_streams_state_updater_active_restoring_tasks"
    );
    assert_eq!(
        (COMMIT_TOTAL.origin, TRANSACTION_ABORT_TOTAL.origin),
        (Origin::Java, Origin::Ours)
    );
}
