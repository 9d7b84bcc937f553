//! Where the tools are, found by looking at files: starting a JVM or a compiler would take longer than all the rest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folders where distributions put libclang, besides those of `LIBCLANG_PATH` and `llvm-config`.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/opt/homebrew/opt/llvm/lib",
    "/usr/local/opt/llvm/lib",
    "/Library/Developer/CommandLineTools/usr/lib",
];

/// A program on the PATH.
pub(crate) fn program(name: &str) -> Option<String> {
    on_path(name).map(|path| path.display().to_string())
}

/// A program in the folder of the cargo that runs us (a toolchain outside the PATH).
pub(crate) fn beside_cargo(name: &str) -> Option<String> {
    let cargo = PathBuf::from(crate::cargo::program());
    let path = cargo.parent()?.join(name);
    is_program(&path).then(|| path.display().to_string())
}

/// `CXX` and `CC` if they are set, else `c++` and `cc`.
pub(crate) fn compiler() -> Option<String> {
    let chosen = |variable: &str, fallback: &str| {
        let name = std::env::var(variable)
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| fallback.to_owned());
        // The variable may hold arguments, or a wrapper before the compiler.
        program(name.split_whitespace().next()?)
    };
    let (cc, cxx) = (chosen("CC", "cc")?, chosen("CXX", "c++")?);
    Some(format!("{cc}, {cxx}"))
}

/// libclang with its own headers: without `stddef.h` the bindings cannot be generated.
pub(crate) fn libclang() -> Option<String> {
    let library = libclang_folders().iter().find_map(|folder| libclang_in(folder))?;
    let real = library.canonicalize().ok()?;
    has_builtin_headers(&real).then(|| library.display().to_string())
}

/// OpenSSL's headers: told, known to pkg-config, or in the usual place.
pub(crate) fn openssl() -> Option<String> {
    let told = std::env::var_os("OPENSSL_INCLUDE_DIR").map(PathBuf::from);
    let told = told.or_else(|| std::env::var_os("OPENSSL_DIR").map(|folder| Path::new(&folder).join("include")));
    let header = |folder: PathBuf| Some(folder.join("openssl/ssl.h")).filter(|path| path.is_file());
    let usual = [
        "/usr/include",
        "/opt/homebrew/opt/openssl@3/include",
        "/usr/local/opt/openssl@3/include",
    ];
    let found = told
        .and_then(header)
        .or_else(|| usual.iter().find_map(|folder| header(PathBuf::from(folder))));
    found.map(|path| path.display().to_string()).or_else(|| {
        let known = Command::new("pkg-config")
            .args(["--modversion", "openssl"])
            .stderr(Stdio::null())
            .output()
            .ok()?;
        known
            .status
            .success()
            .then(|| format!("pkg-config: {}", String::from_utf8_lossy(&known.stdout).trim()))
    })
}

/// A JDK of at least 17 in `JAVA_HOME`, on the PATH or where distributions put them.
pub(crate) fn jdk() -> Option<String> {
    let told = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let on_path = on_path("javac").and_then(|path| Some(path.canonicalize().ok()?.parent()?.parent()?.to_owned()));
    let installed = folders_in("/usr/lib/jvm")
        .into_iter()
        .chain(folders_in("/opt/homebrew/opt"));
    told.into_iter().chain(on_path).chain(installed).find_map(|home| {
        let version = jdk_version(&home)?;
        (version >= 17).then(|| format!("{} (version {version})", home.display()))
    })
}

/// The major version of the JDK in a folder, if it is one: `release` holds `JAVA_VERSION="17.0.15"`.
fn jdk_version(home: &Path) -> Option<u32> {
    if !is_program(&home.join("bin/javac")) {
        return None;
    }
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    major_version(release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?)
}

fn major_version(text: &str) -> Option<u32> {
    let mut numbers = text.trim_matches('"').split(['.', '-', '+', '_']);
    match numbers.next()?.parse().ok()? {
        // Java 8 called itself 1.8.
        1 => numbers.next()?.parse().ok(),
        major => Some(major),
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// Whether a path names a program.
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn libclang_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::var_os("LIBCLANG_PATH")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    for llvm in folders_in("/usr/lib")
        .into_iter()
        .filter(|path| file_name(path).starts_with("llvm"))
    {
        folders.push(llvm.join("lib"));
        folders.extend(folders_in(llvm).into_iter().map(|version| version.join("lib")));
    }
    folders.extend(LIBRARY_FOLDERS.map(PathBuf::from));
    folders
}

fn libclang_in(folder: &Path) -> Option<PathBuf> {
    if folder.is_file() {
        return Some(folder.to_owned());
    }
    let is_library = |path: &PathBuf| {
        let name = file_name(path);
        let versioned = name.starts_with("libclang-") && !name.starts_with("libclang-cpp");
        (name.starts_with("libclang.so") || name == "libclang.dylib" || versioned) && !name.ends_with(".a")
    };
    let mut found: Vec<PathBuf> = entries(folder).into_iter().filter(is_library).collect();
    found.sort();
    found.into_iter().next()
}

/// clang's headers lie in `lib/clang/VERSION/include`, beside the library or one folder further up.
fn has_builtin_headers(library: &Path) -> bool {
    library.ancestors().skip(1).take(4).any(|folder| {
        let versions = folders_in(folder.join("clang"))
            .into_iter()
            .chain(folders_in(folder.join("lib/clang")));
        versions
            .into_iter()
            .any(|version| version.join("include/stddef.h").is_file())
    })
}

fn folders_in(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = entries(folder.as_ref())
        .into_iter()
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_versions_have_one_number() {
        assert_eq!(major_version("\"17.0.15\""), Some(17));
        assert_eq!(major_version("\"25\""), Some(25));
        assert_eq!(major_version("\"1.8.0_402\""), Some(8));
        assert_eq!(major_version("\"21-ea\""), Some(21));
        assert_eq!(major_version("\"\""), None);
    }

    #[test]
    fn a_folder_without_a_compiler_is_no_jdk() {
        assert_eq!(jdk_version(Path::new("/usr")), None);
    }

    #[test]
    fn the_shell_is_on_the_path_and_nonsense_is_not() {
        assert!(program("sh").is_some());
        assert_eq!(program("no-such-program-anywhere"), None);
    }
}
