//! `to`: a topic, or one chosen for each record.

use std::sync::Arc;

use streams_core::processor::{RecordContext, SinkTarget, TypedSink};
use streams_core::serde::DefaultSerde;
use streams_core::topology::{SinkTopic, SourceTopic};

use super::KStream;
use crate::config::Produced;
use crate::graph::Kind;
use crate::names::Step;

impl<K: 'static, V: 'static> KStream<K, V> {
    /// Writes the records to a topic, which has to exist. Partitions are chosen as Java does, by murmur2 of the key's
    /// bytes (of a windowed key without its window); records with a null key are placed by the client.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").to("out");
    /// assert!(builder.build()?.describe().contains("Sink: KSTREAM-SINK-0000000001 (topic: out)"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.to`.
    pub fn to(&self, topic: &str) -> crate::Step
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.to_with(topic, Produced::default())
    }

    /// As [`to`](Self::to), in a given way.
    pub fn to_with(&self, topic: &str, produced: Produced<K, V>) -> crate::Step {
        let topic = SourceTopic::external(topic);
        self.sink(SinkTarget::Fixed(topic.clone()), SinkTopic::Static(topic), produced)
    }

    /// Writes each record to the topic that `choose` answers, which has to exist; the context tells where the record
    /// came from.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, i64>("in").to_dynamic(|tenant, _value, _context| format!("out-{tenant}"));
    /// assert!(builder.build()?.describe().contains("(extractor class: closure)"));
    /// # Ok::<(), streams_dsl::TopologyError>(())
    /// ```
    ///
    /// Java counterpart: `KStream.to(TopicNameExtractor)`.
    pub fn to_dynamic(&self, choose: impl Fn(&K, &V, &RecordContext) -> String + Send + Sync + 'static) -> crate::Step
    where
        K: DefaultSerde,
        V: DefaultSerde,
    {
        self.to_dynamic_with(choose, Produced::default())
    }

    /// As [`to_dynamic`](Self::to_dynamic), in a given way.
    pub fn to_dynamic_with(
        &self,
        choose: impl Fn(&K, &V, &RecordContext) -> String + Send + Sync + 'static,
        produced: Produced<K, V>,
    ) -> crate::Step {
        self.sink(
            SinkTarget::Chosen(Arc::new(choose)),
            SinkTopic::Dynamic("closure".to_owned()),
            produced,
        )
    }

    fn sink(&self, target: SinkTarget<K, V>, topic: SinkTopic, produced: Produced<K, V>) -> crate::Step {
        let sink = TypedSink {
            target,
            key: produced.key.resolve(self.key.as_ref()),
            value: produced.value.resolve(self.value.as_ref()),
            partitioner: produced.partitioner,
        };
        self.terminal(
            Step::Sink,
            produced.name.as_deref(),
            Kind::Sink {
                topic,
                factory: Arc::new(sink),
            },
        )
    }
}
