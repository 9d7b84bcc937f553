//! What a comparison found.

use std::fmt;

/// What a change means for what is there. The later, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockVerdict {
    /// The new version goes on with what is there.
    Compatible,
    /// Something has another name and is the same otherwise: with its old name it is found again, without it is lost.
    Rename,
    /// What is there can't be used: the application has to be reset, or the change taken back.
    NeedsReset,
}

impl fmt::Display for LockVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockVerdict::Compatible => "compatible",
            LockVerdict::Rename => "rename",
            LockVerdict::NeedsReset => "needs reset",
        })
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFinding {
    /// What it means.
    pub verdict: LockVerdict,
    /// What differs, and how.
    pub what: String,
    /// What happens with what is there, and what to do.
    pub advice: String,
}

impl fmt::Display for LockFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.verdict, self.what, self.advice)
    }
}

/// All changes between two versions.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LockReport {
    /// The changes, the worst first.
    pub findings: Vec<LockFinding>,
    /// Whether the brokers see the change too: a streams group (KIP-1071) keeps its topology and refuses another one,
    /// whatever the verdict.
    pub group_refuses: bool,
}

impl LockReport {
    /// The worst verdict; `None` = nothing has changed.
    #[must_use]
    pub fn verdict(&self) -> Option<LockVerdict> {
        self.findings.iter().map(|finding| finding.verdict).max()
    }
}

impl fmt::Display for LockReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(verdict) = self.verdict() else {
            return f.write_str("nothing that outlives the program has changed");
        };
        write!(f, "{verdict}")?;
        for finding in &self.findings {
            write!(f, "\n- {finding}")?;
        }
        if self.group_refuses {
            write!(
                f,
                "\nA streams group keeps the topology that it was made with and refuses this one, also where everything is \
                 compatible: stop all members, note the group's committed offsets, delete the group, set the offsets again, \
                 and start; or use a new application.id, which starts from nothing."
            )?;
        }
        Ok(())
    }
}
