//! `peek`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::{KStream, Keys};
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Shows each record to `look` and hands it on unchanged. After a crash or an abort records are shown again.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").peek(|key, value| println!("{key}: {value}")).to("out");
    /// assert!(builder.build()?.describe().contains("KSTREAM-PEEK-0000000001"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.peek`.
    pub fn peek(&self, look: impl Fn(&K, &V) + Send + Sync + 'static) -> KStream<K, V> {
        let look = Arc::new(look);
        let factory = factory::<K, V, K, V, _>(move |parts| Peek {
            parts,
            look: Arc::clone(&look),
        });
        self.step(Step::Peek, factory, Keys::Kept(self.key.clone()), self.value.clone())
    }
}

struct Peek<K, V, F> {
    parts: Parts<K, V>,
    look: Arc<F>,
}

impl<K, V, F: Fn(&K, &V)> Downstream<K, V> for Peek<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.look)(record.key, record.value))? {
            Some(()) => self.parts.children.forward(cx, record),
            None => Ok(()),
        }
    }
}
