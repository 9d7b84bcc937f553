//! Calls on tables.

use serde_json::Value;
use streams_dsl::{KGroupedTable, KTable};

use super::functions::{Text, aggregator, eval, joiner, reducer, test};
use super::program::{Handle, field, materialized, required};
use super::{Step, fanout, foreign, missing};

/// Counts as text.
pub(super) fn texts(table: &KTable<Text, i64>) -> KTable<Text, String> {
    table.map_values(|_, count| count.to_string())
}

pub(super) fn table_call(operation: &str, call: &Value, table: &KTable<Text, String>, with: Handle) -> Step<Handle> {
    let with = match with {
        Handle::Counts(other) => Handle::Table(texts(&other)),
        other => other,
    };
    Ok(match operation {
        "toStream" => Handle::Stream(table.to_stream()),
        "filter" => {
            let keep = test(required(call, "fn")?)?;
            let keep = move |key: &Text, value: &String| keep(key.as_deref(), Some(value));
            Handle::Table(match field(call, "store") {
                Some(_) => table.filter_with(keep, materialized::<String>(call)?),
                None => table.filter(keep),
            })
        }
        "filterNot" => {
            let drop = test(required(call, "fn")?)?;
            let drop = move |key: &Text, value: &String| drop(key.as_deref(), Some(value));
            Handle::Table(match field(call, "store") {
                Some(_) => table.filter_not_with(drop, materialized::<String>(call)?),
                None => table.filter_not(drop),
            })
        }
        "mapValues" => {
            let map = eval(required(call, "fn")?)?;
            let map = move |key: &Text, value: &String| map(key.as_deref(), Some(value));
            match field(call, "store") {
                Some(_) => {
                    let mapped = table.map_values_with(map, materialized::<Text>(call)?);
                    Handle::Table(mapped.filter_map_values(|_, value| value.clone()))
                }
                None => Handle::Table(table.filter_map_values(map)),
            }
        }
        "transformValues" => fanout::transformed(call, table)?,
        "suppress" => Handle::Table(table.suppress(super::windows::time_limit(call)?)),
        "join" | "leftJoin" if call.get("fk").is_some() => match with {
            Handle::Table(other) => foreign::join(operation, call, table, &other)?,
            _ => return missing(format!("foreign-key {operation} of a table with something else")),
        },
        "join" | "leftJoin" | "outerJoin" => match with {
            Handle::Table(other) => join(operation, call, table, &other)?,
            _ => return missing(format!("{operation} of a table with something else")),
        },
        "groupBy" => {
            let (group, value) = (eval(required(call, "fn")?)?, eval(required(call, "valueFn")?)?);
            let select = move |key: &Text, row: &String| {
                let (key, row) = (key.as_deref(), Some(row.as_str()));
                (group(key, row), value(key, row))
            };
            Handle::GroupedTable(std::rc::Rc::new(table.group_by(select)))
        }
        other => return missing(other),
    })
}

/// A table whose rows may be null as one whose rows are not.
pub(super) fn rows(table: &KTable<Text, Text>) -> Handle {
    Handle::Table(table.filter_map_values(|_, value| value.clone()))
}

fn join(operation: &str, call: &Value, left: &KTable<Text, String>, right: &KTable<Text, String>) -> Step<Handle> {
    let join = joiner(field(call, "joiner").unwrap_or("pair"))?;
    let stored = match field(call, "store") {
        Some(_) => materialized::<Text>(call)?,
        None => streams_dsl::Materialized::unnamed(),
    };
    Ok(rows(&match operation {
        "join" => left.join_with(right, move |_, left, right| join(Some(left), Some(right)), stored),
        "leftJoin" => {
            let join =
                move |_: &Text, left: &String, right: Option<&String>| join(Some(left), right.map(String::as_str));
            left.left_join_with(right, join, stored)
        }
        _ => {
            let join = move |_: &Text, left: Option<&String>, right: Option<&String>| {
                join(left.map(String::as_str), right.map(String::as_str))
            };
            left.outer_join_with(right, join, stored)
        }
    }))
}

pub(super) fn grouped_table_call(operation: &str, call: &Value, grouped: &KGroupedTable<Text, Text>) -> Step<Handle> {
    Ok(match operation {
        "count" => Handle::Counts(grouped.count(materialized::<i64>(call)?)),
        "reduce" => {
            let (add, subtract) = (reducer(required(call, "fn")?)?, reducer(required(call, "subFn")?)?);
            rows(&grouped.reduce(
                move |_, new, old| add(old.as_deref(), new.as_deref()),
                move |_, gone, old| subtract(old.as_deref(), gone.as_deref()),
                materialized::<Text>(call)?,
            ))
        }
        "aggregate" => {
            let init = field(call, "init").map(str::to_owned);
            let (add, subtract) = (
                aggregator(required(call, "fn")?)?,
                aggregator(required(call, "subFn")?)?,
            );
            rows(&grouped.aggregate(
                move || init.clone(),
                move |_, new, old: Text| add(new.as_deref(), old.as_deref()),
                move |_, gone, old: Text| subtract(gone.as_deref(), old.as_deref()),
                materialized::<Text>(call)?,
            ))
        }
        other => return missing(other),
    })
}
