//! Every byte vector that the Java classes wrote, class by class: what is written here is equal, and reads back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::murmur2::{murmur2, partition_for_key};
use crate::murmur3::hash128;
use crate::serde::*;
use crate::{Change, Headers, Window, Windowed};

const GOLDEN: &str = include_str!("../../../tests/golden/golden-formats.json");

/// The classes of vectors that are compared, each with how many vectors it has.
const COVERED: &[(&str, usize)] = &[
    ("murmur2", 24),
    ("windowed_partitioner", 1),
    ("serde_string", 1),
    ("serde_long", 2),
    ("serde_integer", 1),
    ("serde_short", 1),
    ("serde_float", 1),
    ("serde_double", 1),
    ("serde_boolean", 2),
    ("serde_uuid", 1),
    ("serde_void", 1),
    ("list_serde_string", 1),
    ("list_serde_long", 1),
    ("list_serde_bytes", 1),
    ("list_serde_empty", 1),
    ("timestamped_value", 2),
    ("headers_value", 3),
    ("session_headers_value", 2),
    ("window_store_key", 2),
    ("session_store_key", 1),
    ("time_windowed_serde", 1),
    ("session_windowed_serde", 1),
    ("change", 4),
    ("murmur3_128", 3),
    ("fk_subscription_v1", 5),
    ("fk_subscription_v0", 2),
    ("fk_response", 3),
    ("fk_combined_key", 1),
    ("fk_combined_key_prefix", 1),
    ("left_or_right_value", 2),
    ("timestamped_key_and_join_side", 2),
    ("outer_join_store_value", 1),
    ("processor_record_context", 2),
    ("suppress_changelog_value_v3", 4),
    ("grace_buffer_changelog_value", 1),
    ("offset_commit_metadata", 3),
    ("offset_commit_metadata_decode_v1", 1),
    ("position", 2),
];

const LOCAL_FILES: &str = "a key of Java's local files, which are never shared: our local layout is our own";

/// The classes that are not compared, and why.
const NOT_COVERED: &[(&str, &str)] = &[
    (
        "change_upgrade_from_3.4_both_non_null",
        "no rolling upgrade from Java 3.4 and older: `upgrade.from` is refused",
    ),
    ("prefixed_window_key_time_first", LOCAL_FILES),
    ("prefixed_window_key_key_first", LOCAL_FILES),
    ("prefixed_session_key_time_first", LOCAL_FILES),
    ("prefixed_session_key_key_first", LOCAL_FILES),
    ("window_lower_range", LOCAL_FILES),
    ("window_upper_range", LOCAL_FILES),
    ("window_lower_fixed", LOCAL_FILES),
    ("window_upper_fixed", LOCAL_FILES),
    ("session_lower_fixed", LOCAL_FILES),
    ("session_upper_fixed", LOCAL_FILES),
    ("versioned_latest_value", "versioned stores are not built yet"),
    ("versioned_segment_value", "versioned stores are not built yet"),
    (
        "versioned_segment_value_degenerate",
        "versioned stores are not built yet",
    ),
];

fn vectors() -> Vec<Value> {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    golden["bytes"].as_array().unwrap().clone()
}

