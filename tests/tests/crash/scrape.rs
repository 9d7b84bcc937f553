//! A billing process that serves is scraped as Prometheus would, over plain HTTP.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use streams_core::metrics::{
    ALL_LATENCY, ALL_TOTAL, FINAL_EMIT_LATENCY, FINAL_EMIT_TOTAL, ITERATOR_DURATION, METRICS, Metric, NUM_KEYS,
    PREFIX_SCAN_LATENCY, PREFIX_SCAN_TOTAL, PUNCTUATE_LATENCY, RANGE_LATENCY, RANGE_TOTAL, STORE_RESTORE_LATENCY,
    SUPPRESSION_BUFFER_COUNT, SUPPRESSION_BUFFER_SIZE, SUPPRESSION_EMIT_TOTAL, TASK_PUNCTUATE_LATENCY,
};
use streams_testkit::{ChildApp, Exit, RunningApp, wait_until};
use streams_tests::{broker, unique};
use usage_billing::data::DataDir;
use usage_billing::feed::Feed;
use usage_billing::sample_dir;
use usage_billing::topics::Names;

use crate::billing::APP;

const READY_LIMIT: Duration = Duration::from_secs(60);
const BILLED_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What a billing that starts without state never does: punctuate, restore, iterate, keep a store in memory, hold back
/// results.
const NOT_HERE: [Metric; 16] = [
    PUNCTUATE_LATENCY,
    TASK_PUNCTUATE_LATENCY,
    STORE_RESTORE_LATENCY,
    RANGE_LATENCY,
    RANGE_TOTAL,
    ALL_LATENCY,
    ALL_TOTAL,
    PREFIX_SCAN_LATENCY,
    PREFIX_SCAN_TOTAL,
    ITERATOR_DURATION,
    NUM_KEYS,
    SUPPRESSION_EMIT_TOTAL,
    SUPPRESSION_BUFFER_SIZE,
    SUPPRESSION_BUFFER_COUNT,
    FINAL_EMIT_TOTAL,
    FINAL_EMIT_LATENCY,
];

#[test]
fn a_serving_process_shows_every_metric_and_stops_gracefully() {
    let kafka = broker();
    let prefix = format!("{}.", unique("scrape"));
    let names = Names::with_prefix(&prefix);
    // Every 10th departure is enough to count something of everything.
    let feed = Feed::read(&DataDir::new(sample_dir()), |row| row % 10 == 0).unwrap();
    names.create(kafka).unwrap();
    feed.write_tables(kafka, &names).unwrap();
    feed.write_departures(kafka, &names).unwrap();
    let state = tempfile::tempdir().unwrap();
    let orders = [&prefix, state.path().join("state").to_str().unwrap(), "serve"].join("\n");
    let app = ChildApp::this_test(APP)
        .unwrap()
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
        .env("STREAMS_METRICS_RECORDING_LEVEL", "DEBUG");
    let mut running = app.clone().env("BILLING", orders).start().unwrap();
    let address = address(&mut running);
    let departures = feed.departures.len();
    let raw = format!("topic=\"{}\"", names.raw());
    let mut page = String::new();
    let billed = wait_until("every departure in the metrics", BILLED_LIMIT, || {
        page = scrape(&address);
        // Properties of the storage are asked for every 10 s.
        Ok(
            of(&page, "kafka_streams_topic_records_consumed_total", &raw) >= departures as f64
                && sum(&page, "kafka_streams_thread_commit_latency_count") > 0.0
                && sum(&page, "kafka_streams_state_estimate_num_keys") > 0.0,
        )
    });
    billed.unwrap_or_else(|error| panic!("{error}\n{}", without_buckets(&page)));
    assert_complete(&page);
    let written = kafka.topics().end_offsets(&names.raw()).unwrap().values().sum::<i64>();
    let consumed = of(&page, "kafka_streams_topic_records_consumed_total", &raw);
    assert!(
        (consumed - written as f64).abs() < 0.5,
        "{consumed} of {written} records are counted"
    );
    for part in [
        "kafka_streams_thread_commit_total{thread_id=\"",
        "kafka_streams_task_process_total{thread_id=\"",
        "task_id=\"0_0\"",
        "kafka_streams_client_state{client_id=\"",
        "part=\"overlays\"",
        "phase=\"first-record\"",
        "step=\"send-offsets\"",
        "rocksdb_window_state_id=\"",
        "record_cache_id=\"",
    ] {
        assert!(page.contains(part), "no {part} in\n{}", without_buckets(&page));
    }
    assert_eq!(
        running.terminate(STOP_LIMIT).unwrap(),
        Exit::Code(0),
        "{}",
        running.lines().join("\n")
    );
    let refused = TcpStream::connect(&address);
    assert!(refused.is_err(), "the page outlived the process");
    restore_shows(&app, &prefix, &names);
}

