//! Topologies from short lines, with factories that are never called.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::rc::Rc;
use std::sync::Arc;

use streams_state::StoreSpec;

use super::{AutoOffsetReset, ChangelogDefinition, SinkTopic, SourceTopic, StoreDefinition, Topology, TopologyError};
use crate::processor::{AnyNode, NodeBuilder, NodeFactory, SourceFactory, SourceNode};
use crate::stores::{ManagedStore, StoreBuilder, StoreFactory};

struct NeverBuilt;

impl NodeFactory for NeverBuilt {
    fn build(&self, _: &mut NodeBuilder<'_>) -> Result<AnyNode, TopologyError> {
        panic!("these tests make no tasks")
    }
}

impl SourceFactory for NeverBuilt {
    fn build(&self, _: &mut NodeBuilder<'_>) -> Result<Rc<dyn SourceNode>, TopologyError> {
        panic!("these tests make no tasks")
    }
}

impl StoreFactory for NeverBuilt {
    fn build(&self, _: StoreBuilder) -> Rc<dyn ManagedStore> {
        panic!("these tests make no tasks")
    }
}

pub(super) fn node() -> Arc<dyn NodeFactory> {
    Arc::new(NeverBuilt)
}

pub(super) fn source() -> Arc<dyn SourceFactory> {
    Arc::new(NeverBuilt)
}

/// A key-value store with a changelog.
pub(super) fn store(name: &str) -> StoreDefinition {
    let spec = StoreSpec::key_value(name);
    let changelog = Some(ChangelogDefinition::of(&spec));
    StoreDefinition {
        spec,
        changelog,
        factory: Arc::new(NeverBuilt),
        global: false,
    }
}

pub(super) fn global_store(name: &str) -> StoreDefinition {
    StoreDefinition {
        changelog: None,
        ..store(name)
    }
}

/// A topic by its short form: `name`, or `=name` for an internal one.
pub(super) fn topic(text: &str) -> SourceTopic {
    text.strip_prefix('=')
        .map_or_else(|| SourceTopic::external(text), SourceTopic::internal)
}

pub(super) type TopologyText<'a> = &'a [&'a str];

/// A topology from lines in the order of writing:
/// `source NAME: TOPIC…`, `proc NAME < PARENT… [STORE…]`, `sink NAME: TOPIC < PARENT…`, `global STORE: TOPIC SOURCE
/// PROC`, `repartition TOPIC [COUNT]`, `copartition TOPIC…`. Topics of internal names start with `=`.
pub(super) fn topology(lines: TopologyText<'_>) -> Topology {
    let mut topology = Topology::new();
    for line in lines {
        add(&mut topology, line);
    }
    topology
}

fn add(topology: &mut Topology, line: &str) {
    let (kind, rest) = line.split_once(' ').unwrap();
    let (head, stores) = rest
        .split_once('[')
        .map_or((rest, ""), |(head, stores)| (head, stores.trim_end_matches(']')));
    let (head, parents) = head.split_once('<').unwrap_or((head, ""));
    let parents: Vec<&str> = parents.split_whitespace().collect();
    let (name, topics) = head.split_once(':').unwrap_or((head, ""));
    let (name, words) = (name.trim(), topics.split_whitespace().collect::<Vec<_>>());
    match kind {
        "source" => {
            let topics = words.iter().map(|word| topic(word)).collect();
            topology.add_source(name, topics, AutoOffsetReset::Configured, source());
        }
        "proc" => {
            topology.add_processor(name, &parents, node());
            for store_name in stores.split_whitespace() {
                if topology.store(store_name).is_none() {
                    topology.add_store(store(store_name));
                }
                topology.connect_store(name, store_name);
            }
        }
        "sink" => {
            topology.add_sink(name, &parents, SinkTopic::Static(topic(words[0])), node());
        }
        "global" => {
            topology.add_global_store(global_store(name), words[0], (words[1], source()), (words[2], node()));
        }
        "repartition" => {
            let (name, count) = name
                .split_once(' ')
                .map_or((name, None), |(n, count)| (n, count.parse().ok()));
            topology.repartition_topic(name, count);
        }
        "copartition" => {
            topology.copartition(name.split_whitespace().map(topic).collect());
        }
        _ => panic!("{line}"),
    }
}
