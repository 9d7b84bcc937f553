//! How far the longest compilation is: cargo itself is silent while a build script runs.

use std::path::{Path, PathBuf};

use crate::cargo::CPP_PACKAGES;

/// The sources that RocksDB's build compiles: the end of the scale.
const SOURCES: usize = 343;

/// Looks at the folders of RocksDB's build.
pub(super) struct RocksDb {
    build: PathBuf,
}

impl RocksDb {
    /// The builds below a target folder.
    pub(super) fn new(target_dir: &Path) -> Self {
        let build = target_dir.join("debug").join("build");
        Self { build }
    }

    /// Whether some build has finished: the archive is written last.
    pub(super) fn is_compiled(&self) -> bool {
        self.folders().iter().any(|folder| is_finished(folder))
    }

    /// The object files of builds that have not finished.
    pub(super) fn objects(&self) -> usize {
        let folders = self.folders();
        let unfinished = folders.iter().filter(|folder| !is_finished(folder));
        unfinished.map(|folder| count_objects(&folder.join("out"))).sum()
    }

    /// A build whose count grows is under way; one whose count stands still was interrupted once.
    pub(super) fn shown(&self, before: usize, now: usize) -> String {
        if now <= before {
            return String::new();
        }
        format!(" (RocksDB: {now} of about {SOURCES} files)")
    }

    fn folders(&self) -> Vec<PathBuf> {
        let is_rocksdb = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            CPP_PACKAGES.first().is_some_and(|package| name.starts_with(package))
        };
        let entries = std::fs::read_dir(&self.build).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(is_rocksdb).collect()
    }
}

fn is_finished(folder: &Path) -> bool {
    folder.join("out").join("librocksdb.a").is_file()
}

fn count_objects(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |path: PathBuf| {
        if path.is_dir() {
            count_objects(&path)
        } else {
            usize::from(path.extension().is_some_and(|ext| ext == "o"))
        }
    };
    entries.map(|entry| count(entry.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_counted_until_its_archive_is_there() -> std::io::Result<()> {
        let target = std::env::temp_dir().join(format!("xtask-rocksdb-{}", std::process::id()));
        let out = target.join("debug/build/librocksdb-sys-0123/out");
        std::fs::create_dir_all(out.join("db"))?;
        let watch = RocksDb::new(&target);
        std::fs::write(out.join("db/a.o"), "")?;
        std::fs::write(out.join("b.o"), "")?;
        assert_eq!((watch.objects(), watch.is_compiled()), (2, false));
        assert!(watch.shown(1, 2).contains("2 of about"));
        assert_eq!(watch.shown(2, 2), "");
        std::fs::write(out.join("librocksdb.a"), "")?;
        assert_eq!((watch.objects(), watch.is_compiled()), (0, true));
        std::fs::remove_dir_all(target)
    }
}
