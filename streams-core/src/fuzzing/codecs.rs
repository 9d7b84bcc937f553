//! Layouts of changelogs, repartition topics and committed offsets.

use std::sync::Arc;

use super::{Target, law, read_back};
use crate::codec::{
    BufferedValue, CommitMetadata, Instruction, JoinSide, ListEncoding, Position, RecordContext, Subscription,
    SubscriptionResponse, TimestampedSideKey, combined_key, decode_change, decode_headers, decode_headers_session,
    decode_headers_value, decode_list, decode_side_value, decode_timestamped, encode_change, encode_headers,
    encode_headers_session, encode_headers_value, encode_list, encode_side_value, encode_timestamped,
    split_combined_key,
};
use crate::config::StreamsConfig;
use crate::packed_headers::{HeaderIter, append};
use crate::serde::Utf8;
use crate::stores::{Layout, WindowLayout};
use crate::{Headers, TaskId, Window, Windowed};

macro_rules! targets {
    ($($name:literal $check:expr, $seeds:expr;)*) => {
        &[$(Target { name: $name, check: $check, seeds: $seeds }),*]
    };
}

pub(super) const TARGETS: &[Target] = targets! {
    "timestamped_value" timestamped_value, || vec![written(|out| encode_timestamped(7, b"value", out))];
    "headers" headers, || vec![try_written(|out| encode_headers(&some_headers(), out).is_ok())];
    "value_with_headers" value_with_headers,
        || vec![try_written(|out| encode_headers_value(&some_headers(), 7, b"value", out).is_ok())];
    "session_with_headers" session_with_headers,
        || vec![try_written(|out| encode_headers_session(&some_headers(), b"value", out).is_ok())];
    "list_of_fixed" |bytes| list(ListEncoding::Fixed(8), bytes), || list_seeds(ListEncoding::Fixed(8));
    "list_of_variable" |bytes| list(ListEncoding::Variable, bytes), || list_seeds(ListEncoding::Variable);
    "table_change" table_change, table_change_seeds;
    "commit_metadata" commit_metadata, commit_metadata_seeds;
    "subscription" subscription, subscription_seeds;
    "subscription_response" subscription_response, subscription_response_seeds;
    "combined_key" foreign_key, || combined_key(b"foreign", b"primary").into_iter().collect();
    "join_side_key" join_side_key, join_side_key_seeds;
    "join_side_value" join_side_value, || vec![written(|out| encode_side_value(JoinSide::Left, b"value", out))];
    "position" position, position_seeds;
    "record_context" record_context, || vec![try_written(|out| some_context().encode(out).is_ok())];
    "buffered_value" buffered_value, buffered_value_seeds;
    "packed_headers" packed_headers, packed_headers_seeds;
    "window_store_key" window_store_key, window_store_key_seeds;
    "task_id" task_id, || vec![b"0_1".to_vec(), b"12_345".to_vec()];
    "properties" properties, properties_seeds;
};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn try_written(write: impl FnOnce(&mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    if write(&mut out) { out } else { Vec::new() }
}

fn some_headers() -> Headers {
    [("trace", Some(&b"x"[..])), ("null", None), ("trace", Some(b""))]
        .into_iter()
        .collect()
}

fn some_context() -> RecordContext {
    RecordContext {
        timestamp_ms: 1,
        offset: 2,
        topic: "in".to_owned(),
        partition: 3,
        headers: some_headers(),
    }
}

fn timestamped_value(bytes: &[u8]) -> Result<(), String> {
    match decode_timestamped(bytes) {
        Ok((time, value)) => law(
            written(|out| encode_timestamped(time, value, out)) == bytes,
            "a value with its time is written as it was read",
        ),
        Err(_) => Ok(()),
    }
}

fn headers(bytes: &[u8]) -> Result<(), String> {
    read_back(decode_headers(bytes).ok(), |headers| {
        decode_headers(&try_written(|out| encode_headers(headers, out).is_ok())).ok()
    })
}

fn value_with_headers(bytes: &[u8]) -> Result<(), String> {
    let owned = |bytes: &[u8]| {
        let (headers, time, value) = decode_headers_value(bytes).ok()?;
        Some((headers, time, value.to_vec()))
    };
    read_back(owned(bytes), |(headers, time, value)| {
        owned(&try_written(|out| {
            encode_headers_value(headers, *time, value, out).is_ok()
        }))
    })
}

fn session_with_headers(bytes: &[u8]) -> Result<(), String> {
    let owned = |bytes: &[u8]| {
        let (headers, value) = decode_headers_session(bytes).ok()?;
        Some((headers, value.to_vec()))
    };
    read_back(owned(bytes), |(headers, value)| {
        owned(&try_written(|out| encode_headers_session(headers, value, out).is_ok()))
    })
}

fn list(encoding: ListEncoding, bytes: &[u8]) -> Result<(), String> {
    let owned = |bytes: &[u8]| -> Option<Vec<Option<Vec<u8>>>> {
        let elements = decode_list(encoding, bytes).ok()?;
        Some(
            elements
                .into_iter()
                .map(|element| element.map(<[u8]>::to_vec))
                .collect(),
        )
    };
    read_back(owned(bytes), |elements| {
        let elements = elements.iter().map(Option::as_deref);
        owned(&try_written(|out| encode_list(encoding, elements, out).is_ok()))
    })
}

fn list_seeds(encoding: ListEncoding) -> Vec<Vec<u8>> {
    let elements = [Some(&b"12345678"[..]), None, Some(b"abcdefgh")];
    [&elements[..], &[]]
        .map(|elements| try_written(|out| encode_list(encoding, elements.iter().copied(), out).is_ok()))
        .into()
}

fn table_change(bytes: &[u8]) -> Result<(), String> {
    let Ok(change) = decode_change(bytes) else {
        return Ok(());
    };
    let again = try_written(|out| encode_change(change.new, change.old, out).is_ok());
    let again = decode_change(&again).ok();
    law(
        again.is_some_and(|again| (again.new, again.old) == (change.new, change.old)),
        "a change is read back as it was",
    )
}

fn table_change_seeds() -> Vec<Vec<u8>> {
    let (new, old) = (Some(&b"new"[..]), Some(&b"old"[..]));
    let mut seeds: Vec<Vec<u8>> = [(new, None), (None, old), (new, old)]
        .map(|(new, old)| try_written(|out| encode_change(new, old, out).is_ok()))
        .into();
    seeds.push(b"old\x00\x03".to_vec());
    seeds
}

/// The text as it is, and the bytes as such text.
fn commit_metadata(bytes: &[u8]) -> Result<(), String> {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    let text = std::str::from_utf8(bytes).ok();
    for text in text.into_iter().chain([encoded.as_str()]) {
        // What is longer than a broker takes can be read and not be written.
        let Ok(metadata) = CommitMetadata::decode(text) else {
            continue;
        };
        if let Ok(written) = metadata.encode() {
            read_back(Some(metadata), |_| CommitMetadata::decode(&written).ok())?;
        }
    }
    Ok(())
}

fn commit_metadata_seeds() -> Vec<Vec<u8>> {
    let mut metadata = CommitMetadata {
        partition_time_ms: Some(1_700_000_000_000),
        ..CommitMetadata::default()
    };
    metadata.raise("hourly-bill", 99);
    metadata.raise("KSTREAM-AGGREGATE-0000000003", -1);
    [metadata, CommitMetadata::default()]
        .iter()
        .filter_map(|metadata| metadata.encode().ok())
        .map(String::into_bytes)
        .collect()
}

fn subscription(bytes: &[u8]) -> Result<(), String> {
    let Ok(read) = Subscription::decode(bytes) else {
        return Ok(());
    };
    let again = written(|out| read.encode(out));
    law(
        Subscription::decode(&again) == Ok(read),
        "a subscription is read back as it was",
    )
}

fn subscription_seeds() -> Vec<Vec<u8>> {
    let subscription = |hash, primary_partition| Subscription {
        hash,
        instruction: Instruction::PropagateNullIfNoForeignValue,
        primary_key: b"primary",
        primary_partition,
    };
    [(Some([7; 16]), Some(3)), (None, Some(3)), (Some([7; 16]), None)]
        .map(|(hash, partition)| written(|out| subscription(hash, partition).encode(out)))
        .into()
}

fn subscription_response(bytes: &[u8]) -> Result<(), String> {
    let Ok(read) = SubscriptionResponse::decode(bytes) else {
        return Ok(());
    };
    let again = written(|out| read.encode(out));
    law(
        SubscriptionResponse::decode(&again) == Ok(read),
        "a response is read back as it was",
    )
}

fn subscription_response_seeds() -> Vec<Vec<u8>> {
    let response = |hash, foreign_value| SubscriptionResponse { hash, foreign_value };
    [(Some([7; 16]), Some(&b"value"[..])), (None, None)]
        .map(|(hash, value)| written(|out| response(hash, value).encode(out)))
        .into()
}

fn foreign_key(bytes: &[u8]) -> Result<(), String> {
    match split_combined_key(bytes) {
        Ok((foreign, primary)) => law(
            combined_key(foreign, primary).is_ok_and(|again| again == bytes),
            "a combined key is written as it was read",
        ),
        Err(_) => Ok(()),
    }
}

fn join_side_key(bytes: &[u8]) -> Result<(), String> {
    match TimestampedSideKey::decode(bytes) {
        Ok(key) => law(
            written(|out| key.encode(out)) == bytes,
            "a join key is written as it was read",
        ),
        Err(_) => Ok(()),
    }
}

fn join_side_key_seeds() -> Vec<Vec<u8>> {
    let key = |side| TimestampedSideKey {
        timestamp_ms: 7,
        side,
        key: b"key",
    };
    [JoinSide::Left, JoinSide::Right]
        .map(|side| written(|out| key(side).encode(out)))
        .into()
}

fn join_side_value(bytes: &[u8]) -> Result<(), String> {
    match decode_side_value(bytes) {
        Ok((side, value)) => law(
            written(|out| encode_side_value(side, value, out)) == bytes,
            "a join value is written as it was read",
        ),
        Err(_) => Ok(()),
    }
}

/// Java pads a position with many zeros, so what is written may be far longer than what was read.
fn position(bytes: &[u8]) -> Result<(), String> {
    read_back(Position::decode(bytes).ok(), |position| {
        Position::decode(&try_written(|out| position.encode(out).is_ok())).ok()
    })
}

fn position_seeds() -> Vec<Vec<u8>> {
    let offsets = |offsets: &[(i32, i64)]| offsets.iter().copied().collect();
    let position = Position(
        [
            ("in".to_owned(), offsets(&[(0, 5), (1, 7)])),
            ("b".to_owned(), offsets(&[])),
        ]
        .into(),
    );
    vec![try_written(|out| position.encode(out).is_ok())]
}

fn record_context(bytes: &[u8]) -> Result<(), String> {
    read_back(RecordContext::decode(bytes).ok(), |context| {
        RecordContext::decode(&try_written(|out| context.encode(out).is_ok())).ok()
    })
}

/// The first byte is the version: 0 without a header, 1 to 3, and 255 for a grace buffer.
fn buffered_value(bytes: &[u8]) -> Result<(), String> {
    let Some((version, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let record = some_context();
    let read = match version {
        255 => BufferedValue::decode_grace(bytes),
        0 => BufferedValue::decode(None, bytes, &record, Some(b"prior")),
        version => BufferedValue::decode(Some(&[*version]), bytes, &record, Some(b"prior")),
    };
    read_back(read.ok(), |value| {
        BufferedValue::decode_grace(&try_written(|out| value.encode(out).is_ok())).ok()
    })
}

fn buffered_value_seeds() -> Vec<Vec<u8>> {
    let value = |prior: Option<&[u8]>| BufferedValue {
        context: some_context(),
        prior: prior.map(<[u8]>::to_vec),
        old: Some(b"old".to_vec()),
        new: Some(b"new".to_vec()),
        time_ms: 9,
    };
    let version = |version: u8, bytes: &[u8]| [&[version], bytes].concat();
    let v3 = [value(None), value(Some(b"old"))].map(|value| try_written(|out| value.encode(out).is_ok()));
    let sized = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let pair = [sized(b"old"), sized(b"new")].concat();
    let (time, context) = (
        9_i64.to_be_bytes(),
        try_written(|out| some_context().encode(out).is_ok()),
    );
    let mut seeds: Vec<Vec<u8>> = v3
        .iter()
        .flat_map(|bytes| [version(3, bytes), version(255, bytes)])
        .collect();
    seeds.push(version(0, &[&time[..], &pair].concat()));
    seeds.push(version(1, &[&time[..], &context, &sized(&pair)].concat()));
    seeds.push(version(
        2,
        &[&context[..], &sized(&pair), &sized(b"prior"), &time].concat(),
    ));
    seeds
}

fn packed_headers(bytes: &[u8]) -> Result<(), String> {
    let (mut again, mut headers) = (Vec::new(), HeaderIter::new(bytes));
    for (name, value) in headers.by_ref() {
        law(append(&mut again, name, value), "a header that was read can be written")?;
    }
    law(headers.next().is_none(), "what has ended has ended")?;
    law(bytes.starts_with(&again), "headers are written as they were read")
}

fn packed_headers_seeds() -> Vec<Vec<u8>> {
    let mut packed = Vec::new();
    for (name, value) in [("trace", Some(&b"x"[..])), ("null", None)] {
        append(&mut packed, name, value);
    }
    vec![packed]
}

fn window_layout() -> WindowLayout<String> {
    WindowLayout::new(Arc::new(Utf8), 60_000)
}

fn window_store_key(bytes: &[u8]) -> Result<(), String> {
    match window_layout().decode("topic", bytes) {
        Ok(key) => law(
            try_written(|out| window_layout().encode("topic", &key, out).is_ok()) == bytes,
            "a window store's key is written as it was read",
        ),
        Err(_) => Ok(()),
    }
}

fn window_store_key_seeds() -> Vec<Vec<u8>> {
    let key = Windowed::new("key".to_owned(), Window::of_size(120_000, 60_000));
    vec![try_written(|out| window_layout().encode("topic", &key, out).is_ok())]
}

fn task_id(bytes: &[u8]) -> Result<(), String> {
    let id = std::str::from_utf8(bytes).ok().and_then(TaskId::parse);
    // The global task is written by its name, which is no number.
    read_back(id.filter(|id| *id != TaskId::GLOBAL), |id| {
        TaskId::parse(&id.to_string())
    })
}

/// Lines of `key=value`, as they come from files and the environment.
fn properties(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(());
    };
    match StreamsConfig::from_properties(text.lines().filter_map(|line| line.split_once('='))) {
        Ok(config) => law(config.validate().is_ok(), "a configuration that was read is valid"),
        Err(error) => law(!error.to_string().is_empty(), "an error says what is wrong"),
    }
}

fn properties_seeds() -> Vec<Vec<u8>> {
    let required = "application.id=billing\nbootstrap.servers=localhost:9092\n";
    let more = "num.stream.threads=2\nprocessing.guarantee=exactly_once_v2\nproducer.linger.ms=5\n\
                topic.segment.bytes=1048576\nmain.consumer.max.poll.records=10\nclient.tag.zone=a\n";
    vec![
        required.into(),
        format!("{required}{more}").into(),
        b"num.stream.thread=2\n".to_vec(),
    ]
}
