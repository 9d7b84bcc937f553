//! What this machine installs with: done where that is safe to do, told where it is not.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{DEBIAN_JDK, Tool};
use crate::cargo::quoted;

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

/// Installs what is missing. Says first what it costs; what apt prints is shown only when it fails.
pub(super) fn install(sudo: &[&str], missing: &[&Tool]) -> Result<()> {
    run(&mut apt(sudo, &["update", "-q"]))?;
    let mut packages: Vec<String> = Vec::new();
    for name in missing.iter().filter_map(|tool| tool.packages.first()) {
        packages.push(if *name == DEBIAN_JDK {
            debian_jdk()?
        } else {
            (*name).to_owned()
        });
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let install = |answer: &str| {
        apt(
            sudo,
            &[&["install", answer, "-q", "--no-install-recommends"], &*packages].concat(),
        )
    };
    // With "no" apt tells the sizes and ends.
    let told = install("--assume-no").stdin(Stdio::null()).output();
    for line in told
        .map(|told| cost(&String::from_utf8_lossy(&told.stdout)))
        .unwrap_or_default()
    {
        eprintln!("    {line}");
    }
    run(&mut install("-y"))
}

/// What apt says of an installation's size: one line about the download, one about the disk.
fn cost(text: &str) -> Vec<String> {
    let tells = |line: &&str| line.starts_with("Need to get ") || line.starts_with("After this operation");
    let tells_newer = |line: &&str| line.starts_with("Download size:") || line.starts_with("Space needed:");
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| tells(line) || tells_newer(line))
        .map(str::to_owned)
        .collect()
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

fn apt(sudo: &[&str], args: &[&str]) -> Command {
    let words = [
        sudo,
        &["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get"],
        args,
    ]
    .concat();
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or("env"));
    command.args(words);
    command
}

/// Runs a command that may take minutes: shows it as it can be typed, and its output only when it fails.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("    {shown}");
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !done.status.success() {
        eprint!("{}", String::from_utf8_lossy(&done.stdout));
        eprint!("{}", String::from_utf8_lossy(&done.stderr));
        bail!("`{shown}` ended with {}", done.status);
    }
    Ok(())
}

/// A command as it is pasted into a shell.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
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

    #[test]
    fn a_shown_command_can_be_pasted_into_a_shell() {
        let command = apt(&["sudo", "-n"], &["install", "-y", "libssl-dev", "it's"]);
        assert_eq!(
            shown(&command),
            r"sudo -n env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get install -y libssl-dev 'it'\''s'"
        );
        assert_eq!(
            shown(&apt(&[], &["update"])),
            "env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get update"
        );
    }

    #[test]
    fn the_cost_is_what_apt_says_of_it() {
        let old = "Reading package lists...\nNeed to get 98.7 MB of archives.\nAfter this operation, 412 MB of additional disk space will be used.\nDo you want to continue? [Y/n] N\nAbort.\n";
        assert_eq!(
            cost(old),
            [
                "Need to get 98.7 MB of archives.",
                "After this operation, 412 MB of additional disk space will be used."
            ]
        );
        let newer = "Summary:\n  Upgrading: 0, Installing: 3\n  Download size: 99 MB\n  Space needed: 412 MB / 9 GB available\n";
        assert_eq!(
            cost(newer),
            ["Download size: 99 MB", "Space needed: 412 MB / 9 GB available"]
        );
    }

    #[test]
    fn what_a_failing_command_printed_is_told_by_its_end() {
        assert!(run(Command::new("true").arg("a b")).is_ok());
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'exit 3'` ended with exit status: 3");
    }
}
