//! The decoders of bytes from outside, by name, for the fuzz targets in `fuzz/` and the test that runs the same without a
//! fuzzer (`tests/decoders.rs`). Not a part of the interface: behind the feature `fuzzing`.

mod codecs;
mod group;
mod serdes;
mod stored;

pub use streams_state::fuzzing::{Target, law};

/// Every decoder.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let parts = [
        streams_state::fuzzing::TARGETS,
        codecs::TARGETS,
        group::TARGETS,
        serdes::TARGETS,
        stored::TARGETS,
    ];
    parts.into_iter().flatten()
}

/// Runs one decoder: what a fuzz target does with each input.
///
/// # Errors
/// The law that does not hold, or that there is no decoder of this name.
pub fn check(name: &str, bytes: &[u8]) -> Result<(), String> {
    let target = targets().find(|target| target.name == name);
    let target = target.ok_or_else(|| format!("there is no decoder `{name}`"))?;
    (target.check)(bytes).map_err(|law| format!("{name}: this does not hold: {law}"))
}

/// What is decoded, encoded and decoded again is the same.
fn read_back<T: PartialEq>(first: Option<T>, again: impl FnOnce(&T) -> Option<T>) -> Result<(), String> {
    match first {
        Some(value) => law(
            again(&value).as_ref() == Some(&value),
            "what is decoded is encoded to what decodes to the same",
        ),
        None => Ok(()),
    }
}
