//! Topologies: nodes, stores and topics by name, before any task exists. Pure data; tasks are made from it.
//!
//! The way of a topology: it is written (`build`), checked (`validate`), parted into sub-topologies (`groups`), shown
//! (`describe`, `picture`), written down for the next version (`lock`), planned for an application (`plan`, with
//! `topic_config` and `copartition`), and given partition counts once the cluster is known (`resolve`).

mod build;
mod clock_size;
mod copartition;
mod describe;
mod described;
mod error;
mod groups;
mod lock;
mod model;
mod pattern;
mod picture;
mod plan;
mod resolve;
mod topic_config;
mod validate;
mod wire;

#[cfg(test)]
mod test_support;

#[cfg(test)]
mod golden_tests;

pub use error::TopologyError;
pub use lock::{LockError, LockFinding, LockReport, LockVerdict, TopologyLock};
pub use model::{
    AutoOffsetReset, ChangelogDefinition, ChangelogKind, GlobalStoreDefinition, NodeDefinition, NodeKind, SinkTopic,
    SourceTopic, StoreDefinition, Topology,
};
pub use pattern::TopicPattern;
pub use plan::{ChangelogPlan, GlobalPlan, InternalTopic, SubtopologyPlan, TopologyPlan};
pub use resolve::ResolvedTopics;
pub use topic_config::InternalTopicDefaults;
