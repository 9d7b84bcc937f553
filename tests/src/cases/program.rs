//! A case's list of DSL calls, called.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use streams_dsl::{
    CogroupedKStream, Consumed, DefaultSerde, GlobalKTable, JoinWindows, Joined, KGroupedStream, KGroupedTable,
    KStream, KTable, Materialized, SessionWindowedCogroupedKStream, SessionWindowedKStream, StreamsBuilder,
    TimeWindowedCogroupedKStream, TimeWindowedKStream, Timestamps, Windowed,
};

use super::functions::{Text, aggregator, eval, joiner, reducer, test};
use super::process::CaseProcessor;
use super::{Step, broken, cogroup, fanout, missing, tables, windows};

/// What a call gives.
#[derive(Clone)]
pub(super) enum Handle {
    Stream(KStream<Text, Text>),
    WindowedStream(KStream<Windowed<Text>, Text>),
    Table(KTable<Text, String>),
    Counts(KTable<Text, i64>),
    WindowedCounts(KTable<Windowed<Text>, i64>),
    WindowedTable(KTable<Windowed<Text>, Text>),
    Global(GlobalKTable<Text, String>),
    Grouped(KGroupedStream<Text, Text>),
    GroupedTable(std::rc::Rc<KGroupedTable<Text, Text>>),
    Windowed(std::rc::Rc<TimeWindowedKStream<Text, Text>>),
    Sessions(std::rc::Rc<SessionWindowedKStream<Text, Text>>),
    Cogrouped(std::rc::Rc<CogroupedKStream<Text, Text>>),
    CogroupedWindows(std::rc::Rc<TimeWindowedCogroupedKStream<Text, Text>>),
    CogroupedSessions(std::rc::Rc<SessionWindowedCogroupedKStream<Text, Text>>),
    Nothing,
}

pub(crate) fn field<'a>(call: &'a Value, name: &str) -> Option<&'a str> {
    call.get(name).and_then(Value::as_str)
}

pub(crate) fn required<'a>(call: &'a Value, name: &str) -> Step<&'a str> {
    field(call, name).map_or_else(|| broken(format!("{call} lacks `{name}`")), Ok)
}

