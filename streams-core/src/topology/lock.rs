//! The lockfile of a topology: what outlives the program, so that the next version can be compared with it.
//!
//! What is in it: names, layouts and formats of stores; names, configs and partition counts of internal topics, as far as
//! they follow from the topology; sub-topologies. What is not: anything of a deployment (`application.id`, replication,
//! `topic.` settings), so that one file fits all.

mod compare;
mod facts;
mod families;
mod file;
mod pairs;
mod report;
mod rules;

use std::collections::BTreeMap;

use super::{Topology, TopologyError};

pub use file::LockError;
pub use report::{LockFinding, LockReport, LockVerdict};

/// What a section of the file tells of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Subtopology(u32),
    Store(String),
    Repartition(String),
}

/// The facts of a section, by name.
pub(super) type Facts = BTreeMap<String, String>;

/// What of a topology outlives the program: rows in stores and changelogs, records in repartition topics, task ids.
///
/// Written to a file beside the program and compared with the next version, it tells whether that version can go on with
/// what is there. An application uses `streams_dsl::lock::check` in a test.
///
/// ```
/// use streams_core::topology::TopologyLock;
/// let lock = TopologyLock::default();
/// assert_eq!(TopologyLock::parse(&lock.to_text())?, lock);
/// assert_eq!(lock.compare(&lock).verdict(), None);
/// # Ok::<(), streams_core::BoxError>(())
/// ```
///
/// Not in Java, where a changed topology is noticed when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TopologyLock {
    pub(super) sections: BTreeMap<Section, Facts>,
}

impl TopologyLock {
    /// The lock of a topology.
    ///
    /// # Errors
    /// Every finding of [`Topology::validate`].
    pub fn of(topology: &Topology) -> Result<Self, TopologyError> {
        facts::of(topology)
    }

    /// The text of the file: sections and facts in a fixed order, one fact a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        file::write(self)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// A line that can't be read; a version of the format that is newer than this one.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        file::parse(text)
    }

    /// What a program of this topology meets where one of the `old` topology ran. No finding: nothing that outlives the
    /// program differs.
    #[must_use]
    pub fn compare(&self, old: &TopologyLock) -> LockReport {
        compare::compare(old, self)
    }
}
