//! One broker process: start, readiness, stop, kill, restart.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rustix::process::Signal;
use tempfile::TempDir;

use super::config::{Layout, Ports, random_id};
use super::jars::Distribution;
use super::java::Java;
use super::{KafkaOptions, archive, ports};
use crate::error::{Error, Result};
use crate::supervise::{Exit, Program, Supervised};
use crate::wait::{Deadline, POLL_INTERVAL, pause};

/// New ports are tried so often when others are quicker to take them.
const PORT_TRIES: u32 = 5;
/// One metadata request.
const REQUEST_SLICE: Duration = Duration::from_secs(2);
const TAIL_LINES: usize = 20;

/// A broker that this process started.
#[derive(Debug)]
pub(crate) struct Broker {
    options: KafkaOptions,
    java: Java,
    jars: Distribution,
    extra_flags: Vec<String>,
    layout: Layout,
    cluster_id: String,
    ports: Ports,
    bootstrap: String,
    process: Option<Supervised>,
    start_time: Duration,
    /// Deletes the folder at the end, unless the caller named it.
    temporary: Option<TempDir>,
}

/// Why a launch did not lead to a ready broker.
enum Failed {
    /// Someone else has the port.
    PortTaken(Error),
    Other(Error),
}

impl Broker {
    pub(super) fn start(options: KafkaOptions) -> Result<Self> {
        let java = Java::find()?;
        let jars = Distribution::locate()?;
        let archive = options
            .profile
            .uses_archive()
            .then(|| archive::find_or_make(&java, &jars))
            .flatten();
        let flags = archive.map(|path| format!("-XX:SharedArchiveFile={}", path.display()));
        Self::start_with(options, java, jars, flags.into_iter().collect())
    }

    pub(super) fn start_with(
        options: KafkaOptions,
        java: Java,
        jars: Distribution,
        extra_flags: Vec<String>,
    ) -> Result<Self> {
        let (root, temporary) = folder_of(&options)?;
        let layout = Layout { root };
        let found = layout.cluster_id()?;
        let is_new = found.is_none();
        let cluster_id = found.unwrap_or_else(random_id);
        let ports = ports::free()?;
        let mut broker = Self {
            options,
            java,
            jars,
            extra_flags,
            layout,
            cluster_id,
            ports,
            bootstrap: String::new(),
            process: None,
            start_time: Duration::ZERO,
            temporary,
        };
        let started = match is_new {
            true => broker.format().and_then(|()| broker.launch_on_free_ports()),
            false => broker.launch_on_free_ports(),
        };
        if started.is_err() {
            // The error names the log: it stays to be read.
            let _kept = broker.temporary.take().map(TempDir::keep);
        }
        started.map(|()| broker)
    }

    pub(super) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    pub(super) fn folder(&self) -> &Path {
        &self.layout.root
    }

    pub(super) fn log_file(&self) -> PathBuf {
        self.layout.log_file()
    }

