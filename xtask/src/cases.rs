//! `cargo xtask cases FILE`: operator cases through the public DSL and the test driver.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::cargo::{Invocation, Metadata};
use crate::setup;

/// Runs the case runner; its exit code is ours and its last line is the last line printed.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let [file] = args else {
        bail!("usage: cargo xtask cases FILE")
    };
    let metadata = Metadata::read()?;
    let runner = metadata
        .package("streams-tests")
        .is_some_and(|package| package.targets("bin").contains(&"cases"));
    if !runner {
        bail!("the case runner (binary `cases` of streams-tests) is not part of this checkout yet");
    }
    let file = Path::new(file)
        .canonicalize()
        .with_context(|| format!("cannot read {file}"))?;
    setup::ensure(setup::Needs::Cpp)?;
    let call = call(&file.to_string_lossy());
    let status = call.status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// How the runner is called.
pub(crate) fn call(file: &str) -> Invocation {
    Invocation::new(["run", "--quiet", "-p", "streams-tests", "--bin", "cases", "--", file])
}
