//! A Rust file taken apart far enough for the house rules: code without comments and strings, and which lines are
//! test code. Not a parser: it relies on files that compile and are formatted.

/// One Rust file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    path: String,
    /// The lines as they are.
    raw: Vec<String>,
    /// The lines with the contents of comments, strings and characters blanked.
    code: Vec<String>,
    /// Per line, whether only tests compile it.
    test: Vec<bool>,
    is_test: bool,
}

impl Source {
    /// Takes a file apart.
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let code: Vec<String> = blank(text).lines().map(str::to_owned).collect();
        let test = test_lines(&code);
        let in_tests = ["tests/", "benches/"]
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")));
        let is_test = in_tests && !path.contains("/src/") || code.iter().any(|line| line.trim() == "#![cfg(test)]");
        Self {
            path: path.to_owned(),
            raw: text.lines().map(str::to_owned).collect(),
            code,
            test,
            is_test,
        }
    }

    /// Path from the root.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Whether only tests compile the whole file.
    #[cfg(test)]
    pub(crate) fn is_test(&self) -> bool {
        self.is_test
    }

    /// Says that only tests compile the whole file.
    pub(crate) fn mark_as_test(&mut self) {
        self.is_test = true;
    }

    /// All lines of code, with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(at, line)| (at + 1, line.as_str()))
    }

    /// A line as it is, with its strings and comments.
    pub(crate) fn raw(&self, number: usize) -> &str {
        self.raw.get(number - 1).map(String::as_str).unwrap_or_default()
    }

    /// The lines of code that are not test code.
    pub(crate) fn library_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = move |number: usize| self.is_test || self.test.get(number - 1).copied().unwrap_or(false);
        self.lines().filter(move |(number, _)| !is_test(*number))
    }

    /// The modules in other files that this file declares for tests, as paths without `.rs`.
    pub(crate) fn test_modules(&self) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder.to_owned(),
            _ => self.path.trim_end_matches(".rs").to_owned(),
        };
        let declared = self
            .lines()
            .filter(|(number, _)| self.test.get(number - 1) == Some(&true));
        declared
            .filter_map(|(_, line)| declared_module(line))
            .map(|name| format!("{folder}/{name}"))
            .collect()
    }
}

/// The name in `mod name;`.
fn declared_module(line: &str) -> Option<&str> {
    let words = line.trim().strip_suffix(';')?;
    let (before, name) = words.rsplit_once(' ')?;
    before
        .split(' ')
        .next_back()
        .filter(|word| *word == "mod")
        .map(|_| name)
}

/// Marks the items under `#[cfg(test)]`, `#[cfg(all(test, …))]` and `#[test]`.
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut marks = vec![false; code.len()];
    let mut number = 0;
    while let Some(line) = code.get(number) {
        let start = line.trim_start();
        if !["#[cfg(test)]", "#[cfg(all(test", "#[test]"]
            .iter()
            .any(|attribute| start.starts_with(attribute))
        {
            number += 1;
            continue;
        }
        let end = end_of_item(code, number);
        marks
            .iter_mut()
            .take(end + 1)
            .skip(number)
            .for_each(|mark| *mark = true);
        number = end + 1;
    }
    marks
}

/// The last line of the item that begins with an attribute on line `start`: a `;` or a closing brace outside all
/// brackets.
fn end_of_item(code: &[String], start: usize) -> usize {
    let mut depth = 0_i32;
    for (number, line) in code.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        return number;
                    }
                }
                ';' if depth == 0 => return number,
                _ => {}
            }
        }
    }
    code.len().saturating_sub(1)
}

/// The text with the contents of comments, strings and characters as blanks; lines stay lines.
fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = match c {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at),
            'r' if !follows_word(&chars, at) => end_of_raw_string(&chars, at).unwrap_or(at),
            'b' if !follows_word(&chars, at) && chars.get(at + 1) == Some(&'r') => {
                end_of_raw_string(&chars, at + 1).unwrap_or(at)
            }
            '\'' => end_of_char(&chars, at).unwrap_or(at),
            _ => at,
        };
        if end == at {
            out.push(c);
            at += 1;
            continue;
        }
        for blanked in chars.iter().take(end).skip(at) {
            out.push(if *blanked == '\n' { '\n' } else { ' ' });
        }
        at = end;
    }
    out
}

