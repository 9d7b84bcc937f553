//! How a foreign-key join is put into the graph, names and numbers in Java's order (`KTableImpl.doJoinOnForeignKey`).

use std::sync::Arc;

use streams_core::processor::{Partitions, SinkPartitioner, SinkTarget, Timestamps, TypedSink, TypedSource};
use streams_core::serde::{OptionSerde, SharedSerde};
use streams_core::topology::SourceTopic;

use super::resolve::{Combine, Resolve};
use super::send::{Extract, SendFactory};
use super::wire::{Answer, AnswerSerde, Message, MessageSerde};
use super::{foreign_table, receive};
use crate::config::{KeyPartitioner, Materialized, TableJoined};
use crate::graph::{Graph, Kind, NodeId, Processor, Repartition};
use crate::ktable::{KTable, TableFlags, View, ask_stored, source_factory};
use crate::names::{ForeignNames, Step};
use crate::stores::{Shape, StateStore, Stores};

impl<K: 'static, V: Clone + 'static> KTable<K, V> {
    pub(super) fn add_foreign_join<KO: 'static, VO: Clone + 'static, V2: Clone + 'static>(
        &self,
        other: &KTable<KO, VO>,
        extract: Arc<Extract<K, V, KO>>,
        combine: Arc<Combine<K, V, VO, V2>>,
        left_join: bool,
        joined: TableJoined<K, KO>,
        materialized: Materialized<K, V2>,
    ) -> KTable<K, V2> {
        let key = materialized.key.clone().unwrap_or_else(|| Arc::clone(&self.key));
        let value = materialized.value.resolve(None);
        let flags = Arc::new(TableFlags::default());
        let same_builder = self.builder.same_as(&other.builder);
        let (node, response, store_name) = self.builder.with(|graph| {
            if !same_builder {
                graph.found("tables of two builders can't be joined");
            }
            // A node of another builder means nothing here; the build fails anyway.
            let other_node = if same_builder { other.node } else { self.node };
            if same_builder {
                (other.ask_old)(graph, true);
            }
            (self.ask_old)(graph, true);
            for stored_by in self.view.stored_by.iter().chain(&other.view.stored_by) {
                graph.materialize(*stored_by);
            }
            let names = graph.names.foreign_join(joined.name.as_deref());
            let store_name = graph
                .names
                .store(Step::ForeignOutput.prefix(), materialized.name.as_deref());
            let send = SendFactory {
                key: Arc::clone(&self.key),
                value: Arc::clone(&self.value),
                foreign_key: Arc::clone(&other.key),
                extract,
                left_join,
                topic: names.registration_topic.as_str().into(),
            };
            let send = graph.add(names.send.clone(), &[self.node], Processor::stateless(Arc::new(send)));
            let registration = registration(graph, &names, send, &other.key, joined.other_partitioner.clone());
            let answers = add_right_side(graph, &names, self, other, (registration, other_node));
            let response = response(graph, &names, &answers, self, &other.value, joined.partitioner.clone());
            group(graph, &other.sources, registration);
            group(graph, &self.sources, response);
            let resolve = Resolve {
                value: Arc::clone(&self.value),
                result: Arc::clone(&value),
                left: self.view.clone(),
                combine,
                topic: names.registration_topic.as_str().into(),
            };
            let stores = self.view.stores.clone();
            let resolve = graph.add(names.resolve, &[response], Processor::using(Arc::new(resolve), stores));
            let store = StateStore::of(
                &store_name,
                Arc::clone(&key),
                Arc::clone(&value),
                Shape::KeyValue,
                &materialized,
            );
            let result = source_factory::<K, V2>(store_name.as_str().into(), Arc::clone(&key), Arc::clone(&flags));
            let mut result = Processor::with_store(result, store.definition(), None);
            if let (Kind::Processor(processor), None) = (&mut result, &materialized.name) {
                processor.materialized = false;
            }
            (graph.add(names.result, &[resolve], result), response, store_name)
        });
        let mut sources = self.sources.clone();
        sources.push(response);
        KTable {
            builder: self.builder.clone(),
            node,
            key,
            value,
            sources,
            view: View::of_store(node, &store_name),
            ask_old: ask_stored(node, flags),
            closing: self.closing,
        }
    }
}

fn group(graph: &mut Graph, sources: &[NodeId], topic: NodeId) {
    let mut group = sources.to_vec();
    group.push(topic);
    graph.copartitions.push(group);
}

