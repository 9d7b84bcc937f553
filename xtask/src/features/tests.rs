//! RocksDB takes 12 minutes to compile. It is compiled once only if every call of cargo agrees on the profile and on
//! the features of everything below the C++ packages; these tests compare the calls that xtask makes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::*;
use crate::cargo::{CPP_PACKAGES, output};
use crate::{bench, cases, demo, differential, lint, nightly, test};

/// Every call of cargo that some command makes, and those that the README tells users to type.
fn all_calls(metadata: &Metadata) -> Result<Vec<Invocation>> {
    let mut calls = vec![
        demo::build(),
        demo::run(&[]),
        cases::call("FILE"),
        differential::call(&[]),
        word_count(),
        word_count().args(["--features", "kafka"]),
        Invocation::new(["build", "--workspace"]),
        Invocation::new(["test", "--workspace"]),
    ];
    calls.extend(
        metadata
            .package("benches")
            .map(|package| bench::calls(&package))
            .unwrap_or_default(),
    );
    calls.extend(["offline", "broker", "crash"].map(test::test_binary_call));
    for stage in [
        test::stages("all", metadata)?,
        lint::stages("all")?,
        nightly::stages(metadata)?,
    ]
    .into_iter()
    .flatten()
    {
        calls.extend(stage.calls().iter().cloned());
    }
    Ok(calls)
}

/// The first program that the README offers.
fn word_count() -> Invocation {
    Invocation::new(["run", "-p", "word-count"])
}

#[test]
fn the_first_program_of_the_readme_compiles_no_cpp_and_little_else() -> Result<()> {
    let tree = tree(&word_count())?;
    for package in CPP_PACKAGES.into_iter().chain(["cc", "tokio"]) {
        assert!(subtrees(&tree, package).is_empty(), "word-count reaches {package}");
    }
    Ok(())
}

#[test]
fn features_that_reach_cpp_are_told_from_those_that_do_not() -> Result<()> {
    let metadata = Metadata::read()?;
    assert!(needs_cpp(&metadata, "streams-state", "rocksdb"));
    assert!(needs_cpp(&metadata, "streams-dsl", "rocksdb"));
    assert!(needs_cpp(&metadata, "streams-dsl", "kafka"));
    assert!(!needs_cpp(&metadata, "streams-state", "conformance"));
    assert!(!needs_cpp(&metadata, "streams-dsl", "test-hooks"));
    Ok(())
}

#[test]
fn every_feature_is_checked_alone_once() -> Result<()> {
    let metadata = Metadata::read()?;
    let shown = |with_cpp| {
        checks(&metadata, with_cpp)
            .iter()
            .map(Invocation::shown)
            .collect::<Vec<_>>()
    };
    let (plain, cpp) = (shown(false), shown(true));
    assert!(
        plain.contains(&"cargo check -p streams-core --no-default-features".to_owned()),
        "{plain:?}"
    );
    assert!(
        cpp.contains(&"cargo check -p streams-dsl --no-default-features --features kafka".to_owned()),
        "{cpp:?}"
    );
    assert!(plain.iter().all(|call| !cpp.contains(call)));
    Ok(())
}

#[test]
fn calls_without_cpp_reach_no_cpp_package_and_no_async_runtime() -> Result<()> {
    let metadata = Metadata::read()?;
    let calls = all_calls(&metadata)?;
    let plain: Vec<_> = calls
        .iter()
        .filter(|call| !call.needs_cpp() && takes_features(call))
        .collect();
    assert!(plain.len() >= 5, "found only {} calls without C++", plain.len());
    for call in plain {
        let tree = tree(call)?;
        for package in CPP_PACKAGES.into_iter().chain(["cc", "tokio"]) {
            assert!(
                subtrees(&tree, package).is_empty(),
                "`{}` reaches {package}",
                call.shown()
            );
        }
    }
    Ok(())
}

#[test]
fn every_call_with_cpp_sees_the_same_features_below_it() -> Result<()> {
    let metadata = Metadata::read()?;
    let mut trees: BTreeMap<Vec<String>, (String, Vec<String>)> = BTreeMap::new();
    for call in all_calls(&metadata)?
        .iter()
        .filter(|call| call.needs_cpp() && is_present(call, &metadata))
    {
        let question = tree_args(call);
        if !trees.contains_key(&question) {
            trees.insert(question.clone(), (tree(call)?, Vec::new()));
        }
        trees.entry(question).and_modify(|(_, calls)| calls.push(call.shown()));
    }
    for package in CPP_PACKAGES {
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (tree, calls) in trees.values() {
            for subtree in subtrees(tree, package) {
                seen.entry(subtree).or_default().extend(calls.iter().cloned());
            }
        }
        assert_eq!(
            seen.len(),
            1,
            "{package} would be compiled {} times:\n{}",
            seen.len(),
            explained(&seen)
        );
    }
    Ok(())
}

