//! The user guide (`docs/guide`): its timelines are what the test driver does, and no chapter is left out of the tests.
//! `GUIDE_TIMELINES=overwrite` writes the result columns anew; read what changed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

#[path = "guide/timelines.rs"]
mod timelines;

use std::collections::BTreeSet;
use std::path::PathBuf;

use streams_dsl::{DriverOptions, Headers, StreamsBuilder, TopologyTestDriver};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/src")
}

fn chapter(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn chapters() -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    names
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect()
}

#[test]
fn every_chapter_is_in_the_summary_and_its_examples_are_tests() {
    let doctests = include_str!("../src/guide.rs");
    let tested: BTreeSet<String> = doctests
        .split('"')
        .filter(|part| part.ends_with(".md") && !part.contains('/'))
        .map(str::to_owned)
        .collect();
    assert_eq!(tested, chapters());
    let summary = chapter("SUMMARY.md");
    let listed = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    assert_eq!(listed.map(str::to_owned).collect::<BTreeSet<_>>(), chapters());
}

#[test]
fn every_block_says_what_it_is_so_that_no_example_goes_untested() {
    for file in chapters() {
        let text = chapter(&file);
        let fences: Vec<&str> = text.lines().filter(|line| line.starts_with("```")).collect();
        for (at, fence) in fences.iter().enumerate() {
            let expected: &[&str] = if at % 2 == 0 { &["```rust", "```text"] } else { &["```"] };
            assert!(
                expected.contains(fence),
                "{file}: a block begins or ends with `{fence}`"
            );
        }
    }
}

/// A table of a chapter, below a comment with its name.
struct Timeline {
    name: String,
    /// Where the rows lie in the lines of the chapter.
    first_line: usize,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn cells(line: &str) -> Vec<String> {
    let inside = line.trim().trim_start_matches('|').trim_end_matches('|');
    inside.split('|').map(|cell| cell.trim().to_owned()).collect()
}

fn timelines_of(text: &str) -> Vec<Timeline> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = line.strip_prefix("<!-- timeline: ") else {
            continue;
        };
        let table = lines.iter().skip(at + 1).take_while(|line| line.starts_with('|'));
        let mut rows: Vec<Vec<String>> = table.map(|line| cells(line)).collect();
        assert!(rows.len() > 2, "{name} has no rows");
        let head = rows.remove(0);
        rows.remove(0);
        found.push(Timeline {
            name: name.trim_end_matches(" -->").to_owned(),
            first_line: at + 3,
            head,
            rows,
        });
    }
    found
}

/// `12 s` in milliseconds.
fn millis(cell: &str) -> i64 {
    let seconds: i64 = cell
        .strip_suffix(" s")
        .and_then(|count| count.parse().ok())
        .expect("a time in seconds");
    seconds * 1_000
}

/// `value` or `key: value`.
fn record(cell: &str) -> (&str, Option<&str>) {
    let (key, value) = cell.split_once(": ").unwrap_or(("k", cell));
    (key, (value != "null").then_some(value))
}

impl Timeline {
    fn is_input(&self, column: usize) -> bool {
        (1..=timelines::inputs(&self.name)).contains(&column)
    }

    /// What a column's program makes of each row.
    fn run(&self, column: &str) -> Vec<String> {
        let builder = StreamsBuilder::new();
        timelines::build(&self.name, column.trim_matches('`'), &builder);
        let topology = builder.build().unwrap();
        let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap();
        let mut made = Vec::new();
        for row in &self.rows {
            let time = millis(&row[0]);
            for (at, cell) in row
                .iter()
                .enumerate()
                .filter(|(at, cell)| self.is_input(*at) && !cell.is_empty())
            {
                let (key, value) = record(cell);
                let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
                driver.pipe(&self.head[at], key, value, time, Headers::empty()).unwrap();
            }
            made.push(output(&mut driver));
        }
        made
    }
}

/// All new records of the topic `out`, as a cell shows them.
fn output(driver: &mut TopologyTestDriver) -> String {
    let text =
        |bytes: Option<Vec<u8>>| bytes.map_or_else(|| "null".to_owned(), |bytes| String::from_utf8(bytes).unwrap());
    let mut shown = Vec::new();
    while let Some(record) = driver.read_record("out") {
        let (key, value) = (
            text(record.key.map(|key| key.to_vec())),
            text(record.value.map(|value| value.to_vec())),
        );
        shown.push(if key == "k" { value } else { format!("{key}: {value}") });
    }
    shown.join("; ")
}

#[test]
fn the_timelines_are_what_the_test_driver_does() {
    let overwrite = std::env::var("GUIDE_TIMELINES").is_ok_and(|value| value == "overwrite");
    let mut run = BTreeSet::new();
    for file in chapters() {
        let text = chapter(&file);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for timeline in timelines_of(&text) {
            run.insert(timeline.name.clone());
            let mut rows = timeline.rows.clone();
            for (at, column) in timeline
                .head
                .iter()
                .enumerate()
                .skip(1)
                .filter(|(at, _)| !timeline.is_input(*at))
            {
                for (row, made) in rows.iter_mut().zip(timeline.run(column)) {
                    row[at] = made;
                }
            }
            for (at, row) in rows.iter().enumerate() {
                lines[timeline.first_line + at] = format!("| {} |", row.join(" | "))
                    .replace("|  |", "| |")
                    .replace("|  |", "| |");
            }
        }
        let made = lines.join("\n") + "\n";
        if overwrite {
            std::fs::write(folder().join(&file), &made).unwrap();
        } else if let Some((ours, theirs)) = made.lines().zip(text.lines()).find(|(made, text)| made != text) {
            panic!("{file} says\n{theirs}\nand the test driver makes\n{ours}");
        }
    }
    assert_eq!(run, timelines::NAMES.map(str::to_owned).into());
}