pub(super) fn millis(value: &Value, name: &str) -> Duration {
    let millis = value.get(name).and_then(Value::as_i64).unwrap_or(0);
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Calls the DSL as the case says.
pub(crate) fn build(calls: &[Value], builder: &StreamsBuilder) -> Step<()> {
    let mut named: BTreeMap<String, Handle> = BTreeMap::new();
    for call in calls {
        let input = |name: &str| match field(call, name).map(|of| (of, named.get(of))) {
            None => Ok(Handle::Nothing),
            Some((_, Some(handle))) => Ok(handle.clone()),
            Some((of, None)) => broken(format!("nothing is named {of}")),
        };
        if field(call, "op") == Some("split") {
            let Handle::Stream(stream) = input("of")? else {
                return broken("split of something else than a stream");
            };
            let [yes, no] = fanout::split(call, &stream)?;
            named.insert(required(call, "let")?.to_owned(), yes);
            named.insert(required(call, "otherwise")?.to_owned(), no);
            continue;
        }
        let made = one_call(call, builder, input("of")?, input("with")?)?;
        if let Some(name) = field(call, "let") {
            named.insert(name.to_owned(), made);
        }
    }
    Ok(())
}

fn one_call(call: &Value, builder: &StreamsBuilder, of: Handle, with: Handle) -> Step<Handle> {
    let operation = required(call, "op")?;
    match (operation, of) {
        ("stream", _) => stream(call, builder),
        ("table", _) => {
            let topic = required(call, "topic")?;
            let consumed = consumed(call, |value: &String| value.parse().ok())?;
            Ok(Handle::Table(match field(call, "store") {
                Some(_) => builder.table_with(topic, consumed, materialized(call)?),
                None => builder.table_with(topic, consumed, Materialized::unnamed()),
            }))
        }
        ("globalTable", _) => {
            let materialized = materialized(call)?;
            Ok(Handle::Global(builder.global_table_with(
                required(call, "topic")?,
                Consumed::default(),
                materialized,
            )))
        }
        (_, Handle::Stream(stream)) => stream_call(operation, call, &stream, with),
        ("unwindow", Handle::WindowedStream(stream)) => Ok(Handle::Stream(stream.map(|key, value| {
            let inner = super::functions::shown(key.key.as_deref());
            (
                Some(format!("{inner}@{}/{}", key.window.start_ms, key.window.end_ms)),
                value.clone(),
            )
        }))),
        (_, Handle::Table(table)) => tables::table_call(operation, call, &table, with),
        (_, Handle::GroupedTable(grouped)) => tables::grouped_table_call(operation, call, &grouped),
        ("suppress", Handle::Counts(table)) => Ok(Handle::Counts(table.suppress(windows::time_limit(call)?))),
        ("suppress", Handle::WindowedCounts(table)) => {
            Ok(Handle::WindowedCounts(table.suppress(windows::suppressed(call)?)))
        }
        ("suppress", Handle::WindowedTable(table)) => {
            Ok(Handle::WindowedTable(table.suppress(windows::suppressed(call)?)))
        }
        ("toStream", Handle::Counts(table)) => {
            Ok(Handle::Stream(table.to_stream().map_values(|_, count| text_of(count))))
        }
        ("toStream", Handle::WindowedCounts(table)) => Ok(Handle::WindowedStream(
            table.to_stream().map_values(|_, count| text_of(count)),
        )),
        ("toStream", Handle::WindowedTable(table)) => Ok(Handle::WindowedStream(
            table.to_stream().map_values(|_, value| value.clone().flatten()),
        )),
        // Java's long is printed as text further down; the rows of counts are looked up by other steps as such text.
        (operation, Handle::Counts(table)) if operation != "suppress" => {
            tables::table_call(operation, call, &tables::texts(&table), with)
        }
        ("cogroup", Handle::Grouped(grouped)) => cogroup::begin(call, &grouped),
        (_, Handle::Cogrouped(cogrouped)) => cogroup::cogrouped_call(operation, call, &cogrouped, with),
        ("aggregate", Handle::CogroupedWindows(windowed)) => cogroup::windowed_aggregate(call, &windowed),
        ("aggregate", Handle::CogroupedSessions(windowed)) => cogroup::session_aggregate(call, &windowed),
        (_, Handle::Grouped(grouped)) => grouped_call(operation, call, &grouped),
        (_, Handle::Windowed(windowed)) => windows::windowed_call(operation, call, &windowed),
        (_, Handle::Sessions(windowed)) => windows::session_call(operation, call, &windowed),
        _ => missing(operation),
    }
}

fn text_of(count: &Option<i64>) -> Text {
    count.map(|count| count.to_string())
}

/// Where event times come from; `number` reads a value as one.
fn consumed<V: DefaultSerde>(
    call: &Value,
    number: impl Fn(&V) -> Option<i64> + Send + Sync + 'static,
) -> Step<Consumed<Text, V>> {
    let consumed = Consumed::default();
    Ok(match field(call, "extractor") {
        None => consumed,
        Some("value") => consumed.timestamps_by(move |_, value, _| number(value).unwrap_or(-1)),
        Some("log-and-skip") => consumed.timestamps(Timestamps::SkipInvalid),
        Some("partition-time") => consumed.timestamps(Timestamps::PartitionTimeOnInvalid),
        Some("wallclock") => consumed.timestamps(Timestamps::WallClock),
        Some(other) => return broken(format!("unknown extractor {other}")),
    })
}

fn stream(call: &Value, builder: &StreamsBuilder) -> Step<Handle> {
    let consumed = consumed(call, |value: &Text| value.as_ref().and_then(|value| value.parse().ok()))?;
    let topics: Vec<&str> = match call.get("topics").and_then(Value::as_array) {
        Some(topics) => topics.iter().filter_map(Value::as_str).collect(),
        None => vec![required(call, "topic")?],
    };
    Ok(Handle::Stream(builder.stream_of(topics, consumed)))
}

/// As the call says; without a name with serdes alone, as the Java runner does it.
pub(super) fn materialized<V: DefaultSerde>(call: &Value) -> Step<Materialized<Text, V>> {
    let mut materialized = match field(call, "store") {
        Some(name) => Materialized::named(name),
        None => Materialized::with(<Text as DefaultSerde>::Serde::default(), V::Serde::default()),
    };
    materialized = match field(call, "type").unwrap_or("rocks") {
        "rocks" => materialized,
        "mem" => materialized.in_memory(),
        "versioned" => materialized.versioned(millis(call, "history_ms")),
        other => return broken(format!("unknown store type {other}")),
    };
    if call.get("retention_ms").is_some() {
        materialized = materialized.retention(millis(call, "retention_ms"));
    }
    if let Some(caching) = call.get("caching").and_then(Value::as_bool) {
        materialized = materialized.caching(caching);
    }
    Ok(materialized)
}

fn stream_call(operation: &str, call: &Value, stream: &KStream<Text, Text>, with: Handle) -> Step<Handle> {
    Ok(match operation {
        "filterNot" => {
            let drop = test(required(call, "fn")?)?;
            Handle::Stream(stream.filter_not(move |key, value| drop(key.as_deref(), value.as_deref())))
        }
        "filter" => {
            let keep = test(required(call, "fn")?)?;
            Handle::Stream(stream.filter(move |key, value| keep(key.as_deref(), value.as_deref())))
        }
        "mapValues" => {
            let map = eval(required(call, "fn")?)?;
            Handle::Stream(stream.map_values(move |key, value| map(key.as_deref(), value.as_deref())))
        }
        "selectKey" => {
            let select = eval(required(call, "fn")?)?;
            Handle::Stream(stream.select_key(move |key, value| select(key.as_deref(), value.as_deref())))
        }
        "groupBy" => {
            let select = eval(required(call, "fn")?)?;
            Handle::Grouped(stream.group_by(move |key, value| select(key.as_deref(), value.as_deref())))
        }
        "groupByKey" => Handle::Grouped(stream.group_by_key()),
        "repartition" => Handle::Stream(stream.repartition()),
        "process" => {
            let function = required(call, "fn")?.to_owned();
            Handle::Stream(stream.process(move || CaseProcessor(function.clone())))
        }
        "toTable" => Handle::Table(stream.to_table(materialized(call)?)),
        // Java prints a key that is no window as it is.
        "unwindow" => Handle::Stream(stream.map(|key, value| (key.clone(), value.clone()))),
        "to" => {
            stream.to(required(call, "topic")?);
            Handle::Nothing
        }
        "merge" => match with {
            Handle::Stream(other) => Handle::Stream(stream.merge(&other)),
            _ => return missing("merge with something else than a stream"),
        },
        "join" | "leftJoin" | "outerJoin" => return join(operation, call, stream, with),
        other => return fanout::stream_call(other, call, stream),
    })
}

fn join(operation: &str, call: &Value, stream: &KStream<Text, Text>, with: Handle) -> Step<Handle> {
    let mut joined = Joined::default();
    if call.get("grace_ms").is_some() {
        joined = joined.grace(millis(call, "grace_ms"));
    }
    let join = joiner(field(call, "joiner").unwrap_or("pair"))?;
    let with = match with {
        Handle::Counts(table) => Handle::Table(tables::texts(&table)),
        other => other,
    };
    Ok(Handle::Stream(match (operation, with) {
        ("join", Handle::Table(table)) => {
            let join = move |_: &Text, left: &Text, right: &String| join(left.as_deref(), Some(right));
            stream.join_table_with(&table, join, joined)
        }
        ("leftJoin", Handle::Table(table)) => {
            let join =
                move |_: &Text, left: &Text, right: Option<&String>| join(left.as_deref(), right.map(String::as_str));
            stream.left_join_table_with(&table, join, joined)
        }
        ("join", Handle::Global(table)) => {
            let select = eval(required(call, "fn")?)?;
            let select = move |key: &Text, value: &Text| select(key.as_deref(), value.as_deref());
            stream.join_global(&table, select, move |_, left, right| join(left.as_deref(), Some(right)))
        }
        ("leftJoin", Handle::Global(table)) => {
            let select = eval(required(call, "fn")?)?;
            let select = move |key: &Text, value: &Text| select(key.as_deref(), value.as_deref());
            stream.left_join_global(&table, select, move |_, left, right| {
                join(left.as_deref(), right.map(String::as_str))
            })
        }
        ("join", Handle::Stream(other)) => stream.join(
            &other,
            move |_, left, right| join(left.as_deref(), right.as_deref()),
            join_windows(call)?,
        ),
        ("leftJoin", Handle::Stream(other)) => stream.left_join(
            &other,
            move |_, left, right| join(left.as_deref(), right.and_then(Option::as_deref)),
            join_windows(call)?,
        ),
        ("outerJoin", Handle::Stream(other)) => stream.outer_join(
            &other,
            move |_, left, right| join(left.and_then(Option::as_deref), right.and_then(Option::as_deref)),
            join_windows(call)?,
        ),
        _ => return missing(operation),
    }))
}

fn join_windows(call: &Value) -> Step<JoinWindows> {
    let Some(window) = call.get("window") else {
        return broken("a join of streams without a window");
    };
    Ok(JoinWindows::of(Duration::ZERO)
        .before(millis(window, "before_ms"))
        .after(millis(window, "after_ms"))
        .grace(millis(window, "grace_ms")))
}

fn grouped_call(operation: &str, call: &Value, grouped: &KGroupedStream<Text, Text>) -> Step<Handle> {
    Ok(match operation {
        "count" => Handle::Counts(grouped.count(materialized::<i64>(call)?)),
        "reduce" => {
            let reduce = reducer(required(call, "fn")?)?;
            let reduced = grouped.reduce(
                move |_, new, old| reduce(old.as_deref(), new.as_deref()),
                materialized::<Text>(call)?,
            );
            Handle::Table(reduced.filter_map_values(|_, value| value.clone()))
        }
        "aggregate" => {
            let (init, add) = (
                field(call, "init").map(str::to_owned),
                aggregator(required(call, "fn")?)?,
            );
            let add = move |_: &Text, value: &Text, old: Text| add(value.as_deref(), old.as_deref());
            let aggregated = grouped.aggregate(move || init.clone(), add, materialized::<Text>(call)?);
            Handle::Table(aggregated.filter_map_values(|_, value| value.clone()))
        }
        "windowedBy" => return windows::windowed_by(call, grouped),
        other => return missing(other),
    })
}
