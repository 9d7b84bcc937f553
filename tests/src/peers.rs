//! The Java half of tests: Kafka's own jars through Maven, once, into the user's cache folder.

use std::path::PathBuf;
use std::process::Command;

use crate::project_file;

/// The Kafka Streams that operators are compared with. Its test classes are of the version before: none newer are published.
pub const CURRENT: &str = "4.4.0";
const CURRENT_TEST: &str = "4.3.1";

/// The folder with the jars of a version of Kafka and its test classes, fetched if it is not there; `Err` = what this
/// machine lacks.
///
/// # Panics
/// Fails the test if Maven does.
pub fn jars(version: &str) -> Result<PathBuf, &'static str> {
    let found = |program: &str| Command::new(program).arg("-version").output().is_ok();
    // The Java programs are source files: running them takes the compiler too.
    if !found("javac") {
        return Err("JDK");
    }
    let root = match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => return Err("home directory"),
    };
    let root = root.join(format!("kafka-streams-rust/peers-{version}"));
    let libs = root.join("libs");
    if libs.is_dir() {
        return Ok(libs);
    }
    if !found("mvn") {
        return Err("Maven");
    }
    if let Err(error) = fetch(version, &root, &libs) {
        panic!("the jars of Kafka {version} can't be fetched: {error}");
    }
    Ok(libs)
}

fn fetch(version: &str, root: &std::path::Path, libs: &std::path::Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(root).map_err(text)?;
    // One rename at the end: the folder exists complete or not at all.
    let work = tempfile::tempdir_in(root).map_err(text)?;
    let fetched = work.path().join("libs");
    let test_version = if version == CURRENT { CURRENT_TEST } else { version };
    let output = Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(project_file("tests/peers/pom.xml"))
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", fetched.display()))
        .args([
            format!("-Dkafka.version={version}"),
            format!("-Dkafka.test.version={test_version}"),
        ])
        .output()
        .map_err(text)?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    match std::fs::rename(fetched, libs) {
        // Somebody else was faster.
        Err(_) if libs.is_dir() => Ok(()),
        renamed => renamed.map_err(text),
    }
}
