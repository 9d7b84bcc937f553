//! Runs one case: builds, pipes the steps in, gathers what comes out in the form of the case's `expect` block.
#![allow(clippy::indexing_slicing, reason = "JSON values grow by index")]

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use streams_core::processor::{ErrorHandlers, LogAndContinue};
use streams_dsl::{DriverOptions, Error, Headers, Optimization, StreamsBuilder, TopologyConfig, TopologyTestDriver};

use super::functions::Text;
use super::program::{build, field};
use super::{Step, Stop, broken, missing};

pub(crate) fn run(case: &Value) -> Step<Value> {
    let none = Vec::new();
    let list = |name: &str| case.get(name).and_then(Value::as_array).unwrap_or(&none);
    let (config, options) = configuration(case)?;
    let builder = StreamsBuilder::new();
    build(list("topology"), &builder)?;
    let topology = builder
        .build_with(&config)
        .map_err(|error| Stop::Broken(error.to_string()))?;
    let mut driver = TopologyTestDriver::new(&topology, options).map_err(|error| Stop::Broken(error.to_string()))?;
    let mut gathered = Gathered {
        topics: outputs(case),
        header_list: case.get("header_list").and_then(Value::as_bool).unwrap_or(false),
        ..Gathered::default()
    };
    for (number, step) in list("steps").iter().enumerate() {
        let done = perform(step, number, &mut driver, &mut gathered)?;
        gathered.take(number, &mut driver);
        if let Err(error) = done {
            gathered.step_error = Some(json!({ "step": number, "root": root(&error) }));
            break;
        }
    }
    Ok(gathered.into_value(driver.dropped_records()))
}

/// Settings that change what comes out. The throttles of Java's late emission are always off here.
fn configuration(case: &Value) -> Step<(TopologyConfig, DriverOptions)> {
    let (mut config, mut options) = (TopologyConfig::default(), DriverOptions::default());
    let mut handlers = ErrorHandlers::default();
    for (key, value) in case.get("config").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let goes_on = text.contains("LogAndContinue");
        match key.as_str() {
            "topology.optimization" => {
                config.optimization = Optimization::parse(&text).map_err(|e| Stop::Missing(e.to_string()))?
            }
            "statestore.cache.max.bytes" | "cache.max.bytes.buffering" => match text.parse() {
                Ok(bytes) => options.settings.cache_bytes = bytes,
                Err(_) => return broken(format!("{key}={text}")),
            },
            "deserialization.exception.handler" if goes_on => handlers.deserialization = Arc::new(LogAndContinue),
            "processing.exception.handler" if goes_on => handlers.processing = Arc::new(LogAndContinue),
            "errors.dead.letter.queue.topic.name" => handlers.dead_letter_topic = Some(text.into()),
            "processing.guarantee" | "commit.interval.ms" => {}
            key if key.starts_with("__emit.interval.ms.") => {}
            other => return missing(format!("the setting {other}={text}")),
        }
    }
    options.handlers = Arc::new(handlers);
    Ok((config, options))
}

/// The topics whose records are compared: those written with `to`, and those watched.
fn outputs(case: &Value) -> BTreeSet<String> {
    let calls = case.get("topology").and_then(Value::as_array).into_iter().flatten();
    let written = calls
        .filter(|call| field(call, "op") == Some("to"))
        .filter_map(|call| field(call, "topic"));
    let watched = case
        .get("watch")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    written.chain(watched).map(str::to_owned).collect()
}

type Done = Result<(), Box<Error>>;

fn perform(step: &Value, number: usize, driver: &mut TopologyTestDriver, gathered: &mut Gathered) -> Step<Done> {
    if let Some(topic) = field(step, "in") {
        let bytes = |name: &str| field(step, name).map(str::as_bytes);
        let Some(time) = step.get("ts").and_then(Value::as_i64) else {
            return broken(format!("step {number} has no ts"));
        };
        let mut headers = Headers::default();
        for (key, value) in step.get("headers").and_then(Value::as_object).into_iter().flatten() {
            headers.add(key, value.as_str().map(str::as_bytes));
        }
        return Ok(driver.pipe(topic, bytes("key"), bytes("value"), time, &headers));
    }
    if let Some(by_ms) = step.get("wall_ms").and_then(Value::as_i64) {
        return Ok(driver.advance_wall_clock_ms(by_ms));
    }
    let (Some(store), Some(key)) = (field(step, "read"), field(step, "key")) else {
        return broken(format!("step {step}"));
    };
    let mut found = json!({ "after": number, "store": store, "key": key });
    found["value"] = match step.get("as_of").and_then(Value::as_i64) {
        None => json!(read(driver, store, key)?),
        Some(as_of) => {
            found["as_of"] = json!(as_of);
            json!(read_as_of(driver, store, key, as_of)?)
        }
    };
    gathered.reads.push(found);
    Ok(Ok(()))
}

