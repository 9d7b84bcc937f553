//! The workspace as cargo sees it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Invocation, output};

/// The workspace as cargo sees it: packages, targets, features, the target folder.
pub(crate) struct Metadata(Value);

impl Metadata {
    /// Asks cargo; takes about 50 ms and needs no network.
    pub(crate) fn read() -> Result<Self> {
        let call = Invocation::new(["metadata", "--format-version=1", "--no-deps", "--locked"]);
        Ok(Self(
            serde_json::from_str(&output(&call)?).context("cargo metadata is not JSON")?,
        ))
    }

    /// Where cargo puts compiled files.
    pub(crate) fn target_dir(&self) -> PathBuf {
        PathBuf::from(
            self.0
                .get("target_directory")
                .and_then(Value::as_str)
                .unwrap_or("target"),
        )
    }

    /// All packages of the workspace.
    pub(crate) fn packages(&self) -> Vec<Package<'_>> {
        self.0
            .get("packages")
            .and_then(Value::as_array)
            .map(|list| list.iter().map(Package).collect())
            .unwrap_or_default()
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<Package<'_>> {
        self.packages().into_iter().find(|package| package.name() == name)
    }
}

/// One package of [`Metadata`].
#[derive(Clone, Copy)]
pub(crate) struct Package<'a>(&'a Value);

impl<'a> Package<'a> {
    /// Its name.
    pub(crate) fn name(&self) -> &'a str {
        self.0.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &'a Path {
        let manifest = Path::new(self.0.get("manifest_path").and_then(Value::as_str).unwrap_or_default());
        manifest.parent().unwrap_or(manifest)
    }

    /// The names of its targets of one kind (`bin`, `test`, `bench`).
    pub(crate) fn targets(&self, kind: &str) -> Vec<&'a str> {
        let is_kind = |target: &&Value| list(target, "kind").iter().any(|entry| entry.as_str() == Some(kind));
        let name = |target: &'a Value| target.get("name").and_then(Value::as_str);
        list(self.0, "targets")
            .iter()
            .filter(is_kind)
            .filter_map(name)
            .collect()
    }

    /// Its features, each with what it switches on.
    pub(crate) fn features(&self) -> Vec<(&'a str, Vec<&'a str>)> {
        let Some(table) = self.0.get("features").and_then(Value::as_object) else {
            return Vec::new();
        };
        let values = |value: &'a Value| {
            value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect()
        };
        table
            .iter()
            .map(|(name, value)| (name.as_str(), values(value)))
            .collect()
    }

    /// Its dependencies: name and kind (`normal`, `dev`, `build`).
    pub(crate) fn dependencies(&self) -> Vec<(&'a str, &'a str)> {
        let name = |entry: &'a Value| entry.get("name").and_then(Value::as_str);
        let kind = |entry: &'a Value| entry.get("kind").and_then(Value::as_str).unwrap_or("normal");
        list(self.0, "dependencies")
            .iter()
            .filter_map(|entry| Some((name(entry)?, kind(entry))))
            .collect()
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::LIBRARIES;

    #[test]
    fn the_workspace_has_the_libraries() -> Result<()> {
        let metadata = Metadata::read()?;
        for name in LIBRARIES {
            assert!(metadata.package(name).is_some(), "{name} is missing in the workspace");
        }
        Ok(())
    }
}
