//! Calls on windowed streams.

use std::rc::Rc;

use serde_json::Value;
use streams_dsl::{
    EmitStrategy, KGroupedStream, SessionWindowedKStream, SessionWindows, SlidingWindows, Suppressed,
    TimeWindowedKStream, TimeWindows, UnlimitedWindows, Windowed,
};

use super::functions::{Text, aggregator, reducer, shown};
use super::program::{Handle, field, materialized, millis, required};
use super::{Step, broken, missing};

pub(super) fn windowed_by(call: &Value, grouped: &KGroupedStream<Text, Text>) -> Step<Handle> {
    let Some(window) = call.get("window") else {
        return broken("windowedBy without a window");
    };
    let grace = millis(window, "grace_ms");
    let time = TimeWindows::of(millis(window, "size_ms")).grace(grace);
    let windowed = match required(window, "kind")? {
        "tumbling" => grouped.windowed_by(time),
        "hopping" => grouped.windowed_by(time.advance_by(millis(window, "advance_ms"))),
        "sliding" => grouped.windowed_by(SlidingWindows::of(millis(window, "diff_ms")).grace(grace)),
        "unlimited" => {
            let start_ms = window.get("start_ms").and_then(Value::as_i64).unwrap_or(0);
            grouped.windowed_by(UnlimitedWindows::from_ms(start_ms))
        }
        "session" => {
            let windows = SessionWindows::of(millis(window, "gap_ms")).grace(grace);
            return Ok(Handle::Sessions(Rc::new(grouped.windowed_by(windows))));
        }
        other => return missing(format!("{other} windows")),
    };
    Ok(Handle::Windowed(Rc::new(windowed)))
}

pub(super) fn windowed_call(
    operation: &str,
    call: &Value,
    windowed: &Rc<TimeWindowedKStream<Text, Text>>,
) -> Step<Handle> {
    Ok(match operation {
        "emitOnClose" => Handle::Windowed(Rc::new((**windowed).clone().emit_strategy(EmitStrategy::OnWindowClose))),
        "count" => Handle::WindowedCounts(windowed.count(materialized::<i64>(call)?)),
        "reduce" => {
            let reduce = reducer(required(call, "fn")?)?;
            Handle::WindowedTable(windowed.reduce(
                move |_, new, old| reduce(old.as_deref(), new.as_deref()),
                materialized::<Text>(call)?,
            ))
        }
        "aggregate" => {
            let (init, add) = (
                field(call, "init").map(str::to_owned),
                aggregator(required(call, "fn")?)?,
            );
            let add = move |_: &Text, value: &Text, old: Text| add(value.as_deref(), old.as_deref());
            Handle::WindowedTable(windowed.aggregate(move || init.clone(), add, materialized::<Text>(call)?))
        }
        other => return missing(other),
    })
}

pub(super) fn session_call(
    operation: &str,
    call: &Value,
    windowed: &Rc<SessionWindowedKStream<Text, Text>>,
) -> Step<Handle> {
    Ok(match operation {
        "emitOnClose" => Handle::Sessions(Rc::new((**windowed).clone().emit_strategy(EmitStrategy::OnWindowClose))),
        "count" => Handle::WindowedCounts(windowed.count(materialized::<i64>(call)?)),
        "reduce" => {
            let reduce = reducer(required(call, "fn")?)?;
            Handle::WindowedTable(windowed.reduce(
                move |_, new, old| reduce(old.as_deref(), new.as_deref()),
                materialized::<Text>(call)?,
            ))
        }
        "aggregate" => {
            let (init, add) = (
                field(call, "init").map(str::to_owned),
                aggregator(required(call, "fn")?)?,
            );
            let add = move |_: &Text, value: &Text, old: Text| add(value.as_deref(), old.as_deref());
            let merge = |_: &Text, one: Text, other: Text| {
                Some(format!("{}&{}", shown(one.as_deref()), shown(other.as_deref())))
            };
            Handle::WindowedTable(windowed.aggregate(move || init.clone(), add, merge, materialized::<Text>(call)?))
        }
        other => return missing(other),
    })
}

/// What is suppressed of a table of windows.
pub(super) fn suppressed(call: &Value) -> Step<Suppressed<Windowed<Text>>> {
    match call.get("untilWindowCloses").and_then(Value::as_bool) {
        Some(true) => Ok(bounded(call, Suppressed::until_window_closes())),
        _ => time_limit(call),
    }
}

/// What is suppressed for some time.
pub(super) fn time_limit<K>(call: &Value) -> Step<Suppressed<K>> {
    if call.get("untilTimeLimit_ms").is_none() {
        return broken("suppress without a limit");
    }
    Ok(bounded(
        call,
        Suppressed::until_time_limit(millis(call, "untilTimeLimit_ms")),
    ))
}

fn bounded<K>(call: &Value, mut suppressed: Suppressed<K>) -> Suppressed<K> {
    let bound = |name: &str| {
        let bound = call.get(name).and_then(Value::as_u64);
        bound.map(|bound| usize::try_from(bound).unwrap_or(usize::MAX))
    };
    if let Some(records) = bound("maxRecords") {
        suppressed = suppressed.max_records(records);
    }
    if let Some(bytes) = bound("maxBytes") {
        suppressed = suppressed.max_bytes(bytes);
    }
    match call
        .get("full")
        .or_else(|| call.get("whenFull"))
        .and_then(Value::as_str)
    {
        Some("shutdown" | "shutDown" | "shutDownWhenFull") => suppressed.shut_down_when_full(),
        Some("emit" | "emitEarly" | "emitEarlyWhenFull") => suppressed.emit_early_when_full(),
        _ => suppressed,
    }
}
