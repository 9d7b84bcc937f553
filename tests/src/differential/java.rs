//! Java's test driver in one JVM: a case a line goes in, its result comes out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::{peers, project_file};

/// Beyond any case: starting and compiling take about three seconds, a case milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// The running JVM. It ends when this is dropped.
pub struct Java {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
}

impl Java {
    /// Starts it.
    ///
    /// # Errors
    /// What this machine lacks, or why the JVM does not start.
    pub fn start() -> Result<Java, String> {
        let libs = peers::jars(peers::CURRENT).map_err(|missing| format!("there is no {missing}"))?;
        let mut child = Command::new("java")
            .args(["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
            .arg("-cp")
            .arg(format!("{}/*", libs.display()))
            .arg(project_file("tests/peers/RunCases.java"))
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (sender, answers) = channel();
        let output = child.stdout.take().ok_or("no output of the JVM")?;
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let orders = child.stdin.take();
        Ok(Java { child, orders, answers })
    }

    /// What Java's driver gives for a case.
    ///
    /// # Errors
    /// When the JVM ended, or does not answer.
    pub fn run(&mut self, case: &Value) -> Result<Value, String> {
        let orders = self.orders.as_mut().ok_or("no input of the JVM")?;
        writeln!(orders, "{case}").map_err(|error| format!("the JVM has ended: {error}"))?;
        orders.flush().map_err(|error| format!("the JVM has ended: {error}"))?;
        match self.answers.recv_timeout(ANSWER_LIMIT) {
            Ok(line) => serde_json::from_str(&line).map_err(|error| format!("{error}: {line}")),
            Err(RecvTimeoutError::Timeout) => Err(format!("the JVM does not answer: {case}")),
            Err(RecvTimeoutError::Disconnected) => Err(format!("the JVM has ended: {case}")),
        }
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
