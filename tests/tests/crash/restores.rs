//! The given cases (`tests/cases/given.json`) in which a killed process has lost its disk: what a changelog of sessions,
//! versions or windows that are emitted on close gives back. Each test names the case it is.
//!
//! Times are the cases' and, where one is 0, one more for all of them: librdkafka writes a time of 0 as now.

use std::time::Duration;

use streams_dsl::{
    BoxError, Connect, Consumed, EmitStrategy, KTable, MILLISECOND, Materialized, Processor, ProcessorContext, Record,
    SessionWindows, StreamsBuilder, TimeWindows, Windowed,
};
use streams_testkit::NewRecord;
use streams_tests::local::{count_text, expected};

use crate::application::{LIMIT, number};
use crate::instances::{Group, Work, impatient_broker, stop};

/// The table's versions, in `versions`.
const VERSIONS: &str = "versions";

/// The topology of such a case.
pub(crate) fn topology(work: Work, builder: &StreamsBuilder, input: &str, output: &str) {
    let grouped = || builder.stream::<String, String>(input).group_by_key();
    match work {
        Work::Sessions => {
            let windows = SessionWindows::of(10 * MILLISECOND).grace(1_000 * MILLISECOND);
            write_counts(&grouped().windowed_by(windows).count("counts"), output);
        }
        Work::OnClose => {
            let windows = TimeWindows::of(10 * MILLISECOND).grace(Duration::ZERO);
            let windowed = grouped().windowed_by(windows);
            write_counts(
                &windowed.emit_strategy(EmitStrategy::OnWindowClose).count("counts"),
                output,
            );
        }
        Work::Versions => {
            let store = Materialized::named(VERSIONS).versioned(1_000 * MILLISECOND);
            builder
                .table_with::<String, String>(input, Consumed::default(), store)
                .to_stream()
                .to(output);
            let asked = builder.stream::<String, String>(&reads_of(input));
            asked.process_with(|| AsOf, Connect::stores([VERSIONS])).to(output);
        }
        Work::Count | Work::Windows | Work::Punctuate => panic!("{work:?} is no such case"),
    }
}

/// A count per key and window, as `key@start/end`.
fn write_counts(counts: &KTable<Windowed<String>, i64>, output: &str) {
    let plain = counts.to_stream().select_key(|windowed, _| {
        let window = windowed.window;
        format!("{}@{}/{}", windowed.key, window.start_ms, window.end_ms)
    });
    plain.to(output);
}

/// The topic whose values are the times to look up.
pub(crate) fn reads_of(input: &str) -> String {
    format!("{input}.reads")
}

/// Answers a time, as text, with the version of the key that was valid then: `value@from`, or `null`.
struct AsOf;

impl Processor<String, String, String, String> for AsOf {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let versions = cx.versioned_store::<String, String>(VERSIONS)?;
        let found = versions.get_as_of(cx, record.key, record.value.parse()?)?;
        let text = found.map_or("null".to_owned(), |found| format!("{}@{}", found.value, found.from_ms));
        Ok(cx.forward(record.with_value(&text))?)
    }
}

/// Kills `A` when all of its input is committed, takes its disk away, and starts it again; answers the instance, which
/// runs, and how many changelog records it has restored.
fn lose_the_disk(group: &Group) -> (streams_testkit::RunningApp, u64) {
    let mut first = group.start("A");
    group.wait_committed(LIMIT, &[&first]);
    first.kill().unwrap();
    std::fs::remove_dir_all(group.directory("A")).unwrap();
    // It is a new member, which gets the task only when the group has given the killed one up, and runs without it before.
    let mut again = group.start("A");
    let restored = |line: &str| line.contains("RUNNING restored=").then(|| number(line, "restored"));
    let line = again
        .wait_for_line(LIMIT, |line| restored(line).is_some_and(|records| records > 0))
        .unwrap();
    let records = number(&line, "restored");
    (again, records)
}

fn produce(group: &Group, topic: &str, rows: &[(&str, Option<&str>, i64)]) {
    let rows = rows.iter().map(streams_tests::local::record);
    group.kafka.produce(topic, rows.collect::<Vec<NewRecord>>()).unwrap();
}

/// The committed rows of the output: key, count, time.
fn counted(group: &Group) -> Vec<(String, String, i64)> {
    let records = group.kafka.collect(&group.output).unwrap();
    let row =
        |record: &streams_testkit::Record| (record.key_text(), count_text(record.value.as_deref()), record.timestamp);
    records.iter().map(row).collect()
}

#[test]
fn case_rst_session_tombstones() {
    let group = Group::on(impatient_broker(), Work::Sessions, 1);
    let input = group.input.clone();
    produce(
        &group,
        &input,
        &[("a", Some("x"), 1), ("a", Some("x"), 21), ("a", Some("x"), 11)],
    );
    let (mut again, _) = lose_the_disk(&group);
    produce(&group, &input, &[("a", Some("x"), 26)]);
    group.wait_committed(LIMIT, &[&again]);
    stop(&mut again);
    assert_eq!(
        counted(&group),
        expected(&[
            ("a@1/1", "1", 1),
            ("a@21/21", "1", 21),
            ("a@1/1", "null", 1),
            ("a@21/21", "null", 21),
            ("a@1/21", "3", 21),
            ("a@1/21", "null", 21),
            ("a@1/26", "4", 26),
        ])
    );
    let mut live = std::collections::BTreeMap::new();
    for record in group.kafka.collect(&group.changelog()).unwrap() {
        match record.value {
            Some(value) => live.insert(record.key, value),
            None => live.remove(&record.key),
        };
    }
    assert_eq!(live.len(), 1, "one session is left of all");
}

#[test]
fn case_rst_emit_final_restart() {
    let group = Group::on(impatient_broker(), Work::OnClose, 1);
    let input = group.input.clone();
    produce(&group, &input, &[("a", Some("x"), 1), ("b", Some("x"), 12)]);
    let (mut again, _) = lose_the_disk(&group);
    produce(&group, &input, &[("c", Some("x"), 13), ("d", Some("x"), 22)]);
    group.wait_committed(LIMIT, &[&again]);
    stop(&mut again);
    // Nothing twice, and nothing of what closed while nobody ran is left out.
    assert_eq!(
        counted(&group),
        expected(&[("a@0/10", "1", 1), ("b@10/20", "1", 12), ("c@10/20", "1", 13)])
    );
}

#[test]
fn case_rst_versioned_history() {
    let group = Group::on(impatient_broker(), Work::Versions, 1);
    let (input, reads) = (group.input.clone(), reads_of(&group.input));
    group.kafka.create_topic(&reads, 1, &[]).unwrap();
    let rows = [("k", Some("a"), 1_000), ("k", Some("b"), 1_050), ("k", None, 1_020)];
    produce(&group, &input, &rows);
    let (mut again, restored) = lose_the_disk(&group);
    assert_eq!(restored, 3, "each version is a row of the changelog");
    let times = ["1019", "1020", "1049", "1050", "999"];
    produce(&group, &reads, &times.map(|time| ("k", Some(time), 2_000)));
    let records = group
        .kafka
        .collector()
        .wait_for_count(&group.output, rows.len() + times.len(), LIMIT)
        .unwrap();
    stop(&mut again);
    let answers: Vec<String> = records[rows.len()..].iter().map(|record| record.value_text()).collect();
    assert_eq!(answers, ["a@1000", "null", "null", "b@1050", "null"]);
}
