//! Programs that xtask installs for itself, each of one pinned version, so that a new release does not turn a green build
//! red. They lie in `${XDG_CACHE_HOME:-~/.cache}/kafka-streams-rust/tools`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Invocation};

/// A program from crates.io.
pub(crate) struct Tool {
    /// The package, which is the program's name too.
    pub(crate) name: &'static str,
    /// The version.
    pub(crate) version: &'static str,
    /// Options of `cargo install`, such as a choice of features.
    pub(crate) options: &'static [&'static str],
}

impl Tool {
    /// The program, installed if it is not there.
    pub(crate) fn installed(&self) -> Result<PathBuf> {
        let root = cargo::cache_dir()
            .join("tools")
            .join(format!("{}-{}", self.name, self.version));
        let program = root.join("bin").join(self.name);
        if program.is_file() {
            return Ok(program);
        }
        let call = self.install(&root);
        eprintln!("    {} is installed once, some minutes: {}", self.name, call.shown());
        let status = call.status()?;
        ensure!(status.success(), "`{}` ended with {status}", call.shown());
        // Only the program is needed again.
        std::fs::remove_dir_all(root.join("target"))
            .with_context(|| format!("cannot remove the compiled parts of {}", self.name))?;
        Ok(program)
    }

    /// Unoptimized: compiling is the cost here, and a run takes about a second either way.
    fn install(&self, root: &Path) -> Invocation {
        let path = root.display().to_string();
        Invocation::new(["install", self.name, "--locked", "--debug", "--version", self.version])
            .args(["--root", &path])
            .args(self.options.iter().copied())
            .env("CARGO_TARGET_DIR", &root.join("target").display().to_string())
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
    }
}
