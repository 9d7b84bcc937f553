//! `cargo xtask demo`: the billing example on a real Kafka, killed once in the middle.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Invocation, Metadata};
use crate::progress;
use crate::setup;

/// Compiles the example, then runs it with `--demo`; further arguments (such as `--data DIR`) go to it.
///
/// The example owns the demonstration: broker, feeding, SIGKILL, restart, tables, and an exit code that is 0 only if
/// every invoice is right. xtask knows nothing of Kafka.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let metadata = Metadata::read()?;
    if metadata.package("usage-billing").is_none() {
        bail!("the billing example (examples/usage-billing) is not part of this checkout yet: there is no demo to run");
    }
    if let Err(error) = setup::ensure(setup::Needs::Everything) {
        setup::ensure(setup::Needs::Cpp)?;
        eprintln!("{error:#}\nWithout them there is no Kafka to start: the demo runs on the test driver.");
    }
    progress::run_call(&build(), &metadata.target_dir())?;
    let call = run(args);
    eprintln!("    {}", call.shown());
    let status = call.status()?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Compiling is a step of its own, so that the demo's own times hold no compilation.
pub(crate) fn build() -> Invocation {
    Invocation::new(["build", "-p", "usage-billing"])
}

/// The demonstration itself.
pub(crate) fn run(args: &[String]) -> Invocation {
    Invocation::new(["run", "--quiet", "-p", "usage-billing", "--", "--demo"]).args(args.iter().cloned())
}
