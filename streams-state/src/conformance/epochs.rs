//! A whole task: random operations on its stores, epochs that are applied or dropped, snapshots, restarts.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::ops::{Bytes, RowOp, WIDTH_MS, WindowModel, WindowOp, row_op, rows_of, window_op};
use super::stores::{Held, HeldWindows, check_held, check_held_windows, row_step, text, window_step};
use super::{Failure, run, same};
use crate::metadata::{EpochMetadata, StoreMetadata};
use crate::range::Direction;
use crate::snapshot::StateSnapshot;
use crate::spec::{StoreId, StoreKind, StoreSpec};
use crate::task::TaskState;

/// How a task's state is opened and, where it survives, opened again.
pub trait TaskUnderTest {
    /// Opens the state of [`tested_specs`]; the first time it is empty.
    ///
    /// # Errors
    /// The state could not be opened.
    fn open(&mut self) -> Result<TaskState, crate::StateError>;

    /// True if an opened state holds what was applied before.
    fn survives(&self) -> bool;
}

/// The stores of the tested task; `persistent` says for each of the three whether it shall be on disk.
#[must_use]
pub fn tested_specs(persistent: [bool; 3]) -> Vec<StoreSpec> {
    let window = |retain_duplicates| StoreKind::Window {
        retention_ms: 100,
        segment_interval_ms: WIDTH_MS,
        retain_duplicates,
    };
    let [rows, windows, duplicates] = persistent;
    vec![
        StoreSpec {
            name: "rows".to_owned(),
            kind: StoreKind::KeyValue,
            persistent: rows,
        },
        StoreSpec {
            name: "windows".to_owned(),
            kind: window(false),
            persistent: windows,
        },
        StoreSpec {
            name: "duplicates".to_owned(),
            kind: window(true),
            persistent: duplicates,
        },
    ]
}

#[derive(Debug, Clone)]
enum EpochOp {
    Row(RowOp),
    Window(WindowOp),
    Duplicate(WindowOp),
    Freeze,
    Apply,
    DropOpen,
    DropAll,
    Snapshot,
    Reopen,
}

fn epoch_op() -> impl Strategy<Value = EpochOp> {
    prop_oneof![
        8 => row_op().prop_map(EpochOp::Row),
        8 => window_op().prop_map(EpochOp::Window),
        4 => window_op().prop_map(EpochOp::Duplicate),
        3 => Just(EpochOp::Freeze),
        3 => Just(EpochOp::Apply),
        1 => Just(EpochOp::DropOpen),
        1 => Just(EpochOp::DropAll),
        1 => Just(EpochOp::Snapshot),
        1 => Just(EpochOp::Reopen),
    ]
}

/// Compares a task's state with a model, in `cases` random runs; `make` gives a new task for each.
///
/// # Errors
/// The first difference, with the smallest run that shows it.
pub fn epochs<T: TaskUnderTest>(cases: u32, make: impl Fn() -> T) -> Result<(), Failure> {
    run(cases, &vec(epoch_op(), 1..120), |ops| {
        let mut world = World::new(make())?;
        for op in &ops {
            world.step(op)?;
        }
        world.settle_held()
    })
}

/// Everything a task can see at one moment.
#[derive(Debug, Clone)]
struct View {
    rows: BTreeMap<Bytes, Bytes>,
    windows: [WindowModel; 2],
    /// Number of the last epoch.
    epoch: i64,
}

struct World<T> {
    task: T,
    state: Option<TaskState>,
    committed: View,
    frozen: Option<View>,
    open: View,
    /// Buckets that each window store wrote to in the open and in the frozen epoch.
    touched: [BTreeSet<i64>; 2],
    frozen_touched: [BTreeSet<i64>; 2],
    expired_below: [i64; 2],
    held: Held,
    held_windows: HeldWindows,
    snapshots: Vec<(StateSnapshot, View)>,
}