/// Without its state the application restores it, in spans below the thread's, and the restore is measured.
fn restore_shows(app: &ChildApp, prefix: &str, names: &Names) {
    let state = tempfile::tempdir().unwrap();
    let orders = [prefix, state.path().join("state").to_str().unwrap(), "serve"].join("\n");
    let mut running = app
        .clone()
        .env("BILLING", orders)
        .env("BILLING_SPANS", "1")
        .start()
        .unwrap();
    let address = address(&mut running);
    let thread = format!(
        "stream_thread{{application_id=\"{}\" thread=1}}",
        names.application_id()
    );
    let changelog = format!("topic=\"{}-planes-changelog\"", names.application_id());
    let is_restore = |line: &str| {
        line.contains(&format!("{thread}:task{{task_id="))
            && line.contains(":restore{store=\"planes\"")
            && line.contains(&changelog)
            && line.contains("partition=")
    };
    running.wait_for_line(READY_LIMIT, is_restore).unwrap();
    let mut page = String::new();
    let restored = wait_until("the restore in the metrics", READY_LIMIT, || {
        page = scrape(&address);
        Ok(of(
            &page,
            "kafka_streams_state_restore_latency_count",
            "rocksdb_state_id=\"planes\"",
        ) > 0.0
            && sum(&page, "kafka_streams_task_restore_total") > 0.0)
    });
    restored.unwrap_or_else(|error| panic!("{error}\n{}", without_buckets(&page)));
    assert_eq!(running.terminate(STOP_LIMIT).unwrap(), Exit::Code(0));
}

fn address(running: &mut RunningApp) -> String {
    let line = running
        .wait_for_line(READY_LIMIT, |line| line.contains("METRICS http://"))
        .unwrap();
    let (_, rest) = line.split_once("http://").unwrap();
    let (address, _) = rest.split_once("/metrics").unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    address.to_owned()
}

/// Every metric of the table has its line of meaning and at least one value, and there is no other.
fn assert_complete(page: &str) {
    let shown: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "))
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    let missing: Vec<String> = METRICS
        .iter()
        .filter(|metric| !NOT_HERE.contains(metric))
        .map(Metric::published_name)
        .filter(|name| !shown.contains(&**name))
        .collect();
    assert!(missing.is_empty(), "not shown: {missing:?}\n{}", without_buckets(page));
    let table: BTreeSet<String> = METRICS.iter().map(Metric::published_name).collect();
    let unknown: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|rest| rest.split(' ').next())
        .filter(|name| !table.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
}

fn without_buckets(page: &str) -> String {
    let lines: Vec<&str> = page.lines().filter(|line| !line.contains("_bucket{")).collect();
    lines.join("\n")
}

fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(READY_LIMIT)).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    page.to_owned()
}

/// The values of a name over all its labels.
fn sum(page: &str, name: &str) -> f64 {
    of(page, name, "")
}

/// The values of a name whose labels contain `labels`.
fn of(page: &str, name: &str, labels: &str) -> f64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        (rest.starts_with(['{', ' ']) && rest.contains(labels)).then_some(())?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    page.lines().filter_map(value).sum()
}
