//! Rules of user processors that their examples do not show, on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::sync::Arc;

use streams_core::processor::{ErrorHandlers, LogAndContinue};
use streams_core::serde::Utf8;
use streams_dsl::{
    BoxError, Connect, DriverOptions, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, Headers, KStream,
    Optimization, Processor, ProcessorContext, Produced, PunctuationType, PunctuatorId, Record, SECOND, Serde,
    SerdeError, Stores, StreamsBuilder, TopologyConfig, TopologyTestDriver,
};

/// Counts records in a store, tags each with a header and a later time, and lets a schedule zero the count.
struct Tag;

impl FixedKeyProcessor<String, String, String> for Tag {
    fn init(&mut self, cx: &mut FixedKeyContext<'_, String, String>) -> Result<(), BoxError> {
        cx.schedule_every(10 * SECOND, PunctuationType::WallClockTime);
        Ok(())
    }

    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, String>,
        record: FixedKeyRecord<'_, String, String>,
    ) -> Result<(), BoxError> {
        let counts = cx.key_value_store::<String, i64>("counts")?;
        let count = counts.get(cx, record.key())?.map_or(0, |row| row.value) + 1;
        counts.put(cx, record.key(), Some(count), record.as_record())?;
        let mut headers = record.headers().clone();
        headers.add("count", Some(count.to_string().as_bytes()));
        let later = record.timestamp_ms() + 5;
        let value = format!("{}!", record.value());
        cx.forward(record.with_value(&value).with_timestamp(later).with_headers(&headers))?;
        Ok(())
    }

    fn punctuate(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, String>,
        _: PunctuatorId,
        timestamp_ms: i64,
    ) -> Result<(), BoxError> {
        let counts = cx.key_value_store::<String, i64>("counts")?;
        let key = "a".to_owned();
        counts.put(cx, &key, None, Record::new(&key, &(), timestamp_ms))?;
        Ok(())
    }
}

#[test]
fn a_fixed_key_processor_has_stores_schedules_headers_and_times() {
    let builder = StreamsBuilder::new();
    builder.add_state_store(Stores::key_value::<String, i64>("counts"));
    builder
        .stream::<String, String>("in")
        .process_values_with(|| Tag, Connect::stores(["counts"]))
        .to("out");
    let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap();
    let pipe = |driver: &mut TopologyTestDriver, time| {
        driver
            .pipe("in", Some(b"a"), Some(b"v"), time, Headers::empty())
            .unwrap();
        let record = driver.read_record("out").unwrap();
        let count = record.headers.iter().next().unwrap().value.as_deref().unwrap().to_vec();
        (record.key.unwrap(), record.value.unwrap(), record.timestamp_ms, count)
    };
    let out = |time, count: &[u8]| (b"a".to_vec(), b"v!".to_vec(), time, count.to_vec());
    assert_eq!(pipe(&mut driver, 1), out(6, b"1"));
    assert_eq!(pipe(&mut driver, 2), out(7, b"2"));
    driver.advance_wall_clock_ms(10_000).unwrap();
    assert_eq!(pipe(&mut driver, 3), out(8, b"1"));
}

#[test]
fn process_values_needs_no_repartition_and_process_does() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream::<String, String>("in");
    builder.add_state_store(Stores::key_value::<String, i64>("counts"));
    let values = stream.process_values_with(|| Tag, Connect::stores(["counts"]));
    values.group_by_key().count("fixed");
    let records = stream.process(|| Fails { by_panic: false });
    records.group_by_key().count("free");
    let text = builder.build().unwrap().describe();
    assert!(text.contains("KSTREAM-PROCESSVALUES-0000000001") && text.contains("KSTREAM-PROCESSOR-0000000003"));
    assert!(
        text.contains("free-repartition") && !text.contains("fixed-repartition"),
        "{text}"
    );
}

