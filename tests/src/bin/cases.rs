//! `cases FILE`: runs every `ttd` case of a file. A line a case, then the counts; exit code 1 if a case failed.

use std::process::ExitCode;

use streams_tests::cases::{counts, run_all};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: cases FILE (in the format of tests/cases/given.json)");
        return ExitCode::from(2);
    };
    // Functions of cases fail by panics; each is told by its case.
    std::panic::set_hook(Box::new(|_| {}));
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string());
    let outcomes = match text.and_then(|text| run_all(&text)) {
        Ok(outcomes) => outcomes,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::from(2);
        }
    };
    for outcome in &outcomes {
        println!("{outcome}");
    }
    let (passed, failed, skipped) = counts(&outcomes);
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
