//! The lockfile of a topology: a test of the program that fails when a change would lose or misread what is there.
//!
//! State and internal topics outlive the program that made them. A store that is called something else begins empty; rows
//! of another format can't be read; an operator that was inserted moves the generated names of all that follow. A file
//! beside the program, `topology.lock`, says what the topology leaves behind, and one line in a test compares:
//!
//! ```
//! use streams_dsl::prelude::*;
//!
//! fn topology() -> Result<Topology, TopologyError> {
//!     let builder = StreamsBuilder::new();
//!     builder.stream::<String, i64>("clicks").group_by_key().count("clicks-by-user");
//!     builder.build()
//! }
//!
//! #[test]
//! fn state_survives_this_version() -> Result<(), BoxError> {
//!     streams_dsl::lock::check(&topology()?, "topology.lock")?; // the path begins at the package
//!     Ok(())
//! }
//! # assert!(streams_dsl::lock::compare(&topology()?, "no such file").is_err());
//! # Ok::<(), BoxError>(())
//! ```
//!
//! The first time, and after each change that is meant, `UPDATE_TOPOLOGY_LOCK=1 cargo test` writes the file; commit it. What
//! is not compatible is written only by `UPDATE_TOPOLOGY_LOCK=reset`, by which you say that you reset the application.
//!
//! The file can't see inside a serde: fields of a JSON type, or what a closure computes, may change unseen. A serde of your
//! own can put a fingerprint of its schema into [`Serde::format`](crate::Serde::format).

#![allow(clippy::test_attr_in_doctest, reason = "the example shows a test of an application")]

use std::path::{Path, PathBuf};

use streams_core::topology::{Topology, TopologyError};

pub use streams_core::topology::{LockError, LockFinding, LockReport, LockVerdict, TopologyLock};

/// The environment variable that lets [`check`] write the file: `1`, or `reset` for changes that are not compatible.
pub const UPDATE: &str = "UPDATE_TOPOLOGY_LOCK";

/// Why a topology does not pass.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no lockfile.
    #[error("there is no {}: write it with {UPDATE}=1 and commit it", .path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// The topology has changed.
    #[error("the topology differs from {}: {report}\n{}", .path.display(), how_to_go_on(*.verdict))]
    Changed {
        /// The lockfile.
        path: PathBuf,
        /// The worst of the changes.
        verdict: LockVerdict,
        /// All changes.
        report: LockReport,
    },
    /// The file is not a lockfile.
    #[error("{}: {source}", .path.display())]
    Unreadable {
        /// The lockfile.
        path: PathBuf,
        /// What is wrong with it.
        source: LockError,
    },
    /// The file system failed.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The lockfile.
        path: PathBuf,
        /// What failed.
        source: std::io::Error,
    },
    /// The topology can't be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

fn how_to_go_on(verdict: LockVerdict) -> String {
    match verdict {
        LockVerdict::Compatible => format!("If this is meant, write the lockfile anew with {UPDATE}=1 and commit it."),
        LockVerdict::Rename | LockVerdict::NeedsReset => format!(
            "Do what the findings say. If the application is reset instead, write the lockfile anew with {UPDATE}=reset and \
             commit it."
        ),
    }
}

/// Compares a topology with its lockfile, for a test of the program. With the environment variable [`UPDATE`] it writes the
/// file first, if what has changed allows it. A relative path begins at the package, where `cargo test` runs.
///
/// # Errors
/// Any difference, with what it means and what to do; a file that is missing or can't be read; a topology that can't be
/// built.
pub fn check(topology: &Topology, path: impl AsRef<Path>) -> Result<(), CheckError> {
    let wanted = std::env::var(UPDATE).unwrap_or_default();
    let path = path.as_ref();
    match compare(topology, path) {
        Err(CheckError::Missing { .. }) if wanted == "1" || wanted == "reset" => write(topology, path),
        Err(CheckError::Changed { verdict, .. }) if may_write(&wanted, verdict) => write(topology, path),
        result => result,
    }
}

fn may_write(wanted: &str, verdict: LockVerdict) -> bool {
    wanted == "reset" || (wanted == "1" && verdict == LockVerdict::Compatible)
}

/// Compares a topology with its lockfile, and never writes it.
///
/// # Errors
/// As [`check`].
pub fn compare(topology: &Topology, path: impl AsRef<Path>) -> Result<(), CheckError> {
    let path = path.as_ref();
    let new = TopologyLock::of(topology)?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CheckError::Missing { path: path.to_owned() });
        }
        Err(source) => {
            let path = path.to_owned();
            return Err(CheckError::Io { path, source });
        }
    };
    let old = TopologyLock::parse(&text).map_err(|source| {
        let path = path.to_owned();
        CheckError::Unreadable { path, source }
    })?;
    let report = new.compare(&old);
    match report.verdict() {
        None => Ok(()),
        Some(verdict) => Err(CheckError::Changed {
            path: path.to_owned(),
            verdict,
            report,
        }),
    }
}

/// Writes the lockfile of a topology.
///
/// # Errors
/// A topology that can't be built; a file that can't be written.
pub fn write(topology: &Topology, path: impl AsRef<Path>) -> Result<(), CheckError> {
    let path = path.as_ref();
    let text = TopologyLock::of(topology)?.to_text();
    std::fs::write(path, text).map_err(|source| {
        let path = path.to_owned();
        CheckError::Io { path, source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reset_overwrites_what_is_not_compatible() {
        use LockVerdict::{Compatible, NeedsReset, Rename};
        let allowed = |wanted: &str| [Compatible, Rename, NeedsReset].map(|verdict| may_write(wanted, verdict));
        assert_eq!(allowed(""), [false; 3]);
        assert_eq!(allowed("1"), [true, false, false]);
        assert_eq!(allowed("reset"), [true; 3]);
        assert_eq!(allowed("yes"), [false; 3]);
    }
}
