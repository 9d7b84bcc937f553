//! Pictures of a topology, drawn from what `describe()` tells: its parts, nodes, topics, stores and links.

mod dot;
mod drawing;
mod mermaid;

use super::Topology;
use drawing::Drawing;

impl Topology {
    /// The topology as a Mermaid flowchart, which GitHub, GitLab and mdBook show as a picture where it stands in a
    /// block of the language `mermaid`.
    ///
    /// Topics are rounded (repartition topics, which are named without the application id, have double sides), stores
    /// are cylinders with their kind, each sub-topology has a frame. A dashed line is a look into a global store. The
    /// text is the same for the same topology, and names may hold any characters.
    ///
    /// ```
    /// # use streams_core::topology::Topology;
    /// assert_eq!(Topology::new().to_mermaid(), "flowchart TB\n");
    /// ```
    ///
    /// Not in Java, where tools of third parties draw the text of `describe()`.
    #[must_use]
    pub fn to_mermaid(&self) -> String {
        mermaid::text(&Drawing::of(self))
    }

    /// The topology as a graph for Graphviz: `dot -Tsvg` makes a picture of it. It shows what
    /// [`to_mermaid`](Self::to_mermaid) shows.
    ///
    /// ```
    /// # use streams_core::topology::Topology;
    /// assert!(Topology::new().to_dot().starts_with("digraph topology {\n"));
    /// ```
    #[must_use]
    pub fn to_dot(&self) -> String {
        dot::text(&Drawing::of(self))
    }
}

#[cfg(test)]
mod tests;
