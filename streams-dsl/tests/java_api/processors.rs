//! What processors reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use streams_dsl::prelude::*;

use super::{driver, driver_with, out, pipe, row};

/// Counts in the store `counts` and sends even counts to `even`.
struct Parity;

impl Processor<String, i64, String, i64> for Parity {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let counts = cx.key_value_store::<String, i64>("counts")?;
        let count = counts.get(cx, record.key)?.map_or(1, |row| row.value + 1);
        counts.put(cx, record.key, Some(count), record)?;
        let child = match *record.value {
            0 => "nowhere",
            _ if count % 2 == 0 => "even",
            _ => "odd",
        };
        cx.forward_to(child, record.with_value(&count))
    }
}

#[test]
fn a_store_is_connected_later_and_a_record_goes_to_one_child() {
    let mut builder = TopologyBuilder::new();
    let numbers = || Produced::<String, i64>::default();
    builder
        .add_source("in", ["in"], Consumed::<String, i64>::default())
        .add_processor("parity", ["in"], || Parity)
        .add_state_store(Stores::key_value::<String, i64>("counts"), [])
        .connect_processor_and_state_stores("parity", ["counts"])
        .add_sink("odd", "odds", ["parity"], numbers())
        .add_sink("even", "evens", ["parity"], numbers());
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    for _ in 0..3 {
        pipe(&mut driver, "in", "k", 1, 0);
    }
    assert_eq!(out(&mut driver, "odds"), [row("k", 1), row("k", 3)]);
    assert_eq!(out(&mut driver, "evens"), [row("k", 2)]);
    let lost = TestInput::<String, i64>::of("in")
        .pipe(&mut driver, "k", 0, 0)
        .unwrap_err();
    assert!(lost.to_string().contains("`nowhere`"), "{lost}");
}

/// Tells where it is.
struct Place;

impl Processor<String, i64, String, String> for Place {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let at = cx.record_context();
        let place = format!("{} {}-{}@{}", cx.task_id(), at.topic, at.partition, at.offset);
        let told = format!("{place} stream {} clock {}", cx.stream_time_ms(), cx.now_ms());
        cx.request_commit();
        Ok(cx.forward(record.with_value(&told))?)
    }
}

#[test]
fn a_processor_sees_its_place_and_its_times() {
    let options = DriverOptions {
        now_ms: 500,
        commit_each: false,
        ..DriverOptions::default()
    };
    let mut driver = driver_with(
        |b| drop(b.stream::<String, i64>("in").process(|| Place).to("out")),
        options,
    );
    pipe(&mut driver, "in", "k", 1, 30);
    pipe(&mut driver, "in", "k", 1, 20);
    let told = TestOutput::<String, String>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(
        told,
        ["0_0 in-0@0 stream 30 clock 500", "0_0 in-0@1 stream 30 clock 500"]
    );
}

/// Forwards the times of its punctuations; tells of its end.
struct Hourly(Arc<AtomicI64>);

impl Processor<String, i64, String, i64> for Hourly {
    fn init(&mut self, cx: &mut ProcessorContext<'_, String, i64>) -> Result<(), BoxError> {
        cx.schedule_from(3_600_000, HOUR, PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        _: &mut ProcessorContext<'_, String, i64>,
        _: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        Ok(())
    }

    fn punctuate(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        _: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        let key = "tick".to_owned();
        Ok(cx.forward(Record::new(&key, &timestamp_ms, timestamp_ms))?)
    }

    fn close(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_anchored_schedule_fires_at_whole_intervals() {
    let closed = Arc::new(AtomicI64::new(0));
    let options = DriverOptions {
        now_ms: 9 * 3_600_000 + 7,
        ..DriverOptions::default()
    };
    let counter = Arc::clone(&closed);
    let make = move || Hourly(Arc::clone(&counter));
    let mut driver = driver_with(|b| drop(b.stream::<String, i64>("in").process(make).to("out")), options);
    driver.advance_wall_clock_time(HOUR - 8 * MILLISECOND).unwrap();
    assert_eq!(out(&mut driver, "out"), []);
    driver.advance_wall_clock_time(MILLISECOND).unwrap();
    assert_eq!(out(&mut driver, "out"), [row("tick", 10 * 3_600_000)]);
    driver.advance_wall_clock_time(HOUR).unwrap();
    assert_eq!(out(&mut driver, "out"), [row("tick", 11 * 3_600_000)]);
    driver.close().unwrap();
    assert_eq!(closed.load(Ordering::Relaxed), 1);
}

/// Numbers the calls; tells of its end.
struct Numbered(i64, Arc<AtomicI64>);

impl ValueTransformer<String, i64, i64> for Numbered {
    fn init(&mut self, _: &mut ValueTransformerContext<'_>) -> Result<(), BoxError> {
        self.0 = 100;
        Ok(())
    }

    fn transform(
        &mut self,
        _: &mut ValueTransformerContext<'_>,
        _: &String,
        value: Option<&i64>,
    ) -> Result<Option<i64>, BoxError> {
        self.0 += 1;
        Ok(value.map(|_| self.0))
    }

    fn close(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_value_transformer_lives_as_long_as_its_task() {
    let closed = Arc::new(AtomicI64::new(0));
    let counter = Arc::clone(&closed);
    let make = move || Numbered(0, Arc::clone(&counter));
    let mut driver = driver(|b| {
        drop(
            b.table::<String, i64>("in")
                .transform_values(make)
                .to_stream()
                .to("out"),
        )
    });
    pipe(&mut driver, "in", "a", 1, 0);
    pipe(&mut driver, "in", "b", 1, 0);
    let values = TestOutput::<String, Option<i64>>::of("out")
        .read_values_to_list(&mut driver)
        .unwrap();
    assert_eq!(values, [Some(101), Some(102)]);
    driver.close().unwrap();
    assert_eq!(closed.load(Ordering::Relaxed), 1);
}
