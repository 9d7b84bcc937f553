//! The broker's settings and its freshly formatted log directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{Error, Result};

/// Written by Kafka's own format tool; see `assets/README.md`.
const SNAPSHOT: &[u8] = include_bytes!("../../assets/bootstrap-4.4.checkpoint");

/// Where a KRaft node looks for its first snapshot: offset 0, epoch 0.
const SNAPSHOT_PATH: &str = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";

/// The only node of a test cluster.
const NODE_ID: i32 = 1;

/// What differs from Kafka's defaults, and why.
const SETTINGS: &[(&str, &str)] = &[
    // One node: every internal topic has one replica, and few partitions, because each costs files and start-up time.
    ("offsets.topic.replication.factor", "1"),
    ("offsets.topic.num.partitions", "4"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    ("transaction.state.log.num.partitions", "4"),
    ("share.coordinator.state.topic.replication.factor", "1"),
    ("share.coordinator.state.topic.min.isr", "1"),
    ("share.coordinator.state.topic.num.partitions", "1"),
    // Test data has old event times: with the default of 7 days the broker deletes it at its next check.
    ("log.retention.ms", "-1"),
    // Changelogs of windows have a retention of their own. The first look comes 5 minutes after the start by default.
    ("log.retention.check.interval.ms", "86400000"),
    // A group of one member need not wait for others.
    ("group.initial.rebalance.delay.ms", "0"),
    ("group.streams.initial.rebalance.delay.ms", "0"),
    // Lets a test ask for short sessions and heartbeats of a streams group (the defaults are 45 and 5 s at least).
    ("group.streams.min.session.timeout.ms", "6000"),
    ("group.streams.min.heartbeat.interval.ms", "1000"),
    // A transaction left open by a killed producer is aborted soon after its timeout (default: looks every 10 s).
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "1000"),
    // After a SIGKILL the controller refuses the new process of a broker until the session of the old one has ended
    // (default: 9 s). Not shorter than this, or a busy machine fences a broker that lives.
    ("broker.session.timeout.ms", "3000"),
    ("broker.heartbeat.interval.ms", "500"),
    // A misspelt topic is an error, not an empty topic.
    ("auto.create.topics.enable", "false"),
];

/// The log cleaner's table is 128 MB by default, half of the small heap; this is enough for 300,000 keys in one pass.
const SMALL_HEAP_SETTINGS: &[(&str, &str)] = &[("log.cleaner.dedupe.buffer.size", "8388608")];

/// How much machine the broker gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// For tests: 256 MB heap, serial collector, quick compilation and a class-data archive: up in 2 to 3 s.
    #[default]
    Small,
    /// For measurements: 1 GB heap and the JVM's normal collector and compilers; starts slower, serves faster.
    Bench,
}

impl Profile {
    /// The flags of the JVM.
    pub(super) fn jvm_flags(self) -> &'static [&'static str] {
        match self {
            Self::Small => &[
                "-Xms64m",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
            ],
            Self::Bench => &["-Xms256m", "-Xmx1g"],
        }
    }

    /// Quick starts are the small profile's business; code from an archive is never compiled to the end.
    pub(super) fn uses_archive(self) -> bool {
        self == Self::Small
    }

    fn settings(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Small => SMALL_HEAP_SETTINGS,
            Self::Bench => &[],
        }
    }
}

/// The two ports of a node that is broker and controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ports {
    pub(super) client: u16,
    pub(super) controller: u16,
}

/// The folder of one broker.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) root: PathBuf,
}

impl Layout {
    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("data")
    }

    pub(super) fn properties(&self) -> PathBuf {
        self.root.join("server.properties")
    }

    pub(super) fn log_file(&self) -> PathBuf {
        self.root.join("broker.log")
    }

    pub(super) fn snapshot(&self) -> PathBuf {
        self.logs().join(SNAPSHOT_PATH)
    }

    fn meta(&self) -> PathBuf {
        self.logs().join("meta.properties")
    }

    /// The cluster id of a folder that has been formatted.
    pub(super) fn cluster_id(&self) -> Result<Option<String>> {
        let meta = self.meta();
        if !meta.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&meta).map_err(Error::io("read", &meta))?;
        let id = text.lines().find_map(|line| line.strip_prefix("cluster.id="));
        id.map(|id| Some(id.to_owned())).ok_or_else(|| {
            Error::Usage(format!(
                "{} has no cluster.id: not the folder of a test broker",
                meta.display()
            ))
        })
    }

    /// Writes what the format tool would write, without a JVM start; see `assets/README.md`.
    pub(super) fn format(&self, cluster_id: &str) -> Result<()> {
        let snapshot = self.snapshot();
        if let Some(folder) = snapshot.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
        }
        std::fs::write(&snapshot, SNAPSHOT).map_err(Error::io("write", &snapshot))?;
        let meta = self.meta();
        let directory_id = random_id();
        let text = format!("node.id={NODE_ID}\ndirectory.id={directory_id}\nversion=1\ncluster.id={cluster_id}\n");
        std::fs::write(&meta, text).map_err(Error::io("write", &meta))
    }

    /// Writes `server.properties`; later entries win, so `extra` overrides ours.
    pub(super) fn write_properties(&self, ports: Ports, profile: Profile, extra: &[(String, String)]) -> Result<()> {
        let path = self.properties();
        let text = properties(&self.logs(), ports, profile, extra)?;
        std::fs::write(&path, text).map_err(Error::io("write", &path))
    }
}

