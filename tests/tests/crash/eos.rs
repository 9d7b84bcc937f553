//! Kafka's own exactly-once system test (`EosTestDriver` of its 4.2.0 test jar) against our client, with SIGKILLs.
//!
//! The driver generates, kills, and compares every output record by record with a replay of the input, in order. Its
//! topics and application id are fixed, so it has a broker of its own. `STREAMS_CRASH_EOS_SECONDS` says for how long it
//! generates (12 s unless set) and `STREAMS_CRASH_EOS_KILLS` how often it kills (2). Its jars come through Maven, once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use streams_testkit::{ChildApp, Exit, Kafka, KafkaOptions, is_child_of_test};
use streams_tests::project_file;

const APP: &str = "eos::client";
const VERSION: &str = "4.2.0";
/// Beyond the time of generating: starting the JVM, compiling the driver, catching up, verifying.
const AROUND: Duration = Duration::from_secs(240);

#[test]
fn kafkas_own_exactly_once_test_passes_with_two_instances_and_kills() {
    let (seconds, kills) = (
        setting("STREAMS_CRASH_EOS_SECONDS", 12),
        setting("STREAMS_CRASH_EOS_KILLS", 2),
    );
    let libs = match driver_jars() {
        Ok(libs) => libs,
        Err(missing) => {
            println!("NOT RUN, because there is no {missing}");
            return;
        }
    };
    let kafka = Kafka::start(KafkaOptions::own_broker()).unwrap();
    let work = tempfile::tempdir().unwrap();
    let client = std::env::current_exe().unwrap();
    let mut driver = ChildApp::new("java")
        .args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"])
        .arg(format!("{}/*", libs.display()))
        .arg(project_file("tests/peers/SmokeDriver.java"))
        .args(["eos", "--proto", "streams", "--instances", "2", "--progress", "20"])
        .args([
            "--seconds",
            &seconds.to_string(),
            "--kills",
            &kills.to_string(),
            "--dir",
        ])
        .arg(work.path())
        .arg("--")
        .arg(client)
        .args(["--exact", APP, "--include-ignored", "--nocapture"])
        .env("STREAMS_TESTKIT_CHILD", APP)
        .env("RUST_BACKTRACE", "0")
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap())
        .start()
        .unwrap();
    let exit = driver.wait(AROUND + Duration::from_secs(seconds)).unwrap();
    let lines = driver.lines().join("\n");
    let verdict = lines
        .lines()
        .find(|line| line.contains(" eos guarantee="))
        .unwrap_or_default();
    println!("{verdict}");
    assert_eq!(exit, Exit::Code(0), "{lines}\n{}", clients_end(work.path()));
    assert!(
        verdict.starts_with("PASS eos guarantee=exactly_once_v2 proto=streams instances=2 ")
            && verdict.contains(&format!(" kills={kills} ")),
        "{lines}"
    );
}

#[test]
#[ignore = "run by kafkas_own_exactly_once_test_passes_with_two_instances_and_kills"]
fn client() {
    if is_child_of_test(APP) {
        benches::eos::client().unwrap();
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number"))
    })
}

/// The folder with the driver's jars, fetched if it is not there; `Err` = what this machine lacks.
fn driver_jars() -> Result<PathBuf, &'static str> {
    let found = |program: &str| Command::new(program).arg("-version").output().is_ok();
    // The driver is one source file: running it takes the compiler too.
    if !found("javac") {
        return Err("JDK");
    }
    let root = match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => return Err("home directory"),
    };
    let root = root.join(format!("kafka-streams-rust/peers-{VERSION}"));
    let libs = root.join("libs");
    if libs.is_dir() {
        return Ok(libs);
    }
    if !found("mvn") {
        return Err("Maven");
    }
    std::fs::create_dir_all(&root).unwrap();
    // One rename at the end: the folder exists complete or not at all.
    let work = tempfile::tempdir_in(&root).unwrap();
    let fetched = work.path().join("libs");
    let output = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(project_file("tests/peers/pom.xml"))
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", fetched.display()))
        .args([
            format!("-Dkafka.version={VERSION}"),
            format!("-Dkafka.test.version={VERSION}"),
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    std::fs::rename(fetched, &libs).unwrap();
    Ok(libs)
}

/// The last lines that the clients printed.
fn clients_end(work: &Path) -> String {
    let mut text = String::new();
    for client in 0..2 {
        let printed = std::fs::read_to_string(work.join(format!("client-{client}.log"))).unwrap_or_default();
        let lines: Vec<&str> = printed.lines().collect();
        let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
        text += &format!("--- client {client}\n{}\n", last.join("\n"));
    }
    text
}
