//! A step without a stream behind it.

use crate::graph::{NodeId, Shared};

/// The end of a stream (`to`, `for_each`): nothing follows it, but it can be named.
pub struct Step {
    pub(crate) builder: Shared,
    pub(crate) node: NodeId,
}

impl Step {
    /// Names the node. Java: `Named.as`, `Produced.as`.
    pub fn named(self, name: &str) -> Self {
        self.builder.with(|graph| graph.rename(self.node, name));
        self
    }
}
