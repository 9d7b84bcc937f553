//! `docs/java-operators.md` can't name what does not exist, and leaves out nothing that Java has.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../docs/java-operators.md");
const JAVA: &str = include_str!("../../tests/golden/java-api.txt");

/// One row: Java's class and method, ours, what shows it.
struct Row<'a> {
    class: &'a str,
    java: &'a str,
    ours: &'a str,
    shown: &'a str,
}

fn rows() -> Vec<Row<'static>> {
    let (mut class, mut rows) = ("", Vec::new());
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            class = heading;
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", java, ours, shown, ""] = cells[..]
            && let Some(java) = java.strip_prefix('`').and_then(|java| java.strip_suffix('`'))
        {
            rows.push(Row {
                class,
                java,
                ours,
                shown,
            });
        }
    }
    rows
}

/// The `Type::method`s that a cell names.
fn named(cell: &str) -> Vec<(&str, &str)> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter_map(|name| name.split_once("::")).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// What a public method or type has: whether its documentation has an example.
type Items = BTreeMap<(String, String), bool>;

/// The identifier at the start of a text.
fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The type that a block belongs to, if the line opens one.
fn block(line: &str) -> Option<String> {
    let rest = ["pub trait ", "pub enum ", "pub struct "]
        .iter()
        .find_map(|prefix| line.strip_prefix(prefix));
    if let Some(rest) = rest {
        return Some(identifier(rest).to_owned());
    }
    let rest = line.strip_prefix("impl")?;
    let mut depth = 0;
    // Behind the generic parameters.
    let after = rest.char_indices().find(|(_, c)| {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        depth == 0 && !matches!(c, '>' | '<')
    })?;
    let rest = rest[after.0..].trim_start();
    let target = rest.split_once(" for ").map_or(rest, |(_, target)| target);
    Some(identifier(target).to_owned())
}

/// Every public method by its type, and types by the method ``.
fn items() -> Items {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    files(&package.join("src"), &mut sources);
    for folder in ["processor", "stores", "topology", "test_driver"] {
        files(&package.join("../streams-core/src").join(folder), &mut sources);
    }
    let mut items = Items::new();
    // Methods that a macro writes, by the macro, and the types that it is used for.
    let mut macros: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
    let mut uses: Vec<(String, String)> = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let (mut owner, mut example, mut writing, mut calling) = (String::new(), false, None, None);
        for line in text.lines() {
            let code = line.trim_start();
            if let Some(name) = line.strip_prefix("macro_rules! ") {
                writing = Some(identifier(name).to_owned());
            } else if line == "}" {
                writing = None;
            }
            if let Some(name) = calling.take() {
                uses.push((name, identifier(code).to_owned()));
            }
            for known in ["store_settings", "named_serdes", "partitioned"] {
                if let Some(rest) = line.strip_prefix(known).and_then(|rest| rest.strip_prefix("!(")) {
                    match identifier(rest) {
                        "" => calling = Some(known.to_owned()),
                        used => uses.push((known.to_owned(), used.to_owned())),
                    }
                }
            }
            if let Some(name) = block(line) {
                owner = name;
                if line.starts_with("pub ") {
                    items.insert((owner.clone(), String::new()), example);
                }
            }
            let method = code.strip_prefix("pub fn ").or_else(|| code.strip_prefix("fn "));
            let variant = line.starts_with("    ") && !line.starts_with("     ");
            if let Some(method) = method {
                let method = identifier(method).to_owned();
                match &writing {
                    Some(name) => macros.entry(name.clone()).or_default().push((method, example)),
                    None => drop(items.insert((owner.clone(), method), example)),
                }
            } else if variant && code.starts_with(|c: char| c.is_uppercase()) {
                items.insert((owner.clone(), identifier(code).to_owned()), example);
            }
            example = match code {
                _ if code.starts_with("///") => example || code.contains("```"),
                _ if code.starts_with("#[") || code.starts_with("///") => example,
                _ => false,
            };
        }
    }
    for (name, owner) in uses {
        for (method, example) in macros.get(&name).into_iter().flatten() {
            items.insert((owner.clone(), method.clone()), *example);
        }
    }
    items
}

fn exists(items: &Items, (owner, method): (&str, &str)) -> bool {
    items.contains_key(&(owner.to_owned(), method.to_owned()))
}

#[test]
fn everything_that_java_has_stands_in_the_table_once() {
    let mut java = BTreeSet::new();
    for line in JAVA.lines().filter(|line| !line.starts_with('#')) {
        let (class, methods) = line.split_once(": ").unwrap();
        java.extend(methods.split(' ').map(|method| (class, method)));
    }
    let rows = rows();
    let told: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.class, row.java)).collect();
    assert_eq!(told, java);
    assert_eq!(rows.len(), told.len(), "a method stands there twice");
}

#[test]
fn what_the_table_names_exists_and_is_shown() {
    let items = items();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut sources = Vec::new();
    files(&tests, &mut sources);
    let mut wrong = Vec::new();
    for row in rows() {
        let at = format!("{}.{}", row.class, row.java);
        let ours = named(row.ours);
        wrong.extend(
            ours.iter()
                .filter(|name| !exists(&items, **name))
                .map(|(owner, method)| format!("{at}: there is no `{owner}::{method}`")),
        );
        if let Some(reason) = row.ours.strip_prefix("not there: ") {
            if reason.len() < 8 || !row.shown.is_empty() {
                wrong.push(format!("{at}: give a reason, and nothing else"));
            }
            continue;
        }
        let Some((owner, method)) = ours.first().copied() else {
            wrong.push(format!("{at}: nothing is named"));
            continue;
        };
        for shown in row.shown.split("; ") {
            let is_shown = match shown.split_once("::") {
                None if shown == "doc" => items.get(&(owner.to_owned(), method.to_owned())).copied(),
                None if shown == "doc-type" => items.get(&(owner.to_owned(), String::new())).copied(),
                None => None,
                Some((file, test)) => Some(sources.iter().any(|path| {
                    let name = path.strip_prefix(&tests).unwrap().to_string_lossy().into_owned();
                    let stem = file.trim_end_matches(".rs");
                    let fits = name == file || name.starts_with(&format!("{stem}/"));
                    let has = || {
                        let text = fs::read_to_string(path).unwrap();
                        text.lines().any(|line| line.trim_start() == format!("fn {test}() {{"))
                    };
                    fits && has()
                })),
            };
            if is_shown != Some(true) {
                wrong.push(format!("{at}: `{shown}` shows nothing"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_reader_of_the_source_finds_what_is_there_and_nothing_else() {
    let items = items();
    for known in [
        ("KStream", "filter"),
        ("Materialized", "caching"),
        ("StateStore", "in_memory"),
        ("Produced", "partitioned_by"),
        ("Processor", "close"),
        ("EmitStrategy", "OnWindowClose"),
    ] {
        assert!(exists(&items, known), "{known:?}");
    }
    for unknown in [
        ("KStream", "caching"),
        ("KTable", "filter_record"),
        ("Materialized", "partitioned_by"),
    ] {
        assert!(!exists(&items, unknown), "{unknown:?}");
    }
    assert_eq!(
        items.get(&("KStream".to_owned(), "filter".to_owned())),
        Some(&true),
        "it has an example"
    );
}
