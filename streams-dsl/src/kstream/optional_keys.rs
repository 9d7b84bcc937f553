//! Streams whose keys may be null, made ones whose keys may not: `drop_null_keys`, `replace_null_keys`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<Option<K>, V> {
    /// The records whose key is not null, as a stream of plain keys: from here on the compiler knows that there is one. The
    /// others are dropped and counted. Records stay in their partitions, so grouping or joining needs no repartition.
    ///
    /// A stream of `Option` keys can be grouped and joined as it is, as in Java: then each of these steps drops null keys
    /// and counts them. With this, or with [`replace_null_keys`](Self::replace_null_keys), the program says once what
    /// becomes of them, and a step behind it has none to drop.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<Option<String>, i64>("in").drop_null_keys().group_by_key().count("counts").to_stream().to("out"))
    ///     .pipe("in", [(Some("a"), 7, at(0)), (None, 8, at(1))])
    ///     .gives("out", [("a", 1, at(0))])
    ///     .dropped(1);
    /// ```
    ///
    /// Not in Java, whose types do not tell.
    #[must_use]
    pub fn drop_null_keys(&self) -> KStream<K, V> {
        let factory = factory::<Option<K>, V, K, V, _>(DropNullKeys);
        self.step(Step::Filter, factory, Keys::Kept(None), self.value.clone())
    }

    /// Gives records whose key is null the key that `replace` makes of their value. They may belong to another partition
    /// then, so grouping or joining sends the stream through a repartition topic first.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let stream = b.stream::<Option<String>, i64>("in").replace_null_keys(|_| "nobody".to_owned());
    ///     stream.group_by_key().count("counts").to_stream().to("out")
    /// })
    /// .pipe("in", [(Some("a"), 7, at(0)), (None, 8, at(1)), (None, 9, at(2))])
    /// .gives("out", [("a", 1, at(0)), ("nobody", 1, at(1)), ("nobody", 2, at(2))])
    /// .dropped(0);
    /// ```
    #[must_use]
    pub fn replace_null_keys(&self, replace: impl Fn(&V) -> K + Send + Sync + 'static) -> KStream<K, V> {
        let replace = Arc::new(replace);
        let factory = factory::<Option<K>, V, K, V, _>(move |parts| ReplaceNullKeys {
            parts,
            replace: Arc::clone(&replace),
        });
        self.step(Step::SelectKey, factory, Keys::Changed, self.value.clone())
    }
}

struct DropNullKeys<K, V>(Parts<K, V>);

impl<K, V> Downstream<Option<K>, V> for DropNullKeys<K, V> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Option<K>, V>) -> ProcessResult {
        match record.key {
            Some(key) => self.0.children.forward(cx, record.with_key(key)),
            None => {
                cx.counters.dropped_records += 1;
                Ok(())
            }
        }
    }
}

struct ReplaceNullKeys<K, V, F> {
    parts: Parts<K, V>,
    replace: Arc<F>,
}

impl<K, V, F: Fn(&V) -> K> Downstream<Option<K>, V> for ReplaceNullKeys<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, Option<K>, V>) -> ProcessResult {
        if let Some(key) = record.key {
            return self.parts.children.forward(cx, record.with_key(key));
        }
        match cx.call_user(&self.parts.name, || (self.replace)(record.value))? {
            Some(key) => self.parts.children.forward(cx, record.with_key(&key)),
            None => Ok(()),
        }
    }
}
