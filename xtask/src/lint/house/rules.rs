//! The rules. Each is a few lines here and a test in `rules/tests.rs` that shows what it finds.

use super::Finding;
use super::files::Text;
use super::source::Source;

/// A file of more lines gets a warning: look for the seam.
const LONG: usize = 400;

/// A file of more lines is refused.
const TOO_LONG: usize = 700;

/// The libraries that an application links.
const LIBRARIES: [&str; 4] = [
    "streams-state/src/",
    "streams-core/src/",
    "streams-dsl/src/",
    "streams-testkit/src/",
];

/// The shell: the only place in the core that knows the outside world.
const SHELL: &str = "streams-core/src/kafka";

/// The only place with `unsafe`.
const FFI: &str = "streams-core/src/kafka/ffi";

/// What the pure core and the DSL do not know, with the reason.
const OUTSIDE_WORLD: [(&str, &str); 13] = [
    ("Instant", "a clock: take `now_ms`"),
    ("SystemTime", "a clock: take `now_ms`"),
    ("std::thread", "a thread: the shell owns threads"),
    ("thread::spawn", "a thread: the shell owns threads"),
    ("std::sync::mpsc", "a channel: the core returns values"),
    ("std::net", "a socket"),
    ("TcpStream", "a socket"),
    ("UdpSocket", "a socket"),
    ("async fn", "async: the core is synchronous"),
    (".await", "async: the core is synchronous"),
    ("tokio", "async: the core is synchronous"),
    ("rdkafka", "librdkafka: the shell talks to it"),
    ("rdkafka_sys", "librdkafka: the shell talks to it"),
];

/// What stays out of the stores, which own files and their restore threads.
const OUTSIDE_STORES: [&str; 10] = [
    "Instant",
    "SystemTime",
    "std::net",
    "TcpStream",
    "UdpSocket",
    "async fn",
    ".await",
    "tokio",
    "rdkafka",
    "rdkafka_sys",
];

/// What may end the process in library code.
const PANICS: [&str; 7] = [
    ".unwrap()",
    ".expect(",
    "panic!",
    "todo!",
    "unimplemented!",
    "unreachable!",
    "dbg!",
];

/// Test code that a library ships (the conformance suite, the helpers of doctests): it reports by failing.
const SHIPPED_TESTS: [&str; 2] = ["streams-state/src/conformance", "streams-dsl/src/doctest.rs"];

/// What makes a test able to fail.
const ASSERTIONS: [&str; 6] = [
    "assert",
    "panic!",
    ".gives",
    "conformance::",
    "compile_fail",
    "should_panic",
];

/// The rules over any text: lengths, and that the project speaks of itself alone.
pub(crate) fn check_texts(texts: &[Text]) -> Vec<Finding> {
    texts
        .iter()
        .flat_map(|text| [too_long(text), foreign_paths(text)].into_iter().flatten())
        .collect()
}

/// Rust files that are long but not too long.
pub(crate) fn long_files(texts: &[Text]) -> Vec<Finding> {
    let warning = |text: &Text| {
        let lines = text.text.lines().count();
        let message = format!("{lines} lines; past {LONG} look for the seam");
        (text.path.ends_with(".rs") && (LONG + 1..=TOO_LONG).contains(&lines))
            .then(|| Finding::new(&text.path, 0, message))
    };
    texts.iter().filter_map(warning).collect()
}

/// The rules over Rust code.
pub(crate) fn check_sources(sources: &[Source]) -> Vec<Finding> {
    let rules = [
        outside_world,
        panics,
        unsafe_code,
        ignored_tests,
        tests_without_assertion,
    ];
    sources
        .iter()
        .flat_map(|source| rules.iter().flat_map(|rule| rule(source)).collect::<Vec<_>>())
        .collect()
}

fn too_long(text: &Text) -> Vec<Finding> {
    let lines = text.text.lines().count();
    if !text.path.ends_with(".rs") || lines <= TOO_LONG {
        return Vec::new();
    }
    vec![Finding::new(
        &text.path,
        0,
        format!("{lines} lines, at most {TOO_LONG}: split the file"),
    )]
}

