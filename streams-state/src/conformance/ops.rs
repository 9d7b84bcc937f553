//! Random operations, and the models they are compared with.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::range::Direction;

pub(super) type Bytes = Vec<u8>;
pub(super) type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// Keys that collide, share prefixes, and touch the ends of the byte order.
pub(super) fn key() -> impl Strategy<Value = Bytes> {
    vec(
        prop_oneof![Just(0_u8), Just(1), Just(0x7f), Just(0xfe), Just(0xff)],
        0..4,
    )
}

pub(super) fn value() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..20)
}

fn bound() -> impl Strategy<Value = Bound<Bytes>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

pub(super) fn bounds() -> impl Strategy<Value = Bounds> {
    prop_oneof![4 => (bound(), bound()), 1 => key().prop_map(|key| (Bound::Included(key.clone()), Bound::Included(key)))]
}

pub(super) fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Reverse)]
}

/// An operation on a key-value store.
#[derive(Debug, Clone)]
pub(super) enum RowOp {
    Put(Bytes, Bytes),
    Delete(Bytes),
    Get(Bytes),
    DeleteBelow(Bytes),
    Range(Bounds, Direction),
    Prefix(Bytes, Direction),
    /// An iterator that is read only after later operations.
    Hold(Bounds, Direction),
}

pub(super) fn row_op() -> impl Strategy<Value = RowOp> {
    prop_oneof![
        8 => (key(), value()).prop_map(|(key, value)| RowOp::Put(key, value)),
        3 => key().prop_map(RowOp::Delete),
        4 => key().prop_map(RowOp::Get),
        1 => key().prop_map(RowOp::DeleteBelow),
        3 => (bounds(), direction()).prop_map(|(bounds, direction)| RowOp::Range(bounds, direction)),
        2 => (key(), direction()).prop_map(|(prefix, direction)| RowOp::Prefix(prefix, direction)),
        2 => (bounds(), direction()).prop_map(|(bounds, direction)| RowOp::Hold(bounds, direction)),
    ]
}

pub(super) fn as_slice(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

pub(super) fn inside(key: &[u8], bounds: &Bounds) -> bool {
    let above = match &bounds.0 {
        Bound::Included(lower) => key >= lower.as_slice(),
        Bound::Excluded(lower) => key > lower.as_slice(),
        Bound::Unbounded => true,
    };
    let below = match &bounds.1 {
        Bound::Included(upper) => key <= upper.as_slice(),
        Bound::Excluded(upper) => key < upper.as_slice(),
        Bound::Unbounded => true,
    };
    above && below
}

pub(super) fn directed<T>(mut rows: Vec<T>, direction: Direction) -> Vec<T> {
    if direction == Direction::Reverse {
        rows.reverse();
    }
    rows
}

/// The rows of a key-value model that a range must give.
pub(super) fn rows_of(
    model: &BTreeMap<Bytes, Bytes>,
    direction: Direction,
    wanted: impl Fn(&[u8]) -> bool,
) -> Vec<(Bytes, Bytes)> {
    let rows = model
        .iter()
        .filter(|(key, _)| wanted(key))
        .map(|(key, value)| (key.clone(), value.clone()));
    directed(rows.collect(), direction)
}

/// An operation on a window store. Buckets of the tested stores are [`WIDTH_MS`] wide.
#[derive(Debug, Clone)]
pub(super) enum WindowOp {
    Put(Bytes, i64, Option<Bytes>),
    Fetch(Bytes, i64),
    FetchRange(Bounds, i64, i64, Direction),
    Hold(Bounds, i64, i64, Direction),
    Expire(i64),
}

/// Bucket width of the tested window stores.
pub(super) const WIDTH_MS: i64 = 10;

fn start() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0_i64..60, 1 => Just(255), 1 => Just(i64::from(u32::MAX)), 1 => Just(i64::MAX)]
}

fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(i64::MIN), 1 => -5_i64..0, 8 => 0_i64..70, 1 => Just(i64::MAX)]
}

/// Some keys look like another key with a start behind it.
fn window_key() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        4 => key(),
        1 => (key(), start()).prop_map(|(key, start)| [key.as_slice(), &start.to_be_bytes()].concat()),
    ]
}

fn window_bounds() -> impl Strategy<Value = Bounds> {
    let same = window_key().prop_map(|key| (Bound::Included(key.clone()), Bound::Included(key)));
    let pair = (window_key(), window_key()).prop_map(|(a, b)| (Bound::Included(a), Bound::Included(b)));
    prop_oneof![2 => same, 2 => bounds(), 1 => pair]
}

pub(super) fn window_op() -> impl Strategy<Value = WindowOp> {
    let range = || (window_bounds(), moment(), moment(), direction());
    prop_oneof![
        8 => (window_key(), start(), proptest::option::weighted(0.8, value()))
            .prop_map(|(key, start, value)| WindowOp::Put(key, start, value)),
        3 => (window_key(), start()).prop_map(|(key, start)| WindowOp::Fetch(key, start)),
        4 => range().prop_map(|(bounds, from, to, direction)| WindowOp::FetchRange(bounds, from, to, direction)),
        2 => range().prop_map(|(bounds, from, to, direction)| WindowOp::Hold(bounds, from, to, direction)),
        1 => moment().prop_map(WindowOp::Expire),
    ]
}

/// Rows by (bucket, bytes of key, start and number): the order in which a window store gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WindowModel {
    rows: BTreeMap<(i64, Bytes), WindowModelRow>,
    pub(super) duplicates: bool,
}

/// Key, start, sequence number, value.
pub(super) type WindowModelRow = (Bytes, i64, u32, Bytes);

impl WindowModel {
    pub(super) fn new(duplicates: bool) -> Self {
        Self {
            rows: BTreeMap::new(),
            duplicates,
        }
    }

    pub(super) fn put(&mut self, key: &[u8], start_ms: i64, value: Option<&[u8]>) -> Option<u32> {
        let sequence = match (self.duplicates, value) {
            (true, None) => return None,
            (true, Some(_)) => {
                1 + self
                    .rows
                    .values()
                    .filter(|row| row.0 == key && row.1 == start_ms)
                    .map(|row| row.2)
                    .max()
                    .unwrap_or(0)
            }
            (false, _) => 0,
        };
        let order = [key, &start_ms.to_be_bytes(), &sequence.to_be_bytes()].concat();
        let place = (start_ms / WIDTH_MS, order);
        match value {
            Some(value) => drop(
                self.rows
                    .insert(place, (key.to_vec(), start_ms, sequence, value.to_vec())),
            ),
            None => drop(self.rows.remove(&place)),
        }
        Some(sequence)
    }

    pub(super) fn fetch(&self, key: &[u8], start_ms: i64) -> Option<Bytes> {
        let found = self
            .rows
            .values()
            .find(|row| row.0 == key && row.1 == start_ms && row.2 == 0);
        found.map(|row| row.3.clone())
    }

    pub(super) fn range(&self, bounds: &Bounds, from_ms: i64, to_ms: i64, direction: Direction) -> Vec<WindowModelRow> {
        let wanted = |row: &&WindowModelRow| inside(&row.0, bounds) && row.1 >= from_ms && row.1 <= to_ms;
        directed(self.rows.values().filter(wanted).cloned().collect(), direction)
    }

    /// Drops the buckets below one; returns how many held rows.
    pub(super) fn expire(&mut self, first_live: i64) -> u64 {
        let mut buckets: Vec<i64> = self
            .rows
            .keys()
            .map(|(bucket, _)| *bucket)
            .filter(|bucket| *bucket < first_live)
            .collect();
        buckets.dedup();
        self.rows.retain(|(bucket, _), _| *bucket >= first_live);
        buckets.len() as u64
    }
}
