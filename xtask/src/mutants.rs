//! `cargo xtask mutants`: breaks a copy of the code, one rule at a time, and shows which seed of the simulator finds it.
//! What no seed finds tells of a fault that the simulator lacks.

mod list;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::list::{ALL, Mutant};
use crate::cargo::{self, Metadata};
use crate::{setup, simulate};

/// So many seeds are tried for a mutant, unless told otherwise.
const MOST_SEEDS: &str = "3000";

/// Runs all mutants, or those named: `cargo xtask mutants [--list] [--seeds N] [NAME...]`.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    let (mut seeds, mut names, mut rest) = (MOST_SEEDS.to_owned(), Vec::new(), args.iter());
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--list" => {
                ALL.iter()
                    .for_each(|mutant| println!("{}: {}", mutant.name, mutant.what));
                return Ok(ExitCode::SUCCESS);
            }
            "--seeds" => seeds = rest.next().context("--seeds needs a number")?.clone(),
            name if ALL.iter().any(|mutant| mutant.name == name) => names.push(name.to_owned()),
            other => bail!("there is no mutant `{other}`; `cargo xtask mutants --list` lists them"),
        }
    }
    setup::ensure(setup::Needs::Rust)?;
    let copy = Copy::make()?;
    println!("| rule | what is broken | found by | how it shows |\n|---|---|---|---|");
    let mut missed = 0;
    for mutant in ALL
        .iter()
        .filter(|mutant| names.is_empty() || names.contains(&mutant.name.to_owned()))
    {
        let started = started();
        let found = copy.run(mutant, &seeds)?;
        missed += usize::from(found.is_none());
        let (by, how) = found.unwrap_or_else(|| (format!("none of {seeds} seeds"), String::new()));
        println!("| {} | {} | {by} | {how} |", mutant.rule, mutant.what);
        eprintln!("{}: {} s", mutant.name, started.elapsed().as_secs());
    }
    Ok(ExitCode::from(u8::from(missed > 0)))
}

#[allow(clippy::disallowed_methods, reason = "how long a run took is told to people")]
fn started() -> Instant {
    Instant::now()
}

/// A copy of the checkout with its own compiled files.
struct Copy {
    root: PathBuf,
    sources: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let folder = Metadata::read()?.target_dir().join("mutants");
        let copy = Copy {
            root: cargo::root().to_path_buf(),
            sources: folder.join("checkout"),
            target: folder.join("target"),
        };
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(&copy.root)
            .output()
            .context("git lists the files of the checkout")?;
        for file in String::from_utf8_lossy(&listed.stdout).lines() {
            copy.take_over(Path::new(file))?;
        }
        Ok(copy)
    }

    /// Copies a file if it differs, so that what is compiled stays compiled.
    fn take_over(&self, file: &Path) -> Result<()> {
        let (from, to) = (self.root.join(file), self.sources.join(file));
        let Ok(bytes) = std::fs::read(&from) else {
            return Ok(()); // deleted and not committed yet
        };
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
        std::fs::write(&to, bytes).with_context(|| format!("write {}", to.display()))
    }

    /// Answers which seed found the mutant, and how.
    fn run(&self, mutant: &Mutant, seeds: &str) -> Result<Option<(String, String)>> {
        let file = self.sources.join(mutant.file);
        let sound = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        if sound.matches(mutant.old).count() != 1 {
            bail!(
                "mutant {}: its text is not once in {}; mend xtask/src/mutants/list.rs",
                mutant.name,
                mutant.file
            );
        }
        std::fs::write(&file, sound.replace(mutant.old, mutant.new))?;
        let call = simulate::call(&["--seeds".to_owned(), seeds.to_owned()]);
        let output = call
            .process()
            .current_dir(&self.sources)
            .env("CARGO_TARGET_DIR", &self.target)
            .output();
        std::fs::write(&file, sound)?;
        let output = output.context("cargo runs the simulator")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return Ok(None);
        }
        let Some((topology, failure)) = said
            .lines()
            .find_map(|line| line.strip_prefix("topology ")?.split_once(": seed "))
        else {
            bail!("mutant {} does not run:\n{said}", mutant.name);
        };
        let (seed, how) = failure.split_once(" fails: ").unwrap_or((failure, ""));
        let how: String = how.chars().take(100).collect();
        Ok(Some((format!("seed {seed} ({topology})"), how.replace('|', "/"))))
    }
}
