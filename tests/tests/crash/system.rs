//! Kafka's own system tests: its driver as a process, our client as the processes that it starts and kills.

use std::path::{Path, PathBuf};
use std::time::Duration;

use streams_testkit::{ChildApp, Exit, Kafka, KafkaOptions};
use streams_tests::{peers, project_file};

/// Beyond the time of generating: starting the JVM, compiling the driver, catching up, verifying.
const AROUND: Duration = Duration::from_secs(240);

/// One run of `tests/peers/SmokeDriver.java`.
pub(crate) struct SystemTest {
    /// `smoke`, `relational`, `eos`.
    pub(crate) name: &'static str,
    /// The test function of this binary that is the client.
    pub(crate) client: &'static str,
    /// The jars' version of Kafka.
    pub(crate) version: &'static str,
    pub(crate) seconds: u64,
    pub(crate) kills: u64,
    /// Two words each.
    pub(crate) options: Vec<(&'static str, u64)>,
}

impl SystemTest {
    /// Runs it to a PASS, or fails the test. Its topics, and its application id partly, are fixed: the broker is one of its own, and is given
    /// back for a closer look. `None` = this machine lacks what the driver needs, which is printed.
    pub(crate) fn assert_passes(&self) -> Option<Kafka> {
        let libs = match peers::jars(self.version) {
            Ok(libs) => libs,
            Err(missing) => {
                println!("NOT RUN, because there is no {missing}");
                return None;
            }
        };
        let kafka = Kafka::start(KafkaOptions::own_broker()).unwrap();
        let work = tempfile::tempdir().unwrap();
        let mut driver = self.driver(&libs, work.path(), &kafka).start().unwrap();
        let exit = driver.wait(AROUND + Duration::from_secs(self.seconds)).unwrap();
        let lines = driver.lines().join("\n");
        let is_verdict = |line: &&str| line.contains(&format!(" {} guarantee=", self.name));
        let verdict = lines.lines().find(is_verdict).unwrap_or_default();
        println!("{verdict}");
        assert_eq!(exit, Exit::Code(0), "{lines}\n{}", logs_end(work.path()));
        let passed = format!(
            "PASS {} guarantee=exactly_once_v2 proto=streams instances=2 ",
            self.name
        );
        assert!(
            verdict.starts_with(&passed) && verdict.contains(&format!(" kills={} ", self.kills)),
            "{lines}"
        );
        Some(kafka)
    }

    fn driver(&self, libs: &Path, work: &Path, kafka: &Kafka) -> ChildApp {
        let client: PathBuf = std::env::current_exe().unwrap();
        let (seconds, kills) = (("--seconds", self.seconds), ("--kills", self.kills));
        let options = self.options.iter().chain([&seconds, &kills]);
        ChildApp::new("java")
            .args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
            .arg(format!("{}/*", libs.display()))
            .arg(project_file("tests/peers/SmokeDriver.java"))
            .args([self.name, "--proto", "streams", "--instances", "2", "--dir"])
            .arg(work)
            .args(options.flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]))
            .arg("--")
            .arg(client)
            .args(["--exact", self.client, "--include-ignored", "--nocapture"])
            .env("STREAMS_TESTKIT_CHILD", self.client)
            .env("RUST_BACKTRACE", "0")
            .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
    }
}

/// A number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
    })
}

/// The last lines that driver and clients printed.
fn logs_end(work: &Path) -> String {
    let mut text = String::new();
    for log in ["driver", "client-0", "client-1"] {
        let printed = std::fs::read_to_string(work.join(format!("{log}.log"))).unwrap_or_default();
        let lines: Vec<&str> = printed.lines().collect();
        let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
        text += &format!("--- {log}\n{}\n", last.join("\n"));
    }
    text
}
