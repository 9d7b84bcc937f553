//! `cargo xtask test`: the tests in order of cost.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::cargo::{Invocation, LIBRARIES, Metadata};
use crate::features;
use crate::progress::{self, Stage, Work};
use crate::{setup, simulate};

/// Test binaries of `streams-tests` that are not written yet. A binary that is missing without standing here is a
/// failure: deleting a test file must not make the run greener.
const NOT_WRITTEN_YET: [&str; 0] = [];

/// Runs one subset, or all.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let subset = match args {
        [] => "all",
        [one] => one.as_str(),
        _ => bail!("`cargo xtask test` takes one subset; for single tests use `cargo test -p PACKAGE NAME`"),
    };
    let metadata = Metadata::read()?;
    let stages = stages(subset, &metadata)?;
    let needs = match subset {
        "core" => setup::Needs::Rust,
        "offline" => setup::Needs::Cpp,
        _ => setup::Needs::Everything,
    };
    setup::ensure(needs)?;
    progress::run(
        &format!("test {subset}"),
        &stages,
        &metadata.target_dir(),
        progress::OnFailure::Stop,
    )
}

/// The stages of a subset.
pub(crate) fn stages(subset: &str, metadata: &Metadata) -> Result<Vec<Stage>> {
    Ok(match subset {
        "core" => core_stages(metadata),
        "offline" => [core_stages(metadata), offline_stages(metadata)?]
            .into_iter()
            .flatten()
            .collect(),
        "broker" => broker_stages(metadata)?,
        "crash" => vec![test_binary("crash", metadata)?],
        "all" => {
            let crash = vec![test_binary("crash", metadata)?];
            let parts = [
                core_stages(metadata),
                offline_stages(metadata)?,
                broker_stages(metadata)?,
                crash,
            ];
            parts.into_iter().flatten().collect()
        }
        other => bail!("there is no subset `{other}`; there are core, offline, broker, crash and all"),
    })
}

/// Without C++: seconds.
fn core_stages(metadata: &Metadata) -> Vec<Stage> {
    vec![
        Stage::cargo("core without C++", core_tests()),
        Stage::cargo_each("simulator", simulate::calls_of_a_change()),
        Stage::cargo("xtask", Invocation::new(["test", "-p", "xtask"])),
        Stage::cargo_each("each feature alone, without C++", features::checks(metadata, false)),
    ]
}

/// The tests and doctests of the libraries without C++, with the store conformance suite, the crash points and the
/// decoders.
pub(crate) fn core_tests() -> Invocation {
    let packages = LIBRARIES.iter().flat_map(|name| ["-p", name]);
    Invocation::new(["test"]).args(packages).args([
        "--no-default-features",
        "--features",
        "streams-state/conformance,streams-core/test-hooks,streams-core/fuzzing",
    ])
}

/// Every call with C++ tests a part of the same build: all packages with all features. With a choice of packages cargo
/// would choose other features below them too, and compile the libraries once for each choice (measured: five times).
fn whole() -> Invocation {
    Invocation::new(["test", "--workspace", "--exclude", "xtask", "--all-features"])
}

/// With C++, without a broker.
fn offline_stages(metadata: &Metadata) -> Result<Vec<Stage>> {
    let mut stages = vec![
        Stage::cargo(
            "libraries with RocksDB and librdkafka",
            // The simulator has a stage of its own, without C++.
            whole().args(["--lib", "--bins", "--", "--skip", "simulate::"]),
        ),
        Stage::cargo("examples in the documentation", whole().args(["--doc"])),
        test_binary("offline", metadata)?,
    ];
    let examples = example_tests(metadata);
    if !examples.is_empty() {
        let chosen = examples.iter().flat_map(|name| ["--test", name]);
        stages.push(Stage::cargo("examples", whole().args(chosen)));
    }
    stages.push(Stage::cargo_each(
        "each feature alone, with C++",
        features::checks(metadata, true),
    ));
    Ok(stages)
}

/// With a real Kafka, which the testkit starts.
fn broker_stages(metadata: &Metadata) -> Result<Vec<Stage>> {
    let testkit = test_targets(metadata, "streams-testkit");
    let chosen = testkit.iter().flat_map(|name| ["--test", name]);
    Ok(vec![
        Stage::cargo("testkit", whole().args(chosen)),
        test_binary("broker", metadata)?,
    ])
}

/// One test binary of `streams-tests`.
pub(crate) fn test_binary(name: &str, metadata: &Metadata) -> Result<Stage> {
    let exists = metadata
        .package("streams-tests")
        .is_some_and(|package| package.targets("test").contains(&name));
    if exists {
        return Ok(Stage::cargo(name, test_binary_call(name)));
    }
    if !NOT_WRITTEN_YET.contains(&name) {
        bail!("the test binary `{name}` of streams-tests is missing: tests/tests/{name}.rs");
    }
    let why = format!("tests/tests/{name}.rs is not written yet");
    Ok(Stage {
        name: name.to_owned(),
        work: Work::Absent(why),
    })
}

/// How one test binary of `streams-tests` is run. Tests with a broker wait for most of their time: more of them run at once
/// than there are cores.
pub(crate) fn test_binary_call(name: &str) -> Invocation {
    whole().args(["--test", name]).env("RUST_TEST_THREADS", TESTS_AT_ONCE)
}

const TESTS_AT_ONCE: &str = "4";

/// The integration tests of the packages in the folder `examples`. They need no broker.
fn example_tests(metadata: &Metadata) -> Vec<&str> {
    let examples = crate::cargo::root().join("examples");
    let inside = |package: &crate::cargo::Package<'_>| package.folder().starts_with(&examples);
    metadata
        .packages()
        .into_iter()
        .filter(inside)
        .flat_map(|package| package.targets("test"))
        .collect()
}

/// The integration tests of a package.
fn test_targets<'m>(metadata: &'m Metadata, package: &str) -> Vec<&'m str> {
    metadata
        .package(package)
        .map(|package| package.targets("test"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_subset_compiles_no_cpp() -> Result<()> {
        for stage in stages("core", &Metadata::read()?)? {
            for call in stage.calls() {
                assert!(!call.needs_cpp(), "{}", call.shown());
            }
        }
        Ok(())
    }

    #[test]
    fn all_contains_every_subset() -> Result<()> {
        let metadata = Metadata::read()?;
        let names = |subset: &str| -> Result<Vec<String>> {
            Ok(stages(subset, &metadata)?.into_iter().map(|stage| stage.name).collect())
        };
        let all = names("all")?;
        for subset in ["core", "offline", "broker", "crash"] {
            for name in names(subset)? {
                assert!(all.contains(&name), "{subset} has `{name}`, all has not");
            }
        }
        Ok(())
    }

    #[test]
    fn the_list_of_unwritten_binaries_shrinks() -> Result<()> {
        let metadata = Metadata::read()?;
        let written = metadata
            .package("streams-tests")
            .map(|package| package.targets("test"))
            .unwrap_or_default();
        let stale: Vec<_> = NOT_WRITTEN_YET.iter().filter(|name| written.contains(name)).collect();
        assert!(
            stale.is_empty(),
            "{stale:?} exist: take them out of NOT_WRITTEN_YET, so that they cannot vanish"
        );
        Ok(())
    }

    #[test]
    fn a_test_binary_that_vanished_is_an_error() -> Result<()> {
        let error = test_binary("no-such-binary", &Metadata::read()?).err();
        assert!(error.is_some_and(|error| error.to_string().contains("tests/tests/no-such-binary.rs")));
        Ok(())
    }
}
