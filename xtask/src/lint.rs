//! `cargo xtask lint`: what is checked before anything is run.

pub(crate) mod deny;
mod guide;
mod house;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Invocation, LIBRARIES, Metadata};
use crate::progress::{self, Stage};
use crate::setup;

/// All checks, or those without C++ (`core`), the house rules alone (`house`), the dependencies alone (`deny`) or the book
/// of the guide alone (`guide`).
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let subset = match args {
        [] => "all",
        [one] => one.as_str(),
        _ => bail!("`cargo xtask lint` takes one subset: core, house, deny, guide or all"),
    };
    let stages = stages(subset)?;
    let needs = if subset == "all" {
        setup::Needs::Cpp
    } else {
        setup::Needs::Rust
    };
    setup::ensure(needs)?;
    progress::run(
        &format!("lint {subset}"),
        &stages,
        &Metadata::read()?.target_dir(),
        progress::OnFailure::Stop,
    )
}

/// The checks of a subset, cheapest first.
pub(crate) fn stages(subset: &str) -> Result<Vec<Stage>> {
    let house = Stage::check("house rules", house::check);
    let core = || {
        [
            Stage::cargo("rustfmt", Invocation::new(["fmt", "--all", "--check"])),
            Stage::cargo("clippy without C++", clippy_core()),
        ]
    };
    Ok(match subset {
        "house" => vec![house],
        "deny" => vec![deny::stage()],
        "guide" => vec![guide::stage()],
        "core" => [house]
            .into_iter()
            .chain(core())
            .chain([Stage::cargo("docs without C++", docs_core())])
            .collect(),
        "all" => {
            let full = [
                deny::stage(),
                guide::stage(),
                Stage::cargo(
                    "clippy",
                    Invocation::new([
                        "clippy",
                        "--workspace",
                        "--all-features",
                        "--all-targets",
                        "--",
                        "-D",
                        "warnings",
                    ]),
                ),
                Stage::cargo(
                    "docs",
                    Invocation::new(["doc", "--workspace", "--all-features", "--no-deps"])
                        .env("RUSTDOCFLAGS", "-D warnings"),
                ),
            ];
            [house].into_iter().chain(core()).chain(full).collect()
        }
        other => bail!("there is no subset `{other}`; there are core, house, deny, guide and all"),
    })
}

fn clippy_core() -> Invocation {
    let packages = LIBRARIES.iter().chain(&["xtask"]).flat_map(|name| ["-p", name]);
    let features = [
        "--no-default-features",
        "--features",
        "streams-state/conformance,streams-core/test-hooks,streams-core/fuzzing",
    ];
    Invocation::new(["clippy"])
        .args(packages)
        .args(features)
        .args(["--all-targets", "--", "-D", "warnings"])
}

fn docs_core() -> Invocation {
    let packages = LIBRARIES.iter().flat_map(|name| ["-p", name]);
    let call = Invocation::new(["doc", "--no-deps", "--no-default-features"]).args(packages);
    call.env("RUSTDOCFLAGS", "-D warnings")
}
