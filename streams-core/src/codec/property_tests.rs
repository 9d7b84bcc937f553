//! Laws that hold for any input: what is written reads back, order of bytes is order of times, and no bytes make a
//! decoder panic.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::io::put_varint;
use super::*;
use crate::Headers;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..80)
}

fn headers() -> impl Strategy<Value = Headers> {
    vec((".{0,12}", proptest::option::of(bytes())), 0..5).prop_map(|list| {
        list.iter()
            .map(|(key, value)| (key.as_str(), value.as_deref()))
            .collect()
    })
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in bytes(), size in 0usize..20) {
        let record = RecordContext { timestamp_ms: 0, offset: 0, topic: String::new(), partition: 0, headers: Headers::default() };
        let _ = decode_headers(&bytes);
        let _ = decode_timestamped(&bytes);
        let _ = decode_headers_value(&bytes);
        let _ = decode_headers_session(&bytes);
        let _ = WindowKey::from_changelog_key(&bytes);
        let _ = SessionKey::from_changelog_key(&bytes);
        let _ = decode_change(&bytes);
        let _ = Position::decode(&bytes);
        let _ = Subscription::decode(&bytes);
        let _ = SubscriptionResponse::decode(&bytes);
        let _ = split_combined_key(&bytes);
        let _ = decode_side_value(&bytes);
        let _ = TimestampedSideKey::decode(&bytes);
        let _ = RecordContext::decode(&bytes);
        let _ = decode_list(ListEncoding::Variable, &bytes);
        let _ = decode_list(ListEncoding::Fixed(size), &bytes);
        for version in [None, Some(&[1u8][..]), Some(&[2]), Some(&[3])] {
            let _ = BufferedValue::decode(version, &bytes, &record, None);
        }
        let _ = CommitMetadata::decode(&base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &bytes));
    }

    #[test]
    fn random_text_is_no_panic_as_commit_metadata(text in ".{0,60}") {
        let _ = CommitMetadata::decode(&text);
    }

    /// A decoder that trusts a count would take gigabytes here.
    #[test]
    fn a_huge_count_is_refused_without_room_being_made(count in 1_000_000i32.., first in 0u8..2) {
        let mut bytes = vec![first];
        bytes.extend_from_slice(&0i32.to_be_bytes());
        bytes.extend_from_slice(&count.to_be_bytes());
        prop_assert!(decode_list(ListEncoding::Fixed(0), &bytes).is_err());
        bytes.drain(1..5);
        prop_assert!(decode_list(ListEncoding::Variable, &bytes).is_err());
        let mut headers = Vec::new();
        put_varint(count, &mut headers);
        prop_assert!(decode_headers(&headers).is_err());
    }

    #[test]
    fn values_with_headers_read_back(headers in headers(), time in any::<i64>(), value in bytes()) {
        let mut out = Vec::new();
        encode_headers_value(&headers, time, &value, &mut out).unwrap();
        prop_assert_eq!(decode_headers_value(&out).unwrap(), (headers, time, &value[..]));
    }

    #[test]
    fn changes_read_back(new in proptest::option::of(bytes()), old in proptest::option::of(bytes())) {
        let mut out = Vec::new();
        match encode_change(new.as_deref(), old.as_deref(), &mut out) {
            Ok(()) => prop_assert_eq!(
                decode_change(&out).unwrap(),
                ChangeBytes { new: new.as_deref(), old: old.as_deref(), is_latest: true }
            ),
            Err(_) => prop_assert!(new.is_none() && old.is_none()),
        }
    }

    #[test]
    fn lists_read_back(list in vec(proptest::option::of(vec(any::<u8>(), 8..9)), 0..20)) {
        let elements: Vec<Option<&[u8]>> = list.iter().map(Option::as_deref).collect();
        for encoding in [ListEncoding::Variable, ListEncoding::Fixed(8)] {
            let mut out = Vec::new();
            encode_list(encoding, elements.iter().copied(), &mut out).unwrap();
            prop_assert_eq!(&decode_list(encoding, &out).unwrap(), &elements);
        }
    }

    #[test]
    fn commit_metadata_reads_back_and_does_not_depend_on_order(
        time in proptest::option::of(0i64..), entries in btree_map(".{0,20}", any::<i64>(), 0..8)
    ) {
        let (mut forward, mut backward) = (CommitMetadata::default(), CommitMetadata::default());
        (forward.partition_time_ms, backward.partition_time_ms) = (time, time);
        entries.iter().for_each(|(name, time_ms)| forward.raise(name, *time_ms));
        entries.iter().rev().for_each(|(name, time_ms)| backward.raise(name, *time_ms));
        prop_assert_eq!(forward.encode().unwrap(), backward.encode().unwrap());
        prop_assert_eq!(CommitMetadata::decode(&forward.encode().unwrap()).unwrap(), forward);
    }

    #[test]
    fn buffered_values_read_back(
        headers in headers(), topic in ".{0,10}", time_ms in any::<i64>(),
        prior in proptest::option::of(bytes()), old in proptest::option::of(bytes()), new in proptest::option::of(bytes())
    ) {
        let context = RecordContext { timestamp_ms: 7, offset: 8, topic, partition: 9, headers };
        let value = BufferedValue { context: context.clone(), prior, old, new, time_ms };
        let mut out = Vec::new();
        value.encode(&mut out).unwrap();
        prop_assert_eq!(BufferedValue::decode(Some(&SUPPRESS_VERSION_VALUE), &out, &context, None).unwrap(), value);
    }

    #[test]
    fn one_keys_windows_are_ordered_by_start_and_sequence_and_its_sessions_by_end_and_start(
        key in bytes(), a in 0i64.., b in 0i64.., first in 0u32.., second in 0u32..
    ) {
        let window = |start_ms, sequence| WindowKey { key: &key, start_ms, sequence }.to_changelog_key();
        prop_assert_eq!(window(a, first).cmp(&window(b, second)), (a, first).cmp(&(b, second)));
        let session = |end_ms, start_ms| SessionKey { key: &key, start_ms, end_ms }.to_changelog_key();
        prop_assert_eq!(session(a, b).cmp(&session(b, a)), (a, b).cmp(&(b, a)));
    }

    #[test]
    fn subscriptions_read_back(hash in proptest::option::of(any::<[u8; 16]>()), key in bytes(), partition in proptest::option::of(any::<i32>())) {
        let value = Subscription {
            hash, instruction: Instruction::DeleteKeyAndPropagate, primary_key: &key, primary_partition: partition,
        };
        let mut out = Vec::new();
        value.encode(&mut out);
        prop_assert_eq!(Subscription::decode(&out).unwrap(), value);
    }

    #[test]
    fn positions_read_back(topics in btree_map(".{0,9}", btree_map(any::<i32>(), any::<i64>(), 0..4), 0..4)) {
        let position = Position(topics);
        let mut out = Vec::new();
        position.encode(&mut out).unwrap();
        prop_assert_eq!(Position::decode(&out).unwrap(), position);
    }

    #[test]
    fn merged_metadata_does_not_depend_on_order(a in btree_map("[a-c]", any::<i64>(), 0..3), b in btree_map("[a-c]", any::<i64>(), 0..3)) {
        let of = |map: std::collections::BTreeMap<String, i64>| CommitMetadata {
            partition_time_ms: None,
            entries: map.into_iter().map(|(name, time_ms)| (Arc::from(name), time_ms)).collect(),
        };
        let (a, b) = (of(a), of(b));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge_entries(&b);
        ba.merge_entries(&a);
        prop_assert_eq!(&ab, &ba);
        prop_assert!(a.entries.iter().all(|(name, time_ms)| ab.entries.get(name) >= Some(time_ms)));
    }
}
