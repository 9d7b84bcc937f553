//! What a test sees of stores.

use std::rc::Rc;

use streams_state::Direction;

use super::driver::TopologyTestDriver;
use crate::error::{Error, ProcessResult};
use crate::processor::TaskContext;
use crate::runtime::GlobalCore;
use crate::stores::{
    KeyValueStore, SessionStore, TtlStore, ValueAndTimestamp, VersionedStore, VersionedValue, WindowStore,
};
use crate::{TaskId, Window, Windowed};

impl TopologyTestDriver {
    /// A row of a key-value store, whichever task has it; `None` when there is none. Java: `getKeyValueStore(name).get(key)`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or the row can't be read.
    pub fn key_value<K: 'static, V: Clone + 'static>(
        &mut self,
        store: &str,
        key: &K,
    ) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let kind = kind::<K, V>("key-value");
        self.first_in(store, &kind, |typed: &KeyValueStore<K, V>, cx| typed.get(cx, key))
    }

    /// All rows of a key-value store, by task and within one by the bytes of their keys.
    /// Java: `getKeyValueStore(name).all()`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or a row can't be read.
    pub fn key_values<K: 'static, V: 'static>(&mut self, store: &str) -> ProcessResult<Vec<(K, ValueAndTimestamp<V>)>> {
        let mut all = Vec::new();
        self.first_in(store, &kind::<K, V>("key-value"), |typed: &KeyValueStore<K, V>, cx| {
            for row in typed.range(cx, None, None, Direction::Forward)? {
                all.push(row?);
            }
            Ok(None::<()>)
        })?;
        Ok(all)
    }

    /// A row of a window store: that of a key in the window that starts at `start_ms` (ms since the Unix epoch); `None`
    /// when there is none. Java: `getWindowStore(name).fetch(key, time)`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or the row can't be read.
    pub fn window_value<K: Clone + 'static, V: Clone + 'static>(
        &mut self,
        store: &str,
        key: &K,
        start_ms: i64,
    ) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let windowed = Windowed::new(key.clone(), Window::new(start_ms, start_ms));
        let kind = kind::<K, V>("window");
        self.first_in(store, &kind, |typed: &WindowStore<K, V>, cx| typed.get(cx, &windowed))
    }

    /// All rows of a window store whose windows start between two times (ms since the Unix epoch), both included: by task,
    /// within one by time bucket, then by the bytes of their keys and start.
    /// Java: `getWindowStore(name).fetchAll(from, to)`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or a row can't be read.
    pub fn window_values<K: 'static, V: 'static>(
        &mut self,
        store: &str,
        from_ms: i64,
        to_ms: i64,
    ) -> ProcessResult<Vec<(Windowed<K>, ValueAndTimestamp<V>)>> {
        let mut all = Vec::new();
        self.first_in(store, &kind::<K, V>("window"), |typed: &WindowStore<K, V>, cx| {
            let mut rows = typed.fetch_all(cx, from_ms, to_ms)?;
            while let Some(row) = typed.next_row(cx, &mut rows)? {
                all.push(row);
            }
            Ok(None::<()>)
        })?;
        Ok(all)
    }

    /// The sessions of a key in a session store, by their end, whichever task has them.
    /// Java: `getSessionStore(name).fetch(key)`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or a row can't be read.
    pub fn session_values<K: 'static, V: 'static>(&mut self, store: &str, key: &K) -> ProcessResult<Vec<(Window, V)>> {
        let kind = kind::<K, V>("session");
        let found = self.first_in(store, &kind, |typed: &SessionStore<K, V>, cx| {
            let sessions = typed.find(cx, key, 0, i64::MAX)?;
            Ok((!sessions.is_empty()).then_some(sessions))
        })?;
        Ok(found.unwrap_or_default())
    }

    /// A row of a store whose rows die, unless it is dead.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or the row can't be read.
    pub fn ttl_value<K: 'static, V: 'static>(
        &mut self,
        store: &str,
        key: &K,
    ) -> ProcessResult<Option<ValueAndTimestamp<V>>> {
        let kind = kind::<K, V>("ttl");
        self.first_in(store, &kind, |typed: &TtlStore<K, V>, cx| typed.get(cx, key))
    }

    /// Asks a store, as its type: that of each task in turn, or the global one, until `ask` answers something. What it
    /// writes is committed with the next record. Java: `getStateStore(name)`.
    ///
    /// ```
    /// # use streams_core::test_driver::TopologyTestDriver;
    /// # use streams_core::ProcessResult;
    /// use streams_core::stores::{Direction, KeyValueStore};
    /// /// The highest key.
    /// fn last(driver: &mut TopologyTestDriver) -> ProcessResult<Option<String>> {
    ///     driver.ask_store("counts", |counts: &KeyValueStore<String, i64>, cx| {
    ///         counts.range(cx, None, None, Direction::Reverse)?.next().map(|row| Ok(row?.0)).transpose()
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no store of this name and type, and those of `ask`.
    pub fn ask_store<S: 'static, R>(
        &mut self,
        store: &str,
        ask: impl FnMut(&S, &mut TaskContext) -> ProcessResult<Option<R>>,
    ) -> ProcessResult<Option<R>> {
        let kind = format!("store of the type `{}`", std::any::type_name::<S>());
        self.first_in(store, &kind, ask)
    }

    /// The version of a versioned store's key that was valid at a time (ms since the Unix epoch), whichever task has it;
    /// with `i64::MAX` the newest. Java: `getVersionedKeyValueStore(name).get(key, time)`.
    ///
    /// # Errors
    /// When there is no store of this name and these types, or the row can't be read.
    pub fn version_as_of<K: 'static, V: 'static>(
        &mut self,
        store: &str,
        key: &K,
        as_of_ms: i64,
    ) -> ProcessResult<Option<VersionedValue<V>>> {
        let kind = kind::<K, V>("versioned");
        self.first_in(store, &kind, |typed: &VersionedStore<K, V>, cx| {
            typed.get_as_of(cx, key, as_of_ms)
        })
    }

    /// Asks the store of each task, and the global one, until one has something.
    fn first_in<S: 'static, R>(
        &mut self,
        store: &str,
        kind: &str,
        mut ask: impl FnMut(&S, &mut TaskContext) -> ProcessResult<Option<R>>,
    ) -> ProcessResult<Option<R>> {
        let tasks: Vec<TaskId> = self.core.status().tasks.iter().map(|task| task.id).collect();
        let mut found = false;
        for task in tasks {
            let Some((stores, cx)) = self.core.task_parts(task) else {
                continue;
            };
            let Some(typed): Option<Rc<S>> = stores.get(store) else {
                continue;
            };
            found = true;
            if let Some(row) = ask(&typed, cx)? {
                return Ok(Some(row));
            }
        }
        if let Some((stores, cx)) = self.global.as_mut().map(GlobalCore::task_parts)
            && let Some(typed) = stores.get::<S>(store)
        {
            return ask(&typed, cx);
        }
        if found {
            Ok(None)
        } else {
            Err(self.no_store(store, kind))
        }
    }

    fn no_store(&self, store: &str, kind: &str) -> Box<Error> {
        let stores: Vec<&str> = self
            .plan()
            .subtopologies
            .iter()
            .flat_map(|sub| &sub.stores)
            .chain(self.plan().global.iter().map(|global| &global.store))
            .map(|name| &**name)
            .collect();
        Box::new(Error::Topics {
            message: format!(
                "the tasks have no {kind} named `{store}`; their stores, of whatever kind, are {}",
                stores.join(", ")
            ),
        })
    }
}

/// What is asked for, in words.
fn kind<K, V>(kind: &str) -> String {
    let (key, value) = (std::any::type_name::<K>(), std::any::type_name::<V>());
    format!("{kind} store with keys `{key}` and values `{value}`")
}
