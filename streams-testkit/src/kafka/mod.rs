//! A real Kafka for tests: [`Kafka::start`].

mod archive;
mod config;
mod jars;
mod java;
mod ports;
mod process;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rustix::process::Signal;

pub use config::Profile;
use process::Broker;

use crate::collector::{Collector, Record};
use crate::error::{Error, Result};
use crate::produce::NewRecord;
use crate::topics::Topics;
use crate::wait::{Deadline, poll};

/// The variable that names a broker which already runs.
pub const BOOTSTRAP_VARIABLE: &str = "KAFKA_BOOTSTRAP";

const START_LIMIT: Duration = Duration::from_secs(90);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How a test broker is started. The default: as the environment says, in a temporary folder, with the small profile.
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) profile: Profile,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) start_timeout: Duration,
    own: bool,
}

impl Default for KafkaOptions {
    fn default() -> Self {
        Self {
            data_dir: None,
            profile: Profile::Small,
            settings: Vec::new(),
            start_timeout: START_LIMIT,
            own: false,
        }
    }
}

impl KafkaOptions {
    /// Options for a broker that is certainly started here, also when `KAFKA_BOOTSTRAP` is set: for tests that stop, kill or pause it.
    pub fn own_broker() -> Self {
        Self {
            own: true,
            ..Self::default()
        }
    }

    /// Keeps the broker's files in `folder` (made if missing, not deleted at the end; a folder used before keeps its topics).
    /// Without this they are in a temporary folder and vanish with the [`Kafka`], or with this process; only a broker that does not start leaves its folder, for its log.
    #[must_use]
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// How much machine the broker gets.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets a broker setting (as in `server.properties`); it wins over the ones the testkit chooses.
    #[must_use]
    pub fn setting(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// The longest time from the start of the process to its first answer; 90 s unless given (a busy machine is slow).
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }
}

/// A running Kafka broker. One that was started here is killed when this is dropped, and also when this process dies.
///
/// Everything a test does with topics is here as well, see [`Topics`] and [`Collector`].
///
/// # Example
/// ```no_run
/// use streams_testkit::{Kafka, KafkaOptions, NewRecord};
///
/// let kafka = Kafka::start(KafkaOptions::default())?;
/// kafka.create_topic("usage", 4, &[])?;
/// kafka.produce("usage", [NewRecord::new("tenant-1", "17").at(1_000)])?;
/// assert_eq!(kafka.collect("usage")?.len(), 1);
/// # Ok::<(), streams_testkit::Error>(())
/// ```
#[derive(Debug)]
pub struct Kafka {
    kind: Kind,
    topics: Topics,
}

#[derive(Debug)]
enum Kind {
    External(String),
    Own(Box<Broker>),
}

impl Kafka {
    /// Starts a broker, or connects to a running one, and returns when it answers. In this order:
    ///
    /// 1. `KAFKA_BOOTSTRAP`: the broker at this address; it cannot be stopped from here (see [`KafkaOptions::own_broker`]).
    /// 2. `KAFKA_HOME`: the broker of this unpacked distribution.
    /// 3. The jars of Kafka 4.4.0, fetched once by Maven into `${XDG_CACHE_HOME:-~/.cache}/kafka-streams-rust`.
    ///
    /// # Errors
    /// [`Error::JavaMissing`], [`Error::JavaTooOld`], [`Error::MavenMissing`]: what to install ([`Error::is_missing_tool`]);
    /// [`Error::BrokerStart`] with the log file and its last lines otherwise.
    pub fn start(options: KafkaOptions) -> Result<Self> {
        let external = std::env::var(BOOTSTRAP_VARIABLE).ok().filter(|value| !value.is_empty());
        match external.filter(|_| !options.own) {
            Some(bootstrap) => {
                let topics = Topics::new(&bootstrap);
                let mut kafka = Self {
                    kind: Kind::External(bootstrap),
                    topics,
                };
                kafka.wait_ready(options.start_timeout)?;
                Ok(kafka)
            }
            None => {
                let broker = Box::new(Broker::start(options)?);
                let topics = Topics::new(broker.bootstrap());
                Ok(Self {
                    kind: Kind::Own(broker),
                    topics,
                })
            }
        }
    }

    /// Fetches what [`start`](Self::start) needs (jars, class-data archive) without starting a broker for use, so that the
    /// first test is not the slow one. Does nothing with `KAFKA_BOOTSTRAP`, or when everything is there.
    ///
    /// # Errors
    /// As `start`.
    pub fn prepare() -> Result<()> {
        if std::env::var_os(BOOTSTRAP_VARIABLE).is_some_and(|value| !value.is_empty()) {
            return Ok(());
        }
        let java = java::Java::find()?;
        let jars = jars::Distribution::locate()?;
        archive::find_or_make(&java, &jars);
        Ok(())
    }

    /// The address for clients, `host:port`. It stays the same over [`restart`](Self::restart).
    pub fn bootstrap(&self) -> &str {
        match &self.kind {
            Kind::External(bootstrap) => bootstrap,
            Kind::Own(broker) => broker.bootstrap(),
        }
    }

    /// True for a broker named by `KAFKA_BOOTSTRAP`.
    pub fn is_external(&self) -> bool {
        matches!(self.kind, Kind::External(_))
    }

