//! Links between the project's pages lead somewhere: to a file that is there, and to a heading that it has. Links to the
//! web are not looked at, as they change without a change of ours.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use super::files::Text;

/// Checks the links of all pages.
pub(crate) fn check(root: &Path, texts: &[Text]) -> Vec<Finding> {
    let pages = texts.iter().filter(|text| text.path.ends_with(".md"));
    pages
        .flat_map(|page| {
            links(&page.text).into_iter().filter_map(|(line, target)| {
                broken(root, texts, page, target).map(|why| Finding::new(&page.path, line, why))
            })
        })
        .collect()
}

/// The targets of the links of a page with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut in_block) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // What stands between backticks is code.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| (at + 1, target)));
        }
    }
    found
}

fn broken(root: &Path, texts: &[Text], page: &Text, target: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
    {
        return None;
    }
    let (file, anchor) = target
        .split_once('#')
        .map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        below(&page.path, file)?
    };
    let is_page = texts.iter().any(|text| text.path == path);
    if !is_page && !root.join(&path).exists() {
        return Some(format!("the link `{target}` leads to {path}, which is not there"));
    }
    let anchor = anchor?;
    let linked = texts.iter().find(|text| text.path == path)?;
    let heads = linked.text.lines().filter(|line| line.starts_with('#')).map(slug);
    let missing = !heads.into_iter().any(|head| head == anchor);
    missing.then(|| format!("the link `{target}` leads to a heading that {path} does not have"))
}

/// The path from the root of a file that is named in a page; a path that leaves the project stays as it is, and is not found.
fn below(page: &str, file: &str) -> Option<String> {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir if path.components().next().is_some() => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    Some(path.to_str()?.replace('\\', "/"))
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Text {
        Text {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// What is found in a page beside the real files of the project.
    fn found(text: &str) -> Vec<String> {
        let texts = [
            page("docs/guide/src/x.md", text),
            page("README.md", "# Kafka Streams for Rust\n## Two commands\n"),
        ];
        check(crate::cargo::root(), &texts).iter().map(Finding::shown).collect()
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_is_found_with_its_line() {
        assert_eq!(
            found("text\n[a](../../../README.md) and [b](nowhere.md)\n"),
            ["docs/guide/src/x.md:2: the link `nowhere.md` leads to docs/guide/src/nowhere.md, which is not there"]
        );
        assert_eq!(found("[a](../../../../../etc)").len(), 1);
    }

    #[test]
    fn a_link_to_a_heading_that_is_not_there_is_found() {
        assert_eq!(found("[a](../../../README.md#two-commands)\n"), Vec::<String>::new());
        assert_eq!(found("[a](../../../README.md#three-commands)\n").len(), 1);
        assert_eq!(found("# One, and two\n[a](#one-and-two)\n"), Vec::<String>::new());
        assert_eq!(found("# One\n[a](#two)\n").len(), 1);
    }

    #[test]
    fn the_web_and_code_are_left_alone() {
        let text = "[a](https://example.org/x)\n```text\n[b](nowhere)\n```\n`[c](nowhere)`\n";
        assert_eq!(found(text), Vec::<String>::new());
    }
}
