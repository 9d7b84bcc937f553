//! One memory number for a process, and its parts.

use std::path::Path;

/// Where the memory number came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemorySource {
    /// Given (`memory.max.bytes`).
    Given,
    /// 60 % of the control group's limit.
    ControlGroup,
    /// 25 % of the machine's memory.
    Machine,
    /// Neither is known here: a fixed number.
    Fallback,
}

/// How the memory of a process is divided. All sizes are bytes; each part is a bound, none is allocated ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryBudget {
    total: u64,
    storage: u64,
    caches: u64,
    overlays: u64,
    outbox: u64,
    client_queues: u64,
    source: MemorySource,
}

/// Memory when neither a control group nor the machine tells.
const FALLBACK_BYTES: u64 = 1 << 30;

/// The bytes of an overlay are held up to three times while it is applied: overlay, batch, memtable (rule 2.8).
pub const OVERLAY_COPIES: u64 = 3;

impl MemoryBudget {
    /// The default: 60 % of the control group's limit, else 25 % of the machine's memory.
    #[must_use]
    pub fn detect() -> Self {
        Self::detect_in(Path::new("/"))
    }

    /// As [`MemoryBudget::detect`], with `proc` and `sys` below another root.
    #[must_use]
    pub fn detect_in(root: &Path) -> Self {
        let machine = machine_memory(root);
        // A limit above the machine's memory is none (version 1 says "unlimited" with a huge number).
        let limit = group_limit(root).filter(|limit| machine.is_none_or(|machine| *limit < machine));
        match (limit, machine) {
            (Some(limit), _) => Self::divide(limit / 10 * 6, MemorySource::ControlGroup),
            (None, Some(machine)) => Self::divide(machine / 4, MemorySource::Machine),
            (None, None) => Self::divide(FALLBACK_BYTES, MemorySource::Fallback),
        }
    }

    /// A given number of bytes (`memory.max.bytes`).
    #[must_use]
    pub fn of(total: u64) -> Self {
        Self::divide(total, MemorySource::Given)
    }

    /// Fixes the part of the typed caches (`statestore.cache.max.bytes`); the other parts share the rest in their old
    /// proportions, and get at least a quarter of the total.
    #[must_use]
    pub fn with_caches(self, caches: u64) -> Self {
        let rest = self.total.saturating_sub(caches).max(self.total / 4);
        let others = self.total.saturating_sub(self.caches).max(1);
        let scaled = |part: u64| (u128::from(part) * u128::from(rest) / u128::from(others)) as u64;
        Self {
            caches,
            storage: scaled(self.storage),
            overlays: scaled(self.overlays),
            outbox: scaled(self.outbox),
            client_queues: scaled(self.client_queues),
            ..self
        }
    }

    fn divide(total: u64, source: MemorySource) -> Self {
        let percent = |share: u64| total / 100 * share;
        Self {
            total,
            storage: percent(45),
            caches: percent(20),
            overlays: percent(15),
            outbox: percent(10),
            client_queues: percent(10),
            source,
        }
    }

    /// The whole.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Block cache and memtables of all tasks.
    #[must_use]
    pub fn storage(&self) -> u64 {
        self.storage
    }

    /// Typed caches of all stores.
    #[must_use]
    pub fn caches(&self) -> u64 {
        self.caches
    }

    /// Overlays of all tasks, with the copies that an apply makes.
    #[must_use]
    pub fn overlays(&self) -> u64 {
        self.overlays
    }

    /// What [`crate::TaskState::overlay_bytes`] may add up to over all tasks: a fuller overlay closes its epoch early.
    #[must_use]
    pub fn overlay_limit(&self) -> u64 {
        self.overlays / OVERLAY_COPIES
    }

    /// Records waiting to be sent.
    #[must_use]
    pub fn outbox(&self) -> u64 {
        self.outbox
    }

    /// Queues of the Kafka clients, fetched and to be sent.
    #[must_use]
    pub fn client_queues(&self) -> u64 {
        self.client_queues
    }

    /// Where the number came from.
    #[must_use]
    pub fn source(&self) -> MemorySource {
        self.source
    }

    /// The parts by name, for metrics.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 5] {
        [
            ("storage", self.storage),
            ("caches", self.caches),
            ("overlays", self.overlays),
            ("outbox", self.outbox),
            ("client-queues", self.client_queues),
        ]
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::detect()
    }
}

fn machine_memory(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The smallest limit on the way from our control group to the root, version 2 or 1.
fn group_limit(root: &Path) -> Option<u64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let of_kind = |wanted: fn(&str) -> bool| {
        groups.lines().find_map(move |line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(controllers).then_some(path)
        })
    };
    let version_2 = of_kind(str::is_empty).unwrap_or("/");
    let version_1 = of_kind(|controllers| controllers.split(',').any(|name| name == "memory")).unwrap_or("/");
    let base = root.join("sys/fs/cgroup");
    let unified = limit_along(&base, version_2, "memory.max");
    let legacy = limit_along(&base.join("memory"), version_1, "memory.limit_in_bytes");
    unified.into_iter().chain(legacy).min()
}

fn limit_along(base: &Path, group: &str, file: &str) -> Option<u64> {
    let group = Path::new(group.trim_start_matches('/'));
    group
        .ancestors()
        .filter_map(|ancestor| {
            std::fs::read_to_string(base.join(ancestor).join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        })
        .min()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n");

    #[test]
    fn a_version_2_limit_of_a_parent_counts() {
        let root = root(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/pod/container\n"),
            ("sys/fs/cgroup/pod/memory.max", "1000000000\n"),
            ("sys/fs/cgroup/pod/container/memory.max", "max\n"),
        ]);
        let budget = MemoryBudget::detect_in(root.path());
        assert_eq!(
            (budget.total(), budget.source()),
            (600_000_000, MemorySource::ControlGroup)
        );
    }

    #[test]
    fn a_version_1_limit_is_found_in_a_container() {
        let root = root(&[
            MEMINFO,
            ("proc/self/cgroup", "5:memory:/docker/abc\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n"),
        ]);
        assert_eq!(MemoryBudget::detect_in(root.path()).total(), 1_200_000_000);
    }

    #[test]
    fn an_unlimited_group_means_a_quarter_of_the_machine() {
        let root = root(&[
            MEMINFO,
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        let budget = MemoryBudget::detect_in(root.path());
        assert_eq!(
            (budget.total(), budget.source()),
            (4_096_000_000, MemorySource::Machine)
        );
    }

    #[test]
    fn without_any_file_there_is_a_fixed_number() {
        assert_eq!(
            MemoryBudget::detect_in(root(&[]).path()).source(),
            MemorySource::Fallback
        );
    }

    #[test]
    fn the_parts_never_exceed_the_whole() {
        for budget in [
            MemoryBudget::of(1_000_003),
            MemoryBudget::of(1_000_000).with_caches(300_000),
        ] {
            assert!(budget.parts().iter().map(|(_, bytes)| bytes).sum::<u64>() <= budget.total());
        }
        let budget = MemoryBudget::of(1_000_000).with_caches(0);
        assert_eq!((budget.caches(), budget.storage()), (0, 562_500));
    }
}
