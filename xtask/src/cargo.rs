//! How cargo is called: one place, so that every call compiles the C++ with the same flags.

mod guarded;
mod metadata;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

use anyhow::{Context, Result};

pub(crate) use self::metadata::{Metadata, Package};

/// The libraries that build without C++ when their default features are off.
pub(crate) const LIBRARIES: [&str; 3] = ["streams-state", "streams-core", "streams-dsl"];

/// The packages that compile C or C++, in the order in which cargo needs them.
pub(crate) const CPP_PACKAGES: [&str; 2] = ["librocksdb-sys", "rdkafka-sys"];

/// One call of cargo: subcommand, arguments, environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Invocation {
    /// A call of `cargo SUBCOMMAND ARGS`.
    pub(crate) fn new<I, S>(args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        Self {
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
        }
    }

    /// The same call with one more environment variable.
    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The same call with more arguments at the end.
    pub(crate) fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The arguments, beginning with the subcommand.
    #[cfg(test)]
    pub(crate) fn arguments(&self) -> &[String] {
        &self.args
    }

    /// What a user types to repeat this call.
    pub(crate) fn shown(&self) -> String {
        let mut words: Vec<String> = self
            .env
            .iter()
            .map(|(key, value)| format!("{key}={}", quoted(value)))
            .collect();
        words.push("cargo".to_owned());
        words.extend(self.args.iter().map(|arg| quoted(arg)));
        words.join(" ")
    }

    /// The process to start, in the root of the workspace.
    pub(crate) fn process(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(root()).args(&self.args);
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Runs the call to its end; nothing of it outlives this process.
    pub(crate) fn status(&self) -> Result<ExitStatus> {
        guarded::status(&self.process()).with_context(|| format!("cannot start `{}`", self.shown()))
    }

    /// Whether this call compiles C++: anything but a selection with the default features off, or of xtask alone.
    pub(crate) fn needs_cpp(&self) -> bool {
        let builds = self
            .args
            .first()
            .is_some_and(|sub| !matches!(sub.as_str(), "fmt" | "deny" | "metadata" | "tree"));
        let only_xtask = self.packages() == ["xtask"];
        let plain = self.has("--no-default-features") && !self.features().iter().any(|feature| is_cpp_feature(feature));
        builds && !only_xtask && !plain
    }

    /// The packages chosen with `-p`; none means the whole workspace.
    pub(crate) fn packages(&self) -> Vec<&str> {
        self.values_of("-p")
    }

    /// The features chosen with `--features`.
    pub(crate) fn features(&self) -> Vec<&str> {
        self.values_of("--features")
            .into_iter()
            .flat_map(|list| list.split(','))
            .collect()
    }

    /// Whether `flag` stands before the `--` that ends cargo's own arguments.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.own_args().any(|arg| arg == flag)
    }

    /// The values of an option that is written as two words.
    pub(crate) fn values_of(&self, option: &str) -> Vec<&str> {
        let own: Vec<&str> = self.own_args().collect();
        own.iter()
            .zip(own.iter().skip(1))
            .filter(|(name, _)| **name == option)
            .map(|(_, value)| *value)
            .collect()
    }

    fn own_args(&self) -> impl Iterator<Item = &str> {
        self.args.iter().map(String::as_str).take_while(|arg| *arg != "--")
    }
}

fn is_cpp_feature(feature: &str) -> bool {
    matches!(feature.rsplit('/').next(), Some("kafka" | "rocksdb" | "default"))
}

/// A word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The cargo that runs us, so that `cargo +toolchain xtask` stays on its toolchain.
pub(crate) fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The root folder of the workspace that this run is about. It is looked for at run time: checkouts that share a target
/// folder share the compiled xtask too, so a path noted while compiling may be another checkout's.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        // Cargo tells the folder of the package that it runs; whoever calls the program itself stands in the checkout.
        let told = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let here = std::env::current_dir().ok();
        let found = [told, here]
            .into_iter()
            .flatten()
            .find_map(|start| checkout_around(&start));
        found.unwrap_or_else(|| PathBuf::from("."))
    })
}

/// The nearest folder, from `start` upwards, that is a checkout of this project.
fn checkout_around(start: &Path) -> Option<PathBuf> {
    let is_checkout = |folder: &&Path| {
        ["Cargo.toml", "xtask/Cargo.toml", "streams-dsl/Cargo.toml"]
            .iter()
            .all(|file| folder.join(file).is_file())
    };
    start.ancestors().find(is_checkout).map(Path::to_owned)
}

/// Where tools live that xtask installs for itself.
pub(crate) fn cache_dir() -> PathBuf {
    let given = std::env::var_os("XDG_CACHE_HOME")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache");
    given.unwrap_or_else(home).join("kafka-streams-rust")
}

/// Runs a quiet call and gives what it printed.
pub(crate) fn output(call: &Invocation) -> Result<String> {
    let done = call
        .process()
        .output()
        .with_context(|| format!("cannot start `{}`", call.shown()))?;
    if !done.status.success() {
        anyhow::bail!(
            "`{}` failed: {}",
            call.shown(),
            String::from_utf8_lossy(&done.stderr).trim()
        );
    }
    String::from_utf8(done.stdout).with_context(|| format!("`{}` printed no UTF-8", call.shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_without_default_features_needs_no_cpp() {
        let core = Invocation::new(["test", "-p", "streams-core", "--no-default-features"]);
        assert!(!core.needs_cpp());
        assert!(
            core.clone()
                .args(["--features", "test-hooks,streams-state/rocksdb"])
                .needs_cpp()
        );
        assert!(Invocation::new(["test", "-p", "streams-core"]).needs_cpp());
        assert!(Invocation::new(["doc", "--workspace"]).needs_cpp());
        assert!(!Invocation::new(["fmt", "--check"]).needs_cpp());
    }

    #[test]
    fn arguments_after_the_double_dash_are_not_cargos() {
        let call = Invocation::new(["clippy", "-p", "xtask", "--", "-p", "other", "--release"]);
        assert_eq!(call.packages(), ["xtask"]);
        assert!(!call.has("--release"));
    }

    #[test]
    fn a_shown_call_can_be_pasted_into_a_shell() {
        let call = Invocation::new(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(call.shown(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn the_checkout_is_that_of_the_run_not_of_the_build() -> Result<()> {
        let told = std::env::var("CARGO_MANIFEST_DIR")?;
        assert_eq!(Some(root()), Path::new(&told).parent());
        let other = std::env::temp_dir().join(format!("xtask-checkout-{}", std::process::id()));
        let inside = other.join("streams-dsl/src/kstream");
        std::fs::create_dir_all(&inside)?;
        std::fs::create_dir_all(other.join("xtask"))?;
        for file in ["Cargo.toml", "xtask/Cargo.toml", "streams-dsl/Cargo.toml"] {
            assert_eq!(checkout_around(&inside), None, "without {file}");
            std::fs::write(other.join(file), "")?;
        }
        assert_eq!(checkout_around(&inside), Some(other.clone()));
        std::fs::remove_dir_all(other)?;
        Ok(())
    }
}
