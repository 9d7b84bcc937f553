//! `group_by` of tables: each row belongs to one group, and moves when its group changes.

use std::sync::{Arc, Mutex};

use streams_core::processor::{AnyNode, Children, Downstream, NodeBuilder, NodeFactory, TaskContext};
use streams_core::serde::{DefaultSerde, SharedSerde};
use streams_core::{BoxError, Change, ProcessResult, Record, SerdeError};

use super::KTable;
use crate::config::Grouped;
use crate::graph::Processor;
use crate::grouped::KGroupedTable;
use crate::names::Step;

impl<K: 'static, V: 'static> KTable<K, V> {
    /// Groups the rows by the key that `select` makes, with the value that it makes, to be counted, reduced or
    /// aggregated. An update takes the old row out of its group and puts the new one into its own: the aggregation has
    /// an adder and a subtractor.
    ///
    /// The table stores its rows, and changes go through a repartition topic. A row whose group key or value is null
    /// belongs to no group.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let team_of = b.table::<String, String>("team-of");
    ///     team_of.group_by(|user, team| (team.clone(), user.clone())).count("members").to_stream().to("team-size")
    /// })
    /// .pipe("team-of", [("ann", "red", at(0)), ("bob", "red", at(1)), ("ann", "blue", at(2))])
    /// .gives("team-size", [("red", 1, at(0)), ("red", 2, at(1)), ("red", 1, at(2)), ("blue", 1, at(2))]);
    /// ```
    ///
    /// Java counterpart: `KTable.groupBy`.
    pub fn group_by<K2: DefaultSerde, V2: DefaultSerde>(
        &self,
        select: impl Fn(&K, &V) -> (K2, V2) + Send + Sync + 'static,
    ) -> KGroupedTable<K2, V2> {
        self.group_by_with(select, Grouped::default())
    }

    /// As [`group_by`](Self::group_by), in a given way: serdes, and a name for the repartition topic.
    pub fn group_by_with<K2: 'static, V2: 'static>(
        &self,
        select: impl Fn(&K, &V) -> (K2, V2) + Send + Sync + 'static,
        grouped: Grouped<K2, V2>,
    ) -> KGroupedTable<K2, V2> {
        let (key, value) = (grouped.key.resolve(None), grouped.value.resolve(None));
        let factory = factory(self.key.clone(), key.clone(), value.clone(), Arc::new(select));
        let node = self.builder.with(|graph| {
            let name = graph.names.node(Step::TableSelect, grouped.name.as_deref());
            (self.ask_old)(graph, true);
            graph.add(name, &[self.node], Processor::stateless(factory))
        });
        KGroupedTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            name: grouped.name,
            repartition: Arc::new(Mutex::new(None)),
        }
    }
}

fn factory<K: 'static, V: 'static, K2: 'static, V2: 'static, F>(
    from: SharedSerde<K>,
    key: SharedSerde<K2>,
    value: SharedSerde<V2>,
    select: Arc<F>,
) -> Arc<dyn NodeFactory>
where
    F: Fn(&K, &V) -> (K2, V2) + Send + Sync + 'static,
{
    Arc::new(move |builder: &mut NodeBuilder<'_>| {
        let node = Select {
            name: builder.name(),
            children: builder.children::<K2, Change<V2>>()?,
            from: Arc::clone(&from),
            key: Arc::clone(&key),
            value: Arc::clone(&value),
            select: Arc::clone(&select),
        };
        Ok(AnyNode::new::<K, Change<V>>(std::rc::Rc::new(node)))
    })
}

/// Java: `KTableRepartitionMap`.
struct Select<K, K2, V2, F> {
    name: Arc<str>,
    children: Children<K2, Change<V2>>,
    from: SharedSerde<K>,
    key: SharedSerde<K2>,
    value: SharedSerde<V2>,
    select: Arc<F>,
}

impl<K: 'static, K2: 'static, V2: 'static, F> Select<K, K2, V2, F> {
    /// The row's group and value; `None` = it belongs to no group.
    fn group<V>(&self, key: &K, row: Option<&V>) -> Option<(K2, V2)>
    where
        F: Fn(&K, &V) -> (K2, V2),
    {
        let (group, value) = (self.select)(key, row?);
        (!self.key.is_null(&group) && !self.value.is_null(&value)).then_some((group, value))
    }

    /// Groups are equal by their bytes, as rows of a store are.
    fn is_same(&self, one: &K2, other: &K2) -> Result<bool, SerdeError> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.key.serialize(&self.name, one, &mut first)?;
        self.key.serialize(&self.name, other, &mut second)?;
        Ok(first == second)
    }
}

impl<K: 'static, V: 'static, K2: 'static, V2: 'static, F> Downstream<K, Change<V>> for Select<K, K2, V2, F>
where
    F: Fn(&K, &V) -> (K2, V2),
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, Change<V>>) -> ProcessResult {
        if self.from.is_null(record.key) {
            let error: BoxError = "a row with a null key can't be grouped".into();
            return cx.user_code_failed(&self.name, error);
        }
        if !record.value.is_latest {
            // Groups are made of the newest versions (KIP-914). Java does not count these either.
            return Ok(());
        }
        let groups = cx.try_user(&self.name, || {
            let change = record.value;
            let old = self.group(record.key, change.old.as_ref());
            let new = self.group(record.key, change.new.as_ref());
            let same = match (&old, &new) {
                (Some((old, _)), Some((new, _))) => self.is_same(old, new)?,
                _ => false,
            };
            Ok((old, new, same))
        })?;
        let Some((old, new, same)) = groups else { return Ok(()) };
        let mut send = |key: &K2, new, old| {
            let is_latest = record.value.is_latest;
            let change = Change { new, old, is_latest };
            self.children.forward(cx, record.with_key(key).with_value(&change))
        };
        // One record for an update inside a group, so that no reader ever sees the row missing.
        match (old, new) {
            (Some((_, old)), Some((key, new))) if same => send(&key, Some(new), Some(old)),
            (old, new) => {
                if let Some((key, old)) = old {
                    send(&key, None, Some(old))?;
                }
                match new {
                    Some((key, new)) => send(&key, Some(new), None),
                    None => Ok(()),
                }
            }
        }
    }
}
