//! Calls that give several records or streams for one: `flatMap`, `flatMapValues`, `split`; and the processors of values.

use serde_json::Value;
use streams_dsl::{BoxError, FixedKeyContext, FixedKeyProcessor, FixedKeyRecord, KStream, ValueTransformer};
use streams_dsl::{KTable, ValueTransformerContext};

use super::functions::{Eval, Text, eval, shown, test};
use super::program::{Handle, field, materialized, required};
use super::{Step, missing};

pub(super) fn stream_call(operation: &str, call: &Value, stream: &KStream<Text, Text>) -> Step<Handle> {
    Ok(Handle::Stream(match operation {
        "flatMapValues" => stream.flat_map_values(|_, value| parts(value.as_deref())),
        "flatMap" => stream.flat_map(|_, value| {
            let value = value.clone();
            let keys = parts(value.as_deref());
            keys.into_iter()
                .map(move |key| (key, value.clone()))
                .collect::<Vec<_>>()
        }),
        "map" => {
            let (key_of, value_of) = (eval(required(call, "keyFn")?)?, eval(required(call, "fn")?)?);
            stream.map(move |key, value| {
                let (key, value) = (key.as_deref(), value.as_deref());
                (key_of(key, value), value_of(key, value))
            })
        }
        "peek" => {
            let look = eval(required(call, "fn")?)?;
            stream.peek(move |key, value| {
                look(key.as_deref(), value.as_deref());
            })
        }
        "processValues" => match required(call, "fn")? {
            "swallow" => stream.process_values(|| Values::Swallow),
            "twice" => stream.process_values(|| Values::Twice),
            function => {
                drop(eval(function)?); // a name that is unknown is told now
                let function = function.to_owned();
                stream.process_values(move || Values::Map(eval(&function).ok()))
            }
        },
        other => return missing(other),
    }))
}

/// The records that pass the test, and the others.
pub(super) fn split(call: &Value, stream: &KStream<Text, Text>) -> Step<[Handle; 2]> {
    let takes = test(required(call, "fn")?)?;
    let branches = stream.split().named(required(call, "let")?);
    let yes = branches.branch("-yes", move |key, value| takes(key.as_deref(), value.as_deref()));
    let no = branches.default_branch("-no");
    Ok([Handle::Stream(yes), Handle::Stream(no)])
}

/// The table with each value shown as `key=value`, deletes too.
pub(super) fn transformed(call: &Value, table: &KTable<Text, String>) -> Step<Handle> {
    let stored = materialized::<String>(call)?;
    Ok(Handle::Table(match field(call, "store") {
        Some(_) => table.transform_values_with(|| Shown, streams_dsl::Connect::default(), stored),
        None => table.transform_values(|| Shown),
    }))
}

/// The parts of a value split at `|`, empty ones too.
fn parts(value: Option<&str>) -> Vec<Text> {
    let parts = value.into_iter().flat_map(|value| value.split('|'));
    parts.map(|part| Some(part.to_owned())).collect()
}

struct Shown;

impl ValueTransformer<Text, String, String> for Shown {
    fn transform(
        &mut self,
        _cx: &mut ValueTransformerContext<'_>,
        key: &Text,
        value: Option<&String>,
    ) -> Result<Option<String>, BoxError> {
        Ok(Some(format!(
            "{}={}",
            shown(key.as_deref()),
            shown(value.map(String::as_str))
        )))
    }
}

enum Values {
    Swallow,
    Twice,
    Map(Option<Eval>),
}

impl FixedKeyProcessor<Text, Text, Text> for Values {
    fn process(
        &mut self,
        cx: &mut FixedKeyContext<'_, Text, Text>,
        record: FixedKeyRecord<'_, Text, Text>,
    ) -> Result<(), BoxError> {
        match self {
            Values::Swallow | Values::Map(None) => Ok(()),
            Values::Twice => {
                let again = record.value().as_ref().map(|value| format!("{value}'"));
                cx.forward(record)?;
                Ok(cx.forward(record.with_value(&again))?)
            }
            Values::Map(Some(map)) => {
                let value = map(record.key().as_deref(), record.value().as_deref());
                Ok(cx.forward(record.with_value(&value))?)
            }
        }
    }
}
