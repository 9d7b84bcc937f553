//! Topologies: nodes, stores and topics by name, before any task exists. Pure data; tasks are made from it.

mod error;
mod model;
mod plan;
pub use plan::{SubtopologyPlan, TopologyPlan};

pub use error::TopologyError;
pub use model::{
    AutoOffsetReset, ChangelogDefinition, NodeDefinition, NodeKind, SinkTopic, SourceTopic, StoreDefinition, Topology,
};
