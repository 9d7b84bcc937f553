//! Bills airlines for the departures of an airport. So far: the input data (see `data/README.md`).

use std::path::{Path, PathBuf};

/// The folder with the January sample that comes with the example: `flights.csv`, `planes.csv`, `airlines.csv`.
pub fn sample_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

#[cfg(test)]
mod tests {
    use super::sample_dir;

    #[test]
    fn the_sample_has_its_three_files() {
        for name in ["flights.csv", "planes.csv", "airlines.csv"] {
            assert!(sample_dir().join(name).is_file(), "{name}");
        }
    }
}
