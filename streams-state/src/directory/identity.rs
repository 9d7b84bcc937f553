//! Who a process is: a process id and a member id per stream thread, kept so that a restart resumes at once.
//!
//! A copy of the file (a copied directory, a baked image, a restored volume) must not make a second process of the same
//! name: the file knows its host, its own inode and its own birth, and a mismatch makes a new identity (rule 6.1).

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{host_name, write_atomically};
use crate::error::StateError;

const NAME: &str = "identity.json";
const VERSION: u32 = 1;

/// Who this process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The process id: a random UUID, or the given `process.id`.
    pub process_id: String,
    /// Where it came from.
    pub origin: IdentityOrigin,
}

/// Where an identity came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentityOrigin {
    /// Made now: the first start here.
    Created,
    /// Kept from an earlier start.
    Kept,
    /// Given by the configuration.
    Given,
    /// There was one, but not of this place: a new one was made. Costs one session timeout.
    Replaced {
        /// What did not fit.
        reason: String,
    },
}

impl ProcessIdentity {
    pub(super) fn warning(&self, folder: &Path) -> Option<String> {
        let IdentityOrigin::Replaced { reason } = &self.origin else {
            return None;
        };
        Some(format!(
            "the identity in {} was not made here ({reason}): this process has a new one, {}; \
             if the directory was copied from a running instance, remove the copy's state",
            folder.display(),
            self.process_id
        ))
    }
}

/// A random id that nobody had before.
pub(super) fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The identity file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IdentityFile {
    version: u32,
    process_id: String,
    /// Member ids by number of the stream thread, from 1.
    members: BTreeMap<usize, String>,
    fingerprint: Fingerprint,
    /// The process id was given: the fingerprint is not asked.
    #[serde(default)]
    given: bool,
}

/// What a copy of the file cannot copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    host: String,
    inode: u64,
    created_at_ms: Option<i64>,
}

impl Fingerprint {
    fn of(file: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(file);
        #[cfg(not(unix))]
        let inode = 0;
        let age = file
            .created()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let created_at_ms = age.and_then(|age| i64::try_from(age.as_millis()).ok());
        Self {
            host: host_name(),
            inode,
            created_at_ms,
        }
    }

    fn difference(&self, other: &Self) -> Option<String> {
        if self.host != other.host {
            return Some(format!("it was made on host {:?}, this is {:?}", self.host, other.host));
        }
        if self.inode != other.inode || self.created_at_ms != other.created_at_ms {
            return Some("the file is a copy".to_owned());
        }
        None
    }
}

impl IdentityFile {
    pub(super) fn load_or_create(folder: &Path, given: Option<&str>) -> Result<(Self, IdentityOrigin), StateError> {
        let found = Self::load(folder)?;
        if let Some(process_id) = given {
            let same = found
                .and_then(Result::ok)
                .map(|(file, _)| file)
                .filter(|file| file.process_id == process_id);
            let mut file = same.unwrap_or_else(|| Self::new(process_id.to_owned()));
            file.given = true;
            file.store(folder)?;
            return Ok((file, IdentityOrigin::Given));
        }
        let origin = match found {
            None => IdentityOrigin::Created,
            Some(Err(reason)) => IdentityOrigin::Replaced { reason },
            // A given id must not live on when it is not given any more: it may be another process's by now.
            Some(Ok((file, _))) if file.given => IdentityOrigin::Created,
            Some(Ok((file, here))) => match file.fingerprint.difference(&here) {
                None => return Ok((file, IdentityOrigin::Kept)),
                Some(reason) => IdentityOrigin::Replaced { reason },
            },
        };
        let mut file = Self::new(fresh_id());
        file.store(folder)?;
        Ok((file, origin))
    }

    fn new(process_id: String) -> Self {
        let fingerprint = Fingerprint::default();
        Self {
            version: VERSION,
            process_id,
            members: BTreeMap::new(),
            fingerprint,
            given: false,
        }
    }

    /// The file and the fingerprint of the place where it was found; `Some(Err)` if it is not readable.
    #[allow(clippy::type_complexity)] // three outcomes, used once
    fn load(folder: &Path) -> Result<Option<Result<(Self, Fingerprint), String>>, StateError> {
        let path = folder.join(NAME);
        let read = || -> std::io::Result<(String, Metadata)> {
            let file = File::open(&path)?;
            Ok((std::io::read_to_string(&file)?, file.metadata()?))
        };
        let (text, metadata) = match read() {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Ok(Some(Err("it is no text".to_owned())));
            }
            Err(error) => return Err(StateError::io("read", &path, error)),
        };
        Ok(Some(match Self::decode(&text) {
            Ok(file) if file.version > VERSION => {
                return Err(StateError::NewerFormat {
                    path,
                    found: file.version,
                    known: VERSION,
                });
            }
            Ok(file) => Ok((file, Fingerprint::of(&metadata))),
            Err(error) => Err(format!("it cannot be read: {error}")),
        }))
    }

    fn store(&mut self, folder: &Path) -> Result<(), StateError> {
        write_atomically(folder, NAME, |file| {
            self.fingerprint = Fingerprint::of(&file.metadata()?);
            Ok(self.encode()?)
        })
    }

    pub(super) fn decode(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self)
    }

    /// An identity with a member, of no place.
    #[cfg(feature = "fuzzing")]
    pub(super) fn example() -> Self {
        let mut file = Self::new("7f6c0a3e-1d5e-4c53-9d0c-0f6f8f6f1a01".to_owned());
        file.members.insert(0, "member-0".to_owned());
        file.fingerprint.created_at_ms = Some(1_700_000_000_000);
        file
    }

    pub(super) fn process_id(&self) -> &str {
        &self.process_id
    }

    pub(super) fn member_id(&mut self, folder: &Path, thread: usize) -> Result<String, StateError> {
        if let Some(member) = self.members.get(&thread) {
            return Ok(member.clone());
        }
        // From a given process id the member ids follow, so that they are the same where no volume keeps them.
        let member = if self.given {
            format!("{}-{thread}", self.process_id)
        } else {
            fresh_id()
        };
        let mut changed = self.clone();
        changed.members.insert(thread, member.clone());
        changed.store(folder)?;
        *self = changed;
        Ok(member)
    }

    /// A new member id for a thread, stored in place of the one it had, which is answered too.
    pub(super) fn renew(&mut self, folder: &Path, thread: usize) -> Result<(String, Option<String>), StateError> {
        let member = fresh_id();
        let mut changed = self.clone();
        let before = changed.members.insert(thread, member.clone());
        changed.store(folder)?;
        *self = changed;
        Ok((member, before))
    }

    pub(super) fn surplus(&self, threads: usize) -> Vec<(usize, String)> {
        self.members
            .range(threads.saturating_add(1)..)
            .map(|(thread, member)| (*thread, member.clone()))
            .collect()
    }

    pub(super) fn forget(&mut self, folder: &Path, thread: usize) -> Result<(), StateError> {
        let mut changed = self.clone();
        if changed.members.remove(&thread).is_some() {
            changed.store(folder)?;
            *self = changed;
        }
        Ok(())
    }
}
