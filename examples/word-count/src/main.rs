//! Counts words: of standard input on the test driver, or on a broker with `--bootstrap` (feature `kafka`).

#[cfg(feature = "kafka")]
mod broker;

use std::io::BufRead as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Counts the words of standard input, or, with a broker, those of topic `lines` into topic `counts-by-word`.
#[derive(Parser, Debug)]
#[command(version)]
struct Args {
    /// The broker, host:port; both topics have to exist there (needs `--features kafka`)
    #[arg(long)]
    bootstrap: Option<String>,
    /// Where local state lies on a broker
    #[arg(long, default_value = "word-count-state")]
    state_dir: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    match args.bootstrap {
        None => on_the_test_driver(),
        #[cfg(feature = "kafka")]
        Some(bootstrap) => broker::run(bootstrap, args.state_dir),
        #[cfg(not(feature = "kafka"))]
        Some(bootstrap) => anyhow::bail!(
            "this build knows no broker: cargo run -p word-count --features kafka -- --bootstrap {bootstrap} --state-dir {}",
            args.state_dir.display()
        ),
    }
}

fn on_the_test_driver() -> Result<()> {
    let mut counter = word_count::Counter::new()?;
    for line in std::io::stdin().lock().lines() {
        for (word, count) in counter.count(&line?)? {
            println!("{word}\t{count}");
        }
    }
    Ok(())
}
