//! Session stores against a model.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ops::{Bytes, WIDTH_MS, key, value};
use super::stores::text;
use super::{Failure, run, same};
use crate::session::SessionIter;
use crate::store::SessionStore;

/// Start, end, key and value.
type Row = (i64, i64, Bytes, Bytes);

#[derive(Debug, Clone)]
enum SessionOp {
    Put(Bytes, i64, i64, Option<Bytes>),
    Fetch(Bytes, i64, i64),
    Find(Bytes, i64, i64),
    Ended(i64, i64),
    Hold(Bytes, i64, i64),
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![12 => 0_i64..60, 1 => Just(255), 1 => Just(i64::MAX)]
}

fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(i64::MIN), 1 => -5_i64..0, 8 => 0_i64..70, 1 => Just(i64::MAX)]
}

/// Some keys look like another key with times behind it.
fn session_key() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        4 => key(),
        1 => (key(), time()).prop_map(|(key, end)| [key.as_slice(), &end.to_be_bytes()].concat()),
    ]
}

fn session_op() -> impl Strategy<Value = SessionOp> {
    let put = (session_key(), time(), time(), proptest::option::weighted(0.8, value()));
    prop_oneof![
        8 => put.prop_map(|(key, a, b, value)| SessionOp::Put(key, a.min(b), a.max(b), value)),
        3 => (session_key(), time(), time()).prop_map(|(key, a, b)| SessionOp::Fetch(key, a.min(b), a.max(b))),
        5 => (session_key(), moment(), moment()).prop_map(|(key, from, to)| SessionOp::Find(key, from, to)),
        3 => (moment(), moment()).prop_map(|(from, to)| SessionOp::Ended(from, to)),
        2 => (session_key(), moment(), moment()).prop_map(|(key, from, to)| SessionOp::Hold(key, from, to)),
    ]
}

/// Rows by (bucket, bytes of key, end and start): the order in which a session store gives them.
type Model = BTreeMap<(i64, Bytes), Row>;

fn place(key: &[u8], start_ms: i64, end_ms: i64) -> (i64, Bytes) {
    let bytes = [key, &end_ms.to_be_bytes(), &start_ms.to_be_bytes()].concat();
    (end_ms / WIDTH_MS, bytes)
}

fn found(model: &Model, wanted: impl Fn(&Row) -> bool) -> Vec<Row> {
    model.values().filter(|row| wanted(row)).cloned().collect()
}

fn collect(rows: SessionIter) -> Result<Vec<Row>, String> {
    rows.map(|row| {
        row.map(|row| (row.start_ms, row.end_ms, row.key.into_vec(), row.value.into_vec()))
            .map_err(text)
    })
    .collect()
}

/// Compares a session store with a model, in `cases` random runs; `make` gives an empty store for each. Its buckets must
/// be 10 ms wide.
///
/// # Errors
/// The first difference, with the smallest run that shows it.
pub fn session_store<S: SessionStore>(cases: u32, make: impl Fn() -> S) -> Result<(), Failure> {
    run(cases, &vec(session_op(), 1..80), |ops| {
        let (mut store, mut model, mut held) = (make(), Model::new(), Vec::new());
        for op in &ops {
            step(&mut store, &mut model, &mut held, op)?;
        }
        held.into_iter()
            .try_for_each(|(rows, wanted)| same("an iterator kept over later writes", &collect(rows)?, &wanted))
    })
}

fn step(
    store: &mut impl SessionStore,
    model: &mut Model,
    held: &mut Vec<(SessionIter, Vec<Row>)>,
    op: &SessionOp,
) -> Result<(), String> {
    let of_key = |model: &Model, key: &[u8], from_end: i64, to_start: i64| {
        found(model, |row| row.2 == key && row.1 >= from_end && row.0 <= to_start)
    };
    match op {
        SessionOp::Put(key, start, end, value) => {
            store.put(key, *start, *end, value.as_deref()).map_err(text)?;
            let place = place(key, *start, *end);
            match value {
                Some(value) => drop(model.insert(place, (*start, *end, key.clone(), value.clone()))),
                None => drop(model.remove(&place)),
            }
            Ok(())
        }
        SessionOp::Fetch(key, start, end) => {
            let mut copy = None;
            let mut read = |value: Option<&[u8]>| copy = value.map(<[u8]>::to_vec);
            store.fetch(key, *start, *end, &mut read).map_err(text)?;
            let wanted = model.get(&place(key, *start, *end)).map(|row| row.3.clone());
            same("fetch", &copy, &wanted)
        }
        SessionOp::Find(key, from_end, to_start) => {
            let rows = store.find(key, *from_end, *to_start).map_err(text)?;
            same("find", &collect(rows)?, &of_key(model, key, *from_end, *to_start))
        }
        SessionOp::Ended(from, to) => {
            let rows = store.ended(*from, *to).map_err(text)?;
            same(
                "ended",
                &collect(rows)?,
                &found(model, |row| (*from..=*to).contains(&row.1)),
            )
        }
        SessionOp::Hold(key, from_end, to_start) => {
            let rows = store.find(key, *from_end, *to_start).map_err(text)?;
            held.push((rows, of_key(model, key, *from_end, *to_start)));
            Ok(())
        }
    }
}
