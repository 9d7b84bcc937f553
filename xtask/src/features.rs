//! Cargo features: which of them need C++, and the check that each one compiles alone.

use crate::cargo::{Invocation, LIBRARIES, Metadata};

/// One `cargo check` per feature of each library, that feature alone, and one with none.
pub(crate) fn checks(metadata: &Metadata, with_cpp: bool) -> Vec<Invocation> {
    let mut calls = Vec::new();
    for name in LIBRARIES {
        let Some(package) = metadata.package(name) else {
            continue;
        };
        let bare = Invocation::new(["check", "-p", name, "--no-default-features"]);
        if !with_cpp {
            calls.push(bare.clone());
        }
        for (feature, _) in package.features() {
            if feature != "default" && needs_cpp(metadata, name, feature) == with_cpp {
                calls.push(bare.clone().args(["--features", feature]));
            }
        }
    }
    calls
}

/// Whether a feature of a library reaches RocksDB or librdkafka, through whatever other features.
fn needs_cpp(metadata: &Metadata, package: &str, feature: &str) -> bool {
    let features = metadata
        .package(package)
        .map(|found| found.features())
        .unwrap_or_default();
    let switched = features
        .into_iter()
        .find(|(name, _)| *name == feature)
        .map(|(_, values)| values);
    switched
        .unwrap_or_default()
        .into_iter()
        .any(|value| match value.strip_prefix("dep:") {
            Some(dependency) => matches!(dependency, "rocksdb" | "rdkafka"),
            None => match value.split_once('/') {
                Some((other, inner)) => needs_cpp(metadata, other.trim_end_matches('?'), inner),
                None => needs_cpp(metadata, package, value),
            },
        })
}

#[cfg(test)]
mod tests;