fn properties(logs: &Path, ports: Ports, profile: Profile, extra: &[(String, String)]) -> Result<String> {
    let Ports { client, controller } = ports;
    let logs = logs.to_str().filter(|path| !path.contains(',')).ok_or_else(|| {
        Error::Usage(format!(
            "{} cannot be a broker's folder: no commas, UTF-8 only",
            logs.display()
        ))
    })?;
    let own = [
        ("process.roles", "broker,controller".to_owned()),
        ("node.id", NODE_ID.to_string()),
        ("controller.quorum.voters", format!("{NODE_ID}@127.0.0.1:{controller}")),
        (
            "listeners",
            format!("PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}"),
        ),
        ("advertised.listeners", format!("PLAINTEXT://127.0.0.1:{client}")),
        ("controller.listener.names", "CONTROLLER".to_owned()),
        ("inter.broker.listener.name", "PLAINTEXT".to_owned()),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_owned(),
        ),
        ("log.dirs", logs.to_owned()),
    ];
    let mut text = String::new();
    let fixed = SETTINGS
        .iter()
        .chain(profile.settings())
        .map(|&(key, value)| (key, value));
    let all = own
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .chain(fixed)
        .chain(extra.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    for (key, value) in all {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key}={}", escape(value));
    }
    Ok(text)
}

/// `java.util.Properties` reads ISO 8859-1 with backslash escapes.
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for unit in value.encode_utf16() {
        match u8::try_from(unit) {
            Ok(b'\\') => escaped.push_str("\\\\"),
            Ok(b'\n') => escaped.push_str("\\n"),
            Ok(byte) if byte.is_ascii() => escaped.push(char::from(byte)),
            _ => {
                let _ = write!(escaped, "\\u{unit:04X}");
            }
        }
    }
    escaped
}

/// A random id in Kafka's form: 16 bytes in URL-safe base64, never with a leading dash (`org.apache.kafka.common.Uuid`).
pub(super) fn random_id() -> String {
    loop {
        let id = URL_SAFE_NO_PAD.encode(uuid::Uuid::new_v4().as_bytes());
        if !id.starts_with('-') {
            return id;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        client: 19092,
        controller: 19093,
    };

    #[test]
    fn given_settings_come_last_and_so_win() {
        let extra = [("log.retention.ms".to_owned(), "1000".to_owned())];
        let text = properties(Path::new("/d"), PORTS, Profile::Small, &extra).unwrap();
        let of_retention: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("log.retention.ms="))
            .collect();
        assert_eq!(of_retention, ["log.retention.ms=-1", "log.retention.ms=1000"]);
        assert!(text.contains("listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093\n"));
    }

    #[test]
    fn values_are_escaped_as_java_properties() {
        assert_eq!(escape(r"C:\x"), r"C:\\x");
        assert_eq!(escape("/tmp/ü"), r"/tmp/\u00FC");
        assert_eq!(escape("🦀"), r"\uD83E\uDD80");
    }

    #[test]
    fn a_comma_would_make_two_folders_and_is_refused() {
        let error = properties(Path::new("/a,b"), PORTS, Profile::Small, &[]).unwrap_err();
        assert!(error.to_string().contains("no commas"), "{error}");
    }

    #[test]
    fn a_formatted_folder_tells_its_cluster_id() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout {
            root: folder.path().to_owned(),
        };
        assert_eq!(layout.cluster_id().unwrap(), None);
        let id = random_id();
        assert_eq!(id.len(), 22);
        layout.format(&id).unwrap();
        assert_eq!(layout.cluster_id().unwrap(), Some(id));
        assert_eq!(std::fs::read(layout.snapshot()).unwrap(), SNAPSHOT);
    }
}
