//! Calls on cogrouped streams.

use std::rc::Rc;

use serde_json::Value;
use streams_dsl::{
    CogroupedKStream, KGroupedStream, SessionWindowedCogroupedKStream, SessionWindows, SlidingWindows,
    TimeWindowedCogroupedKStream, TimeWindows,
};

use super::functions::{Text, aggregator, shown};
use super::program::{Handle, field, materialized, millis, required};
use super::{Step, broken, missing, tables};

type Adder = Box<dyn Fn(&Text, &Text, Text) -> Text + Send + Sync>;

fn adder(call: &Value) -> Step<Adder> {
    let add = aggregator(required(call, "fn")?)?;
    Ok(Box::new(move |_, value, old| add(value.as_deref(), old.as_deref())))
}

/// The first of several streams.
pub(super) fn begin(call: &Value, grouped: &KGroupedStream<Text, Text>) -> Step<Handle> {
    Ok(Handle::Cogrouped(Rc::new(grouped.cogroup(adder(call)?))))
}

pub(super) fn cogrouped_call(
    operation: &str,
    call: &Value,
    cogrouped: &Rc<CogroupedKStream<Text, Text>>,
    with: Handle,
) -> Step<Handle> {
    Ok(match (operation, with) {
        ("cogroup", Handle::Grouped(other)) => {
            Handle::Cogrouped(Rc::new((**cogrouped).clone().cogroup(&other, adder(call)?)))
        }
        ("aggregate", _) => {
            let init = field(call, "init").map(str::to_owned);
            tables::rows(&cogrouped.aggregate(move || init.clone(), materialized::<Text>(call)?))
        }
        ("windowedBy", _) => windowed_by(call, cogrouped)?,
        _ => return missing(format!("{operation} of a cogrouped stream")),
    })
}

fn windowed_by(call: &Value, cogrouped: &CogroupedKStream<Text, Text>) -> Step<Handle> {
    let Some(window) = call.get("window") else {
        return broken("windowedBy without a window");
    };
    let grace = millis(window, "grace_ms");
    let time = TimeWindows::of(millis(window, "size_ms")).grace(grace);
    let windowed = match required(window, "kind")? {
        "tumbling" => cogrouped.windowed_by(time),
        "hopping" => cogrouped.windowed_by(time.advance_by(millis(window, "advance_ms"))),
        "sliding" => cogrouped.windowed_by(SlidingWindows::of(millis(window, "diff_ms")).grace(grace)),
        "session" => {
            let windows = SessionWindows::of(millis(window, "gap_ms")).grace(grace);
            return Ok(Handle::CogroupedSessions(Rc::new(cogrouped.windowed_by(windows))));
        }
        other => return missing(format!("{other} windows of cogrouped streams")),
    };
    Ok(Handle::CogroupedWindows(Rc::new(windowed)))
}

pub(super) fn windowed_aggregate(call: &Value, windowed: &TimeWindowedCogroupedKStream<Text, Text>) -> Step<Handle> {
    let init = field(call, "init").map(str::to_owned);
    Ok(Handle::WindowedTable(
        windowed.aggregate(move || init.clone(), materialized::<Text>(call)?),
    ))
}

pub(super) fn session_aggregate(call: &Value, windowed: &SessionWindowedCogroupedKStream<Text, Text>) -> Step<Handle> {
    let init = field(call, "init").map(str::to_owned);
    let merge =
        |_: &Text, one: Text, other: Text| Some(format!("{}&{}", shown(one.as_deref()), shown(other.as_deref())));
    Ok(Handle::WindowedTable(windowed.aggregate(
        move || init.clone(),
        merge,
        materialized::<Text>(call)?,
    )))
}
