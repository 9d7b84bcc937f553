//! The house rules that a program can check. What they find is printed as `path:line: what is wrong`.

mod dependencies;
mod files;
mod links;
mod rule_table;
mod rules;
mod source;

use anyhow::{Result, bail};

use crate::cargo::{self, Metadata};

/// What a rule found at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path from the root, with `/`.
    path: String,
    /// Line, from 1; 0 for the whole file.
    line: usize,
    /// What is wrong and what to do.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }

    fn shown(&self) -> String {
        match self.line {
            0 => format!("{}: {}", self.path, self.message),
            line => format!("{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks every file of the project.
pub(crate) fn check() -> Result<()> {
    let files = files::read(cargo::root())?;
    let mut findings = rules::check_texts(&files.texts);
    findings.extend(rules::check_sources(&files.sources()));
    findings.extend(rule_table::check(&files.texts));
    findings.extend(links::check(cargo::root(), &files.texts));
    findings.extend(dependencies::check(&Metadata::read()?, &files.texts)?);
    for warning in rules::long_files(&files.texts) {
        eprintln!("    warning: {}", warning.shown());
    }
    for finding in &findings {
        eprintln!("    {}", finding.shown());
    }
    if findings.is_empty() {
        Ok(())
    } else {
        bail!("{} house rules are broken", findings.len())
    }
}
