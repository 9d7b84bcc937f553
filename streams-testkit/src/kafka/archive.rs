//! A class-data archive (AppCDS) of the broker: made once per Java and Kafka build, it halves the broker's start.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::Profile;
use super::jars::{Distribution, Lock, cache_root};
use super::java::Java;
use super::process::Broker;
use crate::error::{Error, Result};
use crate::{KafkaOptions, NewRecord, Transaction};

/// Writing the archive takes the JVM 5 to 15 s at its exit.
const DUMP_LIMIT: Duration = Duration::from_secs(120);

/// The archive for this Java and these jars, made if need be. Without one the broker starts all the same, only slower.
pub(super) fn find_or_make(java: &Java, jars: &Distribution) -> Option<PathBuf> {
    match try_find_or_make(java, jars) {
        Ok(archive) => Some(archive),
        Err(error) => {
            tracing::warn!(%error, "no class-data archive: brokers start more slowly");
            None
        }
    }
}

fn try_find_or_make(java: &Java, jars: &Distribution) -> Result<PathBuf> {
    let folder = cache_root()?.join("class-data");
    let archive = folder.join(format!("{:016x}.jsa", fingerprint(java, jars)));
    if archive.is_file() {
        return Ok(archive);
    }
    let _lock = Lock::take(&archive.with_extension("lock"))?;
    if !archive.is_file() {
        make(java, jars, &archive)?;
    }
    Ok(archive)
}

/// Runs a broker through a short life; at its exit the JVM writes the classes it has loaded.
fn make(java: &Java, jars: &Distribution, archive: &Path) -> Result<()> {
    tracing::info!("making the class-data archive of the test broker, once (some 10 s)");
    let work = tempfile::tempdir().map_err(Error::io("make a folder in", std::env::temp_dir()))?;
    let unfinished = archive.with_extension(format!("{}.tmp", std::process::id()));
    let flag = format!("-XX:ArchiveClassesAtExit={}", unfinished.display());
    let options = KafkaOptions::own_broker().data_dir(work.path()).profile(Profile::Small);
    let mut broker = Broker::start_with(options, java.clone(), jars.clone(), vec![flag])?;
    exercise(broker.bootstrap())?;
    broker.stop(DUMP_LIMIT)?;
    std::fs::rename(&unfinished, archive).map_err(Error::io("move the class data to", archive))
}

/// What nearly every test does, so that those classes are in the archive too.
fn exercise(bootstrap: &str) -> Result<()> {
    let topics = crate::Topics::new(bootstrap);
    topics.create("exercise", 1, &[])?;
    let transaction = Transaction::begin(bootstrap, "exercise")?;
    transaction.send("exercise", [NewRecord::new("key", "value")])?;
    transaction.commit()?;
    crate::Collector::new(bootstrap).collect("exercise").map(|_| ())
}

/// An archive fits one build of the JVM and one list of unchanged jars; the JVM ignores it otherwise.
fn fingerprint(java: &Java, jars: &Distribution) -> u64 {
    let mut text = java.build.clone();
    for jar in &jars.jars {
        let meta = std::fs::metadata(jar).ok();
        let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
        text.push_str(&format!(
            "\n{} {:?} {changed:?}",
            jar.display(),
            meta.map(|meta| meta.len())
        ));
    }
    fnv1a(text.as_bytes())
}

/// FNV-1a: the same in every build of this crate, unlike the standard library's hasher.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_hash_is_fnv1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
