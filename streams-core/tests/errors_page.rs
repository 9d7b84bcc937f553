//! `docs/errors.md` lists the errors that there are, and no others.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

/// The enums of the page, each with the file that declares it.
const ENUMS: [(&str, &str); 5] = [
    ("Error", "streams-core/src/error.rs"),
    ("SerdeError", "streams-core/src/serde/mod.rs"),
    ("TopologyError", "streams-core/src/topology/error.rs"),
    ("StateError", "streams-state/src/error.rs"),
    ("MembershipError", "streams-core/src/membership/error.rs"),
];

fn project_file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The variants of an enum as it is formatted: one level in, with a capital.
fn variants(source: &str, name: &str) -> BTreeSet<String> {
    let body = source.split(&format!("pub enum {name} {{\n")).nth(1).unwrap();
    let body = body.split("\n}\n").next().unwrap();
    let declared = body.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        let word: String = line.chars().take_while(char::is_ascii_alphanumeric).collect();
        word.starts_with(|first: char| first.is_ascii_uppercase())
            .then_some(word)
    });
    declared.map(|variant| format!("{name}::{variant}")).collect()
}

/// The first cells of the page's tables.
fn listed(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_page_lists_every_error_once_and_no_other() {
    let declared: BTreeSet<String> = ENUMS
        .iter()
        .flat_map(|(name, file)| variants(&project_file(file), name))
        .collect();
    let page = listed(&project_file("docs/errors.md"));
    let listed: BTreeSet<String> = page.iter().cloned().collect();
    assert_eq!(
        listed.difference(&declared).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "listed, and not there"
    );
    assert_eq!(
        declared.difference(&listed).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "there, and not listed"
    );
    assert_eq!(page.len(), listed.len(), "an error is listed twice");
}

#[test]
fn the_settings_that_the_page_names_exist() {
    let (page, settings) = (project_file("docs/errors.md"), project_file("docs/configuration.md"));
    for key in [
        "max.poll.interval.ms",
        "deserialization.exception.handler",
        "processing.exception.handler",
        "errors.dead.letter.queue.topic.name",
    ] {
        assert!(page.contains(key) && settings.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn variants_with_fields_and_without_are_found() {
    let source = "/// E.\npub enum E {\n    /// A.\n    #[error(\"a\")]\n    A,\n    B {\n        /// C.\n        C: u8,\n    },\n    D(u8),\n}\n";
    assert_eq!(
        variants(source, "E"),
        ["E::A", "E::B", "E::D"].map(str::to_owned).into()
    );
}
