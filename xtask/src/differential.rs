//! `cargo xtask differential`: seeded topologies through Java's test driver and ours.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo::Invocation;
use crate::setup;

/// Runs it; its arguments are `--topologies N`, `--seed S`, `--case FILE`, `--show`.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    setup::ensure(setup::Needs::Everything)?;
    let status = call(args).status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// How it is called.
pub(crate) fn call(args: &[String]) -> Invocation {
    Invocation::new(["run", "--quiet", "-p", "streams-tests", "--bin", "differential", "--"]).args(args.iter().cloned())
}