#[test]
fn a_named_process_values_draws_no_number() {
    let builder = StreamsBuilder::new();
    builder.add_state_store(Stores::key_value::<String, i64>("counts"));
    let stream = builder.stream::<String, String>("in");
    let tagged = stream.process_values_with(|| Tag, Connect::named("tag").store("counts"));
    tagged.to("out");
    let text = builder.build().unwrap().describe();
    assert!(text.contains("Processor: tag (stores: [counts])") && text.contains("KSTREAM-SINK-0000000001"));
}

/// Forwards to a child that fails, and then makes light of it.
struct Fails {
    by_panic: bool,
}

impl Processor<String, String, String, String> for Fails {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, String>,
    ) -> Result<(), BoxError> {
        let forwarded = cx.forward(record);
        assert!(forwarded.is_ok() || !self.by_panic, "the child failed");
        Ok(())
    }
}

#[test]
fn a_child_that_failed_for_good_stops_the_thread_whatever_its_parent_makes_of_it() {
    for by_panic in [false, true] {
        let builder = StreamsBuilder::new();
        let passed = builder
            .stream::<String, String>("in")
            .process(move || Fails { by_panic });
        passed.to_with("out", Produced::with(Utf8, Refuses));
        let handlers = ErrorHandlers {
            processing: Arc::new(LogAndContinue),
            ..ErrorHandlers::default()
        };
        let options = DriverOptions {
            handlers: Arc::new(handlers),
            ..DriverOptions::default()
        };
        let mut driver = TopologyTestDriver::new(&builder.build().unwrap(), options).unwrap();
        let error = driver.pipe("in", Some(b"a"), Some(b"v"), 0, Headers::empty());
        assert!(error.is_err(), "by panic: {by_panic}");
    }
}

/// A serde that writes nothing.
struct Refuses;

impl Serde<String> for Refuses {
    fn serialize(&self, _: &str, _: &String, _: &mut Vec<u8>) -> Result<bool, SerdeError> {
        Err(SerdeError::Length {
            type_name: "anything",
            expected: 0,
            actual: 1,
        })
    }
    fn deserialize(&self, _: &str, _: Option<&[u8]>) -> Result<String, SerdeError> {
        Ok(String::new())
    }
}

/// Makes numbers texts.
struct Spell;

impl FixedKeyProcessor<String, i64, String> for Spell {
    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, String, String>,
        record: FixedKeyRecord<'_, String, i64>,
    ) -> Result<(), BoxError> {
        Ok(cx.forward(record.with_value(&record.value().to_string()))?)
    }
}

impl Processor<String, i64, String, String> for Spell {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, String>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        Ok(cx.forward(record.with_value(&record.value.to_string()))?)
    }
}

#[test]
fn repartitions_are_not_moved_above_what_makes_other_values() {
    let optimization = Optimization::parse("merge.repartition.topics").unwrap();
    type Make = fn(&StreamsBuilder, &KStream<String, i64>) -> KStream<String, String>;
    let makers: [Make; 3] = [
        |_, stream| stream.process_values(|| Spell),
        |_, stream| stream.process(|| Spell),
        |builder, stream| {
            let table = builder.global_table::<String, String>("global");
            stream.left_join_global(&table, |key, _| key.clone(), |_, value, _| value.to_string())
        },
    ];
    for make in makers {
        let builder = StreamsBuilder::new();
        let selected = builder.stream::<String, i64>("in").select_key(|key, _| key.clone());
        let texts = make(&builder, &selected);
        texts.group_by_key().count("c");
        texts.group_by_key().reduce(|_, new, _| new.clone(), "r");
        let topology = builder.build_with(&TopologyConfig { optimization }).unwrap();
        let mut driver = TopologyTestDriver::new(&topology, DriverOptions::default()).unwrap();
        driver
            .pipe("in", Some(b"a"), Some(&7_i64.to_be_bytes()), 0, Headers::empty())
            .unwrap();
        let row = driver
            .key_value::<String, String>("r", &"a".to_owned())
            .unwrap()
            .unwrap();
        assert_eq!(row.value, "7");
    }
}
