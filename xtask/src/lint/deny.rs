//! cargo-deny: licences, bans and sources of the dependencies. It is installed on first use.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Invocation};
use crate::progress::Stage;

/// Pinned, so that a new release does not turn a green build red.
const VERSION: &str = "0.20.2";

/// The check of every change. It needs no network once cargo-deny is there.
pub(crate) fn stage() -> Stage {
    Stage::check("cargo-deny", || run(&["licenses", "bans", "sources"]))
}

/// Known vulnerabilities: needs the advisory database from the network, and changes without a change of ours.
pub(crate) fn advisories() -> Stage {
    Stage::check("advisories", || run(&["advisories"]))
}

fn run(checks: &[&str]) -> Result<()> {
    let program = installed()?;
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

/// The program of the pinned version, installed if it is not there.
fn installed() -> Result<PathBuf> {
    let root = cargo::cache_dir().join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin").join("cargo-deny");
    if program.is_file() {
        return Ok(program);
    }
    let call = install(&root);
    eprintln!("    cargo-deny is installed once, some minutes: {}", call.shown());
    let status = call.status()?;
    ensure!(status.success(), "`{}` ended with {status}", call.shown());
    // Only the program is needed again.
    std::fs::remove_dir_all(root.join("target")).context("cannot remove cargo-deny's compiled parts")?;
    Ok(program)
}

/// Unoptimized: compiling is the cost here, and a check takes about a second either way.
fn install(root: &Path) -> Invocation {
    let path = root.display().to_string();
    Invocation::new([
        "install",
        "cargo-deny",
        "--locked",
        "--debug",
        "--version",
        VERSION,
        "--root",
        &path,
    ])
    .env("CARGO_TARGET_DIR", &root.join("target").display().to_string())
    .env("CARGO_PROFILE_DEV_DEBUG", "false")
}
