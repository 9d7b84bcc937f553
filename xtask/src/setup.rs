//! `cargo xtask setup`: finds what the build needs, installs it where it can, says how where it cannot.

mod find;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Platform {
    Debian,
    Fedora,
    Arch,
    MacOs,
    Other,
}

impl Platform {
    fn here() -> Self {
        if cfg!(target_os = "macos") {
            return Self::MacOs;
        }
        Self::from_os_release(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    /// `ID` and `ID_LIKE` of `/etc/os-release` name the family.
    fn from_os_release(text: &str) -> Self {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let ids = format!("{} {}", value("ID="), value("ID_LIKE=")).replace('"', "");
        let mut families = ids.split_whitespace().filter_map(|id| match id {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" | "rhel" | "centos" => Some(Self::Fedora),
            "arch" => Some(Self::Arch),
            _ => None,
        });
        families.next().unwrap_or(Self::Other)
    }

    /// What to type here.
    fn line(self) -> (&'static str, usize) {
        match self {
            Self::Debian | Self::Other => ("apt-get install -y --no-install-recommends", 0),
            Self::Fedora => ("dnf install -y", 1),
            Self::Arch => ("pacman -S --needed --noconfirm", 2),
            Self::MacOs => ("brew install", 3),
        }
    }

    /// The words before `apt-get`, if this is Debian and we may install: root, or sudo without a password.
    fn installer(self) -> Option<Vec<&'static str>> {
        if self != Self::Debian {
            return None;
        }
        if is_root() {
            return Some(Vec::new());
        }
        let sudo = Command::new("sudo")
            .args(["-n", "true"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        sudo.is_ok_and(|status| status.success()).then(|| vec!["sudo", "-n"])
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// The exact command for this platform.
fn advice(missing: &[&Tool], platform: Platform) -> String {
    let (line, column) = platform.line();
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|tool| tool.packages.get(column).copied())
        .filter(|name| !name.is_empty())
        .collect();
    let packages = packages.join(" ").replace(DEBIAN_JDK, "openjdk-17-jdk-headless");
    let names: Vec<&str> = missing.iter().map(|tool| tool.name).collect();
    let mut text = format!("missing: {}\n", names.join(", "));
    let sudo = if platform == Platform::MacOs { "" } else { "sudo " };
    if platform == Platform::Other {
        text.push_str("install them with your system's package manager; on Debian it would be:\n");
    } else {
        text.push_str("install them with:\n");
    }
    if platform == Platform::MacOs
        && missing
            .iter()
            .any(|tool| matches!(tool.name, "make" | "C and C++ compiler"))
    {
        text.push_str("  xcode-select --install\n");
    }
    if !packages.is_empty() {
        text.push_str(&format!("  {sudo}{line} {packages}\n"));
    }
    text
}

fn install(sudo: &[&str], missing: &[&Tool]) -> Result<()> {
    apt(sudo, &["update", "-q"])?;
    let mut packages: Vec<String> = Vec::new();
    for name in missing.iter().filter_map(|tool| tool.packages.first()) {
        packages.push(if *name == DEBIAN_JDK {
            debian_jdk()?
        } else {
            (*name).to_owned()
        });
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    apt(
        sudo,
        &[&["install", "-y", "-q", "--no-install-recommends"], packages.as_slice()].concat(),
    )
}

fn debian_jdk() -> Result<String> {
    for version in ["21", "17", "25"] {
        let name = format!("openjdk-{version}-jdk-headless");
        let known = Command::new("apt-cache")
            .args(["show", "--quiet=0", &name])
            .stderr(Stdio::null())
            .output();
        if known.is_ok_and(|output| output.status.success() && !output.stdout.is_empty()) {
            return Ok(name);
        }
    }
    bail!("this release has no openjdk-21-jdk-headless, -17 or -25: install a JDK of at least 17 and set JAVA_HOME")
}

fn apt(sudo: &[&str], args: &[&str]) -> Result<()> {
    let words = [sudo, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"], args].concat();
    let Some((program, rest)) = words.split_first() else {
        bail!("nothing to run")
    };
    run(Command::new(program).args(rest))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("    {command:?}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// Whether a path names a program.
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_is_read_from_os_release() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n";
        let mint = "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n";
        let rocky = "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n";
        assert_eq!(Platform::from_os_release(debian), Platform::Debian);
        assert_eq!(Platform::from_os_release(mint), Platform::Debian);
        assert_eq!(Platform::from_os_release(rocky), Platform::Fedora);
        assert_eq!(Platform::from_os_release("ID=arch\n"), Platform::Arch);
        assert_eq!(Platform::from_os_release("ID=void\n"), Platform::Other);
    }

    #[test]
    fn the_advice_is_a_command_to_paste() {
        let all: Vec<&Tool> = TOOLS.iter().collect();
        let fedora = advice(&all, Platform::Fedora);
        assert!(
            fedora.contains("sudo dnf install -y gcc-c++ make pkgconf-pkg-config clang-devel openssl-devel"),
            "{fedora}"
        );
        let debian = advice(&all, Platform::Debian);
        assert!(
            debian.contains("libclang-dev libssl-dev openjdk-17-jdk-headless maven"),
            "{debian}"
        );
        let mac = advice(&all, Platform::MacOs);
        assert!(
            mac.contains("xcode-select --install\n  brew install pkgconf llvm openssl@3 openjdk@21 maven"),
            "{mac}"
        );
    }
}
