//! The project's commands: `cargo xtask COMMAND`.
//!
//! This package depends on neither RocksDB nor librdkafka, so that it compiles in seconds on a machine
//! where nothing is installed yet.

mod bench;
mod cargo;
mod cases;
mod demo;
mod differential;
mod features;
mod lint;
mod mutants;
mod nightly;
mod progress;
mod setup;
mod simulate;
mod test;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  setup                          finds what the build needs; on Debian and Ubuntu installs what is missing
  test [offline|broker|crash|core|all]
                                 setup, then the tests in order of cost (default: all; core: without C++)
  lint [core|house|deny|guide|all]
                                 rustfmt, clippy, docs, licences, the guide, house rules (default: all; core: without C++)
  demo [ARGS]                    setup, then the billing example on a real Kafka with one SIGKILL in the middle
  bench [NAME [ARGS]]            one benchmark; without a name: the list
  cases FILE                     runs the operator cases of FILE through the test driver
  differential [--topologies N] [--seed S] [--case FILE] [--show]
                                 seeded topologies through Java's test driver and ours (default: 300 from seed 0)
  simulate [--seeds N] [--seed S] [--topology NAME] [--trace]
                                 the core under seeded faults, without C++ (default: 300 seeds)
  mutants [--list] [--seeds N] [NAME...]
                                 breaks the code rule by rule and shows which seed of the simulator finds it
  nightly [--list|NAME...]       the long runs

Compiled files go to CARGO_TARGET_DIR as with any cargo call; tools that xtask installs for itself go to
${XDG_CACHE_HOME:-~/.cache}/kafka-streams-rust/.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> anyhow::Result<ExitCode> {
    let Some((command, rest)) = args.split_first() else {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    match command.as_str() {
        "setup" => setup::command(rest),
        "test" => test::command(rest),
        "lint" => lint::command(rest),
        "demo" => demo::command(rest),
        "bench" => bench::command(rest),
        "cases" => cases::command(rest),
        "differential" => differential::command(rest),
        "simulate" => simulate::command(rest),
        "mutants" => mutants::command(rest),
        "nightly" => nightly::command(rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => anyhow::bail!("there is no command `{other}`\n\n{HELP}"),
    }
}
