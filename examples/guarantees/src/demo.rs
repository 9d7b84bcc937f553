//! Runs the application under each guarantee, with the same kills, and compares.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use streams_testkit::{ChildApp, Exit, Kafka, NewRecord, RunningApp, wait_until};

use crate::tally::{Tally, head};
use crate::{GUARANTEES, Names};

/// Orders put in.
const ORDERS: usize = 6_000;
/// Customers that they are of.
const CUSTOMERS: usize = 100;
/// The order, counted in each process anew, that kills the first, second and third process.
const KILLS: [u64; 3] = [1_250, 900, 1_550];
const PARTITIONS: i32 = 2;
/// How long one process may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Shows the table.
///
/// # Errors
/// When something fails, or a guarantee was broken.
pub fn run(kafka: &Kafka, prefix: &str) -> Result<()> {
    println!(
        "Kafka at {}; {ORDERS} orders of {CUSTOMERS} customers, {} SIGKILLs each\n",
        kafka.bootstrap(),
        KILLS.len()
    );
    println!("{}", head());
    let mut broken = Vec::new();
    for (guarantee, name) in GUARANTEES {
        let tally = under_kills(kafka, prefix, name)?;
        println!("{name:<18} {tally}");
        broken.extend(
            tally
                .broken(guarantee)
                .into_iter()
                .map(|finding| format!("{name}: {finding}")),
        );
    }
    if !broken.is_empty() {
        bail!("a guarantee was broken:\n  {}", broken.join("\n  "));
    }
    println!("\n{}", meaning());
    Ok(())
}

fn meaning() -> &'static str {
    "exactly_once_v2 lost nothing and doubled nothing; at_least_once doubled what it had sent since its last commit;
at_most_once lost what it had claimed and not sent. Counts are cached and written when a commit or a claim ends: at least
once they are at most as far off as the doubled orders, and at most once each kill loses those of the claim in hand."
}

/// One guarantee: the processes one after the other, then what they left.
fn under_kills(kafka: &Kafka, prefix: &str, guarantee: &str) -> Result<Tally> {
    let names = Names::new(&format!("{prefix}{guarantee}"));
    for topic in [names.orders(), names.shipped(), names.counts()] {
        kafka.create_topic(&topic, PARTITIONS, &[])?;
    }
    let order = |number: usize| NewRecord::new(format!("customer-{:03}", number * 37 % CUSTOMERS), format!("{number}"));
    kafka.produce(&names.orders(), (0..ORDERS).map(order))?;
    let state = tempfile::tempdir()?;
    for kill_at in KILLS {
        let mut running = start(kafka, guarantee, &names, state.path(), Some(kill_at))?;
        let exit = running.wait(LIMIT).with_context(|| output(&running))?;
        if exit != Exit::Signal(9) {
            bail!(
                "the process should have killed itself, it ended with {exit}: {}",
                output(&running)
            );
        }
    }
    let mut running = start(kafka, guarantee, &names, state.path(), None)?;
    let end = kafka.topics().end_offsets(&names.orders())?;
    wait_until("every order to be committed", LIMIT, || {
        Ok(kafka.topics().committed_offsets(names.prefix(), &names.orders())? == end)
    })
    .with_context(|| output(&running))?;
    let exit = running.terminate(LIMIT)?;
    if !exit.is_success() {
        bail!("the last process ended with {exit}: {}", output(&running));
    }
    tally(kafka, &names)
}

fn start(kafka: &Kafka, guarantee: &str, names: &Names, state_dir: &Path, kill_at: Option<u64>) -> Result<RunningApp> {
    let mut app = ChildApp::new(std::env::current_exe()?)
        .args(["--as-application", guarantee, "--prefix", names.prefix(), "--state-dir"])
        .arg(state_dir.as_os_str())
        .env("KAFKA_BOOTSTRAP", kafka.bootstrap());
    if let Some(kill_at) = kill_at {
        app = app.args(["--kill-at", &kill_at.to_string()]);
    }
    Ok(app.start()?)
}

fn output(running: &RunningApp) -> String {
    format!("it printed:\n{}", running.lines().join("\n"))
}

/// What a reader of committed records finds.
fn tally(kafka: &Kafka, names: &Names) -> Result<Tally> {
    let shipped = kafka.collect(&names.shipped())?;
    let numbers = shipped.iter().map(|record| record.value_text().parse::<usize>());
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let counts = kafka.collect(&names.counts())?;
    let mut last = std::collections::BTreeMap::new();
    for record in &counts {
        let bytes: [u8; 8] = record
            .value
            .as_deref()
            .unwrap_or_default()
            .try_into()
            .context("a count has eight bytes")?;
        last.insert(record.key_text(), i64::from_be_bytes(bytes));
    }
    Ok(Tally::new(ORDERS, numbers, last.into_values()))
}
