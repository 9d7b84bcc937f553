#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Window, Windowed};

fn round_trip<T: DefaultSerde + PartialEq + Debug>(value: T) {
    let serde = T::shared();
    let mut bytes = Vec::new();
    let present = serde.serialize("t", &value, &mut bytes).unwrap();
    assert_eq!(present, !serde.is_null(&value));
    assert_eq!(serde.deserialize("t", present.then_some(&bytes[..])).unwrap(), value);
}

#[test]
fn a_null_for_a_plain_type_proposes_the_option() {
    let error = i64::shared().deserialize("t", None).unwrap_err();
    assert!(error.to_string().contains("read it as `Option<i64>`"), "{error}");
}

#[test]
fn a_wrong_length_says_both_lengths() {
    let error = i64::shared().deserialize("t", Some(&[0; 4])).unwrap_err();
    assert_eq!(error.to_string(), "i64 takes 8 bytes, got 4");
}

#[test]
fn bytes_that_are_not_the_type_are_refused() {
    assert!(bool::shared().deserialize("t", Some(&[2])).is_err());
    assert!(String::shared().deserialize("t", Some(&[0xff])).is_err());
    assert!(<()>::shared().deserialize("t", Some(&[])).is_err());
    assert!(uuid::Uuid::shared().deserialize("t", Some(b"not a uuid")).is_err());
    assert!(
        uuid::Uuid::shared()
            .deserialize("t", Some(b"123e4567-e89b-12d3-a456_426614174000"))
            .is_err()
    );
    assert!(Windowed::<String>::shared().deserialize("t", Some(&[0; 7])).is_err());
    assert!(Serde::<Windowed<String>>::deserialize(&SessionWindowed(Utf8), "t", Some(&[0; 15])).is_err());
}

#[test]
fn json_that_cannot_be_written_leaves_nothing_behind() {
    let mut out = b"before".to_vec();
    let map = std::collections::BTreeMap::from([(vec![1u8], 1)]);
    assert!(Json::new().serialize("t", &map, &mut out).is_err());
    assert_eq!(out, b"before");
}

#[test]
fn a_window_that_would_end_after_the_end_of_time_ends_there() {
    let mut bytes = b"k".to_vec();
    bytes.extend_from_slice(&(i64::MAX - 5).to_be_bytes());
    let read = TimeWindowed::of_size(Utf8, 10).deserialize("t", Some(&bytes)).unwrap();
    assert_eq!(read, Windowed::new("k".to_owned(), Window::new(i64::MAX - 5, i64::MAX)));
}

#[test]
fn a_window_of_unknown_size_is_open() {
    let mut bytes = b"k".to_vec();
    bytes.extend_from_slice(&5i64.to_be_bytes());
    let read = Windowed::<String>::shared().deserialize("t", Some(&bytes)).unwrap();
    assert_eq!(read.window, Window::new(5, i64::MAX));
}

#[test]
fn windowed_keys_are_partitioned_by_their_inner_key() {
    let key = Windowed::new(Some("k".to_owned()), Window::new(1, 2));
    let (time, session) = (
        TimeWindowed::of_size(OptionSerde(Utf8), 1),
        SessionWindowed(OptionSerde(Utf8)),
    );
    for serde in [&time as &dyn Serde<Windowed<Option<String>>>, &session] {
        let mut bytes = Vec::new();
        serde.serialize("t", &key, &mut bytes).unwrap();
        assert_eq!(serde.partition_bytes(&bytes), b"k");
    }
}

#[test]
fn a_windowed_null_is_a_null() {
    let key = Windowed::new(None::<String>, Window::new(1, 2));
    let mut bytes = Vec::new();
    assert!(
        !Windowed::<Option<String>>::shared()
            .serialize("t", &key, &mut bytes)
            .unwrap()
    );
    assert!(bytes.is_empty() && Windowed::<Option<String>>::shared().is_null(&key));
}

#[test]
fn a_null_in_a_list_of_plain_elements_is_refused() {
    let mut bytes = Vec::new();
    List(OptionSerde(Long))
        .serialize("t", &vec![None, Some(1)], &mut bytes)
        .unwrap();
    assert!(Serde::<Vec<i64>>::deserialize(&List(Long), "t", Some(&bytes)).is_err());
}

