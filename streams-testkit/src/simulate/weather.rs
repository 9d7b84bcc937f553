//! How bad a run is, drawn from its seed. Each run has only some of the kinds of faults, so that rare combinations are not
//! drowned by frequent ones.

use std::collections::BTreeMap;

use streams_core::runtime::StreamThreadExceptionResponse;

use super::calamity::Calamity;
use super::disruption::Disruption;
use super::fates::{FATE_KINDS, Fate, RequestKind, possible};
use crate::Seeded;

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
    /// Rows of a restore from zero that make a file, bytes of memory.
    pub(super) file_bytes: usize,
    /// `commit.pipelined`.
    pub(super) pipelined: bool,
    /// The application's answer to the end of a thread.
    pub(super) answer: StreamThreadExceptionResponse,
    /// Until when things go wrong, ms of virtual time.
    pub(super) until_ms: i64,
    disruptions: Vec<Disruption>,
    /// Mean time between disruptions, ms.
    every_ms: u64,
    /// Of 10,000 requests so many meet a fate.
    request_faults: u64,
    fates: [bool; FATE_KINDS],
    /// Of 10,000 effects so many end in a crash.
    crashes: u64,
    /// Of 10,000 effects so many are followed by a stall.
    stalls: u64,
    /// Of 10,000 requests so many are slow.
    slow: u64,
    /// How long user code takes for a record, ms.
    user_ms: i64,
    /// User code stays slow when nothing goes wrong any more.
    pub(super) slow_for_ever: bool,
    /// Of 10,000 calls of user code that can fail so many do.
    pub(super) user_faults: u64,
    /// Of 100 input records so many come in a transaction of their producer, and a tenth as many beside an aborted one.
    pub(super) foreign: u64,
    /// Whether what a dead process had sent may arrive long after its death.
    pub(super) outlives: bool,
    /// Whether the group gives tasks whose topics are still being made.
    pub(super) gives_early: bool,
    /// Of 100 looks at the waiting markers so many write some; 0: markers do not wait.
    pub(super) marker_pace: u64,
    /// What happens once, that the application must not survive in silence.
    pub(super) calamity: Option<Calamity>,
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
            file_bytes: 1 << 20,
            pipelined: false,
            answer: StreamThreadExceptionResponse::ShutdownClient,
            until_ms: 0,
            disruptions: Vec::new(),
            every_ms: 0,
            request_faults: 0,
            fates: [false; FATE_KINDS],
            crashes: 0,
            stalls: 0,
            slow: 0,
            user_ms: 0,
            slow_for_ever: false,
            user_faults: 0,
            foreign: 0,
            outlives: false,
            gives_early: false,
            marker_pace: 0,
            calamity: None,
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
        let ms = |value: u64| i64::try_from(value).unwrap_or(0);
        let cache = some(rng, &[0, 0, 1, 300, 1 << 20]);
        // Few runs are long: deletions leave the changelogs only after a while.
        let long = rng.below(16) == 0;
        let until_ms = if long {
            150_000 + rng.below(200_000)
        } else {
            10_000 + rng.below(60_000)
        };
        let calamity = Calamity::draw(rng);
        Weather {
            instances: size(1 + rng.below(3)),
            threads: size(1 + rng.below(2)),
            cache_bytes: if may_cache { size(cache) } else { 0 },
            commit_interval_ms: ms(some(rng, &[20, 100, 100, 1_000])),
            send_bytes: size(some(rng, &[1, 50, 500, 1 << 20])),
            buffered_records: size(some(rng, &[1, 5, 1_000])),
            fetch_records: size(some(rng, &[1, 3, 10, 100])),
            file_bytes: size(some(rng, &[1, 300, 1_000, 1 << 20])),
            pipelined: rng.below(3) > 0,
            answer: if rng.below(3) > 0 {
                StreamThreadExceptionResponse::ReplaceThread
            } else {
                StreamThreadExceptionResponse::ShutdownClient
            },
            until_ms: ms(until_ms),
            disruptions,
            every_ms: if long {
                20_000
            } else {
                some(rng, &[1_500, 4_000, 10_000, 25_000])
            },
            request_faults: some(rng, &[0, 50, 300, 1_000, 2_500]),
            fates: std::array::from_fn(|_| rng.below(3) > 0),
            crashes: some(rng, &[0, 0, 10, 60, 200]),
            stalls: some(rng, &[0, 0, 20, 100]),
            slow: some(rng, &[0, 100, 1_000]),
            user_ms: ms(some(rng, &[0, 0, 0, 0, 0, 2, 40, 900, 6_000, 13_000])),
            // Explanations are waited for, and not for minutes in user code.
            slow_for_ever: rng.below(4) == 0 && calamity.is_none(),
            user_faults: some(rng, &[0, 30, 100, 400]),
            foreign: some(rng, &[0, 0, 20, 60]),
            outlives: rng.below(2) == 0,
            gives_early: rng.below(3) == 0,
            marker_pace: some(rng, &[0, 100, 30, 4]),
            calamity,
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

    /// Whether a consumer fails as a whole.
    pub(super) fn fetch_fails(&mut self, rng: &mut Seeded, now_ms: i64) -> bool {
        let fails = self.strikes(rng, self.request_faults / 10, now_ms);
        if fails {
            self.count("restore consumer failed");
        }
        fails
    }

    /// How long user code takes for so many records, ms.
    pub(super) fn user_code_ms(&mut self, records: usize, now_ms: i64) -> i64 {
        let over = now_ms >= self.until_ms && !self.slow_for_ever;
        if self.user_ms == 0 || records == 0 || over {
            return 0;
        }
        self.count("slow user code");
        self.user_ms.saturating_mul(i64::try_from(records).unwrap_or(0))
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
