//! What can go wrong, named by what the reader has to do about it.

use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "kafka")]
use rdkafka::error::KafkaError;

/// The result of this crate's calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a test broker, a topic helper or a child process did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no Java to run a broker with: install it, or name a running broker.
    #[error(
        "no Java found (looked at {searched}). A test broker needs Java {needed} or newer: \
         on Debian or Ubuntu `apt-get install openjdk-17-jre-headless maven`, elsewhere any JDK {needed}+ with `java` in PATH \
         or JAVA_HOME set. Or set KAFKA_BOOTSTRAP=host:port to use a broker that already runs"
    )]
    JavaMissing {
        /// The places that were looked at.
        searched: String,
        /// The oldest major version that will do.
        needed: u32,
    },
    /// The Java that was found is too old for the broker.
    #[error(
        "{path} is Java {found}, but a test broker needs Java {needed} or newer: on Debian or Ubuntu \
         `apt-get install openjdk-17-jre-headless`, then point JAVA_HOME at it"
    )]
    JavaTooOld {
        /// The program that was found.
        path: PathBuf,
        /// Its major version.
        found: u32,
        /// The oldest major version that will do.
        needed: u32,
    },
    /// The broker's jars are not in the cache yet and there is no Maven to fetch them.
    #[error(
        "Maven (`mvn`) is not in PATH, and the jars of Kafka {version} are not in {cache} yet. Install it (on Debian or Ubuntu \
         `apt-get install maven`), or set KAFKA_HOME to an unpacked Kafka, or KAFKA_BOOTSTRAP=host:port to a running broker"
    )]
    MavenMissing {
        /// The Kafka version that is wanted.
        version: String,
        /// The folder the jars would be in.
        cache: PathBuf,
    },
    /// Maven could not fetch the jars.
    #[error(
        "Maven could not fetch the jars of Kafka {version} (is its repository reachable?). Its output ends:\n{output}"
    )]
    Fetch {
        /// The Kafka version that was asked for.
        version: String,
        /// The end of Maven's output.
        output: String,
    },
    /// `KAFKA_HOME` does not hold a Kafka.
    #[error("KAFKA_HOME={path} does not hold a Kafka distribution: {reason}")]
    Home {
        /// The value of the variable.
        path: PathBuf,
        /// What is missing there.
        reason: String,
    },
    /// A file or process operation failed.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// What was attempted, as a verb.
        what: &'static str,
        /// The file, folder or program.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The broker process ended, or did not answer in time.
    #[error("the test broker did not start: {reason}. Its log is {log}; it ends:\n{tail}")]
    BrokerStart {
        /// What happened.
        reason: String,
        /// The log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },
    /// A broker that was not started here cannot be stopped, killed or paused here.
    #[error(
        "cannot {action} the broker at {bootstrap}: it was named by KAFKA_BOOTSTRAP and is not ours. \
         Use KafkaOptions::own_broker() for tests that need this"
    )]
    ExternalBroker {
        /// What was asked for.
        action: &'static str,
        /// The address of that broker.
        bootstrap: String,
    },
    /// Kafka refused a request, or could not be reached.
    #[cfg(feature = "kafka")]
    #[error("cannot {what}: {source}")]
    Client {
        /// What was attempted, with topic and partition where there is one.
        what: String,
        /// The cause.
        #[source]
        source: KafkaError,
    },
    /// A bounded wait ended without what it waited for.
    #[error("waited {waited:?} for {waiting_for}, but {seen}")]
    Timeout {
        /// What should have happened.
        waiting_for: String,
        /// How long was waited.
        waited: Duration,
        /// What was seen instead.
        seen: String,
    },
    /// A child process ended although the test still needed it, or ended badly.
    #[error("the child process {program} {reason}. Its output ends:\n{tail}")]
    Child {
        /// The program.
        program: PathBuf,
        /// What it did.
        reason: String,
        /// The last lines of its output.
        tail: String,
    },
    /// The arguments contradict each other or name something that does not exist.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    #[cfg(feature = "kafka")]
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }

    #[cfg(feature = "kafka")]
    pub(crate) fn client(what: impl Into<String>) -> impl FnOnce(KafkaError) -> Self {
        let what = what.into();
        move |source| Self::Client { what, source }
    }

    /// True if the broker can't run on this machine because a program is missing or too old, so that the message says what to install.
    pub fn is_missing_tool(&self) -> bool {
        matches!(
            self,
            Self::JavaMissing { .. } | Self::JavaTooOld { .. } | Self::MavenMissing { .. }
        )
    }
}