    pub(super) fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Supervised::pid)
    }

    pub(super) fn start_time(&self) -> Duration {
        self.start_time
    }

    /// SIGTERM and a bounded wait; SIGKILL if it does not end.
    pub(super) fn stop(&mut self, timeout: Duration) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        if process.terminate(timeout)?.is_some() {
            return Ok(());
        }
        process.kill()?;
        Err(Error::Timeout {
            waiting_for: format!("the broker to stop (its log is {})", self.log_file().display()),
            waited: timeout,
            seen: "it went on running, and was killed".to_owned(),
        })
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill().map(|_| ()),
            None => Ok(()),
        }
    }

    pub(super) fn signal(&mut self, signal: Signal) -> Result<()> {
        match &mut self.process {
            Some(process) => process.signal(signal),
            None => Err(Error::Usage(
                "the test broker is stopped: restart() it first".to_owned(),
            )),
        }
    }

    /// Starts again on the same folder and the same ports, so that running clients find it again.
    pub(super) fn relaunch(&mut self) -> Result<()> {
        let deadline = Deadline::after(self.options.start_timeout);
        loop {
            match self.launch(deadline) {
                Ok(()) => return Ok(()),
                // Connections of the old process may linger for a moment.
                Err(Failed::PortTaken(error)) if deadline.expired() => return Err(error),
                Err(Failed::PortTaken(_)) => pause(POLL_INTERVAL),
                Err(Failed::Other(error)) => return Err(error),
            }
        }
    }

    /// Waits until a running broker answers.
    pub(super) fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        match self.await_ready(Deadline::after(timeout), 0) {
            Ok(()) => Ok(()),
            Err(Failed::PortTaken(error) | Failed::Other(error)) => Err(error),
        }
    }

    fn format(&self) -> Result<()> {
        if self.jars.fits_snapshot() {
            return self.layout.format(&self.cluster_id);
        }
        self.format_by_tool()
    }

    fn format_by_tool(&self) -> Result<()> {
        self.layout.write_properties(self.ports, self.options.profile, &[])?;
        let output = Command::new(&self.java.path)
            .arg("-cp")
            .arg(self.jars.class_path()?)
            .args(["kafka.tools.StorageTool", "format", "-t"])
            .arg(&self.cluster_id)
            .arg("-c")
            .arg(self.layout.properties())
            .stdin(Stdio::null())
            .output()
            .map_err(Error::io("run", &self.java.path))?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::BrokerStart {
            reason: format!("Kafka {} could not format its log directory", self.jars.version),
            log: self.log_file(),
            tail: crate::last_lines(&String::from_utf8_lossy(&output.stderr), TAIL_LINES),
        })
    }

    fn launch_on_free_ports(&mut self) -> Result<()> {
        let deadline = Deadline::after(self.options.start_timeout);
        let mut tries = 1;
        loop {
            match self.launch(deadline) {
                Ok(()) => return Ok(()),
                Err(Failed::PortTaken(_)) if tries < PORT_TRIES => {
                    tries += 1;
                    self.ports = ports::free()?;
                }
                Err(Failed::PortTaken(error) | Failed::Other(error)) => return Err(error),
            }
        }
    }

    fn launch(&mut self, deadline: Deadline) -> Result<(), Failed> {
        let clock = Deadline::after(self.options.start_timeout);
        self.bootstrap = format!("127.0.0.1:{}", self.ports.client);
        let log_start = std::fs::metadata(self.log_file()).map_or(0, |meta| meta.len());
        self.process = Some(self.spawn().map_err(Failed::Other)?);
        let ready = self.await_ready(deadline, log_start);
        if ready.is_err() {
            // Dropping it kills it.
            self.process = None;
        }
        self.start_time = clock.elapsed();
        ready
    }

    fn spawn(&self) -> Result<Supervised> {
        self.layout
            .write_properties(self.ports, self.options.profile, &self.options.settings)?;
        let log = self.log_file();
        let output = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(Error::io("open", &log))?;
        let mut args: Vec<std::ffi::OsString> = Vec::new();
        args.extend(self.options.profile.jvm_flags().iter().map(Into::into));
        args.extend(self.extra_flags.iter().map(Into::into));
        args.extend(logging_flags(&self.jars, &self.layout.root));
        args.extend(["-cp".into(), self.jars.class_path()?, "kafka.Kafka".into()]);
        args.push(self.layout.properties().into());
        let program = Program {
            path: self.java.path.clone(),
            args,
            remove_if_orphaned: self.temporary.as_ref().map(|folder| folder.path().to_owned()),
            ..Program::default()
        };
        Supervised::spawn(&program, Stdio::from(output))
    }

    /// Ready: the port is open, and a metadata answer names our cluster and a broker (in KRaft only an unfenced one is named).
    fn await_ready(&mut self, deadline: Deadline, log_start: u64) -> Result<(), Failed> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.ports.client));
        loop {
            let Some(process) = &mut self.process else {
                return Err(Failed::Other(Error::Usage(
                    "the test broker is stopped: restart() it first".to_owned(),
                )));
            };
            if let Some(exit) = process.exit().map_err(Failed::Other)? {
                return Err(self.why_it_ended(exit, log_start));
            }
            if TcpStream::connect_timeout(&address, deadline.slice(REQUEST_SLICE).max(POLL_INTERVAL)).is_ok()
                && self.answers(deadline)
            {
                return Ok(());
            }
            if deadline.expired() {
                let reason = format!("no answer at {} after {:?}", self.bootstrap, deadline.elapsed());
                return Err(Failed::Other(self.start_error(reason, log_start)));
            }
            pause(POLL_INTERVAL);
        }
    }

    fn answers(&self, deadline: Deadline) -> bool {
        let slice = deadline.slice(REQUEST_SLICE).max(POLL_INTERVAL);
        // A new client each time: a failed first connection would make it back off.
        let client: Result<BaseConsumer, _> = ClientConfig::new().set("bootstrap.servers", &self.bootstrap).create();
        let Ok(client) = client else { return false };
        let named = client
            .fetch_metadata(None, slice)
            .is_ok_and(|metadata| !metadata.brokers().is_empty());
        named && client.client().fetch_cluster_id(slice).as_deref() == Some(&self.cluster_id)
    }

    fn why_it_ended(&self, exit: Exit, log_start: u64) -> Failed {
        let error = self.start_error(format!("the process ended with {exit}"), log_start);
        let taken =
            matches!(&error, Error::BrokerStart { .. }) && self.log_since(log_start).contains("Address already in use");
        if taken {
            Failed::PortTaken(error)
        } else {
            Failed::Other(error)
        }
    }

    fn start_error(&self, reason: String, log_start: u64) -> Error {
        Error::BrokerStart {
            reason,
            log: self.log_file(),
            tail: crate::last_lines(&self.log_since(log_start), TAIL_LINES),
        }
    }

    /// The log since this start; what can't be read is left out of an error message.
    fn log_since(&self, start: u64) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = std::fs::File::open(self.log_file()) {
            let _ = file.seek(SeekFrom::Start(start));
            let _ = file.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn folder_of(options: &KafkaOptions) -> Result<(PathBuf, Option<TempDir>)> {
    match &options.data_dir {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
            let folder = folder.canonicalize().map_err(Error::io("resolve", folder))?;
            Ok((folder, None))
        }
        None => {
            let temporary = tempfile::Builder::new()
                .prefix("test-kafka-")
                .tempdir()
                .map_err(Error::io("make a folder in", std::env::temp_dir()))?;
            Ok((temporary.path().to_owned(), Some(temporary)))
        }
    }
}

