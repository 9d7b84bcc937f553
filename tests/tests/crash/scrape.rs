//! A billing process that serves is scraped as Prometheus would, over plain HTTP.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use streams_core::metrics::{METRICS, Metric};
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

/// What shows only after something went wrong, or after a restore.
const AFTER_AN_EVENT: [Metric; 0] = [];

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
    let mut running = ChildApp::this_test(APP)
        .unwrap()
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
        .env("BILLING", orders)
        .start()
        .unwrap();
    let address = address(&mut running);
    let departures = feed.departures.len();
    let mut page = String::new();
    let billed = wait_until("every departure in the metrics", BILLED_LIMIT, || {
        page = scrape(&address);
        Ok(sum(&page, "kafka_streams_task_process_total") >= departures as f64
            && sum(&page, "kafka_streams_thread_commit_latency_count") > 0.0)
    });
    billed.unwrap_or_else(|error| panic!("{error}\n{page}"));
    assert_complete(&page);
    for part in [
        "kafka_streams_thread_commit_total{thread_id=\"",
        "kafka_streams_task_process_total{thread_id=\"",
        "task_id=\"0_0\"",
        "kafka_streams_client_state{client_id=\"",
        "kafka_streams_memory_bytes{client_id=\"",
    ] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    assert_eq!(
        running.terminate(STOP_LIMIT).unwrap(),
        Exit::Code(0),
        "{}",
        running.lines().join("\n")
    );
    let refused = TcpStream::connect(&address);
    assert!(refused.is_err(), "the page outlived the process");
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
        .filter(|metric| !AFTER_AN_EVENT.contains(metric))
        .map(Metric::published_name)
        .filter(|name| !shown.contains(&**name))
        .collect();
    assert!(missing.is_empty(), "not shown: {missing:?}\n{page}");
    let table: BTreeSet<String> = METRICS.iter().map(Metric::published_name).collect();
    let unknown: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|rest| rest.split(' ').next())
        .filter(|name| !table.contains(*name))
        .collect();
    assert!(unknown.is_empty(), "not in the table: {unknown:?}");
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
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with(['{', ' ']).then_some(())?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    page.lines().filter_map(value).sum()
}
