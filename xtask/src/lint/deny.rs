//! cargo-deny: licences, bans and sources of the dependencies. It is installed on first use.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo;
use crate::progress::Stage;
use crate::tools::Tool;

const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
    options: &[],
};

/// The check of every change. It needs no network once cargo-deny is there.
pub(crate) fn stage() -> Stage {
    Stage::check("cargo-deny", || run(&["licenses", "bans", "sources"]))
}

/// Known vulnerabilities: needs the advisory database from the network, and changes without a change of ours.
pub(crate) fn advisories() -> Stage {
    Stage::check("advisories", || run(&["advisories"]))
}

fn run(checks: &[&str]) -> Result<()> {
    let program = CARGO_DENY.installed()?;
    let mut command = Command::new(&program);
    command
        .current_dir(cargo::root())
        .args(["--locked", "--workspace", "check", "--hide-inclusion-graph"])
        .args(checks);
    eprintln!("    cargo-deny check {}", checks.join(" "));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(
        status.success(),
        "`{} check {}` ended with {status}",
        program.display(),
        checks.join(" ")
    );
    Ok(())
}