impl<T: TaskUnderTest> World<T> {
    fn new(mut task: T) -> Result<Self, String> {
        let state = task.open().map_err(text)?;
        let empty = View {
            rows: BTreeMap::new(),
            windows: [WindowModel::new(false), WindowModel::new(true)],
            epoch: 0,
        };
        Ok(Self {
            task,
            state: Some(state),
            committed: empty.clone(),
            frozen: None,
            open: empty,
            touched: Default::default(),
            frozen_touched: Default::default(),
            expired_below: [0; 2],
            held: Vec::new(),
            held_windows: Vec::new(),
            snapshots: Vec::new(),
        })
    }

    fn state(&mut self) -> Result<&mut TaskState, String> {
        self.state.as_mut().ok_or_else(|| "no state is open".to_owned())
    }

    fn step(&mut self, op: &EpochOp) -> Result<(), String> {
        match op {
            EpochOp::Row(op) => {
                let state = self.state.as_mut().ok_or("no state is open")?;
                let mut store = state.view(StoreId(0)).map_err(text)?;
                row_step(&mut store, &mut self.open.rows, &mut self.held, op)
            }
            EpochOp::Window(op) => self.window(0, op),
            EpochOp::Duplicate(op) => self.window(1, op),
            EpochOp::Freeze => self.freeze(),
            EpochOp::Apply => self.apply(),
            EpochOp::DropOpen => {
                self.state()?.drop_open();
                self.open = self.frozen.clone().unwrap_or_else(|| self.committed.clone());
                self.forget_open();
                Ok(())
            }
            EpochOp::DropAll => {
                self.state()?.drop_all();
                self.back_to_committed();
                Ok(())
            }
            EpochOp::Snapshot => {
                let snapshot = self.state()?.snapshot().map_err(text)?;
                self.snapshots.push((snapshot, self.committed.clone()));
                Ok(())
            }
            EpochOp::Reopen => self.reopen(),
        }
    }

    fn window(&mut self, which: usize, op: &WindowOp) -> Result<(), String> {
        let state = self.state.as_mut().ok_or("no state is open")?;
        let id = StoreId(if which == 0 { 1 } else { 2 });
        let (Some(model), Some(touched), Some(frozen), Some(expired_below)) = (
            self.open.windows.get_mut(which),
            self.touched.get_mut(which),
            self.frozen_touched.get(which),
            self.expired_below.get_mut(which),
        ) else {
            return Err(format!("no window store {which}"));
        };
        match op {
            WindowOp::Expire(live_from_ms) => {
                // Buckets of the frozen epoch wait; and a bound that did not move drops nothing.
                let bound = (live_from_ms.max(&0) / WIDTH_MS).min(frozen.first().copied().unwrap_or(i64::MAX));
                let dropped = if bound > *expired_below { model.expire(bound) } else { 0 };
                *expired_below = (*expired_below).max(bound);
                let found = state.expire_windows(id, *live_from_ms).map_err(text)?;
                return same("buckets dropped", &found, &dropped);
            }
            WindowOp::Put(_, start_ms, value) if value.is_some() || !model.duplicates => {
                touched.insert(start_ms / WIDTH_MS);
            }
            _ => {}
        }
        let mut store = state.window(id).map_err(text)?;
        window_step(&mut store, model, &mut self.held_windows, op)
    }

    fn freeze(&mut self) -> Result<(), String> {
        let refused = self.frozen.is_some();
        same("freeze is refused", &self.state()?.freeze().is_err(), &refused)?;
        if !refused {
            self.open.epoch += 1;
            self.frozen = Some(self.open.clone());
            self.frozen_touched = std::mem::take(&mut self.touched);
        }
        Ok(())
    }

    fn apply(&mut self) -> Result<(), String> {
        let Some(frozen) = self.frozen.take() else {
            return same(
                "apply is refused",
                &self.state()?.apply(&EpochMetadata::default()).is_err(),
                &true,
            );
        };
        self.state()?.apply(&metadata(frozen.epoch)).map_err(text)?;
        self.committed = frozen;
        self.frozen_touched = Default::default();
        self.check_metadata()
    }

