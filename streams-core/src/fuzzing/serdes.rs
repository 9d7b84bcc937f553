//! Serdes: what any producer may have written to a topic.

use std::collections::BTreeMap;

use ::serde::{Deserialize, Serialize};

use super::{Target, law};
use crate::serde::{
    Boolean, Bytes, ChangeSerde, DefaultSerde, Double, Float, Integer, Json, List, Long, OptionSerde, Part, PartOfKey,
    PartOfValue, Parts, PartsList, Serde, SessionWindowed, Short, TimeWindowed, Utf8, UuidText, Void,
};
use crate::{Change, EventId, EventIdText, Window, Windowed};

macro_rules! serdes {
    ($($name:literal $type:ty, $serde:expr, $seeds:expr;)*) => {
        &[$(Target {
            name: $name,
            check: |bytes| stable::<$type>(&$serde, $seeds, bytes),
            seeds: || seeds::<$type>(&$serde, $seeds),
        }),*]
    };
}

pub(super) const TARGETS: &[Target] = serdes! {
    "serde_boolean" bool, Boolean, [true, false];
    "serde_bytes" Vec<u8>, Bytes, [b"bytes".to_vec()];
    "serde_short" i16, Short, [7];
    "serde_integer" i32, Integer, [7];
    "serde_long" i64, Long, [7];
    "serde_float" f32, Float, [7.5];
    "serde_double" f64, Double, [7.5];
    "serde_string" String, Utf8, ["héllo".to_owned()];
    "serde_uuid" uuid::Uuid, UuidText, [uuid::Uuid::from_u128(7)];
    "serde_void" (), Void, [()];
    "serde_option" Option<String>, OptionSerde(Utf8), [Some("text".to_owned())];
    "serde_list_of_long" Vec<Option<i64>>, List(OptionSerde(Long)), [vec![Some(1), None, Some(3)]];
    "serde_list_of_string" Vec<Option<String>>, List(OptionSerde(Utf8)), [vec![Some("a".to_owned()), None]];
    "serde_change" Change<String>, ChangeSerde(Utf8), changes();
    "serde_time_windowed" Windowed<String>, TimeWindowed::of_size(Utf8, 60_000), [windowed(60_000)];
    "serde_time_windowed_of_unknown_size" Windowed<String>, TimeWindowed::<Utf8>::default(), [windowed(i64::MAX)];
    "serde_session_windowed" Windowed<String>, SessionWindowed(Utf8), [windowed(7)];
    "serde_event_id" EventId, EventIdText, [EventId::of("orders", 3, 1041), EventId::of("a-b", 0, 0).part(2)];
    "serde_part_of_key" Part<String>, PartOfKey(Utf8), [Part { of: "key".to_owned(), number: 3 }];
    "serde_part_of_value" Part<Option<String>>, PartOfValue(Utf8), parts();
    "serde_parts_list" Parts<String>, PartsList(Utf8), [Parts([(0, "a".to_owned()), (3, String::new())].into())];
    "serde_json" Sample, Json::<Sample>::new(), [Sample::some(), Sample::default()];
    "serde_json_of_any_shape" serde_json::Value, AnyJson, [Sample::some().into()];
};

/// A type with the usual parts. No numbers with fractions: their text is read to the nearest but one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sample {
    text: String,
    number: i64,
    maybe: Option<u32>,
    list: Vec<Sample>,
    map: BTreeMap<String, Vec<i8>>,
    kind: Kind,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Kind {
    #[default]
    Plain,
    Tagged(String),
    Shaped {
        width: u8,
    },
}

impl DefaultSerde for Sample {
    type Serde = Json<Self>;
}

impl Sample {
    fn some() -> Self {
        let inner = Sample {
            kind: Kind::Shaped { width: 3 },
            ..Sample::default()
        };
        Sample {
            text: "a \"quoted\" ü".to_owned(),
            number: -7,
            maybe: Some(1),
            list: vec![inner.clone(), inner],
            map: [("k".to_owned(), vec![1, -2])].into(),
            kind: Kind::Tagged("t".to_owned()),
        }
    }
}

impl From<Sample> for serde_json::Value {
    fn from(sample: Sample) -> Self {
        serde_json::to_value(sample).unwrap_or_default()
    }
}

/// JSON of any shape, which has no law: fractions are read to the nearest but one.
struct AnyJson;

impl Serde<serde_json::Value> for AnyJson {
    fn serialize(&self, topic: &str, value: &serde_json::Value, out: &mut Vec<u8>) -> Result<bool, crate::SerdeError> {
        Json::new().serialize(topic, value, out)
    }

    fn deserialize(&self, topic: &str, bytes: Option<&[u8]>) -> Result<serde_json::Value, crate::SerdeError> {
        Json::<serde_json::Value>::new().deserialize(topic, bytes)?;
        Ok(serde_json::Value::Null)
    }
}

fn windowed(end_ms: i64) -> Windowed<String> {
    Windowed::new("key".to_owned(), Window::new(0, end_ms))
}

fn parts() -> [Part<Option<String>>; 2] {
    [Some("value".to_owned()), None].map(|of| Part { of, number: 7 })
}

fn changes() -> [Change<String>; 3] {
    let (new, old) = (Some("new".to_owned()), Some("old".to_owned()));
    [(new.clone(), None), (None, old.clone()), (new, old)].map(|(new, old)| Change::new(new, old))
}

/// What is written of a value that was read is read and written to the same bytes. Reading into a value that is there
/// gives the same value.
fn stable<T>(serde: &impl Serde<T>, values: impl IntoIterator<Item = T>, bytes: &[u8]) -> Result<(), String> {
    let read = |bytes: &[u8]| serde.deserialize("topic", Some(bytes)).ok();
    let written = |value: &T| {
        let mut out = Vec::new();
        let present = serde.serialize("topic", value, &mut out).ok()?;
        present.then_some(out)
    };
    let reused = values.into_iter().next().and_then(|mut value| {
        let read = serde.deserialize_into("topic", Some(bytes), &mut value);
        read.ok().map(|()| value)
    });
    let Some(value) = read(bytes) else {
        return law(reused.is_none(), "what can't be read can't be read into a value either");
    };
    let first = written(&value);
    let again = reused.as_ref().map(written);
    law(again.as_ref() == Some(&first), "reading into a value gives the same")?;
    let Some(first) = first else { return Ok(()) };
    let again = read(&first).as_ref().and_then(written);
    law(
        again == Some(first),
        "what is written is read and written to the same bytes",
    )
}

fn seeds<T>(serde: &impl Serde<T>, values: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    let written = |value: T| {
        let mut out = Vec::new();
        let present = serde.serialize("topic", &value, &mut out);
        present.is_ok_and(|present| present).then_some(out)
    };
    values.into_iter().filter_map(written).collect()
}