fn follows_word(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| chars.get(before));
    before.is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars
        .iter()
        .skip(at)
        .position(|c| *c == '\n')
        .map_or(chars.len(), |length| at + length)
}

fn end_of_block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut here = at;
    while here < chars.len() {
        match (chars.get(here), chars.get(here + 1)) {
            (Some('/'), Some('*')) => depth += 1,
            (Some('*'), Some('/')) => depth -= 1,
            _ => {
                here += 1;
                continue;
            }
        }
        here += 2;
        if depth == 0 {
            return here;
        }
    }
    chars.len()
}

fn end_of_string(chars: &[char], at: usize) -> usize {
    let mut here = at + 1;
    while let Some(c) = chars.get(here) {
        match c {
            '\\' => here += 2,
            '"' => return here + 1,
            _ => here += 1,
        }
    }
    chars.len()
}

/// `at` stands on the `r`; `None` if no raw string begins there (`r#type`, or a plain name).
fn end_of_raw_string(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars.iter().skip(at + 1).take_while(|c| **c == '#').count();
    let quote = at + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let closes = |here: &usize| {
        chars.get(*here) == Some(&'"')
            && chars.iter().skip(here + 1).take(hashes).filter(|c| **c == '#').count() == hashes
    };
    Some(
        (quote + 1..chars.len())
            .find(closes)
            .map_or(chars.len(), |end| end + 1 + hashes),
    )
}

/// A character literal; `None` for a lifetime.
fn end_of_char(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let end = chars.iter().skip(at + 3).position(|c| *c == '\'')?;
        return Some(at + 3 + end + 1);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library_code(text: &str) -> String {
        let source = Source::parse("a/src/lib.rs", text);
        source
            .library_lines()
            .map(|(_, line)| line.trim())
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let text = "let a = \"x.unwrap()\"; // unwrap()\n/* panic! /* nested */ */ let b = r#\"\"todo!\"\"#;\n";
        let squeezed = library_code(text).replace(' ', "");
        assert_eq!(squeezed, "leta=;|letb=;");
    }

    #[test]
    fn escapes_and_characters_do_not_end_strings() {
        assert_eq!(
            library_code("let a = \"\\\"unwrap()\"; f('\"', '\\'', b'\\\\');")
                .matches("unwrap")
                .count(),
            0
        );
        assert!(library_code("fn f<'a>(x: &'a str) { x.unwrap() }").contains("x.unwrap()"));
    }

    #[test]
    fn raw_identifiers_are_code() {
        assert_eq!(library_code("let r#type = other\"\";"), "let r#type = other  ;");
    }

    #[test]
    fn lines_keep_their_numbers() {
        let source = Source::parse("a/src/lib.rs", "/*\n\n*/\nfn f() {}\n");
        assert!(source.lines().any(|(number, line)| number == 4 && line == "fn f() {}"));
    }

    #[test]
    fn test_items_are_left_out_and_what_follows_is_not() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { let x = [1; 2]; }\n}\nfn c() {}\n#[cfg(test)]\nuse x::{y, z};\nfn d() {}\n";
        assert_eq!(library_code(text), "fn a() {}|fn c() {}|fn d() {}");
    }

    #[test]
    fn a_test_function_ends_at_its_brace() {
        let text = "#[test]\n#[should_panic]\nfn a() {\n    f(|| { 1 });\n}\nfn b() {}\n";
        assert_eq!(library_code(text), "fn b() {}");
    }

    #[test]
    fn files_in_a_tests_folder_are_test_code() {
        assert!(Source::parse("streams-dsl/tests/errors.rs", "").is_test());
        assert!(Source::parse("tests/tests/broker.rs", "").is_test());
        assert!(!Source::parse("tests/src/lib.rs", "").is_test());
    }
}