    fn forget_open(&mut self) {
        self.touched = Default::default();
        self.expired_below = [0; 2];
    }

    fn back_to_committed(&mut self) {
        self.open = self.committed.clone();
        self.frozen = None;
        self.frozen_touched = Default::default();
        self.forget_open();
    }

    fn reopen(&mut self) -> Result<(), String> {
        if !self.task.survives() {
            return Ok(());
        }
        self.settle_held()?;
        if let Some(state) = self.state.take() {
            state.close().map_err(text)?;
        }
        self.state = Some(self.task.open().map_err(text)?);
        self.back_to_committed();
        self.check_metadata()?;
        let snapshot = self.state()?.snapshot().map_err(text)?;
        check_snapshot(&snapshot, &self.committed)
    }

    fn check_metadata(&mut self) -> Result<(), String> {
        let epoch = self.committed.epoch;
        let wanted = (epoch > 0).then(|| store_metadata(epoch));
        let state = self.state()?;
        for id in [StoreId(0), StoreId(1), StoreId(2)] {
            same("store metadata", &state.store_metadata(id).copied(), &wanted)?;
        }
        let inputs = BTreeMap::from_iter((epoch > 0).then(|| (("in".to_owned(), 0), epoch)));
        same("input offsets", state.input_offsets(), &inputs)?;
        let times = BTreeMap::from_iter((epoch > 0).then(|| ("time".to_owned(), -epoch)));
        same("operator times", state.operator_times(), &times)
    }

    fn settle_held(&mut self) -> Result<(), String> {
        check_held(std::mem::take(&mut self.held))?;
        check_held_windows(std::mem::take(&mut self.held_windows))?;
        std::mem::take(&mut self.snapshots)
            .iter()
            .try_for_each(|(snapshot, wanted)| check_snapshot(snapshot, wanted))
    }
}

fn store_metadata(epoch: i64) -> StoreMetadata {
    StoreMetadata {
        changelog_topic_id: Some([7; 16]),
        position: epoch,
        own_commit: true,
        applied_at_ms: epoch,
    }
}

fn metadata(epoch: i64) -> EpochMetadata {
    EpochMetadata {
        stores: [0, 1, 2].map(|id| (StoreId(id), store_metadata(epoch))).to_vec(),
        input_offsets: vec![(("in".to_owned(), 0), epoch)],
        operator_times: vec![("time".to_owned(), -epoch)],
        now_ms: epoch,
    }
}

fn check_snapshot(snapshot: &StateSnapshot, wanted: &View) -> Result<(), String> {
    use std::ops::Bound::Unbounded;
    for direction in [Direction::Forward, Direction::Reverse] {
        let rows = snapshot
            .range(StoreId(0), Unbounded, Unbounded, direction)
            .map_err(text)?;
        let all = rows_of(&wanted.rows, direction, |_| true);
        check_held(vec![(rows, all)]).map_err(|text| format!("snapshot: {text}"))?;
        for (id, model) in [StoreId(1), StoreId(2)].into_iter().zip(&wanted.windows) {
            let rows = snapshot
                .window_fetch_range(id, Unbounded, Unbounded, 0, i64::MAX, direction)
                .map_err(text)?;
            let all = model.range(&(Unbounded, Unbounded), 0, i64::MAX, direction);
            check_held_windows(vec![(rows, all)]).map_err(|text| format!("snapshot: {text}"))?;
        }
    }
    for (key, value) in &wanted.rows {
        same(
            "get of a snapshot",
            &snapshot.get_vec(StoreId(0), key).map_err(text)?.as_ref(),
            &Some(value),
        )?;
    }
    let inputs = BTreeMap::from_iter((wanted.epoch > 0).then(|| (("in".to_owned(), 0), wanted.epoch)));
    same("position of a snapshot", snapshot.input_offsets(), &inputs)
}
