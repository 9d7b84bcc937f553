//! The table of the design's rules in `tests/RULES.md`: each rule has a test, and each test that it names exists. So the
//! table can't say more than the tests show.

use std::collections::BTreeMap;

use super::Finding;
use super::files::Text;

/// Where the table is.
const TABLE: &str = "tests/RULES.md";

/// How many rules each section of the table has; 0 = the section is one rule.
const SECTIONS: [(u32, u32); 10] = [
    (1, 15),
    (2, 11),
    (3, 10),
    (4, 6),
    (5, 6),
    (6, 5),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
];

/// What stands in place of tests where a rule's part does not exist yet, followed by what is missing.
const NOT_BUILT: &str = "not built:";

/// Checks the table; a project without one is not ours to judge.
pub(crate) fn check(texts: &[Text]) -> Vec<Finding> {
    let Some(table) = texts.iter().find(|text| text.path == TABLE) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for (line, cells) in rows_of(&table.text) {
        let [number, .., tests] = cells.as_slice() else {
            continue;
        };
        rows.insert(number, line);
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        let not_built = tests
            .split_once(NOT_BUILT)
            .is_some_and(|(_, why)| !why.trim().is_empty());
        if named.is_empty() && !not_built {
            let message = format!("{number} names no test: add one, or say `{NOT_BUILT} …`");
            findings.push(Finding::new(TABLE, line, message));
        }
        findings.extend(named.iter().filter_map(|test| missing(texts, test, line)));
    }
    for number in numbers() {
        if !rows.contains_key(number.as_str()) {
            findings.push(Finding::new(TABLE, 0, format!("rule {number} has no row")));
        }
    }
    findings
}

/// The rows of all tables with their line numbers, without heads and rulers.
fn rows_of(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.starts_with('|'));
    lines
        .map(|(at, line)| (at + 1, line.trim_matches('|').split('|').map(str::trim).collect()))
        .filter(|(_, cells): &(usize, Vec<&str>)| {
            let first = cells.first().copied().unwrap_or_default();
            !first.is_empty() && !first.starts_with("---") && !matches!(first, "rule" | "error")
        })
}

fn numbers() -> impl Iterator<Item = String> {
    SECTIONS.into_iter().flat_map(|(section, rules)| match rules {
        0 => vec![section.to_string()],
        rules => (1..=rules).map(|rule| format!("{section}.{rule}")).collect(),
    })
}

/// What is wrong with `end/of/a/path.rs::name_of_a_test`; a name may end with `*`.
fn missing(texts: &[Text], test: &str, line: usize) -> Option<Finding> {
    let wrong = |message: String| Some(Finding::new(TABLE, line, message));
    let Some((path, name)) = test.split_once("::") else {
        return wrong(format!("`{test}` is not written as path::test"));
    };
    let ends = format!("/{path}");
    let files: Vec<&Text> = texts
        .iter()
        .filter(|text| text.path == path || text.path.ends_with(&ends))
        .collect();
    let [file] = files.as_slice() else {
        return wrong(format!("{} files end with {path}, it must be one", files.len()));
    };
    let function = match name.strip_suffix('*') {
        Some(begin) => format!("fn {begin}"),
        None => format!("fn {name}("),
    };
    (!file.text.contains(&function))
        .then(|| Finding::new(TABLE, line, format!("there is no test {name} in {}", file.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<String> {
        let mut table = String::from("| rule | what | tests |\n|---|---|---|\n");
        for number in numbers().filter(|number| number != "1.1") {
            table += &format!("| {number} | x | `core.rs::rule_any_*` |\n");
        }
        table += rows;
        let text = |path: &str, text: &str| Text {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let texts = [
            text(TABLE, &table),
            text(
                "streams-core/src/core.rs",
                "#[test]\nfn rule_any_thing() {}\nfn rule_1_1_holds() {}\n",
            ),
            text("a/twice.rs", "fn t() {}"),
            text("b/twice.rs", "fn t() {}"),
        ];
        check(&texts).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_table_whose_tests_exist_is_fine() {
        assert_eq!(
            found("| 1.1 | x | `core.rs::rule_1_1_holds`, `src/core.rs::rule_any_*` |\n"),
            [""; 0]
        );
        assert_eq!(found("| 1.1 | x | not built: queries |\n"), [""; 0]);
    }

    #[test]
    fn a_rule_without_row_test_or_reason_is_found() {
        assert_eq!(found(""), ["rule 1.1 has no row"]);
        for row in [
            "| 1.1 | x | |\n",
            "| 1.1 | x | see above |\n",
            "| 1.1 | x | not built: |\n",
        ] {
            let found = found(row);
            assert!(
                found.len() == 1 && found[0].contains("names no test"),
                "{row}: {found:?}"
            );
        }
    }

    #[test]
    fn a_test_that_was_renamed_or_never_was_is_found() {
        for (test, message) in [
            ("core.rs::rule_1_1_hold", "no test"),
            ("core.rs::rule_2_*", "no test"),
            ("gone.rs::rule_1_1_holds", "0 files"),
            ("twice.rs::t", "2 files"),
            ("rule_1_1_holds", "path::test"),
        ] {
            let found = found(&format!("| 1.1 | x | `{test}` |\n"));
            assert!(found.len() == 1 && found[0].contains(message), "{test}: {found:?}");
        }
    }
}
