//! Topologies by hand, on the test driver.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use streams_dsl::{
    BoxError, Consumed, DriverOptions, Headers, Partitions, Processor, ProcessorContext, Produced, Record, Stores,
    StreamsBuilder, TopologyBuilder, TopologyTestDriver,
};

fn pipe(driver: &mut TopologyTestDriver, topic: &str, key: &str, value: i64) {
    let value = value.to_be_bytes();
    driver
        .pipe(topic, Some(key.as_bytes()), Some(&value), 0, Headers::empty())
        .unwrap();
}

fn longs(driver: &TopologyTestDriver, topic: &str) -> Vec<i64> {
    let records = driver.read_all(topic).into_iter();
    records
        .map(|record| i64::from_be_bytes(record.value.unwrap().try_into().unwrap()))
        .collect()
}

/// Adds the value to the row of its key, and forwards the sum.
struct Sum(&'static str);

impl Processor<String, i64, String, i64> for Sum {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let sums = cx.key_value_store::<String, i64>(self.0)?;
        let sum = sums.get(cx, record.key)?.map_or(0, |row| row.value) + record.value;
        sums.put(cx, record.key, Some(sum), record)?;
        Ok(cx.forward(record.with_value(&sum))?)
    }
}

/// Stores what it reads.
struct Keep(&'static str);

impl Processor<String, i64, (), ()> for Keep {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, (), ()>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let rows = cx.key_value_store::<String, i64>(self.0)?;
        rows.put(cx, record.key, Some(*record.value), record)?;
        Ok(())
    }
}

/// Multiplies by the row of the key in a store of the task.
struct Times(&'static str);

impl Processor<String, i64, String, i64> for Times {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let factors = cx.key_value_store::<String, i64>(self.0)?;
        let factor = factors.get(cx, record.key)?.map_or(1, |row| row.value);
        Ok(cx.forward(record.with_value(&(record.value * factor)))?)
    }
}

/// Multiplies by the row of the key in a global store.
struct TimesGlobal;

impl Processor<String, i64, String, i64> for TimesGlobal {
    fn process(
        &mut self,
        cx: &mut ProcessorContext<'_, String, i64>,
        record: Record<'_, String, i64>,
    ) -> Result<(), BoxError> {
        let factors = cx.global_store::<String, i64>("factors")?;
        let factor = factors.get(cx, record.key)?.map_or(1, |row| row.value);
        Ok(cx.forward(record.with_value(&(record.value * factor)))?)
    }
}

fn driver(builder: &TopologyBuilder) -> TopologyTestDriver {
    TopologyTestDriver::new(&builder.build().unwrap(), DriverOptions::default()).unwrap()
}

fn longs_in() -> Consumed<String, i64> {
    Consumed::default()
}

#[test]
fn two_processors_share_a_store_and_are_one_sub_topology() {
    let mut builder = TopologyBuilder::new();
    builder
        .add_source("a", ["in-a"], longs_in())
        .add_source("b", ["in-b"], longs_in())
        .add_processor("sum-a", ["a"], || Sum("sums"))
        .add_processor("sum-b", ["b"], || Sum("sums"))
        .add_state_store(Stores::key_value::<String, i64>("sums"), ["sum-a"])
        .connect_processor_and_state_stores("sum-b", ["sums"])
        .add_sink("out", "out", ["sum-a", "sum-b"], Produced::<String, i64>::default());
    let topology = builder.build().unwrap();
    assert!(!topology.describe().contains("Sub-topology: 1"));
    let mut driver = driver(&builder);
    pipe(&mut driver, "in-a", "k", 5);
    pipe(&mut driver, "in-b", "k", 7);
    assert_eq!(longs(&driver, "out"), [5, 12]);
    assert_eq!(driver.read_all("app-sums-changelog").len(), 2);
}

#[test]
fn a_topology_of_the_dsl_goes_on_by_hand() {
    let dsl = StreamsBuilder::new();
    let _twice = dsl
        .stream::<String, i64>("in")
        .map_values(|_, value| value * 2)
        .named("twice");
    let mut builder = TopologyBuilder::from(dsl.build().unwrap());
    let everywhere =
        Produced::<String, i64>::default().partitioned_by(|_, _, _, count| Partitions::Each((0..count).collect()));
    builder.add_sink("out", "out", ["twice"], everywhere);
    builder.add_dynamic_sink(
        "by-key",
        |key: &String, _: &i64, _| format!("ou{key}"),
        ["twice"],
        Produced::default(),
    );
    let mut driver = driver(&builder);
    pipe(&mut driver, "in", "t", 4);
    assert_eq!(longs(&driver, "out"), [8, 8], "of both sinks");
    assert!(
        builder
            .build()
            .unwrap()
            .describe()
            .contains("Sink: by-key (extractor class: closure)")
    );
}

#[test]
fn a_global_store_is_read_without_a_connection() {
    let mut builder = TopologyBuilder::new();
    builder
        .add_global_store(
            Stores::key_value::<String, i64>("factors"),
            ("factors-source", longs_in()),
            "factors-topic",
            ("keep", || Keep("factors")),
        )
        .add_source("in", ["in"], longs_in())
        .add_processor("times", ["in"], || TimesGlobal)
        .add_sink("out", "out", ["times"], Produced::<String, i64>::default());
    let mut driver = driver(&builder);
    pipe(&mut driver, "factors-topic", "k", 3);
    pipe(&mut driver, "in", "k", 5);
    assert_eq!(longs(&driver, "out"), [15]);
    let described = builder.build().unwrap().describe();
    assert!(
        described.contains("for global store (will not generate tasks)"),
        "{described}"
    );
}

#[test]
fn a_read_only_store_has_its_topic_as_changelog() {
    let mut builder = TopologyBuilder::new();
    builder
        .add_read_only_state_store(
            Stores::key_value::<String, i64>("factors"),
            ("factors-source", longs_in()),
            "factors-topic",
            ("keep", || Keep("factors")),
        )
        .add_source("in", ["in"], longs_in())
        .add_processor("times", ["in"], || Times("factors"))
        .connect_processor_and_state_stores("times", ["factors"])
        .add_sink("out", "out", ["times"], Produced::<String, i64>::default());
    let mut driver = driver(&builder);
    let changelogs = &driver.plan().subtopologies[0].changelogs;
    assert_eq!(changelogs.len(), 1);
    assert!(changelogs[0].source_topic && &*changelogs[0].topic.name == "factors-topic");
    pipe(&mut driver, "factors-topic", "k", 3);
    pipe(&mut driver, "in", "k", 5);
    assert_eq!(longs(&driver, "out"), [15]);
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let mut builder = TopologyBuilder::new();
    builder
        .add_source("in", ["in"], longs_in())
        .add_source("in", ["other"], longs_in())
        .add_processor("sum", ["nowhere"], || Sum("sums"))
        .connect_processor_and_state_stores("sum", ["missing"]);
    let error = builder.build().err().unwrap().to_string();
    for part in ["in", "nowhere", "missing"] {
        assert!(error.contains(part), "{error}");
    }
}
