//! What every fuzz target here does: one decoder of `streams_core::fuzzing`, by name.

pub use libfuzzer_sys;
pub use streams_core::fuzzing::check;

/// The program of one decoder.
#[macro_export]
macro_rules! decoder {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            if let Err(law) = $crate::check($name, bytes) {
                panic!("{law}");
            }
        });
    };
}