/// Paths of one machine, and reads outside the project. Written in pieces, so that this file passes its own rule.
fn foreign_paths(text: &Text) -> Vec<Finding> {
    let machine = ["home", "root", "work", "Users"].map(|folder| format!("/{folder}/"));
    let outside = format!("../{}", "shared");
    let is_machine = |line: &str| machine.iter().any(|folder| at_word_start(line, folder));
    let mut findings = Vec::new();
    for (at, line) in text.text.lines().enumerate() {
        if is_machine(line) {
            findings.push(Finding::new(
                &text.path,
                at + 1,
                "a path of one machine: make it relative, or an argument",
            ));
        }
        if line.contains(&outside) {
            findings.push(Finding::new(
                &text.path,
                at + 1,
                "a path outside the project: copy what is needed into it",
            ));
        }
    }
    findings
}

/// An absolute path: nothing that could be a longer path or an address stands before it.
fn at_word_start(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !"_-./}~".contains(c))
    })
}

fn outside_world(source: &Source) -> Vec<Finding> {
    let path = source.path();
    let words: Vec<(&str, &str)> = if path.starts_with(SHELL) {
        Vec::new()
    } else if path.starts_with("streams-core/src/") || path.starts_with("streams-dsl/src/") {
        OUTSIDE_WORLD.to_vec()
    } else if path.starts_with("streams-state/src/") {
        OUTSIDE_STORES
            .map(|word| (word, "stores are told the time, and know no network"))
            .to_vec()
    } else {
        Vec::new()
    };
    let found = |(number, line): (usize, &str)| {
        let (word, why) = words.iter().find(|(word, _)| contains_word(line, word))?;
        Some(Finding::new(path, number, format!("`{word}` in the pure core: {why}")))
    };
    source.library_lines().filter_map(found).collect()
}

fn panics(source: &Source) -> Vec<Finding> {
    let path = source.path();
    let is_library = LIBRARIES.iter().any(|folder| path.starts_with(folder));
    if !is_library || SHIPPED_TESTS.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let found = |(number, line): (usize, &str)| {
        let word = PANICS.iter().find(|word| contains_word(line, word))?;
        Some(Finding::new(
            path,
            number,
            format!("`{word}` in library code: return an error that names the decision"),
        ))
    };
    source.library_lines().filter_map(found).collect()
}

fn unsafe_code(source: &Source) -> Vec<Finding> {
    if source.path().starts_with(FFI) {
        return Vec::new();
    }
    let lines = source.lines().filter(|(_, line)| contains_word(line, "unsafe"));
    lines
        .map(|(number, _)| Finding::new(source.path(), number, format!("`unsafe` outside {FFI}")))
        .collect()
}

/// A test may be ignored only if it is the body of a process that another test of the file starts, and says so:
/// `#[ignore = "run by other_test"]`.
fn ignored_tests(source: &Source) -> Vec<Finding> {
    let is_run = |number: usize| {
        let starter = source
            .raw(number)
            .split("\"run by ")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        starter.is_some_and(|name| source.lines().any(|(_, line)| line.contains(&format!("fn {name}("))))
    };
    let message = "an ignored test: repair it, delete it, or move it to `nightly`";
    let ignored = source
        .lines()
        .filter(|(number, line)| line.trim_start().starts_with("#[ignore") && !is_run(*number));
    ignored
        .map(|(number, _)| Finding::new(source.path(), number, message))
        .collect()
}

fn tests_without_assertion(source: &Source) -> Vec<Finding> {
    let is_test =
        |line: &str| line.trim() == "#[test]" || line.contains("proptest!") || line.trim() == "#[tokio::test]";
    let Some((number, _)) = source.lines().find(|(_, line)| is_test(line)) else {
        return Vec::new();
    };
    let asserts = |line: &str| ASSERTIONS.iter().any(|word| line.contains(word));
    if source.lines().any(|(_, line)| asserts(line)) {
        return Vec::new();
    }
    vec![Finding::new(
        source.path(),
        number,
        "tests that assert nothing cannot fail",
    )]
}

/// Whether `word` stands in `line` and is no part of a longer name.
fn contains_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|tail| tail.chars().next());
        let starts = !word.starts_with(is_name) || !before.is_some_and(is_name);
        let ends = !word.ends_with(is_name) || !after.is_some_and(is_name);
        starts && ends
    })
}

#[cfg(test)]
mod tests;
