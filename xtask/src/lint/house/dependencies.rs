//! Dependencies point one way, dsl → core → state, and versions stand in one place.

use anyhow::Result;

use super::Finding;
use super::files::Text;
use crate::cargo::{Invocation, Metadata, output};

/// What each package of ours may use of ours, tests included. A package that is not here may use all of them.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("streams-state", &[]),
    ("streams-core", &["streams-state"]),
    ("streams-dsl", &["streams-core", "streams-state"]),
    // The simulator runs the core; the topologies that it runs by itself are written in the DSL.
    ("streams-testkit", &["streams-dsl", "streams-core", "streams-state"]),
    ("xtask", &[]),
];

/// What only applications and tests use: a library's errors have types, and it installs nothing.
const NOT_IN_LIBRARIES: [&str; 3] = ["anyhow", "tracing-subscriber", "clap"];

/// The rules over manifests.
pub(crate) fn check(metadata: &Metadata, texts: &[Text]) -> Result<Vec<Finding>> {
    let ours: Vec<&str> = metadata.packages().into_iter().map(|package| package.name()).collect();
    let mut findings = Vec::new();
    for package in metadata.packages() {
        let edges: Vec<(&str, &str)> = package.dependencies();
        findings.extend(wrong_edges(package.name(), &edges, &ours));
    }
    let manifests = texts.iter().filter(|text| text.path.ends_with("/Cargo.toml"));
    findings.extend(manifests.flat_map(|text| own_versions(&text.path, &text.text)));
    let xtask = output(&Invocation::new([
        "tree",
        "--locked",
        "--prefix",
        "none",
        "-e",
        "normal,build",
        "-p",
        "xtask",
    ]))?;
    if ["rocksdb", "rdkafka"].iter().any(|word| xtask.contains(word)) {
        findings.push(Finding::new(
            "xtask/Cargo.toml",
            0,
            "xtask must compile in seconds: no RocksDB, no librdkafka",
        ));
    }
    Ok(findings)
}

/// Dependencies of `package`, as (name, kind), that point the wrong way.
fn wrong_edges(package: &str, edges: &[(&str, &str)], ours: &[&str]) -> Vec<Finding> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package) else {
        return Vec::new();
    };
    let manifest = format!("{package}/Cargo.toml");
    let mut findings = Vec::new();
    for (name, kind) in edges {
        if ours.contains(name) && !allowed.contains(name) {
            let message = format!("{package} must not depend on {name}: dependencies point dsl → core → state");
            findings.push(Finding::new(&manifest, 0, message));
        }
        if package.starts_with("streams-") && *kind == "normal" && NOT_IN_LIBRARIES.contains(name) {
            findings.push(Finding::new(
                &manifest,
                0,
                format!("{name} is for applications and tests"),
            ));
        }
    }
    findings
}

/// Lines of a member's dependency sections that do not say `workspace = true`. A workspace of its own has its own.
fn own_versions(path: &str, manifest: &str) -> Vec<Finding> {
    if manifest.lines().any(|line| line.trim() == "[workspace]") {
        return Vec::new();
    }
    let mut inside = false;
    let mut findings = Vec::new();
    for (at, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.trim_end_matches(']').ends_with("dependencies");
        } else if inside && !line.is_empty() && !line.starts_with('#') && !says_workspace(line) {
            findings.push(Finding::new(
                path,
                at + 1,
                "versions stand in the root Cargo.toml: use `workspace = true`",
            ));
        }
    }
    findings
}

fn says_workspace(line: &str) -> bool {
    let squeezed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    squeezed.contains("workspace=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [&str; 3] = ["streams-state", "streams-core", "streams-dsl"];

    #[test]
    fn dependencies_point_one_way() {
        assert!(wrong_edges("streams-dsl", &[("streams-core", "normal"), ("serde", "normal")], &OURS).is_empty());
        assert_eq!(wrong_edges("streams-core", &[("streams-dsl", "dev")], &OURS).len(), 1);
        assert_eq!(
            wrong_edges("streams-state", &[("streams-core", "normal")], &OURS).len(),
            1
        );
        assert!(wrong_edges("benches", &[("streams-dsl", "normal")], &OURS).is_empty());
    }

    #[test]
    fn libraries_have_typed_errors() {
        assert_eq!(wrong_edges("streams-core", &[("anyhow", "normal")], &OURS).len(), 1);
        assert!(wrong_edges("streams-core", &[("anyhow", "dev")], &OURS).is_empty());
    }

    #[test]
    fn versions_stand_in_one_place() {
        let good =
            "[dependencies]\na.workspace = true\nb = { workspace = true, optional = true }\n[features]\nc = []\n";
        let bad = "[package]\nversion = \"1\"\n[dev-dependencies]\n# why\na = \"1.0\"\n";
        assert!(own_versions("x/Cargo.toml", good).is_empty());
        assert!(own_versions("fuzz/Cargo.toml", &format!("{bad}[workspace]\n")).is_empty());
        assert_eq!(
            own_versions("x/Cargo.toml", bad).first().map(|finding| finding.line),
            Some(5)
        );
    }

    #[test]
    fn this_workspace_follows_the_rules() -> Result<()> {
        let findings = check(&Metadata::read()?, &[])?;
        assert!(findings.is_empty(), "{findings:?}");
        Ok(())
    }
}