    /// The folder with the broker's files; `None` for an external one.
    pub fn data_dir(&self) -> Option<&Path> {
        self.own().map(Broker::folder)
    }

    /// The broker's log; `None` for an external one.
    pub fn log_file(&self) -> Option<PathBuf> {
        self.own().map(Broker::log_file)
    }

    /// The broker's process id; `None` for an external or a stopped one.
    pub fn pid(&self) -> Option<i32> {
        self.own().and_then(Broker::pid)
    }

    /// From the start of the process to its first answer, at the last start; `None` for an external broker.
    pub fn start_time(&self) -> Option<Duration> {
        self.own().map(Broker::start_time)
    }

    /// Stops the broker as an operator would (SIGTERM); its data stay for [`restart`](Self::restart).
    ///
    /// # Errors
    /// [`Error::ExternalBroker`]; [`Error::Timeout`] if it had to be killed after 30 s.
    pub fn stop(&mut self) -> Result<()> {
        self.own_mut("stop")?.stop(STOP_LIMIT)
    }

    /// Kills the broker (SIGKILL) in the middle of whatever it does; its data stay for [`restart`](Self::restart).
    ///
    /// # Errors
    /// [`Error::ExternalBroker`].
    pub fn kill(&mut self) -> Result<()> {
        self.own_mut("kill")?.kill()
    }

    /// Starts the broker again on its data and its ports, after a [`kill`](Self::kill) or [`stop`](Self::stop); stops it first if it runs.
    ///
    /// # Errors
    /// [`Error::ExternalBroker`]; [`Error::BrokerStart`].
    pub fn restart(&mut self) -> Result<()> {
        let broker = self.own_mut("restart")?;
        broker.stop(STOP_LIMIT)?;
        broker.relaunch()
    }

    /// Freezes the broker (SIGSTOP): connections stay open, nothing answers.
    ///
    /// # Errors
    /// [`Error::ExternalBroker`]; [`Error::Usage`] if it is stopped.
    pub fn pause(&mut self) -> Result<()> {
        self.own_mut("pause")?.signal(Signal::STOP)
    }

    /// Ends [`pause`](Self::pause).
    ///
    /// # Errors
    /// [`Error::ExternalBroker`]; [`Error::Usage`] if it is stopped.
    pub fn resume(&mut self) -> Result<()> {
        self.own_mut("resume")?.signal(Signal::CONT)
    }

    /// Waits until the broker answers a metadata request.
    ///
    /// # Errors
    /// [`Error::BrokerStart`] or, for an external broker, [`Error::Timeout`].
    pub fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        match &mut self.kind {
            Kind::Own(broker) => broker.wait_ready(timeout),
            Kind::External(bootstrap) => wait_for_external(bootstrap, timeout),
        }
    }

    /// Topic helpers for this broker.
    pub fn topics(&self) -> &Topics {
        &self.topics
    }

    /// See [`Topics::create`].
    ///
    /// # Errors
    /// As there.
    pub fn create_topic(&self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Result<()> {
        self.topics.create(name, partitions, configs)
    }

    /// See [`Topics::produce`].
    ///
    /// # Errors
    /// As there.
    pub fn produce(&self, topic: &str, records: impl IntoIterator<Item = NewRecord>) -> Result<Vec<(i32, i64)>> {
        self.topics.produce(topic, records)
    }

    /// A reader of committed records.
    pub fn collector(&self) -> Collector {
        Collector::new(self.bootstrap())
    }

    /// See [`Collector::collect`].
    ///
    /// # Errors
    /// As there.
    pub fn collect(&self, topic: &str) -> Result<Vec<Record>> {
        self.collector().collect(topic)
    }

    /// See [`Collector::wait_until`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_until(
        &self,
        topic: &str,
        timeout: Duration,
        predicate: impl FnMut(&[Record]) -> bool,
    ) -> Result<Vec<Record>> {
        self.collector().wait_until(topic, timeout, predicate)
    }

    fn own(&self) -> Option<&Broker> {
        match &self.kind {
            Kind::External(_) => None,
            Kind::Own(broker) => Some(broker),
        }
    }

    fn own_mut(&mut self, action: &'static str) -> Result<&mut Broker> {
        match &mut self.kind {
            Kind::Own(broker) => Ok(broker),
            Kind::External(bootstrap) => Err(Error::ExternalBroker {
                action,
                bootstrap: bootstrap.clone(),
            }),
        }
    }
}

fn wait_for_external(bootstrap: &str, timeout: Duration) -> Result<()> {
    let what = || format!("reach the broker at {bootstrap}");
    let client: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .map_err(Error::client(what()))?;
    let deadline = Deadline::after(timeout);
    let mut last = None;
    let ready = poll(deadline, || {
        let slice = deadline.slice(Duration::from_secs(2)).max(Duration::from_millis(100));
        match client.fetch_metadata(None, slice) {
            Ok(_) => Ok(Some(())),
            Err(error) => {
                last = Some(error);
                Ok(None)
            }
        }
    })?;
    ready.ok_or_else(|| Error::Timeout {
        waiting_for: format!("the broker at {bootstrap} ({BOOTSTRAP_VARIABLE})"),
        waited: timeout,
        seen: last.map_or_else(|| "it did not answer".to_owned(), |error| error.to_string()),
    })
}
