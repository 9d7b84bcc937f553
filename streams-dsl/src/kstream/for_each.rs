//! `for_each`.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{ProcessResult, Record};

use super::KStream;
use crate::graph::Processor;
use crate::names::Step;
use crate::node::{Parts, factory};

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Does something with each record; nothing follows. What is done is outside of any transaction: after a crash or an
    /// abort it is done again.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").for_each(|key, value| println!("{key}: {value}")).named("print");
    /// assert!(builder.build()?.describe().contains("Processor: print"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.foreach`.
    pub fn for_each(&self, action: impl Fn(&K, &V) + Send + Sync + 'static) -> crate::Step {
        let action = Arc::new(action);
        // A terminal node has no children; the type parameters stand for those it does not have.
        let factory = factory::<K, V, K, V, _>(move |parts| ForEach {
            parts,
            action: Arc::clone(&action),
        });
        self.terminal(Step::ForEach, None, Processor::stateless(factory))
    }
}

struct ForEach<K, V, F> {
    parts: Parts<K, V>,
    action: Arc<F>,
}

impl<K, V, F: Fn(&K, &V)> Downstream<K, V> for ForEach<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        cx.call_user(&self.parts.name, || (self.action)(record.key, record.value))
            .map(|_| ())
    }
}
