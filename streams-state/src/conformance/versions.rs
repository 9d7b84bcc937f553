//! Versioned stores against a model that keeps every version.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ops::{Bytes, direction, key, value};
use super::stores::text;
use super::{Failure, run, same};
use crate::error::StateError;
use crate::range::Direction;
use crate::store::KeyValueStore;
use crate::versioned::{VersionPut, VersionRow, Versioned};

/// History of the tested stores, milliseconds.
pub const HISTORY_MS: i64 = 40;

/// A store of versions as the suite uses it. [`Versioned`] is one; a task's store can be wrapped to be one.
pub trait VersionsUnderTest {
    /// As [`Versioned::put`].
    ///
    /// # Errors
    /// As there.
    fn put(&mut self, key: &[u8], from_ms: i64, value: Option<&[u8]>) -> Result<VersionPut, StateError>;
    /// As [`Versioned::get`], copied.
    ///
    /// # Errors
    /// As there.
    fn get(&mut self, key: &[u8]) -> Result<Option<VersionRow>, StateError>;
    /// As [`Versioned::get_as_of`].
    ///
    /// # Errors
    /// As there.
    fn get_as_of(&mut self, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError>;
    /// As [`Versioned::versions`].
    ///
    /// # Errors
    /// As there.
    fn versions(
        &mut self,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<Vec<VersionRow>, StateError>;
    /// Drops what is older than the history.
    ///
    /// # Errors
    /// When the storage fails.
    fn expire(&mut self) -> Result<(), StateError>;
    /// What happens to the store between operations: an epoch ends, the store is opened again.
    ///
    /// # Errors
    /// When the storage fails.
    fn disturb(&mut self) -> Result<(), StateError> {
        Ok(())
    }
}

impl<S: KeyValueStore> VersionsUnderTest for Versioned<S> {
    fn put(&mut self, key: &[u8], from_ms: i64, value: Option<&[u8]>) -> Result<VersionPut, StateError> {
        Versioned::put(self, key, from_ms, value)
    }

    fn get(&mut self, key: &[u8]) -> Result<Option<VersionRow>, StateError> {
        let mut row = None;
        Versioned::get(self, key, &mut |version| {
            row = version.and_then(|version| {
                Some(VersionRow {
                    value: version.value?.into(),
                    from_ms: version.from_ms,
                    to_ms: version.to_ms,
                })
            });
        })?;
        Ok(row)
    }

    fn get_as_of(&mut self, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError> {
        Versioned::get_as_of(self, key, as_of_ms)
    }

    fn versions(
        &mut self,
        key: &[u8],
        from_ms: i64,
        to_ms: i64,
        direction: Direction,
    ) -> Result<Vec<VersionRow>, StateError> {
        Versioned::versions(self, key, from_ms, to_ms, direction)
    }

    fn expire(&mut self) -> Result<(), StateError> {
        let live_from_ms = self.observed_ms()?.saturating_sub(HISTORY_MS);
        Versioned::expire(self, live_from_ms)
    }
}

#[derive(Debug, Clone)]
enum Op {
    Put(Bytes, i64, Option<Bytes>),
    Get(Bytes),
    AsOf(Bytes, i64),
    Versions(Bytes, i64, i64, Direction),
    Expire,
    Disturb,
}

fn op() -> impl Strategy<Value = Op> {
    let time = || prop_oneof![9 => 0_i64..160, 1 => 0_i64..1_000];
    let moment = || prop_oneof![8 => -5_i64..200, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
    prop_oneof![
        10 => (key(), time(), proptest::option::weighted(0.7, value())).prop_map(|(key, time, value)| Op::Put(key, time, value)),
        2 => key().prop_map(Op::Get),
        4 => (key(), moment()).prop_map(|(key, time)| Op::AsOf(key, time)),
        2 => (key(), moment(), moment(), direction()).prop_map(|(key, from, to, direction)| Op::Versions(key, from, to, direction)),
        1 => Just(Op::Expire),
        1 => Just(Op::Disturb),
    ]
}

/// Compares a versioned store with a model. `make` gives an empty store with a history of [`HISTORY_MS`] for each of
/// `cases` random runs.
///
/// # Errors
/// The first difference, with the smallest run that shows it.
pub fn versioned_store<S: VersionsUnderTest>(cases: u32, make: impl Fn() -> S) -> Result<(), Failure> {
    run(cases, &vec(op(), 1..80), |ops| {
        let (mut store, mut model) = (make(), Model::default());
        ops.iter().try_for_each(|op| step(&mut store, &mut model, op))
    })
}

fn step(store: &mut impl VersionsUnderTest, model: &mut Model, op: &Op) -> Result<(), String> {
    match op {
        Op::Put(key, time, value) => {
            let put = store.put(key, *time, value.as_deref()).map_err(text)?;
            same("put", &put, &model.put(key, *time, value.clone()))
        }
        Op::Get(key) => same("get", &store.get(key).map_err(text)?, &model.as_of(key, i64::MAX)),
        Op::AsOf(key, time) => {
            let found = store.get_as_of(key, *time).map_err(text)?;
            same("get as of", &found, &model.as_of(key, *time))
        }
        Op::Versions(key, from, to, direction) => {
            let found = store.versions(key, *from, *to, *direction).map_err(text)?;
            same("versions", &found, &model.versions(key, *from, *to, *direction))
        }
        Op::Expire => store.expire().map_err(text),
        Op::Disturb => store.disturb().map_err(text),
    }
}

/// Every version of every key by its begin.
#[derive(Debug)]
struct Model {
    keys: BTreeMap<Bytes, BTreeMap<i64, Option<Bytes>>>,
    observed_ms: i64,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            keys: BTreeMap::new(),
            observed_ms: -1,
        }
    }
}

impl Model {
    fn put(&mut self, key: &[u8], time: i64, value: Option<Bytes>) -> VersionPut {
        if time < self.observed_ms - HISTORY_MS {
            return VersionPut::Expired;
        }
        self.observed_ms = self.observed_ms.max(time);
        let versions = self.keys.entry(key.to_vec()).or_default();
        versions.insert(time, value);
        match versions.range(time + 1..).next() {
            Some((next, _)) => VersionPut::Before(*next),
            None => VersionPut::Latest,
        }
    }

    /// All versions: begin, end, value.
    fn all(&self, key: &[u8]) -> Vec<(i64, Option<i64>, Option<Bytes>)> {
        let Some(versions) = self.keys.get(key) else {
            return Vec::new();
        };
        let ends = versions.keys().skip(1).map(|end| Some(*end)).chain([None]);
        let pairs = versions.iter().zip(ends);
        pairs
            .map(|((begin, value), end)| (*begin, end, value.clone()))
            .collect()
    }

    fn as_of(&self, key: &[u8], time: i64) -> Option<VersionRow> {
        let (begin, end, value) = self.all(key).into_iter().rfind(|version| version.0 <= time)?;
        if end.is_some() && time < self.observed_ms - HISTORY_MS {
            return None;
        }
        Some(row(begin, end, value?))
    }

    fn versions(&self, key: &[u8], from: i64, to: i64, direction: Direction) -> Vec<VersionRow> {
        let history_from = self.observed_ms - HISTORY_MS;
        let wanted = |(begin, end, _): &(i64, Option<i64>, Option<Bytes>)| match end {
            Some(end) => *begin <= to && *end > from && *end >= history_from && to >= history_from,
            None => *begin <= to,
        };
        let found = self.all(key).into_iter().filter(wanted);
        let rows = found.filter_map(|(begin, end, value)| Some(row(begin, end, value?)));
        super::ops::directed(rows.collect(), direction)
    }
}

fn row(from_ms: i64, to_ms: Option<i64>, value: Bytes) -> VersionRow {
    VersionRow {
        value: value.into_boxed_slice(),
        from_ms,
        to_ms,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::memory::MemoryStore;
    use crate::metadata::{EpochMetadata, StoreMetadata};
    use crate::spec::{StoreId, StoreKind, StoreSpec};
    use crate::task::TaskState;
    use crate::versioned::VersionLayout;

    #[test]
    fn versions_in_memory_are_those_of_the_model() {
        versioned_store(400, || {
            let layout = VersionLayout {
                history_retention_ms: HISTORY_MS,
                segment_interval_ms: 7,
            };
            Versioned::new(MemoryStore::new(), layout)
        })
        .unwrap();
    }

    /// A task's store whose epochs end, and which is restored from the changelog into another task, between operations.
    struct OfTask {
        state: TaskState,
        log: Vec<(Bytes, i64, Option<Bytes>)>,
        turn: usize,
    }

    const ID: StoreId = StoreId(0);

    fn spec() -> StoreSpec {
        StoreSpec {
            name: "versions".to_owned(),
            kind: StoreKind::Versioned {
                history_retention_ms: HISTORY_MS,
                segment_interval_ms: 7,
            },
            persistent: false,
        }
    }

    impl OfTask {
        fn new() -> Self {
            OfTask {
                state: TaskState::in_memory("0_0", vec![spec()]).unwrap(),
                log: Vec::new(),
                turn: 0,
            }
        }

        fn versions(&mut self) -> Versioned<crate::task::StoreView<'_>> {
            self.state.versioned(ID).unwrap()
        }
    }

    impl VersionsUnderTest for OfTask {
        fn put(&mut self, key: &[u8], from_ms: i64, value: Option<&[u8]>) -> Result<VersionPut, StateError> {
            let put = self.state.version_put(ID, key, from_ms, value)?;
            if put != VersionPut::Expired {
                self.log.push((key.to_vec(), from_ms, value.map(<[u8]>::to_vec)));
            }
            Ok(put)
        }

        fn get(&mut self, key: &[u8]) -> Result<Option<VersionRow>, StateError> {
            VersionsUnderTest::get(&mut self.versions(), key)
        }

        fn get_as_of(&mut self, key: &[u8], as_of_ms: i64) -> Result<Option<VersionRow>, StateError> {
            self.state.version_as_of(ID, key, as_of_ms)
        }

        fn versions(
            &mut self,
            key: &[u8],
            from_ms: i64,
            to_ms: i64,
            direction: Direction,
        ) -> Result<Vec<VersionRow>, StateError> {
            self.state.versions(ID, key, from_ms, to_ms, direction)
        }

        fn expire(&mut self) -> Result<(), StateError> {
            self.state.expire_versions(ID)
        }

        fn disturb(&mut self) -> Result<(), StateError> {
            self.turn += 1;
            match (self.turn % 4, self.state.has_frozen()) {
                (0, false) => {
                    // Another owner, from the changelog alone, some of it twice.
                    let mut other = TaskState::in_memory("0_0", vec![spec()])?;
                    let metadata = StoreMetadata {
                        changelog_topic_id: None,
                        position: 1,
                        own_commit: false,
                        applied_at_ms: 0,
                    };
                    let half = self.log.len() / 2;
                    for part in [self.log.get(..half), Some(self.log.as_slice())].into_iter().flatten() {
                        let records = part
                            .iter()
                            .map(|(key, time, value)| (key.as_slice(), *time, value.as_deref()));
                        other.restore_versions(ID, records, metadata)?;
                    }
                    self.state = other;
                    Ok(())
                }
                (_, true) => self.state.apply(&EpochMetadata::default()),
                (_, false) => self.state.freeze(),
            }
        }
    }

    #[test]
    fn versions_of_a_task_are_those_of_the_model_over_epochs_and_restores() {
        versioned_store(400, OfTask::new).unwrap();
    }

    #[test]
    fn an_epoch_that_is_dropped_takes_the_time_it_observed_with_it() {
        let mut state = TaskState::in_memory("0_0", vec![spec()]).unwrap();
        state.version_put(ID, b"k", 10, Some(b"a")).unwrap();
        state.freeze().unwrap();
        state.apply(&EpochMetadata::default()).unwrap();
        state.version_put(ID, b"k", 500, Some(b"b")).unwrap();
        assert_eq!(
            state.version_put(ID, b"k", 11, Some(b"c")).unwrap(),
            VersionPut::Expired
        );
        state.drop_all();
        assert_eq!(state.version_put(ID, b"k", 11, Some(b"c")).unwrap(), VersionPut::Latest);
        let snapshot = state.snapshot().unwrap();
        let found = snapshot.version_as_of(ID, b"k", i64::MAX).unwrap().unwrap();
        assert_eq!(&*found.value, b"a", "what is committed");
    }
}
