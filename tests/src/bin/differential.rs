//! `differential [--topologies N] [--seed S] [--case FILE] [--show]`: seeded topologies through Java's test driver and ours.
//!
//! `--case` runs the case in a file on both sides instead; `--show` prints the case of the seed and runs nothing. The
//! exit code is 1 if something differs that is not known.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use streams_tests::differential::{Java, compare_one, generate, run};

fn main() -> ExitCode {
    // Functions of cases fail by panics; each is told by its case.
    std::panic::set_hook(Box::new(|_| {}));
    match differential() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("differential: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn differential() -> anyhow::Result<ExitCode> {
    let (mut topologies, mut seed, mut file, mut show) = (300, 0, None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--topologies" => topologies = value()?.parse()?,
            "--seed" => seed = value()?.parse()?,
            "--case" => file = Some(value()?),
            "--show" => show = true,
            _ => bail!("usage: differential [--topologies N] [--seed S] [--case FILE] [--show]"),
        }
    }
    if show {
        println!("{:#}", generate::case(seed));
        return Ok(ExitCode::SUCCESS);
    }
    let mut java = Java::start().map_err(anyhow::Error::msg)?;
    if let Some(file) = file {
        let case = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
        let difference = compare_one(&mut java, &case).map_err(anyhow::Error::msg)?;
        println!("{}", difference.as_deref().unwrap_or("equal"));
        return Ok(code(difference.is_none()));
    }
    let report = run(&mut java, seed, topologies, |line| eprintln!("{line}")).map_err(anyhow::Error::msg)?;
    println!("{report}");
    Ok(code(report.findings.is_empty()))
}

fn code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
