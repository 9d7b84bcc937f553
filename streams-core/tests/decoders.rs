//! Every decoder of bytes from outside, without a fuzzer: the corpus of `fuzz/`, and 10,000 generated inputs each. None may
//! panic, break a law of its target, or ask for much more memory than its input takes.
//!
//! An input that fails is printed in hex: put it into the decoder's folder of `fuzz/corpus`, and it is tried for ever.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "decoders/random.rs"]
mod random;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use random::Random;
use streams_core::fuzzing::{Target, targets};

/// Generated inputs of each decoder.
const INPUTS: usize = 10_000;
/// The seed of all of them; `DECODERS_SEED` chooses another.
const SEED: u64 = 20_261_201;
/// What a decoder may hold at once besides what follows from its input: the state that some of them need.
const FIXED_BYTES: u64 = 64 << 10;
/// What it may hold for each byte of the input: a byte on the wire can be an empty element of a hundred bytes, a growing
/// list is held twice while it moves, and checks encode what they decoded.
const BYTES_FOR_EACH: u64 = 512;

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("fuzz")
}

fn corpus_of(target: &Target) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("corpus").join(target.name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Runs a decoder; what went wrong, if anything.
fn failure(target: &Target, input: &[u8]) -> Option<String> {
    let mut outcome = Ok(Ok(()));
    let memory = allocation_counter::measure(|| {
        outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    });
    let allowed = FIXED_BYTES + BYTES_FOR_EACH * input.len() as u64;
    match outcome {
        Err(_) => Some("it panics".to_owned()),
        Ok(Err(law)) => Some(format!("this does not hold: {law}")),
        Ok(Ok(())) if memory.bytes_max > allowed => Some(format!(
            "it holds {} bytes for an input of {}, where {allowed} are allowed",
            memory.bytes_max,
            input.len()
        )),
        Ok(Ok(())) => None,
    }
}

fn try_input(target: &Target, input: &[u8], how: &str) {
    if let Some(failure) = failure(target, input) {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("decoder {}, {how} input {hex}: {failure}", target.name);
    }
}

#[test]
fn no_input_of_the_corpus_panics_breaks_a_law_or_asks_for_much_memory() {
    for target in targets() {
        for input in corpus_of(target) {
            try_input(target, &input, "corpus");
        }
    }
}

#[test]
fn no_generated_input_panics_breaks_a_law_or_asks_for_much_memory() {
    let seed = std::env::var("DECODERS_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    for target in targets() {
        let valid = corpus_of(target);
        let mut random = Random::new(seed);
        for number in 0..INPUTS {
            let (how, input) = match number % 5 {
                0 => ("random", random.bytes()),
                1 => ("truncated", random.truncated(&valid)),
                2 => ("bit-flipped", random.flipped(&valid)),
                3 => ("length-inflated", random.inflated(&valid)),
                _ => ("spliced", random.spliced(&valid)),
            };
            try_input(target, &input, how);
        }
    }
}

#[test]
fn a_decoder_that_trusts_a_length_is_found() {
    let trusting = Target {
        name: "trusting",
        check: |bytes| {
            let length = bytes.first_chunk().map_or(0, |length| u32::from_be_bytes(*length));
            let room: Vec<u8> = Vec::with_capacity(length as usize);
            assert_ne!(room.capacity(), 2);
            if room.capacity() == 1 {
                Err("one".to_owned())
            } else {
                Ok(())
            }
        },
        seeds: Vec::new,
    };
    let found = |length: u32| failure(&trusting, &length.to_be_bytes()).unwrap_or_default();
    assert_eq!(found(9), "");
    assert!(
        found(8_388_607).starts_with("it holds 8388607 bytes"),
        "{}",
        found(8_388_607)
    );
    assert_eq!(found(1), "this does not hold: one");
    assert_eq!(found(2), "it panics");
}

/// With `DECODERS_CORPUS=overwrite` the seeds are written anew.
#[test]
fn the_corpus_has_every_seed_and_a_folder_for_every_decoder() {
    let corpus = fuzz_folder().join("corpus");
    let overwrite = std::env::var("DECODERS_CORPUS").is_ok_and(|value| value == "overwrite");
    for target in targets() {
        let folder = corpus.join(target.name);
        let mut seeds = (target.seeds)();
        if seeds.is_empty() {
            seeds.push(Vec::new());
        }
        for (number, seed) in seeds.iter().enumerate() {
            let file = folder.join(format!("seed-{number}"));
            if overwrite {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&file, seed).unwrap();
            }
            let found = std::fs::read(&file).ok();
            let file = file.display();
            assert_eq!(
                found.as_ref(),
                Some(seed),
                "{file}; DECODERS_CORPUS=overwrite writes it anew"
            );
        }
    }
    assert_eq!(names(&corpus), target_names());
}

#[test]
fn every_decoder_has_a_fuzz_target_and_stands_in_the_list_of_them() {
    let fuzz = fuzz_folder();
    let programs: BTreeSet<String> = names(&fuzz.join("fuzz_targets"))
        .iter()
        .map(|file| file.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(programs, target_names());
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    let contributing = std::fs::read_to_string(fuzz.parent().unwrap().join("CONTRIBUTING.md")).unwrap();
    for name in target_names() {
        let program = std::fs::read_to_string(fuzz.join("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(program.contains(&format!("decoder!(\"{name}\")")), "{name}.rs");
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} in fuzz/Cargo.toml"
        );
        assert!(contributing.contains(&format!("`{name}`")), "{name} in CONTRIBUTING.md");
    }
}

#[test]
fn no_two_decoders_have_one_name() {
    assert_eq!(target_names().len(), targets().count());
}

fn target_names() -> BTreeSet<String> {
    targets().map(|target| target.name.to_owned()).collect()
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
