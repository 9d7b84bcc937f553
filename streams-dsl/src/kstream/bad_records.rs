//! `bad_records`: what can't be read or processed, as a stream.

use std::sync::Arc;

use streams_core::processor::{AnyNode, Downstream, NodeBuilder, TaskContext};
use streams_core::{ProcessResult, Record};

use super::KStream;
use crate::graph::{Graph, Kind, NodeId, Processor};
use crate::names::Step;

/// A topic as the graph knows it.
#[derive(Clone)]
enum Topic {
    External(Arc<str>),
    /// Its full name begins with the application's.
    Internal(Arc<str>),
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// The records of this stream's topics that can't be read, and those on which a step fails (by an error or a panic)
    /// before they reach another topic, as a stream: key and value are the bytes of the source record, event time and
    /// headers are its own, and the headers of a dead letter (KIP-1034) say what failed: `__streams.errors.exception`,
    /// `.message`, `.stacktrace` (the place), `.topic`, `.partition`, `.offset`. Written to a topic they are what Java's
    /// dead-letter queue holds.
    ///
    /// With it the deserialization and processing handlers are not asked about these records any more: the failing step
    /// drops them, they count in `dropped-records-total`, and they go on here when the record in hand is done, in the same
    /// transaction. What the record did before it failed stays. A record that fails in several steps comes as often. A
    /// failure while a cache is flushed has no bytes any more, so key and value are null; one in a punctuation, and one in
    /// a step behind this stream, goes to the handlers as ever. So do records that can't be written.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let amounts = b.stream::<String, i64>("amounts");
    ///     amounts.map_values(|_account, amount| 100 / amount).to("shares");
    ///     amounts.bad_records().map_values_record(|bad| {
    ///         let message = bad.headers.last("__streams.errors.message").and_then(|header| header.value.clone());
    ///         String::from_utf8_lossy(&message.unwrap_or_default()).into_owned()
    ///     }).to("bad")
    /// })
    /// .pipe("amounts", [("a", 5, at(0)), ("b", 0, at(1))])
    /// .pipe("amounts", [("c", "five", at(2))])
    /// .gives("shares", [("a", 20, at(0))])
    /// .gives("bad", [("b", "panicked: attempt to divide by zero", at(1)), ("c", "i64 takes 8 bytes, got 4", at(2))]);
    /// ```
    ///
    /// Not in Java, where they can be sent to one topic (`errors.dead.letter.queue.topic.name`), and not be worked on.
    #[must_use]
    pub fn bad_records(&self) -> KStream<Option<Vec<u8>>, Option<Vec<u8>>> {
        let node = self.builder.with(|graph| {
            let topics: Vec<Topic> = self.sources.iter().flat_map(|id| topics_of(graph, *id)).collect();
            let factory = move |builder: &mut NodeBuilder<'_>| {
                let children = builder.children()?;
                let cx = builder.context();
                let full = topics.iter().map(|topic| match topic {
                    Topic::External(name) => Arc::clone(name),
                    Topic::Internal(name) => cx.topics().internal(name).into(),
                });
                let full: Vec<Arc<str>> = full.collect();
                cx.take_bad_records(full, children);
                Ok(AnyNode::new::<K, V>(std::rc::Rc::new(GoodRecords)))
            };
            let name = graph.names.node(Step::BadRecords, None);
            let node = graph.add(name, &[self.node], Processor::stateless(Arc::new(factory)));
            if let Some(added) = graph.node_mut(node) {
                // A repartition below can't move above: keys and values are those that are made here.
                added.flags.key_changing = true;
            }
            node
        });
        KStream {
            builder: self.builder.clone(),
            node,
            key: None,
            value: None,
            sources: self.sources.clone(),
            // The bytes may not be those by which the topic is partitioned.
            key_changed: true,
        }
    }
}

/// The topics that a source of streams reads. Those of tables are left out: a restore reads them too, and has no steps.
fn topics_of(graph: &Graph, id: NodeId) -> Vec<Topic> {
    match graph.node(id).map(|node| &node.kind) {
        Some(Kind::Source(source)) => source.topics.iter().cloned().map(Topic::External).collect(),
        Some(Kind::Repartition(repartition)) => vec![Topic::Internal(Arc::clone(&repartition.topic))],
        _ => Vec::new(),
    }
}

/// The node hangs at its stream for its task's sake. Nothing comes to it from there.
struct GoodRecords;

impl<K, V> Downstream<K, V> for GoodRecords {
    fn process(&self, _: &mut TaskContext, _: Record<'_, K, V>) -> ProcessResult {
        Ok(())
    }
}