#[test]
fn every_class_of_vectors_is_compared_or_listed_as_not() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for vector in vectors() {
        *counts.entry(vector["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    for (class, count) in COVERED {
        assert_eq!(counts.remove(*class), Some(*count), "vectors of {class}");
    }
    for (class, why) in NOT_COVERED {
        assert!(
            counts.remove(*class).is_some(),
            "{class} has no vectors and need not be listed ({why})"
        );
    }
    assert!(counts.is_empty(), "neither compared nor listed: {counts:?}");
}

#[test]
fn every_vector_is_equal_byte_for_byte() {
    let mut compared = 0;
    for vector in vectors() {
        let name = vector["name"].as_str().unwrap();
        if NOT_COVERED.iter().any(|(class, _)| *class == name) {
            continue;
        }
        compare(name, &vector["inputs"], &vector);
        compared += 1;
    }
    assert_eq!(compared, COVERED.iter().map(|(_, count)| count).sum::<usize>());
}

fn compare(name: &str, inputs: &Value, vector: &Value) {
    let hex = || unhex(vector["hex"].as_str().unwrap());
    match name {
        "murmur2" => compare_murmur2(inputs, &vector["result"]),
        "murmur3_128" => assert_eq!(to_hex(&hash128(&text(inputs, "data_utf8"))), vector["result"]["hex"]),
        "windowed_partitioner" => compare_partitions(inputs, &vector["result"]),
        "offset_commit_metadata" => compare_commit_metadata(inputs, vector["result"].as_str().unwrap()),
        "offset_commit_metadata_decode_v1" => {
            let metadata = CommitMetadata::decode(inputs["base64"].as_str().unwrap()).unwrap();
            assert_eq!(metadata.partition_time_ms, vector["result"]["partitionTime"].as_i64());
            assert!(metadata.entries.is_empty());
        }
        "serde_void" => {
            assert!(vector["hex"].is_null());
            assert!(!Void.serialize("t", &(), &mut Vec::new()).unwrap());
        }
        _ if name.contains("serde") => compare_serde(name, inputs, &hex()),
        _ if name.starts_with("fk_") => compare_foreign_key(name, inputs, &hex()),
        "timestamped_value" | "headers_value" | "session_headers_value" => compare_value(name, inputs, &hex()),
        "change" => compare_change(inputs, &hex()),
        "position" => compare_position(inputs, &hex()),
        "left_or_right_value" | "timestamped_key_and_join_side" | "outer_join_store_value" => {
            compare_join(name, inputs, &hex());
        }
        "processor_record_context" | "suppress_changelog_value_v3" | "grace_buffer_changelog_value" => {
            compare_buffer(name, inputs, &hex());
        }
        _ => compare_key(name, inputs, &hex()),
    }
}

fn compare_murmur2(inputs: &Value, result: &Value) {
    let key = unhex(inputs["key_hex"].as_str().unwrap());
    assert_eq!(
        i64::from(murmur2(&key)),
        result["murmur2_signed"].as_i64().unwrap(),
        "{inputs}"
    );
    for (count, partition) in result["partitions"].as_object().unwrap() {
        let ours = partition_for_key(&key, count.parse().unwrap());
        assert_eq!(i64::from(ours), partition.as_i64().unwrap(), "{inputs} in {count}");
    }
}

fn compare_partitions(inputs: &Value, result: &Value) {
    let serde = TimeWindowed::of_size(Utf8, 1000);
    let mut bytes = Vec::new();
    serde.serialize("t", &windowed(inputs), &mut bytes).unwrap();
    let key = Serde::<Windowed<String>>::partition_bytes(&serde, &bytes);
    for (count, partition) in result.as_object().unwrap() {
        let ours = partition_for_key(key, count.parse().unwrap());
        assert_eq!(i64::from(ours), partition.as_i64().unwrap(), "in {count}");
    }
}

fn compare_commit_metadata(inputs: &Value, expected: &str) {
    let time_ms = inputs["partitionTime"].as_i64().unwrap();
    let mut metadata = CommitMetadata {
        partition_time_ms: (time_ms != -1).then_some(time_ms),
        ..Default::default()
    };
    for (name, time_ms) in inputs["processorMetadata"].as_object().unwrap() {
        metadata.raise(name, time_ms.as_i64().unwrap());
    }
    assert_eq!(metadata.encode().unwrap(), expected);
    assert_eq!(CommitMetadata::decode(expected), Ok(metadata));
}

/// Writes, compares and reads back.
fn both_ways<T: PartialEq + std::fmt::Debug>(serde: impl Serde<T>, value: T, expected: &[u8]) {
    let mut bytes = Vec::new();
    assert!(serde.serialize("t", &value, &mut bytes).unwrap());
    assert_eq!(to_hex(&bytes), to_hex(expected), "{value:?}");
    assert_eq!(serde.deserialize("t", Some(&bytes)).unwrap(), value);
}

fn compare_serde(name: &str, inputs: &Value, expected: &[u8]) {
    let value = &inputs["value"];
    match name {
        "serde_string" => both_ways(Utf8, value.as_str().unwrap().to_owned(), expected),
        "serde_long" => both_ways(Long, value.as_i64().unwrap(), expected),
        "serde_integer" => both_ways(Integer, value.as_i64().unwrap() as i32, expected),
        "serde_short" => both_ways(Short, value.as_i64().unwrap() as i16, expected),
        "serde_float" => both_ways(Float, value.as_str().unwrap().parse::<f32>().unwrap(), expected),
        "serde_double" => both_ways(Double, value.as_str().unwrap().parse::<f64>().unwrap(), expected),
        "serde_boolean" => both_ways(Boolean, value.as_bool().unwrap(), expected),
        "serde_uuid" => both_ways(
            UuidText,
            value.as_str().unwrap().parse::<uuid::Uuid>().unwrap(),
            expected,
        ),
        "list_serde_string" | "list_serde_empty" => {
            let list: Vec<Option<String>> = serde_json::from_value(value.clone()).unwrap();
            both_ways(List(OptionSerde(Utf8)), list, expected);
        }
        "list_serde_long" => {
            let list: Vec<Option<i64>> = serde_json::from_value(value.clone()).unwrap();
            both_ways(List(OptionSerde(Long)), list, expected);
        }
        "list_serde_bytes" => {
            let list = inputs["value_hex"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hex| unhex(hex.as_str().unwrap()));
            both_ways(List(Bytes), list.collect::<Vec<Vec<u8>>>(), expected);
        }
        "time_windowed_serde" => {
            let value = windowed(inputs);
            let size_ms = value.window.end_ms - value.window.start_ms;
            both_ways(TimeWindowed::of_size(Utf8, size_ms), value, expected);
        }
        "session_windowed_serde" => both_ways(SessionWindowed(Utf8), windowed(inputs), expected),
        _ => panic!("no comparison for {name}"),
    }
}

fn compare_foreign_key(name: &str, inputs: &Value, expected: &[u8]) {
    let hash = inputs["hash_of"].as_str().map(|value| hash128(value.as_bytes()));
    let mut bytes = Vec::new();
    match name {
        "fk_combined_key" => {
            let (foreign, primary) = (text(inputs, "fk"), text(inputs, "pk"));
            bytes = combined_key(&foreign, &primary).unwrap();
            assert_eq!(split_combined_key(&bytes), Ok((&foreign[..], &primary[..])));
        }
        "fk_combined_key_prefix" => bytes = combined_key_prefix(&text(inputs, "fk")).unwrap(),
        "fk_response" => {
            let foreign_value = inputs["foreignValue"].as_str().map(str::as_bytes);
            let response = SubscriptionResponse { hash, foreign_value };
            response.encode(&mut bytes);
            assert_eq!(SubscriptionResponse::decode(&bytes), Ok(response));
        }
        _ => {
            let instruction = match inputs["instruction"].as_str().unwrap() {
                "DELETE_KEY_NO_PROPAGATE" => Instruction::DeleteKeyNoPropagate,
                "DELETE_KEY_AND_PROPAGATE" => Instruction::DeleteKeyAndPropagate,
                "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE" => Instruction::PropagateNullIfNoForeignValue,
                "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE" => Instruction::PropagateOnlyIfForeignValue,
                other => panic!("instruction {other}"),
            };
            let primary_partition = inputs["primaryPartition"].as_i64().map(|partition| partition as i32);
            let primary_key = text(inputs, "pk");
            let subscription = Subscription {
                hash,
                instruction,
                primary_key: &primary_key,
                primary_partition,
            };
            subscription.encode(&mut bytes);
            assert_eq!(Subscription::decode(&bytes), Ok(subscription));
        }
    }
    assert_eq!(to_hex(&bytes), to_hex(expected), "{inputs}");
}

fn compare_value(name: &str, inputs: &Value, expected: &[u8]) {
    let timestamp_ms = inputs["timestamp"].as_i64().unwrap_or_default();
    let headers = headers(&inputs["headers"]);
    let mut bytes = Vec::new();
    match name {
        "timestamped_value" => {
            let value = inputs["value_long"].as_i64().map(|value| value.to_be_bytes().to_vec());
            let value = value.unwrap_or_else(|| text(inputs, "value"));
            encode_timestamped(timestamp_ms, &value, &mut bytes);
            assert_eq!(decode_timestamped(&bytes), Ok((timestamp_ms, &value[..])));
        }
        "headers_value" => {
            let value = text(inputs, "value");
            encode_headers_value(&headers, timestamp_ms, &value, &mut bytes).unwrap();
            assert_eq!(decode_headers_value(&bytes), Ok((headers, timestamp_ms, &value[..])));
        }
        _ => {
            let aggregate = text(inputs, "aggregation");
            encode_headers_session(&headers, &aggregate, &mut bytes).unwrap();
            assert_eq!(decode_headers_session(&bytes), Ok((headers, &aggregate[..])));
        }
    }
    assert_eq!(to_hex(&bytes), to_hex(expected), "{inputs}");
}

fn compare_change(inputs: &Value, expected: &[u8]) {
    let value = |name: &str| match inputs[name].as_str() {
        Some("'n' x 200") => Some("n".repeat(200)),
        other => other.map(str::to_owned),
    };
    both_ways(ChangeSerde(Utf8), Change::new(value("new"), value("old")), expected);
}

fn compare_position(inputs: &Value, expected: &[u8]) {
    let mut position = Position::default();
    for (topic_partition, offset) in inputs["position"].as_object().unwrap() {
        let (topic, partition) = topic_partition.rsplit_once('-').unwrap();
        let partitions = position.0.entry(topic.to_owned()).or_default();
        partitions.insert(partition.parse().unwrap(), offset.as_i64().unwrap());
    }
    let mut bytes = Vec::new();
    position.encode(&mut bytes).unwrap();
    assert_eq!(to_hex(&bytes), to_hex(expected));
    assert_eq!(Position::decode(&bytes), Ok(position));
}

fn compare_join(name: &str, inputs: &Value, expected: &[u8]) {
    let mut bytes = Vec::new();
    match name {
        "left_or_right_value" => {
            let (side, value) = match inputs["left"].as_str() {
                Some(left) => (JoinSide::Left, left.as_bytes().to_vec()),
                None => (
                    JoinSide::Right,
                    inputs["right_long"].as_i64().unwrap().to_be_bytes().to_vec(),
                ),
            };
            encode_side_value(side, &value, &mut bytes);
            assert_eq!(decode_side_value(&bytes), Ok((side, &value[..])));
        }
        "timestamped_key_and_join_side" => {
            let side = if inputs["side"] == "left" {
                JoinSide::Left
            } else {
                JoinSide::Right
            };
            let key = text(inputs, "key");
            let key = TimestampedSideKey {
                timestamp_ms: inputs["timestamp"].as_i64().unwrap(),
                side,
                key: &key,
            };
            key.encode(&mut bytes);
            assert_eq!(TimestampedSideKey::decode(&bytes), Ok(key));
        }
        _ => {
            let element = |text: &Value| {
                let mut element = Vec::new();
                let value = text.as_str().unwrap().strip_prefix("left ").unwrap();
                encode_side_value(JoinSide::Left, value.as_bytes(), &mut element);
                element
            };
            let elements: Vec<Vec<u8>> = inputs["entries"].as_array().unwrap().iter().map(element).collect();
            let elements: Vec<Option<&[u8]>> = elements.iter().map(|element| Some(&element[..])).collect();
            encode_list(ListEncoding::Variable, elements.iter().copied(), &mut bytes).unwrap();
            assert_eq!(decode_list(ListEncoding::Variable, &bytes), Ok(elements));
        }
    }
    assert_eq!(to_hex(&bytes), to_hex(expected), "{inputs}");
}

fn compare_buffer(name: &str, inputs: &Value, expected: &[u8]) {
    let mut context = RecordContext {
        timestamp_ms: 1_700_000_000_123,
        offset: 42,
        topic: "in".into(),
        partition: 3,
        headers: headers(&inputs["headers"]),
    };
    if inputs["context_headers"] == 2 {
        context.headers = trace_and_null();
    }
    let mut bytes = Vec::new();
    if name == "processor_record_context" {
        context.encode(&mut bytes).unwrap();
        assert_eq!(RecordContext::decode(&bytes), Ok(context));
    } else {
        let value = |name: &str| inputs[name].as_str().map(|value| value.as_bytes().to_vec());
        let time_ms = inputs["buffer_time"].as_i64().unwrap();
        let (prior, old, new) = (value("prior"), value("old"), value("new"));
        let value = BufferedValue {
            context: context.clone(),
            prior,
            old,
            new,
            time_ms,
        };
        value.encode(&mut bytes).unwrap();
        let read = if name == "grace_buffer_changelog_value" {
            BufferedValue::decode_grace(&bytes)
        } else {
            BufferedValue::decode(Some(&SUPPRESS_VERSION_VALUE), &bytes, &context, None)
        };
        assert_eq!(read, Ok(value));
    }
    assert_eq!(to_hex(&bytes), to_hex(expected), "{inputs}");
}

fn compare_key(name: &str, inputs: &Value, expected: &[u8]) {
    let key = &text(inputs, "key")[..];
    let number = |name: &str| inputs[name].as_i64().unwrap_or_default();
    let (start_ms, end_ms) = (number("start"), number("end"));
    let window = WindowKey {
        key,
        start_ms,
        sequence: number("seqnum") as u32,
    };
    let session = SessionKey { key, start_ms, end_ms };
    let bytes = match name {
        "window_store_key" => window.to_changelog_key(),
        "session_store_key" => session.to_changelog_key(),
        _ => panic!("no comparison for {name}"),
    };
    assert_eq!(to_hex(&bytes), to_hex(expected), "{name} {inputs}");
    match name {
        "window_store_key" => assert_eq!(WindowKey::from_changelog_key(&bytes), Some(window)),
        _ => assert_eq!(SessionKey::from_changelog_key(&bytes), Some(session)),
    }
}

fn windowed(inputs: &Value) -> Windowed<String> {
    let window = Window::new(inputs["start"].as_i64().unwrap(), inputs["end"].as_i64().unwrap());
    Windowed::new(inputs["key"].as_str().unwrap().to_owned(), window)
}

fn trace_and_null() -> Headers {
    [("trace", Some(&b"abc"[..])), ("nul", None)].into_iter().collect()
}

/// The generator names header lists in words.
fn headers(words: &Value) -> Headers {
    match words.as_str() {
        None => Headers::default(),
        Some("trace=utf8:abc, nul=null") => trace_and_null(),
        Some("k=utf8: 'y' x 100") => [("k", Some(&[b'y'; 100][..]))].into_iter().collect(),
        Some(other) => panic!("headers {other}"),
    }
}

fn text(inputs: &Value, name: &str) -> Vec<u8> {
    inputs[name].as_str().unwrap().as_bytes().to_vec()
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
