//! What the test binaries share: one broker per binary, names that nothing else uses, files of this project.
//!
//! A test binary is a list of modules (`tests/broker.rs`, `tests/crash.rs`, `tests/offline.rs`): few binaries, because
//! linking librdkafka and RocksDB is slow. A test that stops or kills its broker starts one of its own
//! ([`streams_testkit::KafkaOptions::own_broker`]).
#![allow(clippy::panic)] // a harness fails its test

pub mod acls;
pub mod cases;
pub mod differential;
pub mod local;
pub mod peers;

use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use streams_testkit::{Kafka, KafkaOptions};

/// The broker that the tests of this binary share, started by the first that asks. It ends, with its files, when the binary does.
///
/// # Panics
/// Fails the test if no broker can be started; the message says what to install.
pub fn broker() -> &'static Kafka {
    static BROKER: OnceLock<Result<Kafka, String>> = OnceLock::new();
    let started = BROKER.get_or_init(|| Kafka::start(KafkaOptions::default()).map_err(|error| error.to_string()));
    match started {
        Ok(kafka) => kafka,
        Err(error) => panic!("{error}"),
    }
}

/// `name` with a suffix that no other test and no other run uses, for topics, application ids and transactional ids on a
/// shared broker, which may be one that outlives this run.
pub fn unique(name: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    static RUN: OnceLock<u32> = OnceLock::new();
    // The hasher's keys are random per process.
    let run = RUN.get_or_init(|| {
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        (random >> 32) as u32
    });
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{run:08x}-{count}")
}

/// Makes a topic of a unique name on the shared broker, and returns that name.
///
/// # Panics
/// Fails the test if the broker refuses.
pub fn topic(name: &str, partitions: i32) -> String {
    topic_with(name, partitions, &[])
}

/// [`topic`] with topic configs.
///
/// # Panics
/// As there.
pub fn topic_with(name: &str, partitions: i32, configs: &[(&str, &str)]) -> String {
    let name = unique(name);
    if let Err(error) = broker().create_topic(&name, partitions, configs) {
        panic!("{error}");
    }
    name
}

/// A file of this project, by its path from the root, for example `tests/cases/given.json`.
///
/// The checkout is that of the run: `CARGO_MANIFEST_DIR`, which cargo sets for tests, else the working folder, is in it.
/// A path noted while compiling may be that of another checkout with the same target folder.
///
/// # Panics
/// When neither of them lies in a checkout that has the file.
pub fn project_file(path: &str) -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let starts = [told, std::env::current_dir().ok()];
    let found = starts.iter().flatten().find_map(|start| file_above(start, path));
    found.unwrap_or_else(|| panic!("there is no {path} above {starts:?}: run this inside a checkout"))
}

fn file_above(start: &Path, path: &str) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|folder| folder.join(path))
        .find(|file| file.exists())
}

#[cfg(test)]
mod tests {
    use super::{Path, file_above, project_file, unique};

    #[test]
    fn unique_names_keep_their_stem_and_differ() {
        let (one, two) = (unique("orders"), unique("orders"));
        assert!(one.starts_with("orders-") && two.starts_with("orders-"));
        assert_ne!(one, two);
    }

    #[test]
    fn project_files_are_those_of_the_running_checkout() {
        let told = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let file = project_file("tests/cases/given.json");
        assert_eq!(file, Path::new(&told).join("cases/given.json"));
        assert_eq!(file_above(Path::new(&told), "tests/no-such-file"), None);
    }
}
