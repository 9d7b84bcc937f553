//! The table as a page of the documentation.

use std::fmt::Write;

use super::{Group, Kind, METRICS, Metric, Origin, Unit};

const HEAD: &str = "# Metrics

Written from the table in `streams-core/src/metrics/`; a test compares it with that, another the table with what a running
application shows.

The library publishes through the [`metrics`](https://docs.rs/metrics) facade and installs no recorder: the application
chooses one, and installs it **before** `KafkaStreams::start`. Counts are handed over every 100 ms by the stream threads
(once a second for the instance), never record by record.

A name is `kafka_streams_`, Java's group without `stream-` and `-metrics`, Java's name, with underscores. Counters end in
`_total`. Java's pairs `x-avg`, `x-max` are one histogram `x`; `x-rate` is what a query makes of the counter `x_total`.
Numbers that come with every record (end-to-end latency, and the times of level DEBUG) are sampled: of each 100 ms all up to
64, then evenly spaced ones, the largest always among them.

`metrics.recording.level` says how much is measured: `INFO` (the default) reads no clock for a record; `DEBUG` times every
record and store access. The levels differ from Java's where a number costs nothing here.

A task that was given away keeps its series in the recorder (the facade can't take one back), but they are told nothing any
more; those of living tasks are told their value every 100 ms even if it did not change. So a recorder may drop what was not
told anything for a while; set `metrics-exporter-prometheus` to do so for counters and gauges alone
(`idle_timeout(MetricKindMask::COUNTER | MetricKindMask::GAUGE, …)`): a histogram of a living task may have no sample for
long. A task that comes back goes on from its old counts.

Not there yet: the statistics of RocksDB (`bytes-written-total`, `memtable-hit-ratio`, …; its properties are), standby tasks.
`idempotent-update-skip` has nothing to count: an update that changes nothing is forwarded, as in Java, whose sensor no class of
4.3 records.

";

/// `docs/metrics.md`: every metric.
#[must_use]
pub fn render_documentation() -> String {
    let mut page = HEAD.to_owned();
    for group in Group::ALL {
        let labels: Vec<String> = group.labels().iter().map(|label| format!("`{label}`")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "## `{}`\n\nLabels: {}.\n\n| Name | Kind | Unit | Level | In Java | |\n|---|---|---|---|---|---|\n",
            group.java(),
            labels.join(", ")
        );
        for metric in METRICS.iter().filter(|metric| metric.group == group) {
            let _ = writeln!(page, "{}", row(metric));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let unit = match metric.unit {
        Unit::Count => "count",
        Unit::Records => "records",
        Unit::Milliseconds => "ms",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Ratio => "0 to 1",
        Unit::State => "number of a state",
    };
    let java = match (metric.origin, metric.kind) {
        (Origin::Ours, _) => "no".to_owned(),
        (Origin::Java, Kind::Histogram) => format!("`{0}-avg`, `{0}-max`", metric.name),
        (Origin::Java, _) => format!("`{}`", metric.name),
    };
    let label = if metric.label.is_empty() {
        String::new()
    } else {
        format!(" Label `{}`.", metric.label)
    };
    format!(
        "| `{}` | {kind} | {unit} | {} | {java} | {}{label} |",
        metric.published_name(),
        metric.level.name(),
        metric.help
    )
}
