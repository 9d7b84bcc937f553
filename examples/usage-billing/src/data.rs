//! Reading the input files: plain, gzip or zip.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::model::RawDeparture;

/// The folder with the January sample that comes with the example: `flights.csv`, `planes.csv`, `airlines.csv`.
///
/// Cargo tells a program at run time in which package it runs; a program that is started by itself looks upwards from the
/// working folder. Paths noted while compiling would be those of another checkout, if two share their compiled files.
pub fn sample_dir() -> PathBuf {
    let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let starts = [told, std::env::current_dir().ok()];
    let found = starts.iter().flatten().find_map(|start| sample_above(start));
    found.unwrap_or_else(|| PathBuf::from(SAMPLE))
}

/// The sample's folder, seen from the root of the project.
const SAMPLE: &str = "examples/usage-billing/data";

fn sample_above(start: &Path) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|folder| folder.join(SAMPLE))
        .find(|folder| folder.is_dir())
}

/// A row of `planes.csv`; the columns that are used.
#[derive(Clone, Debug, Deserialize)]
pub struct PlaneRow {
    /// Key.
    pub tailnum: String,
    /// Seats.
    pub seats: String,
    /// Model.
    pub model: String,
}

/// A row of `airlines.csv`.
#[derive(Clone, Debug, Deserialize)]
pub struct AirlineRow {
    /// Key.
    pub carrier: String,
    /// Name.
    pub name: String,
}

/// The files of a folder.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// A folder with `flights.csv`, `planes.csv` and `airlines.csv`, each also as `….csv.gz` or `….csv.zip`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        DataDir(folder.into())
    }

    /// The departures, in the file's order.
    ///
    /// # Errors
    /// When the file is missing or a row can't be read; the error names file and row.
    pub fn flights(&self) -> Result<impl Iterator<Item = Result<RawDeparture>> + use<>> {
        self.rows("flights")
    }

    /// The aircraft.
    ///
    /// # Errors
    /// As [`flights`](Self::flights).
    pub fn planes(&self) -> Result<impl Iterator<Item = Result<PlaneRow>> + use<>> {
        self.rows("planes")
    }

    /// The airlines.
    ///
    /// # Errors
    /// As [`flights`](Self::flights).
    pub fn airlines(&self) -> Result<impl Iterator<Item = Result<AirlineRow>> + use<>> {
        self.rows("airlines")
    }

    fn rows<T: DeserializeOwned + 'static>(&self, name: &str) -> Result<impl Iterator<Item = Result<T>> + use<T>> {
        let (path, bytes) = self.read(name)?;
        let reader = csv::Reader::from_reader(bytes);
        Ok(reader
            .into_deserialize()
            .map(move |row| row.with_context(|| format!("a row of {}", path.display()))))
    }

    /// The file as text, by the first of its forms that is there.
    fn read(&self, name: &str) -> Result<(PathBuf, Box<dyn Read>)> {
        for form in ["csv", "csv.gz", "csv.zip"] {
            let path = self.0.join(format!("{name}.{form}"));
            if path.is_file() {
                let bytes = open(&path).with_context(|| format!("cannot read {}", path.display()))?;
                return Ok((path, bytes));
            }
        }
        bail!(
            "there is no {name}.csv (or .csv.gz, .csv.zip) in {}: see data/README.md for where the files come from",
            self.0.display()
        );
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>> {
    let file = std::io::BufReader::new(File::open(path)?);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Ok(Box::new(flate2::read::GzDecoder::new(file))),
        Some("zip") => {
            let mut archive = zip::ZipArchive::new(file)?;
            let name = archive
                .file_names()
                .find(|name| name.ends_with(".csv"))
                .map(str::to_owned);
            let name = name.context("there is no .csv in it")?;
            let mut text = Vec::new();
            archive.by_name(&name)?.read_to_end(&mut text)?;
            Ok(Box::new(std::io::Cursor::new(text)))
        }
        _ => Ok(Box::new(file)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use std::io::Write as _;

    use super::*;

    const CSV: &str = "carrier,name\nUA,United Air Lines Inc.\n";

    fn names(folder: &Path) -> Vec<String> {
        let rows = DataDir::new(folder).airlines().unwrap();
        rows.map(|row| row.unwrap().name).collect()
    }

    #[test]
    fn the_sample_is_january() {
        let data = DataDir::new(sample_dir());
        assert_eq!(data.flights().unwrap().count(), 27_004);
        assert_eq!(
            (data.planes().unwrap().count(), data.airlines().unwrap().count()),
            (3_322, 16)
        );
    }

    #[test]
    fn packed_files_read_as_plain_ones() {
        let expected = ["United Air Lines Inc."];
        let plain = tempfile::tempdir().unwrap();
        std::fs::write(plain.path().join("airlines.csv"), CSV).unwrap();
        assert_eq!(names(plain.path()), expected);

        let gz = tempfile::tempdir().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(
            File::create(gz.path().join("airlines.csv.gz")).unwrap(),
            flate2::Compression::fast(),
        );
        encoder.write_all(CSV.as_bytes()).unwrap();
        encoder.finish().unwrap();
        assert_eq!(names(gz.path()), expected);

        let zip = tempfile::tempdir().unwrap();
        let mut writer = zip::ZipWriter::new(File::create(zip.path().join("airlines.csv.zip")).unwrap());
        writer
            .start_file("folder/airlines.csv", zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(CSV.as_bytes()).unwrap();
        writer.finish().unwrap();
        assert_eq!(names(zip.path()), expected);
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = DataDir::new(folder.path()).planes().err().unwrap();
        assert!(error.to_string().contains("there is no planes.csv"), "{error}");
    }

    #[test]
    fn the_sample_is_that_of_the_running_checkout() {
        let told = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        assert_eq!(sample_dir(), Path::new(&told).join("data"));
        assert_eq!(sample_above(Path::new("/")), None);
    }
}
