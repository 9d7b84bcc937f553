//! Single stores, without epochs.

use std::collections::BTreeMap;

use proptest::collection::vec;

use super::ops::{
    Bytes, RowOp, WIDTH_MS, WindowModel, WindowModelRow, WindowOp, as_slice, inside, row_op, rows_of, window_op,
};
use super::{Failure, run, same};
use crate::error::StateError;
use crate::range::RangeIter;
use crate::store::{KeyValueStore, KeyValueStoreExt, WindowStore, WindowStoreExt};
use crate::window::WindowIter;

/// Compares a key-value store with a model: `make` gives an empty store for each of `cases` random runs.
///
/// # Errors
/// The first difference, with the smallest run that shows it.
pub fn key_value_store<S: KeyValueStore>(cases: u32, make: impl Fn() -> S) -> Result<(), Failure> {
    run(cases, &vec(row_op(), 1..60), |ops| {
        let (mut store, mut model, mut held) = (make(), BTreeMap::new(), Vec::new());
        for op in &ops {
            row_step(&mut store, &mut model, &mut held, op)?;
        }
        check_held(held)
    })
}

/// Compares a window store with a model. `make` gives an empty store with buckets of 10 ms for each of `cases` random
/// runs; `retain_duplicates` is the store's setting.
///
/// # Errors
/// The first difference, with the smallest run that shows it.
pub fn window_store<S: WindowStore>(cases: u32, retain_duplicates: bool, make: impl Fn() -> S) -> Result<(), Failure> {
    run(cases, &vec(window_op(), 1..60), |ops| {
        let (mut store, mut model, mut held) = (make(), WindowModel::new(retain_duplicates), Vec::new());
        for op in &ops {
            window_step(&mut store, &mut model, &mut held, op)?;
        }
        check_held_windows(held)
    })
}

pub(super) type Held = Vec<(RangeIter, Vec<(Bytes, Bytes)>)>;
pub(super) type HeldWindows = Vec<(WindowIter, Vec<WindowModelRow>)>;

pub(super) fn text(error: StateError) -> String {
    format!("unexpected error: {error}")
}

pub(super) fn row_step(
    store: &mut impl KeyValueStore,
    model: &mut BTreeMap<Bytes, Bytes>,
    held: &mut Held,
    op: &RowOp,
) -> Result<(), String> {
    match op {
        RowOp::Put(key, value) => {
            store.put(key, Some(value)).map_err(text)?;
            model.insert(key.clone(), value.clone());
        }
        RowOp::Delete(key) => {
            store.put(key, None).map_err(text)?;
            model.remove(key);
        }
        RowOp::DeleteBelow(bound) => {
            store.delete_below(bound).map_err(text)?;
            model.retain(|key, _| key >= bound);
        }
        RowOp::Get(key) => same("get", &store.get_vec(key).map_err(text)?.as_ref(), &model.get(key))?,
        RowOp::Range(bounds, direction) => {
            let rows = store
                .range(as_slice(&bounds.0), as_slice(&bounds.1), *direction)
                .map_err(text)?;
            same(
                "range",
                &collect(rows)?,
                &rows_of(model, *direction, |key| inside(key, bounds)),
            )?;
        }
        RowOp::Prefix(prefix, direction) => {
            let rows = store.prefix(prefix, *direction).map_err(text)?;
            same(
                "prefix",
                &collect(rows)?,
                &rows_of(model, *direction, |key| key.starts_with(prefix)),
            )?;
        }
        RowOp::Hold(bounds, direction) => {
            let rows = store
                .range(as_slice(&bounds.0), as_slice(&bounds.1), *direction)
                .map_err(text)?;
            held.push((rows, rows_of(model, *direction, |key| inside(key, bounds))));
        }
    }
    Ok(())
}

fn collect(rows: RangeIter) -> Result<Vec<(Bytes, Bytes)>, String> {
    rows.map(|row| row.map(|(key, value)| (key.into_vec(), value.into_vec())).map_err(text))
        .collect()
}

/// Iterators made long ago still give what was there then.
pub(super) fn check_held(held: Held) -> Result<(), String> {
    held.into_iter()
        .try_for_each(|(rows, wanted)| same("an iterator kept over later writes", &collect(rows)?, &wanted))
}

pub(super) fn window_step(
    store: &mut impl WindowStore,
    model: &mut WindowModel,
    held: &mut HeldWindows,
    op: &WindowOp,
) -> Result<(), String> {
    match op {
        WindowOp::Put(key, start_ms, value) => {
            let sequence = store.put(key, *start_ms, value.as_deref()).map_err(text)?;
            same(
                "sequence number",
                &sequence,
                &model.put(key, *start_ms, value.as_deref()),
            )?;
        }
        WindowOp::Fetch(key, start_ms) => {
            let found = store.fetch_vec(key, *start_ms).map_err(text)?;
            same("fetch", &found, &model.fetch(key, *start_ms))?;
        }
        WindowOp::FetchRange(bounds, from_ms, to_ms, direction) => {
            let rows = store.fetch_range(as_slice(&bounds.0), as_slice(&bounds.1), *from_ms, *to_ms, *direction);
            let wanted = model.range(bounds, *from_ms, *to_ms, *direction);
            same("fetch of a range", &collect_windows(rows.map_err(text)?)?, &wanted)?;
        }
        WindowOp::Hold(bounds, from_ms, to_ms, direction) => {
            let rows = store.fetch_range(as_slice(&bounds.0), as_slice(&bounds.1), *from_ms, *to_ms, *direction);
            held.push((rows.map_err(text)?, model.range(bounds, *from_ms, *to_ms, *direction)));
        }
        WindowOp::Expire(live_from_ms) => {
            let buckets = store.expire(*live_from_ms).map_err(text)?;
            same(
                "buckets dropped",
                &buckets,
                &model.expire(live_from_ms.max(&0) / WIDTH_MS),
            )?;
        }
    }
    Ok(())
}

fn collect_windows(rows: WindowIter) -> Result<Vec<WindowModelRow>, String> {
    rows.map(|row| {
        row.map(|row| (row.key.into_vec(), row.start_ms, row.sequence, row.value.into_vec()))
            .map_err(text)
    })
    .collect()
}

pub(super) fn check_held_windows(held: HeldWindows) -> Result<(), String> {
    held.into_iter()
        .try_for_each(|(rows, wanted)| same("an iterator kept over later writes", &collect_windows(rows)?, &wanted))
}
