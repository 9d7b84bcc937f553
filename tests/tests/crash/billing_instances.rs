//! The billing example as two processes with two threads each: one of them dies again and again, at random moments and
//! once inside each step of a commit, a restore and a hand-over, and not one cent is lost or doubled.
//!
//! `STREAMS_CRASH_BILLING_KILLS` says how many SIGKILLs (4 unless set), `STREAMS_CRASH_BILLING_DATA` names a folder with other data than
//! the January sample, `STREAMS_TEST_SEED` repeats the moments.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use streams_testkit::{Backlog, ChildApp, Exit, Kafka, RunningApp, Seeded, is_child_of_test, wait_until};
use streams_tests::{broker, unique};
use usage_billing::data::DataDir;
use usage_billing::feed::{self, Feed, FeedRecord};
use usage_billing::plain;
use usage_billing::report::Results;
use usage_billing::run::{RunOptions, run};
use usage_billing::sample_dir;
use usage_billing::topics::Names;

const APP: &str = "billing_instances::app";
const LIMIT: Duration = Duration::from_secs(120);
/// For everything to be billed when nobody is killed any more: a year takes longer than a month.
const END_LIMIT: Duration = Duration::from_secs(900);
/// From the moment that its tasks run to its kill.
const LIFE: std::ops::RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(800);
const INSTANCES: [&str; 2] = ["A", "B"];

struct Billing {
    kafka: &'static Kafka,
    prefix: String,
    names: Names,
    root: tempfile::TempDir,
}

impl Billing {
    fn new(name: &str, feed: &Feed) -> Self {
        let (kafka, prefix) = (broker(), format!("{}.", unique(name)));
        let names = Names::with_prefix(&prefix);
        names.create(kafka).unwrap();
        feed.write_tables(kafka, &names).unwrap();
        let root = tempfile::tempdir().unwrap();
        Billing {
            kafka,
            prefix,
            names,
            root,
        }
    }

    fn directory(&self, instance: &str) -> PathBuf {
        self.root.path().join(instance)
    }

    /// Starts an instance; `hook` arms a crash point.
    fn start(&self, instance: &str, hook: &str) -> RunningApp {
        let orders = format!("{}\n{}", self.prefix, self.directory(instance).display());
        ChildApp::this_test(APP)
            .unwrap()
            .env("KAFKA_BOOTSTRAP", self.kafka.bootstrap())
            .env("BILLING", orders)
            .env("STREAMS_TEST_HOOKS", hook)
            .env("STREAMS_STREAMS_HEARTBEAT_MAX_MS", "500")
            .start()
            .unwrap()
    }

    fn feed(&self, departures: &[FeedRecord]) {
        feed::write(self.kafka, &self.names.raw(), departures).unwrap();
    }

    /// Lets both finish what is fed, and stops them.
    fn finish(&self, running: Vec<RunningApp>, how: &str) {
        let group = self.names.application_id();
        let mut backlog = Backlog::open(self.kafka.bootstrap(), &group, self.names.inputs()).unwrap();
        let done = wait_until("everything to be billed", END_LIMIT, || Ok(backlog.remaining()? == 0));
        if let Err(error) = done {
            let lines: Vec<String> = running.iter().map(|running| running.lines().join("\n")).collect();
            panic!("{error}, {how}:\n{}", lines.join("\n=====\n"));
        }
        for mut running in running {
            let exit = running.terminate(LIMIT).unwrap();
            assert_eq!(exit, Exit::Code(0), "{how}:\n{}", running.lines().join("\n"));
        }
    }

    /// Compares what came out with a plain recomputation from the rows that `take` chooses.
    fn assert_right(&self, data: &DataDir, take: fn(usize) -> bool, feed: &Feed, how: &str) {
        let expected = plain::compute(data, take).unwrap();
        let differences = Results::read(self.kafka, &self.names)
            .unwrap()
            .differences(&expected, feed);
        assert!(differences.is_empty(), "{how}:\n{}", differences.join("\n"));
    }
}

