//! What this machine installs with: done where that is safe to do, told where it is not.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{DEBIAN_JDK, Tool};

/// A family of systems with one package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    Debian,
    Fedora,
    Arch,
    MacOs,
    Other,
}

impl Platform {
    pub(super) fn here() -> Self {
        if cfg!(target_os = "macos") {
            return Self::MacOs;
        }
        Self::from_os_release(&std::fs::read_to_string("/etc/os-release").unwrap_or_default())
    }

    /// `ID` and `ID_LIKE` of `/etc/os-release` name the family.
    pub(super) fn from_os_release(text: &str) -> Self {
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
    pub(super) fn installer(self) -> Option<Vec<&'static str>> {
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
pub(super) fn advice(missing: &[&Tool], platform: Platform) -> String {
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

pub(super) fn install(sudo: &[&str], missing: &[&Tool]) -> Result<()> {
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

pub(super) fn run(command: &mut Command) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::super::TOOLS;
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
