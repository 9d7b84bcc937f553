//! Schedules of the design rules that need operators, on the test driver; `tests/RULES.md` lists them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use streams_core::processor::{ErrorHandlers, LogAndContinue, PunctuationType, PunctuatorId};
use streams_core::runtime::RuntimeSettings;
use streams_dsl::{
    BoxError, Connect, DriverOptions, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, Headers, Record, SECOND,
    Stores, StreamsBuilder, TopologyTestDriver,
};

fn resuming() -> Arc<ErrorHandlers> {
    Arc::new(ErrorHandlers {
        processing: Arc::new(LogAndContinue),
        ..ErrorHandlers::default()
    })
}

/// A cache that holds everything until all input is processed.
fn cached(handlers: Arc<ErrorHandlers>) -> DriverOptions {
    DriverOptions {
        settings: RuntimeSettings {
            cache_bytes: 1 << 20,
            commit_adaptive: false,
            commit_interval_ms: 60_000,
            ..RuntimeSettings::default()
        },
        handlers,
        commit_each: false,
        ..DriverOptions::default()
    }
}

/// Sums, and a step behind the sum that can't take 13. `a` comes to 13, then `b` to 2.
fn flushed(handlers: Arc<ErrorHandlers>) -> (TopologyTestDriver, Result<(), String>) {
    let builder = StreamsBuilder::new();
    builder
        .stream::<String, i64>("in")
        .group_by_key()
        .reduce(|_, new, sum| sum + new, "sum")
        .to_stream()
        .map_values(|_, sum: &Option<i64>| {
            assert!(*sum != Some(13), "unlucky");
            *sum
        })
        .to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), cached(handlers)).unwrap();
    let values = [6_i64, 7, 2].map(i64::to_be_bytes);
    let records = [&b"a"[..], b"a", b"b"].into_iter().zip(&values);
    let piped = driver.pipe_all("in", records.map(|(key, value)| (Some(key), Some(&value[..]), 5)));
    let flushed = piped.map_err(|error| error.to_string());
    (driver, flushed)
}

#[test]
fn rule_4_5_a_failure_in_a_flush_drops_the_forward_and_not_the_row() {
    let (driver, flushed) = flushed(resuming());
    flushed.unwrap();
    let keys = |topic: &str| -> Vec<Vec<u8>> { driver.read_all(topic).into_iter().map(|r| r.key.unwrap()).collect() };
    assert_eq!(keys("out"), [b"b"]);
    assert_eq!(keys("app-sum-changelog"), [b"a", b"b"]);
    let sum = &driver.read_all("app-sum-changelog")[0];
    assert_eq!(sum.value.as_deref(), Some(&13_i64.to_be_bytes()[..]));
}

#[test]
fn rule_4_5_a_failure_in_a_flush_names_the_record_of_the_entry_and_not_the_one_in_hand() {
    let (driver, flushed) = flushed(Arc::default());
    let text = flushed.unwrap_err();
    assert!(text.contains("in-0 at offset 1"), "{text}");
    assert!(driver.read_all("out").is_empty());
}

/// Writes a row each second, and fails behind the first one.
struct Flaky(Arc<AtomicU32>);

impl FixedKeyProcessor<String, i64, i64> for Flaky {
    fn init(&mut self, cx: &mut FixedKeyContext<'_, String, i64>) -> Result<(), BoxError> {
        cx.schedule_every(SECOND, PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, i64>,
        record: FixedKeyRecord<'_, String, i64>,
    ) -> Result<(), BoxError> {
        Ok(cx.forward(record)?)
    }

    fn punctuate(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, i64>,
        _: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        let rows = cx.key_value_store::<String, i64>("rows")?;
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let key = format!("row-{number}");
        rows.put(cx, &key, Some(1), Record::new(&key, &(), timestamp_ms))?;
        assert!(number > 0, "not at the first time");
        Ok(())
    }
}

#[test]
fn rule_4_6_a_resumed_failure_of_a_punctuation_keeps_its_schedule_and_what_it_did() {
    let times = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&times);
    let builder = StreamsBuilder::new();
    builder.add_state_store(Stores::key_value::<String, i64>("rows"));
    builder
        .stream::<String, i64>("in")
        .process_values_with(move || Flaky(Arc::clone(&counted)), Connect::stores(["rows"]))
        .to("out");
    let options = DriverOptions {
        handlers: resuming(),
        ..DriverOptions::default()
    };
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
    driver
        .pipe("in", Some(b"a"), Some(&1_i64.to_be_bytes()), 5, Headers::empty())
        .unwrap();
    for _ in 0..3 {
        driver.advance_wall_clock_ms(1_000).unwrap();
    }
    assert_eq!(times.load(Ordering::Relaxed), 3);
    let keys: Vec<_> = driver
        .read_all("app-rows-changelog")
        .into_iter()
        .map(|r| r.key.unwrap())
        .collect();
    assert_eq!(keys, [b"row-0", b"row-1", b"row-2"]);
}