fn wait_running(running: &mut RunningApp) {
    running
        .wait_for_line(LIMIT, |line| line.contains("STATE RUNNING"))
        .unwrap();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test that tells how long it took")]
fn two_processes_bill_every_cent_once_under_sigkills() {
    let started = Instant::now();
    let kills: usize = std::env::var("STREAMS_CRASH_BILLING_KILLS").map_or(4, |kills| kills.parse().unwrap());
    let data = DataDir::new(std::env::var_os("STREAMS_CRASH_BILLING_DATA").map_or_else(sample_dir, PathBuf::from));
    let feed = Feed::read(&data, |_| true).unwrap();
    let billing = Billing::new("two", &feed);
    let mut seeded = Seeded::from_env().unwrap();
    // Every kill hits work, of a victim that has work left when it comes back.
    let mut slices = feed.departures.chunks(feed.departures.len().div_ceil(kills + 1));
    let mut running: Vec<RunningApp> = INSTANCES.iter().map(|name| billing.start(name, "")).collect();
    running.iter_mut().for_each(wait_running);
    for _ in 0..kills {
        billing.feed(slices.next().unwrap_or_default());
        let victim = usize::try_from(seeded.below(2)).unwrap();
        let alive = running[victim].wait(seeded.duration(&LIFE)).is_err();
        assert!(alive, "it ended by itself:\n{}", running[victim].lines().join("\n"));
        running[victim].kill().unwrap();
        running[victim] = billing.start(INSTANCES[victim], "");
        wait_running(&mut running[victim]);
    }
    slices.for_each(|departures| billing.feed(departures));
    let how = format!("{kills} SIGKILLs, seed {}", seeded.seed());
    billing.finish(running, &how);
    billing.assert_right(&data, |_| true, &feed, &how);
    println!(
        "two processes with two threads each billed {} departures right to the cent under {how}, in {:.1} s",
        feed.departures.len(),
        started.elapsed().as_secs_f64()
    );
}

#[cfg(feature = "test-hooks")]
mod hooked {
    use super::*;

    /// SIGABRT.
    const ABORTED: Exit = Exit::Signal(6);
    /// Every point that a member passes while it works.
    const AT_WORK: [&str; 5] = [
        "after-send",
        "after-flush-before-offsets",
        "after-offsets-sent-before-commit",
        "after-commit-before-apply",
        "after-apply",
    ];

    fn dies(running: &mut RunningApp, point: &str) {
        let exit = running.wait(LIMIT).unwrap();
        assert_eq!(exit, ABORTED, "{point}:\n{}", running.lines().join("\n"));
    }

    #[test]
    fn two_processes_bill_every_cent_once_when_one_dies_inside_each_step() {
        let data = DataDir::new(sample_dir());
        let feed = Feed::read(&data, |row| row % 4 == 0).unwrap();
        let billing = Billing::new("steps", &feed);
        let mut slices = feed
            .departures
            .chunks(feed.departures.len().div_ceil(AT_WORK.len() + 3));
        let mut next = || billing.feed(slices.next().unwrap_or_default());
        let mut other = billing.start("B", "");
        for point in AT_WORK {
            let mut victim = billing.start("A", &format!("{point}=abort"));
            next();
            dies(&mut victim, point);
        }
        // Its first acknowledgement, and a restore of all that it has.
        dies(
            &mut billing.start("A", "before-acknowledge=abort"),
            "before-acknowledge",
        );
        for folder in std::fs::read_dir(state_of(&billing)).unwrap() {
            let path = folder.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            }
        }
        dies(&mut billing.start("A", "during-restore=abort"), "during-restore");
        next();
        // It takes the tasks of the other, which leaves, and dies when it has to give them back.
        let mut victim = billing.start("A", "during-revoke=abort");
        wait_running(&mut victim);
        assert_eq!(
            other.terminate(LIMIT).unwrap(),
            Exit::Code(0),
            "{}",
            other.lines().join("\n")
        );
        next();
        other = billing.start("B", "");
        dies(&mut victim, "during-revoke");
        let victim = billing.start("A", "");
        slices.for_each(|departures| billing.feed(departures));
        billing.finish(vec![victim, other], "a death at each step");
        billing.assert_right(&data, |row| row % 4 == 0, &feed, "a death at each step");
    }

    /// The folder with the tasks' state of the victim.
    fn state_of(billing: &Billing) -> PathBuf {
        billing
            .directory("A")
            .join(billing.names.application_id())
            .join("rust-v1")
    }
}

#[test]
#[ignore = "run by two_processes_bill_every_cent_once_under_sigkills"]
fn app() {
    if !is_child_of_test(APP) {
        return;
    }
    let orders = std::env::var("BILLING").unwrap();
    let (prefix, state_dir) = orders.split_once('\n').unwrap();
    let options = RunOptions {
        bootstrap: std::env::var("KAFKA_BOOTSTRAP").unwrap(),
        names: Names::with_prefix(prefix),
        state_dir: PathBuf::from(state_dir),
        threads: 2,
        kill_after: None,
        serve: Some(std::net::SocketAddr::new(usage_billing::endpoint::ADDRESS.ip(), 0)),
    };
    run(&options).unwrap();
}
