//! Which files belong to the project, and which of them are test code.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::source::Source;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 2] = ["target", "state"];

/// Hidden folders that do.
const HIDDEN: [&str; 3] = [".ci", ".cargo", ".github"];

/// Endings of the files that people write; data and golden files are not held to the rules of text.
const TEXT_ENDINGS: [&str; 7] = ["rs", "toml", "md", "sh", "yml", "yaml", "run"];

/// One text file.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) text: String,
}

/// The text files of the project.
pub(crate) struct Files {
    pub(crate) texts: Vec<Text>,
}

impl Files {
    /// The Rust files, taken apart; files that only tests compile are marked.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<Source> = self
            .texts
            .iter()
            .filter(|text| text.path.ends_with(".rs"))
            .map(|text| Source::parse(&text.path, &text.text))
            .collect();
        let test_modules: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
        for source in &mut sources {
            let belongs = |module: &String| {
                source.path() == format!("{module}.rs") || source.path().starts_with(&format!("{module}/"))
            };
            if test_modules.iter().any(belongs) {
                source.mark_as_test();
            }
        }
        sources
    }
}

/// Reads the text files below `root`, in order of their paths.
pub(crate) fn read(root: &Path) -> Result<Files> {
    let mut texts = Vec::new();
    walk(root, root, &mut texts)?;
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Files { texts })
}

fn walk(root: &Path, folder: &Path, texts: &mut Vec<Text>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if path.is_dir() {
            let skipped = SKIPPED.contains(&name.as_str()) && folder == root;
            if !skipped && (!name.starts_with('.') || HIDDEN.contains(&name.as_str())) {
                walk(root, &path, texts)?;
            }
        } else if is_text(&path) {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let relative = path
                .strip_prefix(root)
                .unwrap_or(&path)
                .to_string_lossy()
                .replace('\\', "/");
            texts.push(Text { path: relative, text });
        }
    }
    Ok(())
}

fn is_text(path: &Path) -> bool {
    let ending = path
        .extension()
        .or(path.file_name())
        .map(|ending| ending.to_string_lossy().into_owned());
    ending.is_some_and(|ending| TEXT_ENDINGS.contains(&ending.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(parts: &[(&str, &str)]) -> Files {
        let text = |(path, text): &(&str, &str)| Text {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Files {
            texts: parts.iter().map(text).collect(),
        }
    }

    #[test]
    fn a_module_declared_for_tests_is_test_code_with_all_below_it() {
        let files = files(&[
            ("a/src/lib.rs", "mod task;\n"),
            ("a/src/task.rs", "fn f() {}\n#[cfg(test)]\nmod tests;\n"),
            ("a/src/task/tests.rs", "fn g() {}\n"),
            ("a/src/task/tests/more.rs", "fn h() {}\n"),
            ("a/src/task/queue.rs", "fn i() {}\n"),
        ]);
        let sources = files.sources();
        let test: Vec<&str> = sources
            .iter()
            .filter(|source| source.is_test())
            .map(Source::path)
            .collect();
        assert_eq!(test, ["a/src/task/tests.rs", "a/src/task/tests/more.rs"]);
    }

    #[test]
    fn this_file_is_found() -> Result<()> {
        let files = read(crate::cargo::root())?;
        assert!(
            files
                .texts
                .iter()
                .any(|text| text.path == "xtask/src/lint/house/files.rs")
        );
        assert!(files.texts.iter().any(|text| text.path == "Cargo.toml"));
        Ok(())
    }
}
