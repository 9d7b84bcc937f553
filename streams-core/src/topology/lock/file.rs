//! The text of a lockfile.

use super::{Facts, Section, TopologyLock};

/// The version of the format. A reader refuses newer ones.
const VERSION: u32 = 1;

const HEAD: &str = "\
# What this topology leaves behind in stores and topics, compared with each new version by a test of the program.
# Written by that test; commit it, and read its changes like those of a public interface.
";

/// Why a lockfile can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// A line that is neither a section nor a fact, or a fact before the first section.
    #[error(
        "line {line} of the lockfile can't be read: `{text}`: restore the file from version control, or write it anew"
    )]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The version of the format is missing, or newer than what this program knows.
    #[error(
        "the lockfile has the version `{found}`, this program reads versions up to 1: use the version of the library that \
         wrote it, or a newer one"
    )]
    Version {
        /// What stands there.
        found: String,
    },
}

pub(super) fn write(lock: &TopologyLock) -> String {
    let mut text = format!("{HEAD}version = {VERSION}\n");
    for (section, facts) in &lock.sections {
        let name = match section {
            Section::Subtopology(id) => format!("sub-topology {id}"),
            Section::Store(name) => format!("store {name}"),
            Section::Repartition(name) => format!("repartition {name}"),
        };
        text.push_str(&format!("\n[{name}]\n"));
        for (key, value) in facts {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text
}

pub(super) fn parse(text: &str) -> Result<TopologyLock, LockError> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let version = lines.next().and_then(|(_, line)| line.strip_prefix("version = "));
    let version = version.unwrap_or_default();
    if version.parse().ok().is_none_or(|version: u32| version != VERSION) {
        return Err(LockError::Version {
            found: version.to_owned(),
        });
    }
    let mut lock = TopologyLock::default();
    let mut current: Option<Section> = None;
    for (number, line) in lines {
        let unreadable = || LockError::Line {
            line: number,
            text: line.to_owned(),
        };
        if let Some(inside) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let section = section(inside).ok_or_else(unreadable)?;
            if lock.sections.insert(section.clone(), Facts::new()).is_some() {
                return Err(unreadable());
            }
            current = Some(section);
            continue;
        }
        let (key, value) = line.split_once(" =").ok_or_else(unreadable)?;
        let section = current.as_ref().ok_or_else(unreadable)?;
        let facts = lock.sections.entry(section.clone()).or_default();
        if facts.insert(key.to_owned(), value.trim().to_owned()).is_some() {
            return Err(unreadable());
        }
    }
    Ok(lock)
}

fn section(inside: &str) -> Option<Section> {
    let (kind, name) = inside.split_once(' ')?;
    match kind {
        "sub-topology" => name.parse().ok().map(Section::Subtopology),
        "store" => Some(Section::Store(name.to_owned())),
        "repartition" => Some(Section::Repartition(name.to_owned())),
        _ => None,
    }
}
