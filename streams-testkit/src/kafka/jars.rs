//! Where the broker's jars come from: `KAFKA_HOME`, or a folder of the user's cache that Maven fills once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};
use crate::supervise::find_in_path;
use crate::wait::{Deadline, poll};

/// The reference broker.
pub(super) const KAFKA_VERSION: &str = "4.4.0";

const POM: &str = include_str!("../../assets/broker-pom.xml");

/// Another process may be fetching: as long as a slow line may need, no longer.
const LOCK_LIMIT: Duration = Duration::from_secs(300);

/// The jars of one Kafka.
#[derive(Debug, Clone)]
pub(super) struct Distribution {
    /// All jars, sorted: the class path must be the same each time for the class-data archive to fit.
    pub(super) jars: Vec<PathBuf>,
    /// As in the jar's name, for example `4.4.0`.
    pub(super) version: String,
    /// The logging configuration of an unpacked distribution, which logs by log4j.
    pub(super) log4j_config: Option<PathBuf>,
}

impl Distribution {
    /// `KAFKA_HOME` if set, else the cache, which is filled if need be.
    pub(super) fn locate() -> Result<Self> {
        match std::env::var_os("KAFKA_HOME").filter(|home| !home.is_empty()) {
            Some(home) => Self::from_home(Path::new(&home)),
            None => Self::from_folder(&cached_jars()?).map_err(Error::Usage),
        }
    }

    fn from_home(home: &Path) -> Result<Self> {
        let mut found = Self::from_folder(&home.join("libs")).map_err(|reason| Error::Home {
            path: home.to_owned(),
            reason,
        })?;
        found.log4j_config = Some(home.join("config/log4j2.yaml")).filter(|file| file.is_file());
        Ok(found)
    }

    fn from_folder(folder: &Path) -> Result<Self, String> {
        let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut jars: Vec<_> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
            .collect();
        jars.sort();
        let version = jars.iter().find_map(|jar| broker_version(jar));
        let version = version.ok_or_else(|| format!("{} has no kafka_2.13-*.jar", folder.display()))?;
        Ok(Self {
            jars,
            version,
            log4j_config: None,
        })
    }

    /// The value for `java -cp`.
    pub(super) fn class_path(&self) -> Result<std::ffi::OsString> {
        std::env::join_paths(&self.jars).map_err(|error| Error::Usage(error.to_string()))
    }

    /// True if the bootstrap snapshot that this crate carries fits.
    pub(super) fn fits_snapshot(&self) -> bool {
        self.version.starts_with("4.4.")
    }
}

fn broker_version(jar: &Path) -> Option<String> {
    let version = jar.file_stem()?.to_str()?.strip_prefix("kafka_2.13-")?;
    // Not the test, source or doc jars that may lie beside it.
    version
        .split('-')
        .next()
        .filter(|plain| plain.len() == version.len())
        .map(str::to_owned)
}

/// `${XDG_CACHE_HOME:-~/.cache}/kafka-streams-rust`.
pub(super) fn cache_root() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = set("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
    let base = base.ok_or_else(|| {
        Error::Usage("neither XDG_CACHE_HOME nor HOME is set: no place for the broker's jars".to_owned())
    })?;
    Ok(base.join("kafka-streams-rust"))
}

/// The folder with the jars, which is fetched if it is not there yet.
fn cached_jars() -> Result<PathBuf> {
    let root = cache_root()?.join(format!("kafka-{KAFKA_VERSION}"));
    let libs = root.join("libs");
    if libs.is_dir() {
        return Ok(libs);
    }
    let _lock = Lock::take(&root.join("fetch.lock"))?;
    // Someone else may have fetched while we waited for the lock.
    if !libs.is_dir() {
        fetch(&root, &libs)?;
    }
    Ok(libs)
}

/// Into a temporary folder first, then one rename: the folder exists complete or not at all.
fn fetch(root: &Path, libs: &Path) -> Result<()> {
    let maven = find_in_path("mvn").ok_or_else(|| Error::MavenMissing {
        version: KAFKA_VERSION.to_owned(),
        cache: libs.to_owned(),
    })?;
    let work = tempfile::Builder::new()
        .prefix("fetch-")
        .tempdir_in(root)
        .map_err(Error::io("make a folder in", root))?;
    let pom = work.path().join("pom.xml");
    std::fs::write(&pom, POM).map_err(Error::io("write", &pom))?;
    tracing::info!(version = KAFKA_VERSION, "fetching the broker's jars by Maven, once");
    let output = Command::new(&maven)
        .args(["-q", "-B", "-f"])
        .arg(&pom)
        .args([
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=libs",
        ])
        .stdin(Stdio::null())
        .output()
        .map_err(Error::io("run", &maven))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        return Err(Error::Fetch {
            version: KAFKA_VERSION.to_owned(),
            output: crate::last_lines(&text.concat(), 15),
        });
    }
    let fetched = work.path().join("libs");
    std::fs::rename(&fetched, libs).map_err(Error::io("move the fetched jars to", libs))
}

/// A lock between processes: the kernel lets it go when its holder dies.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code)] File); // held for its lifetime

impl Lock {
    pub(super) fn take(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        }
        let file = File::create(path).map_err(Error::io("create", path))?;
        let locked = poll(Deadline::after(LOCK_LIMIT), || {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(Some(())),
                Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
                Err(errno) => Err(Error::Io {
                    what: "lock",
                    path: path.to_owned(),
                    source: errno.into(),
                }),
            }
        })?;
        locked.map(|()| Self(file)).ok_or_else(|| Error::Timeout {
            waiting_for: format!("the lock {}", path.display()),
            waited: LOCK_LIMIT,
            seen: "another process still holds it".to_owned(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_pom_names_the_version_of_the_cache_folder() {
        assert!(POM.contains(&format!("<version>{KAFKA_VERSION}</version>")));
    }

    #[test]
    fn a_home_without_a_broker_jar_is_refused_by_name() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("libs")).unwrap();
        std::fs::write(home.path().join("libs/kafka_2.13-4.4.0-test.jar"), "").unwrap();
        let error = Distribution::from_home(home.path()).unwrap_err();
        assert!(error.to_string().contains("has no kafka_2.13-*.jar"), "{error}");
        std::fs::write(home.path().join("libs/kafka_2.13-4.2.0.jar"), "").unwrap();
        let found = Distribution::from_home(home.path()).unwrap();
        assert_eq!(found.version, "4.2.0");
        assert!(!found.fits_snapshot());
    }

    #[test]
    fn a_second_holder_gets_the_lock_when_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path).unwrap();
        let other = File::create(&path).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(first);
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok());
    }
}