/// Where subscriptions arrive and where foreign rows change: the two nodes that answer.
fn add_right_side<K: 'static, V, KO: 'static, VO: Clone + 'static>(
    graph: &mut Graph,
    names: &ForeignNames,
    left: &KTable<K, V>,
    right: &KTable<KO, VO>,
    (registration, right_node): (NodeId, NodeId),
) -> [NodeId; 2] {
    let topic: Arc<str> = names.registration_topic.as_str().into();
    let store = Stores::key_value::<Vec<u8>, Vec<u8>>(&names.store)
        .logging_headers()
        .definition();
    let receive = receive::receive(&names.store, &topic, &right.key);
    let receive = graph.add(
        names.receive.clone(),
        &[registration],
        Processor::with_store(receive, store, None),
    );
    let join = receive::answer(&topic, &left.key, &right.view);
    let join = graph.add(
        names.join_foreign.clone(),
        &[receive],
        Processor::using(join, right.view.stores.clone()),
    );
    let tell = foreign_table::tell::<K, KO, VO>(&names.store, &topic, &left.key, &right.key);
    let uses = vec![names.store.as_str().into()];
    let tell = graph.add(names.foreign_join.clone(), &[right_node], Processor::using(tell, uses));
    [join, tell]
}

/// The topic on which subscriptions go to the partition of their foreign key.
fn registration<KO: 'static>(
    graph: &mut Graph,
    names: &ForeignNames,
    parent: NodeId,
    foreign_key: &SharedSerde<KO>,
    partitioner: Option<Arc<KeyPartitioner<Option<KO>>>>,
) -> NodeId {
    let topic: Arc<str> = names.registration_topic.as_str().into();
    let key: SharedSerde<Option<KO>> = Arc::new(OptionSerde(Arc::clone(foreign_key)));
    let partitioner = partitioner.map(|partitioner| -> SinkPartitioner<Option<KO>, Message> {
        Arc::new(move |topic: &str, key: &Option<KO>, _: &Message, count: i32| chosen(partitioner(topic, key, count)))
    });
    let sink = TypedSink {
        target: target(&topic),
        key: Arc::clone(&key),
        value: Arc::new(MessageSerde),
        partitioner,
    };
    let source = TypedSource {
        key,
        value: Arc::new(MessageSerde),
        timestamps: Timestamps::FailOnInvalid,
    };
    let repartition = Repartition {
        topic,
        sink_name: names.registration_sink.as_str().into(),
        filter: None,
        partitions: None,
        optimizable: false,
        sink: Arc::new(sink),
        source: Arc::new(source),
    };
    graph.add(
        names.registration_source.clone(),
        &[parent],
        Kind::Repartition(Box::new(repartition)),
    )
}

/// The topic on which answers go back to the left row's partition.
fn response<K: 'static, V, VO: 'static>(
    graph: &mut Graph,
    names: &ForeignNames,
    parents: &[NodeId],
    left: &KTable<K, V>,
    foreign_value: &SharedSerde<VO>,
    partitioner: Option<Arc<KeyPartitioner<K>>>,
) -> NodeId {
    let topic: Arc<str> = names.response_topic.as_str().into();
    let value: SharedSerde<Answer<VO>> = Arc::new(AnswerSerde(Arc::clone(foreign_value)));
    let partitioner: SinkPartitioner<K, Answer<VO>> = match partitioner {
        Some(partitioner) => {
            Arc::new(move |topic: &str, key: &K, _: &Answer<VO>, count: i32| chosen(partitioner(topic, key, count)))
        }
        None => Arc::new(|_: &str, _: &K, answer: &Answer<VO>, _: i32| chosen(answer.primary_partition)),
    };
    let sink = TypedSink {
        target: target(&topic),
        key: Arc::clone(&left.key),
        value: Arc::clone(&value),
        partitioner: Some(partitioner),
    };
    let source = TypedSource {
        key: Arc::clone(&left.key),
        value,
        timestamps: Timestamps::FailOnInvalid,
    };
    let repartition = Repartition {
        topic,
        sink_name: names.response_sink.as_str().into(),
        filter: None,
        partitions: None,
        optimizable: false,
        sink: Arc::new(sink),
        source: Arc::new(source),
    };
    graph.add(
        names.response_source.clone(),
        parents,
        Kind::Repartition(Box::new(repartition)),
    )
}

fn target<K, V>(topic: &Arc<str>) -> SinkTarget<K, V> {
    SinkTarget::Fixed(SourceTopic {
        name: Arc::clone(topic),
        internal: true,
    })
}

fn chosen(partition: Option<i32>) -> Partitions {
    partition.map_or(Partitions::Default, Partitions::One)
}
