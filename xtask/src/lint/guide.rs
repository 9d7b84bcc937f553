//! The user guide (`docs/guide`) as a book, by mdBook. Its Rust blocks are doctests of streams-dsl, its timelines a test
//! there, its links a house rule; here it has to build.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Metadata};
use crate::progress::Stage;
use crate::tools::Tool;

/// Without its server, its watcher and its search.
const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    options: &["--no-default-features"],
};

/// Builds the book below the target directory. It needs no network once mdBook is there.
pub(crate) fn stage() -> Stage {
    Stage::check("guide", build)
}

fn build() -> Result<()> {
    let program = MDBOOK.installed()?;
    let folder = Metadata::read()?.target_dir().join("guide");
    let output = Command::new(&program)
        .current_dir(cargo::root())
        .args(["build", "docs/guide", "--dest-dir"])
        .arg(&folder)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`mdbook build docs/guide` ended with {}:\n{told}",
        output.status
    );
    // A broken book is built all the same, with a warning.
    let warned = told
        .lines()
        .find(|line| line.contains("WARN") || line.contains("ERROR"));
    ensure!(warned.is_none(), "mdBook warns:\n{told}");
    Ok(())
}