proptest! {
    #[test]
    fn plain_types_read_back(
        a in any::<i16>(), b in any::<i32>(), c in any::<i64>(), d in any::<bool>(), e in ".{0,20}", id in any::<u128>()
    ) {
        round_trip(a);
        round_trip(b);
        round_trip(c);
        round_trip(d);
        round_trip(e.clone());
        round_trip(Arc::<str>::from(e.as_str()));
        round_trip(e.clone().into_bytes());
        round_trip(Some(c));
        round_trip(None::<String>);
        round_trip(());
        round_trip(uuid::Uuid::from_u128(id));
        round_trip(Windowed::new(e, Window::new(c, i64::MAX)));
    }

    #[test]
    fn floats_read_back_bit_by_bit(bits in any::<u64>()) {
        let mut bytes = Vec::new();
        Double.serialize("t", &f64::from_bits(bits), &mut bytes).unwrap();
        prop_assert_eq!(Double.deserialize("t", Some(&bytes)).unwrap().to_bits(), bits);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let bytes = Some(&bytes[..]);
        let _ = f32::shared().deserialize("t", bytes);
        let _ = uuid::Uuid::shared().deserialize("t", bytes);
        let _ = Windowed::<i32>::shared().deserialize("t", bytes);
        let _ = Serde::<Windowed<i32>>::deserialize(&SessionWindowed(Integer), "t", bytes);
        let _ = Serde::<Vec<i64>>::deserialize(&List(Long), "t", bytes);
        let _ = Serde::<Vec<String>>::deserialize(&List(Utf8), "t", bytes);
        let _ = Serde::<crate::Change<i32>>::deserialize(&ChangeSerde(Integer), "t", bytes);
        let _ = Serde::<Vec<u32>>::deserialize(&Json::new(), "t", bytes);
    }
}

/// A source reads record after record into the same value: nothing of the one before may show through.
#[test]
fn reading_into_a_value_gives_what_reading_anew_gives() {
    fn same<T: PartialEq + std::fmt::Debug + 'static>(serde: &dyn Serde<T>, inputs: &[Option<&[u8]>]) {
        for first in inputs {
            let Ok(mut held) = serde.deserialize("t", *first) else {
                continue;
            };
            for second in inputs {
                let Ok(fresh) = serde.deserialize("t", *second) else {
                    assert!(serde.deserialize_into("t", *second, &mut held).is_err());
                    held = serde.deserialize("t", *first).unwrap();
                    continue;
                };
                serde.deserialize_into("t", *second, &mut held).unwrap();
                assert_eq!(held, fresh, "{first:?} then {second:?}");
            }
        }
    }
    let long = vec![b'x'; 200_000];
    let inputs: [Option<&[u8]>; 6] = [
        None,
        Some(b""),
        Some(b"a"),
        Some(b"\xff"),
        Some(&long),
        Some(b"longer than a"),
    ];
    same::<String>(&Utf8, &inputs);
    same::<Vec<u8>>(&Bytes, &inputs);
    same::<Arc<str>>(&Utf8, &inputs);
    same::<Arc<[u8]>>(&Bytes, &inputs);
    same::<Option<String>>(&OptionSerde(Utf8), &inputs);
    same::<Option<Vec<u8>>>(&OptionSerde(Bytes), &inputs);
    same::<Option<i64>>(&OptionSerde(Long), &[None, Some(&[0; 8]), Some(&[1; 8]), Some(&[1; 3])]);
}

#[test]
fn reading_into_text_keeps_its_memory_but_not_that_of_a_huge_record() {
    let mut text = String::with_capacity(4_096);
    Utf8.deserialize_into("t", Some(b"short"), &mut text).unwrap();
    assert_eq!((text.as_str(), text.capacity()), ("short", 4_096));
    let mut bytes = vec![7; 10_000_000];
    Bytes.deserialize_into("t", Some(b"short"), &mut bytes).unwrap();
    assert!(bytes.capacity() <= 64 * 1024, "{}", bytes.capacity());
}
