//! `cargo xtask simulate`: the core in a seeded world where things go wrong. Compiles no C++.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo::Invocation;
use crate::setup;

/// How many seeds every change runs.
const SEEDS_OF_A_CHANGE: u64 = 300;

/// Runs the simulator; its arguments are `--seeds N`, `--seed S`, `--topology NAME`, `--trace`.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    setup::ensure(setup::Needs::Rust)?;
    let call = call(args);
    let status = call.status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// What every change runs: the simulator's own tests, its examples, and 300 seeds.
pub(crate) fn calls_of_a_change() -> Vec<Invocation> {
    let seeds = ["--seeds".to_owned(), SEEDS_OF_A_CHANGE.to_string()];
    vec![
        testkit("test").args(["--lib"]),
        testkit("test").args(["--doc", "simulate"]),
        call(&seeds),
    ]
}

/// How the simulator is called.
pub(crate) fn call(args: &[String]) -> Invocation {
    testkit("run")
        .args(["--quiet", "--example", "simulate", "--"])
        .args(args.iter().cloned())
}

fn testkit(command: &str) -> Invocation {
    Invocation::new([command, "-p", "streams-testkit"]).args(["--no-default-features", "--features", "simulate"])
}
