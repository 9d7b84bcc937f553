//! The nodes of a join of two tables: a side that looks its partner up, and the result's rows computed for a look-up.
//!
//! Java counterpart: `KTableKTableInnerJoin`, `KTableKTableLeftJoin`, `KTableKTableRightJoin`, `KTableKTableOuterJoin`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext, catch_user};
use streams_core::serde::SharedSerde;
use streams_core::{BoxError, Change, ProcessResult, Record};

use super::source::TableFlags;
use super::view::{TableView, View};

/// The result of two rows by their key; `None` = there is none.
pub(super) type Combine<K, V, VO, V2> = dyn Fn(&K, Option<&V>, Option<&VO>) -> Option<V2> + Send + Sync;

/// The factory of one side: updates of values `V` that are combined with the rows of `partner`.
pub(super) fn side<K: 'static, V: 'static, VO: 'static, V2: 'static>(
    key: &SharedSerde<K>,
    partner: &View<K, VO>,
    partner_needed: bool,
    combine: Arc<Combine<K, V, VO, V2>>,
    flags: Arc<TableFlags>,
) -> Arc<dyn NodeFactory> {
    let (key, partner) = (Arc::clone(key), partner.clone());
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let side = Side {
            name: builder.name(),
            children: builder.children::<K, Change<V2>>()?,
            key: Arc::clone(&key),
            partner: (partner.open)(builder)?,
            partner_needed,
            combine: Arc::clone(&combine),
            sends_old: flags.sends_old(),
        };
        Ok(AnyNode::new::<K, Change<V>>(Rc::new(side)))
    })
}

struct Side<K, V, VO, V2> {
    name: Arc<str>,
    children: Children<K, Change<V2>>,
    key: SharedSerde<K>,
    partner: Rc<dyn TableView<K, VO>>,
    partner_needed: bool,
    combine: Arc<Combine<K, V, VO, V2>>,
    sends_old: bool,
}

/// The joined change and its event time.
type Joined<V2> = (Change<V2>, i64);

impl<K: 'static, V, VO, V2> Side<K, V, VO, V2> {
    /// What a change gives with the partner's row; `None` = nothing to tell.
    fn join(&self, record: Record<'_, K, Change<V>>, row: Option<(&VO, i64)>) -> Result<Option<Joined<V2>>, BoxError> {
        let change = record.value;
        if row.is_none() && (self.partner_needed || (change.new.is_none() && change.old.is_none())) {
            return Ok(None);
        }
        let time = row.map_or(record.timestamp_ms, |(_, time)| time.max(record.timestamp_ms));
        let partner = row.map(|(value, _)| value);
        let joined = catch_user(|| Change {
            new: (self.combine)(record.key, change.new.as_ref(), partner),
            old: match self.sends_old {
                true => (self.combine)(record.key, change.old.as_ref(), partner),
                false => None,
            },
            is_latest: change.is_latest,
        })?;
        Ok(Some((joined, time)))
    }
}

impl<K: 'static, V, VO, V2> Downstream<K, Change<V>> for Side<K, V, VO, V2> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        // Of a versioned table, an update that is older than its newest version is none for the join (KIP-914).
        if self.key.is_null(record.key) || !record.value.is_latest {
            cx.counters.dropped_records += 1;
            return Ok(());
        }
        let joined = RefCell::new(Ok(None));
        self.partner
            .read(cx, record.key, &mut |row| *joined.borrow_mut() = self.join(record, row))?;
        match cx.try_user(&self.name, || joined.into_inner())? {
            Some(Some((change, time))) => self
                .children
                .forward(cx, record.with_value(&change).with_timestamp(time)),
            Some(None) | None => Ok(()),
        }
    }
}

/// Rows of a join, computed anew for each look-up.
pub(super) struct JoinedView<K, V, VO, V2> {
    name: Arc<str>,
    left: Rc<dyn TableView<K, V>>,
    right: Rc<dyn TableView<K, VO>>,
    combine: Arc<Combine<K, V, VO, V2>>,
}

impl<K: 'static, V: Clone + 'static, VO: 'static, V2: 'static> JoinedView<K, V, VO, V2> {
    pub(super) fn of(left: &View<K, V>, right: &View<K, VO>, combine: Arc<Combine<K, V, VO, V2>>) -> View<K, V2> {
        let union = |ours: &[_], theirs: &[_]| -> Vec<_> { ours.iter().chain(theirs).cloned().collect() };
        let mut stores: Vec<Arc<str>> = left.stores.clone();
        stores.extend(
            right
                .stores
                .iter()
                .filter(|store| !left.stores.contains(store))
                .cloned(),
        );
        let stored_by = union(&left.stored_by, &right.stored_by);
        let (left, right) = (left.clone(), right.clone());
        let open = move |builder: &mut NodeBuilder<'_>| {
            let view: Rc<dyn TableView<K, V2>> = Rc::new(JoinedView {
                name: builder.name(),
                left: (left.open)(builder)?,
                right: (right.open)(builder)?,
                combine: Arc::clone(&combine),
            });
            Ok(view)
        };
        View {
            stored_by,
            stores,
            open: Arc::new(open),
        }
    }
}

impl<K, V: Clone, VO, V2> TableView<K, V2> for JoinedView<K, V, VO, V2> {
    fn read(&self, cx: &mut TaskContext, key: &K, read: &mut dyn FnMut(Option<(&V2, i64)>)) -> ProcessResult {
        // No row of a store is borrowed while another one is read: both may be one store.
        let left = RefCell::new(None);
        self.left.read(cx, key, &mut |row| {
            *left.borrow_mut() = row.map(|(value, time)| (value.clone(), time))
        })?;
        let left = left.into_inner();
        let joined = RefCell::new(Ok((None, -1)));
        self.right.read(cx, key, &mut |right| {
            let times = [left.as_ref().map(|(_, time)| *time), right.map(|(_, time)| time)];
            let time = times.into_iter().flatten().max().unwrap_or(-1);
            let result = catch_user(|| {
                (self.combine)(
                    key,
                    left.as_ref().map(|(value, _)| value),
                    right.map(|(value, _)| value),
                )
            });
            *joined.borrow_mut() = result.map(|result| (result, time));
        })?;
        if let Some((result, time)) = cx.try_user(&self.name, || joined.into_inner())? {
            read(result.as_ref().map(|value| (value, time)));
        }
        Ok(())
    }
}
