//! What goes wrong in a run, drawn from its seed. Each run has only some of the kinds, so that rare combinations are
//! not drowned by frequent ones.

use std::collections::BTreeMap;

use streams_core::runtime::FailureClass;

use crate::Seeded;

/// A request to the brokers, by what can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Init,
    Question,
    Purge,
    Flush,
    SendOffsets,
    Commit,
    Abort,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is carried out and answered.
    Served,
    /// It never arrives; the caller's time is up.
    Lost,
    /// It is carried out, and the answer never arrives.
    AnswerLost,
    /// It is carried out twice.
    Doubled,
    /// It is not carried out and fails so.
    Refused(FailureClass),
    /// It is carried out and still fails so.
    DoneButFailed(FailureClass),
    /// It fails so, and is carried out later.
    Late(FailureClass),
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Fate::Served => "served",
            Fate::Lost => "request lost",
            Fate::AnswerLost => "answer lost",
            Fate::Doubled => "request doubled",
            Fate::Refused(_) => "request refused",
            Fate::DoneButFailed(_) => "done but reported as failed",
            Fate::Late(_) => "failed and carried out late",
        }
    }
}

/// Something that happens to the world at a moment of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disruption {
    /// Of the process that has just made a request.
    CrashOf(super::process::Key),
    Crash,
    PowerLoss,
    DiskLost,
    Stop,
    StartAnother,
    PauseProcess,
    /// The next process that commits is paused in the call, for longer than its session.
    ZombieCommit,
    StallThread,
    Reshuffle,
    MoveCoordinator,
    FillDisk,
    Compact,
    ClockJump,
}

impl Disruption {
    const ALL: [Disruption; 13] = [
        Disruption::Crash,
        Disruption::PowerLoss,
        Disruption::DiskLost,
        Disruption::Stop,
        Disruption::StartAnother,
        Disruption::PauseProcess,
        Disruption::ZombieCommit,
        Disruption::StallThread,
        Disruption::Reshuffle,
        Disruption::MoveCoordinator,
        Disruption::FillDisk,
        Disruption::Compact,
        Disruption::ClockJump,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Disruption::Crash | Disruption::CrashOf(_) => "crash",
            Disruption::PowerLoss => "crash with lost power",
            Disruption::DiskLost => "crash with lost disk",
            Disruption::Stop => "graceful stop",
            Disruption::StartAnother => "instance started",
            Disruption::PauseProcess => "process paused",
            Disruption::ZombieCommit => "process paused in a commit",
            Disruption::StallThread => "thread stalled",
            Disruption::Reshuffle => "rebalance forced",
            Disruption::MoveCoordinator => "coordinator moved",
            Disruption::FillDisk => "disk full",
            Disruption::Compact => "changelogs compacted",
            Disruption::ClockJump => "clock jumped at restart",
        }
    }
}

/// How many faults there were, by kind.
pub type FaultCounts = BTreeMap<&'static str, u64>;

/// The weather of one run.
#[derive(Debug)]
pub(super) struct Weather {
    pub(super) instances: usize,
    pub(super) threads: usize,
    pub(super) cache_bytes: usize,
    pub(super) commit_interval_ms: i64,
    pub(super) send_bytes: usize,
    pub(super) buffered_records: usize,
    pub(super) fetch_records: usize,
    /// `commit.pipelined`.
    pub(super) pipelined: bool,
    /// Until when things go wrong, ms of virtual time.
    pub(super) until_ms: i64,
    disruptions: Vec<Disruption>,
    /// Mean time between disruptions, ms.
    every_ms: u64,
    /// Of 10,000 requests so many meet a fate.
    request_faults: u64,
    fates: [bool; 6],
    /// Of 10,000 effects so many end in a crash.
    crashes: u64,
    /// Of 10,000 effects so many are followed by a stall.
    stalls: u64,
    /// Of 10,000 requests so many are slow.
    slow: u64,
    /// Of 100 looks at the waiting markers so many write some; 0: markers do not wait.
    pub(super) marker_pace: u64,
    pub(super) zombie_next: bool,
    pub(super) counts: FaultCounts,
}

impl Weather {
    /// No faults, one instance, one thread: what the outputs are compared with.
    pub(super) fn calm() -> Self {
        Weather {
            instances: 1,
            threads: 1,
            cache_bytes: 0,
            commit_interval_ms: 100,
            send_bytes: 1 << 20,
            buffered_records: 1_000,
            fetch_records: 100,
            pipelined: false,
            until_ms: 0,
            disruptions: Vec::new(),
            every_ms: 0,
            request_faults: 0,
            fates: [false; 6],
            crashes: 0,
            stalls: 0,
            slow: 0,
            marker_pace: 0,
            zombie_next: false,
            counts: FaultCounts::new(),
        }
    }