#[test]
fn every_call_uses_the_dev_profile() -> Result<()> {
    for call in all_calls(&Metadata::read()?)? {
        let profiles = call.values_of("--profile");
        assert!(!call.has("--release") && !call.has("-r"), "{}", call.shown());
        assert!(profiles.iter().all(|profile| *profile == "dev"), "{}", call.shown());
        // `cargo bench` alone would take the release profile.
        let is_bench = call.arguments().first().is_some_and(|sub| sub == "bench");
        assert!(!is_bench || profiles == ["dev"], "{}", call.shown());
    }
    let manifest = std::fs::read_to_string(crate::cargo::root().join("Cargo.toml"))?;
    for section in [
        "[profile.test",
        "[profile.bench",
        "[profile.dev.package.librocksdb",
        "[profile.dev.package.rdkafka",
    ] {
        assert!(
            !manifest.contains(section),
            "{section}] would compile the C++ a second time"
        );
    }
    Ok(())
}

fn takes_features(call: &Invocation) -> bool {
    call.arguments()
        .first()
        .is_some_and(|sub| matches!(sub.as_str(), "test" | "check" | "clippy" | "doc" | "build" | "run"))
}

fn is_present(call: &Invocation, metadata: &Metadata) -> bool {
    call.packages().iter().all(|name| metadata.package(name).is_some())
}

/// The tree of packages and features that cargo resolves for a call, one `depth name version features` a line.
fn tree(call: &Invocation) -> Result<String> {
    output(&Invocation::new(tree_args(call))).with_context(|| call.shown())
}

/// The question that `tree` asks; calls with the same question need not ask twice.
fn tree_args(call: &Invocation) -> Vec<String> {
    let tests = call
        .arguments()
        .first()
        .is_some_and(|sub| matches!(sub.as_str(), "test" | "bench"))
        || call.has("--all-targets");
    let edges = if tests { "normal,build,dev" } else { "normal,build" };
    let mut args = [
        "tree",
        "--locked",
        "--prefix",
        "depth",
        "--no-dedupe",
        "-f",
        " {p} {f}",
        "-e",
        edges,
    ]
    .map(str::to_owned)
    .to_vec();
    for (option, values) in [("-p", call.packages()), ("--features", call.features())] {
        args.extend(
            values
                .into_iter()
                .flat_map(|value| [option.to_owned(), value.to_owned()]),
        );
    }
    if call.packages().is_empty() {
        args.push("--workspace".to_owned());
    }
    let switches = ["--no-default-features", "--all-features"];
    args.extend(
        switches
            .into_iter()
            .filter(|switch| call.has(switch))
            .map(str::to_owned),
    );
    args
}

/// The different subtrees below a package, each as sorted lines without depth.
///
/// Procedural macros are left out: the package's Rust code uses them, the build script that compiles the C++ does not,
/// so they cost seconds at most.
fn subtrees(tree: &str, package: &str) -> Vec<String> {
    let lines = without_macros(tree.lines().filter_map(depth_and_package));
    let mut found = Vec::new();
    for (at, (depth, line)) in lines.iter().enumerate() {
        if line.split(' ').next() != Some(package) {
            continue;
        }
        let below = lines
            .iter()
            .skip(at + 1)
            .take_while(|(inner, _)| inner > depth)
            .map(|(_, line)| *line);
        let mut parts: Vec<&str> = std::iter::once(*line).chain(below).collect();
        parts.sort_unstable();
        parts.dedup();
        found.push(parts.join("\n"));
    }
    found.sort();
    found.dedup();
    found
}

fn without_macros<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, &'a str)> {
    let mut macro_depth = usize::MAX;
    let mut kept = Vec::new();
    for (depth, line) in lines {
        if depth > macro_depth {
            continue;
        }
        macro_depth = if line.contains("(proc-macro)") {
            depth
        } else {
            usize::MAX
        };
        if macro_depth == usize::MAX {
            kept.push((depth, line));
        }
    }
    kept
}

fn depth_and_package(line: &str) -> Option<(usize, &str)> {
    let (depth, package) = line.split_once(' ')?;
    Some((depth.parse().ok()?, package))
}

/// Which lines differ, and in which calls.
fn explained(seen: &BTreeMap<String, Vec<String>>) -> String {
    let is_common = |line: &&str| seen.keys().all(|other| other.lines().any(|inner| inner == *line));
    let mut text = String::new();
    for (subtree, calls) in seen {
        let own: Vec<&str> = subtree.lines().filter(|line| !is_common(line)).collect();
        text.push_str(&format!("{}\n  has {own:#?}\n", calls.join("\n")));
    }
    text
}

#[test]
fn subtrees_are_cut_at_their_depth() {
    let tree = "0 app v1 \n1 sys v1 a,b\n2 cc v1 parallel\n1 other v1 \n2 cc v1 parallel\n";
    assert_eq!(subtrees(tree, "sys"), ["cc v1 parallel\nsys v1 a,b"]);
    assert!(subtrees(tree, "absent").is_empty());
    let with_macro = "0 app v1 \n1 sys v1 a\n2 derive v1 (proc-macro) x\n3 syn v2 full\n2 libc v0 \n";
    assert_eq!(subtrees(with_macro, "sys"), ["libc v0 \nsys v1 a"]);
}