/// Only warnings: a quiet broker starts faster, and its log shows what matters.
fn logging_flags(jars: &Distribution, root: &Path) -> Vec<std::ffi::OsString> {
    match &jars.log4j_config {
        Some(config) => vec![
            format!("-Dlog4j2.configurationFile={}", config.display()).into(),
            format!("-Dkafka.logs.dir={}", root.join("logs").display()).into(),
        ],
        None => vec![
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".into(),
            "-Dorg.slf4j.simpleLogger.showDateTime=true".into(),
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS".into(),
        ],
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// The levels in a snapshot: each feature's name is followed by its level, two bytes.
    fn levels(snapshot: &[u8]) -> Vec<(&'static str, u16)> {
        let names = [
            "metadata.version",
            "eligible.leader.replicas.version",
            "group.version",
            "share.version",
            "streams.version",
            "transaction.version",
        ];
        names
            .into_iter()
            .map(|name| {
                let width = name.len();
                let at = snapshot
                    .windows(width)
                    .position(|window| window == name.as_bytes())
                    .unwrap_or_else(|| panic!("no {name}"));
                let level = [snapshot[at + width], snapshot[at + width + 1]];
                (name, u16::from_be_bytes(level))
            })
            .collect()
    }

    #[test]
    fn the_carried_snapshot_is_what_the_format_tool_writes() {
        let java = Java::find().unwrap_or_else(|error| panic!("{error}"));
        let jars = Distribution::locate().unwrap_or_else(|error| panic!("{error}"));
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let snapshots = folders.each_ref().map(|folder| {
            let layout = Layout {
                root: folder.path().to_owned(),
            };
            let broker = Broker {
                options: KafkaOptions::own_broker(),
                java: java.clone(),
                jars: jars.clone(),
                extra_flags: Vec::new(),
                layout,
                cluster_id: random_id(),
                ports: ports::free().unwrap(),
                bootstrap: String::new(),
                process: None,
                start_time: Duration::ZERO,
                temporary: None,
            };
            if folder.path() == folders[0].path() {
                broker.format_by_tool().unwrap_or_else(|error| panic!("{error}"));
            } else {
                broker.format().unwrap();
            }
            assert_eq!(broker.layout.cluster_id().unwrap(), Some(broker.cluster_id.clone()));
            std::fs::read(broker.layout.snapshot()).unwrap()
        });
        // Times and checksums differ, nothing else.
        assert_eq!(snapshots[0].len(), snapshots[1].len());
        assert_eq!(levels(&snapshots[0]), levels(&snapshots[1]));
        // Streams groups (KIP-1071) need this one.
        assert!(levels(&snapshots[1]).contains(&("streams.version", 1)));
    }
}