    /// The weather of a seed.
    pub(super) fn draw(rng: &mut Seeded, may_cache: bool) -> Self {
        let mut disruptions: Vec<Disruption> = Disruption::ALL.into_iter().filter(|_| rng.below(3) > 0).collect();
        if disruptions.is_empty() {
            disruptions.push(Disruption::Crash);
        }
        let some = |rng: &mut Seeded, choices: &[u64]| {
            let at = usize::try_from(rng.below(choices.len() as u64)).unwrap_or(0);
            choices.get(at).copied().unwrap_or(0)
        };
        let size = |value: u64| usize::try_from(value).unwrap_or(1);
        let cache = some(rng, &[0, 0, 1, 300, 1 << 20]);
        Weather {
            instances: size(1 + rng.below(3)),
            threads: size(1 + rng.below(2)),
            cache_bytes: if may_cache { size(cache) } else { 0 },
            commit_interval_ms: i64::try_from(some(rng, &[20, 100, 100, 1_000])).unwrap_or(100),
            send_bytes: size(some(rng, &[1, 50, 500, 1 << 20])),
            buffered_records: size(some(rng, &[1, 5, 1_000])),
            fetch_records: size(some(rng, &[1, 3, 10, 100])),
            pipelined: rng.below(3) > 0,
            until_ms: i64::try_from(10_000 + rng.below(60_000)).unwrap_or(10_000),
            disruptions,
            every_ms: some(rng, &[1_500, 4_000, 10_000, 25_000]),
            request_faults: some(rng, &[0, 50, 300, 1_000, 2_500]),
            fates: std::array::from_fn(|_| rng.below(3) > 0),
            crashes: some(rng, &[0, 0, 10, 60, 200]),
            stalls: some(rng, &[0, 0, 20, 100]),
            slow: some(rng, &[0, 100, 1_000]),
            marker_pace: some(rng, &[0, 100, 30, 4]),
            zombie_next: false,
            counts: FaultCounts::new(),
        }
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// When the next disruption comes and what it is; `None` when the weather is fair.
    pub(super) fn next_disruption(&mut self, rng: &mut Seeded, now_ms: i64) -> Option<(i64, Disruption)> {
        let most = self.disruptions.len() as u64;
        let chosen = usize::try_from(rng.below(most)).unwrap_or(0);
        let disruption = *self.disruptions.get(chosen)?;
        let at_ms = now_ms + 1 + i64::try_from(rng.below(self.every_ms * 2)).unwrap_or(0);
        (at_ms < self.until_ms).then_some((at_ms, disruption))
    }

    fn strikes(&self, rng: &mut Seeded, of_10_000: u64, now_ms: i64) -> bool {
        of_10_000 > 0 && now_ms < self.until_ms && rng.below(10_000) < of_10_000
    }

    /// Whether the process crashes here.
    pub(super) fn crashes_here(&mut self, rng: &mut Seeded, now_ms: i64) -> bool {
        let crashes = self.strikes(rng, self.crashes, now_ms);
        if crashes {
            self.count("crash at an effect");
        }
        crashes
    }

    /// For how long the thread stands still here, if it does.
    pub(super) fn stalls_here(&mut self, rng: &mut Seeded, now_ms: i64) -> Option<i64> {
        if !self.strikes(rng, self.stalls, now_ms) {
            return None;
        }
        self.count("stall between effects");
        Some(zombie_ms(rng))
    }

    /// Whether the cluster does not describe its topics now.
    pub(super) fn topics_unknown(&mut self, rng: &mut Seeded, now_ms: i64) -> bool {
        let unknown = self.strikes(rng, self.request_faults, now_ms);
        if unknown {
            self.count("topics not described");
        }
        unknown
    }

    /// How long one way of a request takes.
    pub(super) fn latency_ms(&mut self, rng: &mut Seeded, now_ms: i64) -> i64 {
        if self.strikes(rng, self.slow, now_ms) {
            self.count("slow request");
            return i64::try_from(rng.below(900)).unwrap_or(0);
        }
        i64::try_from(rng.below(4)).unwrap_or(0)
    }

    /// What happens to a request.
    pub(super) fn fate(&mut self, rng: &mut Seeded, kind: RequestKind, now_ms: i64) -> Fate {
        if !self.strikes(rng, self.request_faults, now_ms) {
            return Fate::Served;
        }
        let possible = possible(kind);
        let chosen = usize::try_from(rng.below(possible.len() as u64)).unwrap_or(0);
        let (group, fate) = possible.get(chosen).copied().unwrap_or((0, Fate::Served));
        if !self.fates.get(group).copied().unwrap_or(false) {
            return Fate::Served;
        }
        self.count(fate.name());
        fate
    }
}

/// From a hiccup to longer than any timeout.
pub(super) fn zombie_ms(rng: &mut Seeded) -> i64 {
    let most = [50, 1_000, 9_000, 16_000, 40_000];
    let most = most
        .get(usize::try_from(rng.below(5)).unwrap_or(0))
        .copied()
        .unwrap_or(50);
    1 + i64::try_from(rng.below(most)).unwrap_or(0)
}

/// The fates that a request can meet with librdkafka, with the number of their kind.
fn possible(kind: RequestKind) -> &'static [(usize, Fate)] {
    use FailureClass::{Abortable, Fatal};
    const LOST: (usize, Fate) = (0, Fate::Lost);
    const ANSWER: (usize, Fate) = (1, Fate::AnswerLost);
    const TWICE: (usize, Fate) = (2, Fate::Doubled);
    match kind {
        RequestKind::Init => &[LOST, ANSWER, TWICE],
        RequestKind::Question | RequestKind::Purge => &[LOST, ANSWER],
        RequestKind::Flush => &[LOST, (3, Fate::Refused(Abortable)), (3, Fate::Refused(Fatal))],
        RequestKind::SendOffsets => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Abortable)),
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Abortable)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
        RequestKind::Commit => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Abortable)),
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
        RequestKind::Abort => &[
            LOST,
            ANSWER,
            TWICE,
            (3, Fate::Refused(Fatal)),
            (4, Fate::DoneButFailed(Fatal)),
            (5, Fate::Late(Fatal)),
        ],
    }
}
