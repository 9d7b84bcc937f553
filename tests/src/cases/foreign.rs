//! Joins of tables by a foreign key.

use serde_json::Value;
use streams_dsl::{KTable, TableJoined};

use super::Step;
use super::functions::{Text, eval, joiner};
use super::program::{Handle, field, materialized, required};
use super::tables::rows;

pub(super) fn join(
    operation: &str,
    call: &Value,
    left: &KTable<Text, String>,
    right: &KTable<Text, String>,
) -> Step<Handle> {
    let join = joiner(field(call, "joiner").unwrap_or("pair"))?;
    let foreign_key = eval(required(call, "fk")?)?;
    let foreign_key = move |key: &Text, value: &String| foreign_key(key.as_deref(), Some(value)).map(Some);
    let (joined, stored) = (TableJoined::default(), materialized::<Text>(call)?);
    Ok(rows(&match operation {
        "join" => {
            let join = move |_: &Text, left: &String, right: &String| join(Some(left), Some(right));
            left.join_foreign_key_with(right, foreign_key, join, joined, stored)
        }
        _ => {
            let join =
                move |_: &Text, left: &String, right: Option<&String>| join(Some(left), right.map(String::as_str));
            left.left_join_foreign_key_with(right, foreign_key, join, joined, stored)
        }
    }))
}
