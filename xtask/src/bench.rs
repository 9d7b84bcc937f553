//! `cargo xtask bench NAME`: one benchmark, or the list.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Invocation, Metadata, Package};
use crate::progress;
use crate::setup;

/// Runs a benchmark by name; further arguments go to it.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let metadata = Metadata::read()?;
    let Some(package) = metadata.package("benches") else {
        bail!("the package `benches` is missing")
    };
    let Some((name, rest)) = args.split_first() else {
        println!("cargo xtask bench NAME [ARGS], where NAME is one of:");
        package
            .targets("bin")
            .iter()
            .chain(&package.targets("bench"))
            .for_each(|name| println!("  {name}"));
        return Ok(ExitCode::SUCCESS);
    };
    let Some(call) = call(&package, name) else {
        bail!("there is no benchmark `{name}`; `cargo xtask bench` lists them");
    };
    setup::ensure(setup::Needs::Everything)?;
    let call = call.args(optimized()).args(["--"].map(str::to_owned));
    progress::run_call(&call.args(rest.iter().cloned()), &metadata.target_dir())?;
    Ok(ExitCode::SUCCESS)
}

/// Our own crates are built as an application's release build has them. The C++ is not touched: its packages keep their
/// profile.
fn optimized() -> Vec<String> {
    let ours = ["streams-core", "streams-state", "streams-dsl", "benches"];
    let settings = ["opt-level=3", "debug-assertions=false", "overflow-checks=false"];
    let each = |name: &&str| settings.map(|setting| format!("profile.dev.package.{name}.{setting}"));
    ours.iter()
        .flat_map(each)
        .flat_map(|setting| ["--config".to_owned(), setting])
        .collect()
}

fn call(package: &Package<'_>, name: &str) -> Option<Invocation> {
    if package.targets("bin").contains(&name) {
        return Some(Invocation::new(["run", "-p", "benches", "--bin", name]));
    }
    // The dev profile is optimized; the bench profile would compile RocksDB a second time.
    let bench = || Invocation::new(["bench", "-p", "benches", "--profile", "dev", "--bench", name]);
    package.targets("bench").contains(&name).then(bench)
}

/// The calls of all benchmarks.
#[cfg(test)]
pub(crate) fn calls(package: &Package<'_>) -> Vec<Invocation> {
    let names = package.targets("bin").into_iter().chain(package.targets("bench"));
    names.filter_map(|name| call(package, name)).collect()
}
