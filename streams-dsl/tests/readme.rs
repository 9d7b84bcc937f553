//! The program in the README is one that compiles: the example of its name, whose test the README speaks of.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::path::Path;

fn project_file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of the only code block of a language.
fn block(text: &str, language: &str) -> String {
    let fence = format!("```{language}\n");
    let mut blocks = text.split(&fence).skip(1);
    let block = blocks.next().and_then(|rest| rest.split("```").next());
    assert!(blocks.next().is_none(), "two blocks of {language}");
    block.unwrap_or_else(|| panic!("no block of {language}")).to_owned()
}

/// The names of the dependencies of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("[dependencies]\n").nth(1).unwrap();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines
        .filter_map(|line| line.split(['.', ' ']).next())
        .filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn the_whole_program_of_the_readme_is_the_example_to_the_letter() {
    let readme = project_file("README.md");
    assert_eq!(block(&readme, "rust"), project_file("examples/hourly-bill/src/main.rs"));
}

#[test]
fn the_manifest_of_the_readme_has_what_the_example_needs() {
    let (shown, ours) = (
        block(&project_file("README.md"), "toml"),
        project_file("examples/hourly-bill/Cargo.toml"),
    );
    assert_eq!(dependencies(&shown), dependencies(&ours));
    assert!(shown.contains("edition = \"2024\"") && project_file("Cargo.toml").contains("edition = \"2024\""));
}