/// A version as `value@begin`. Counts are longs, all other values strings.
fn read_as_of(driver: &mut TopologyTestDriver, store: &str, key: &str, as_of_ms: i64) -> Step<Option<String>> {
    let key: Text = Some(key.to_owned());
    if let Ok(row) = driver.version_as_of::<Text, String>(store, &key, as_of_ms) {
        return Ok(row.map(|row| format!("{}@{}", row.value, row.from_ms)));
    }
    if let Ok(row) = driver.version_as_of::<Text, Text>(store, &key, as_of_ms) {
        return Ok(row.and_then(|row| Some(format!("{}@{}", row.value?, row.from_ms))));
    }
    match driver.version_as_of::<Text, i64>(store, &key, as_of_ms) {
        Ok(row) => Ok(row.map(|row| format!("{}@{}", row.value, row.from_ms))),
        Err(error) => broken(error.to_string()),
    }
}

/// A row as `value@time`; of a versioned store the newest one. Counts are longs, all other values strings, nullable in stores of reductions.
fn read(driver: &mut TopologyTestDriver, store: &str, key: &str) -> Step<Option<String>> {
    let key: Text = Some(key.to_owned());
    if let Ok(row) = driver.key_value::<Text, String>(store, &key) {
        return Ok(row.map(|row| format!("{}@{}", row.value, row.timestamp_ms)));
    }
    if let Ok(row) = driver.key_value::<Text, Text>(store, &key) {
        return Ok(row.and_then(|row| Some(format!("{}@{}", row.value?, row.timestamp_ms))));
    }
    match driver.key_value::<Text, i64>(store, &key) {
        Ok(row) => Ok(row.map(|row| format!("{}@{}", row.value, row.timestamp_ms))),
        Err(_) => read_as_of(driver, store, key.as_deref().unwrap_or_default(), i64::MAX),
    }
}

/// What came out so far.
#[derive(Default)]
struct Gathered {
    topics: BTreeSet<String>,
    /// Whether headers are told as a list of pairs, so that their order and repeated names are seen.
    header_list: bool,
    outputs: Vec<Value>,
    reads: Vec<Value>,
    step_error: Option<Value>,
}

impl Gathered {
    /// Takes what the topics got since the last step.
    fn take(&mut self, number: usize, driver: &mut TopologyTestDriver) {
        for topic in &self.topics {
            while let Some(record) = driver.read_record(topic) {
                let mut output = json!({
                    "after": number, "topic": topic, "key": text(record.key.as_deref()),
                    "value": text(record.value.as_deref()), "ts": record.timestamp_ms,
                });
                let pair =
                    |header: &streams_dsl::Header| (header.key.to_string(), json!(text(header.value.as_deref())));
                if !record.headers.is_empty() && self.header_list {
                    output["headers"] = record.headers.iter().map(|header| json!(pair(header))).collect();
                } else if !record.headers.is_empty() {
                    output["headers"] = Value::from(record.headers.iter().map(pair).collect::<Map<_, _>>());
                }
                self.outputs.push(output);
            }
        }
    }

    fn into_value(self, dropped: u64) -> Value {
        let mut value = json!({ "outputs": self.outputs, "dropped_records": dropped, "reads": self.reads });
        if let Some(error) = self.step_error {
            value["step_error"] = error;
        }
        value
    }
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The name of a failure's root cause: that of the function that threw, else the decision it forces.
fn root(error: &Error) -> String {
    let text = error.to_string();
    let thrown = text.split([' ', ':']).find(|word| word.ends_with("Exception"));
    thrown.map_or_else(
        || {
            format!("{error:?}")
                .split([' ', '{', '('])
                .next()
                .unwrap_or_default()
                .to_owned()
        },
        str::to_owned,
    )
}
