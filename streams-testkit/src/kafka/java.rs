//! Finds the Java that runs the broker.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::supervise::{find_in_path, is_executable};

/// The oldest Java that Kafka 4 brokers run on (KIP-1013).
pub(super) const OLDEST_JAVA: u32 = 17;

/// A Java that will do.
#[derive(Debug, Clone)]
pub(super) struct Java {
    pub(super) path: PathBuf,
    /// Tells builds apart: a class-data archive belongs to one build of the JVM.
    pub(super) build: String,
}

impl Java {
    /// `JAVA_HOME`, else `PATH`.
    pub(super) fn find() -> Result<Self> {
        let home = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
        let path = match &home {
            Some(home) => Some(Path::new(home).join("bin/java")).filter(|java| is_executable(java)),
            None => find_in_path("java"),
        };
        let path = path.ok_or_else(|| Error::JavaMissing {
            searched: match &home {
                Some(home) => format!("JAVA_HOME={}", Path::new(home).display()),
                None => "JAVA_HOME, which is not set, and PATH".to_owned(),
            },
            needed: OLDEST_JAVA,
        })?;
        Self::check(path)
    }

    fn check(path: PathBuf) -> Result<Self> {
        let build = match describe_by_release_file(&path) {
            Some(build) => build,
            None => describe_by_running(&path)?,
        };
        let found = major_version(&build).unwrap_or(0);
        if found < OLDEST_JAVA {
            return Err(Error::JavaTooOld {
                path,
                found,
                needed: OLDEST_JAVA,
            });
        }
        Ok(Self { path, build })
    }
}

/// Every JDK since 9 has this file beside `bin`; reading it saves the start of a JVM.
fn describe_by_release_file(java: &Path) -> Option<String> {
    let real = java.canonicalize().ok()?;
    let release = std::fs::read_to_string(real.parent()?.parent()?.join("release")).ok()?;
    major_version(&release).map(|_| format!("{}\n{release}", real.display()))
}

fn describe_by_running(java: &Path) -> Result<String> {
    let output = Command::new(java)
        .arg("-version")
        .output()
        .map_err(Error::io("run", java))?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The major version in a release file (`JAVA_VERSION="17.0.15"`) or in `java -version` (`openjdk version "17.0.15" …`).
fn major_version(text: &str) -> Option<u32> {
    let start = ["JAVA_VERSION=\"", "version \""]
        .iter()
        .find_map(|mark| text.split_once(mark))?
        .1;
    let mut numbers = start.split(|c: char| !c.is_ascii_digit());
    match numbers.next()?.parse().ok()? {
        // "1.8.0_402": until Java 8 the major version stood in the second place.
        1 => numbers.next()?.parse().ok(),
        major => Some(major),
    }
}

#[cfg(test)]
mod tests {
    use super::major_version;

    #[test]
    fn the_major_version_is_read_from_either_text() {
        assert_eq!(major_version("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"17.0.15\"\n"), Some(17));
        assert_eq!(major_version("openjdk version \"25\" 2025-09-16"), Some(25));
        assert_eq!(major_version("java version \"1.8.0_402\""), Some(8));
        assert_eq!(major_version("no java here"), None);
    }
}
