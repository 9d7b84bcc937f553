//! `cargo xtask setup`: finds what the build needs, installs it where it can, says how where it cannot.

mod find;
mod platform;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use self::platform::{Platform, advice, install, run};

/// How much of the list a command needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Only Rust's own tools: the core without C++, lint without C++.
    Rust,
    /// What compiles RocksDB and librdkafka.
    Cpp,
    /// Also what starts a Kafka for tests and demo.
    Everything,
}

/// One thing that the build or the tests use.
struct Tool {
    name: &'static str,
    why: &'static str,
    find: fn() -> Option<String>,
    /// Variables of the environment that name a Kafka and so make this unnecessary; empty for what compiling needs.
    unless: &'static [&'static str],
    /// Package names: Debian, Fedora, Arch, Homebrew. An empty name: nothing to install there.
    packages: [&'static str; 4],
}

impl Tool {
    fn is_needed(&self, needs: Needs) -> bool {
        let is_told = |variable: &&str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        match needs {
            Needs::Rust => false,
            Needs::Cpp => self.unless.is_empty(),
            Needs::Everything => !self.unless.iter().any(is_told),
        }
    }
}

const TOOLS: [Tool; 7] = [
    Tool {
        name: "C and C++ compiler",
        why: "RocksDB and librdkafka are C++ and C",
        find: find::compiler,
        unless: &[],
        packages: ["g++", "gcc-c++", "gcc", ""],
    },
    Tool {
        name: "make",
        why: "librdkafka's build",
        find: || find::program("make"),
        unless: &[],
        packages: ["make", "make", "make", ""],
    },
    Tool {
        name: "pkg-config",
        why: "finds OpenSSL",
        find: || find::program("pkg-config"),
        unless: &[],
        packages: ["pkg-config", "pkgconf-pkg-config", "pkgconf", "pkgconf"],
    },
    Tool {
        name: "libclang",
        why: "RocksDB's bindings are generated",
        find: find::libclang,
        unless: &[],
        packages: ["libclang-dev", "clang-devel", "clang", "llvm"],
    },
    Tool {
        name: "OpenSSL headers",
        why: "librdkafka's TLS",
        find: find::openssl,
        unless: &[],
        packages: ["libssl-dev", "openssl-devel", "openssl", "openssl@3"],
    },
    Tool {
        name: "JDK 17 or newer",
        why: "the Kafka that tests and demo start",
        find: find::jdk,
        unless: &["KAFKA_BOOTSTRAP"],
        packages: [DEBIAN_JDK, "java-21-openjdk-devel", "jdk21-openjdk", "openjdk@21"],
    },
    Tool {
        name: "Maven",
        why: "fetches Kafka's jars once",
        find: || find::program("mvn"),
        unless: &["KAFKA_BOOTSTRAP", "KAFKA_HOME"],
        packages: ["maven", "maven", "maven", "maven"],
    },
];

/// Stands for the newest long-term JDK that the release has; Debian 12 has 17, Debian 13 has 21, Ubuntu has both.
const DEBIAN_JDK: &str = "JDK";

/// `cargo xtask setup`.
pub(crate) fn command(args: &[String]) -> Result<ExitCode> {
    if !args.is_empty() {
        bail!("`cargo xtask setup` takes no arguments");
    }
    ensure(Needs::Everything)?;
    Ok(ExitCode::SUCCESS)
}

/// Finds everything, installs what is missing if this machine allows it, else fails with the command to type.
pub(crate) fn ensure(needs: Needs) -> Result<()> {
    rust_components()?;
    let tools: Vec<&Tool> = TOOLS.iter().filter(|tool| tool.is_needed(needs)).collect();
    let missing = report(&tools);
    if missing.is_empty() {
        return Ok(());
    }
    let platform = Platform::here();
    let Some(installer) = platform.installer() else {
        bail!("{}", advice(&missing, platform))
    };
    install(&installer, &missing)?;
    let still = report(&missing);
    if !still.is_empty() {
        bail!("still missing after the installation\n{}", advice(&still, platform));
    }
    Ok(())
}

/// Prints what was found and gives what was not.
fn report(tools: &[&'static Tool]) -> Vec<&'static Tool> {
    let mut missing = Vec::new();
    for tool in tools.iter().copied() {
        match (tool.find)() {
            Some(found) => eprintln!("  found    {:18}  {found}", tool.name),
            None => {
                eprintln!("  missing  {:18}  ({})", tool.name, tool.why);
                missing.push(tool);
            }
        }
    }
    missing
}

/// rustfmt and clippy come with the toolchain, except with rustup's minimal profile.
fn rust_components() -> Result<()> {
    let missing: Vec<&str> = [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")]
        .into_iter()
        .filter(|(program, _)| find::program(program).is_none() && find::beside_cargo(program).is_none())
        .map(|(_, component)| component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add"]).args(&missing);
    run(&mut add).with_context(|| format!("{} missing: install them for this toolchain", missing.join(" and ")))
}
