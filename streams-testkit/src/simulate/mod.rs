//! A simulator: the shipped core, several instances with threads and tasks, in a seeded world where things go wrong.
//!
//! Brokers with transactions, markers and fencing, the group's coordinator, disks, clocks and the network are simulated;
//! what decides is the core that runs in production ([`streams_core::runtime`], [`streams_core::membership`]). Time is
//! virtual and every choice comes from the seed, so that a seed is a run: a failure is repeated by its number.
//!
//! What goes wrong: processes crash at any effect and between, lose power, lose their disk, stay away for long, are paused
//! for longer than any timeout and wake up as zombies; requests and answers are lost, slow or doubled, commits end with an
//! unknown outcome, and what a process sent arrives long after its death; transactions time out, coordinators move, tasks
//! move, threads fail and are replaced, disks are full, slow or refuse writes, clocks differ. User code is slow, and fails
//! where it is asked to ([`UserFaults`]). Inputs come in transactions of other producers that commit late, abort or hang.
//! Changelogs are compacted and trimmed, inputs are trimmed behind their readers.
//!
//! What must come out: the outputs and changelogs of a run without faults, committed offsets that never go back, every
//! task at one thread, stores equal to their changelogs, and an end: an application that is not done within 20 minutes
//! of virtual time after the last fault is stuck.
//!
//! Without transactions ([`Simulation::guarantee`]) the same faults strike: at least once nothing may be lost, at most once
//! nothing may come twice, and a run in which nothing was given up must be exact.
//!
//! Once in some runs comes what an application must not survive in silence: its offsets expire or are reset, a changelog is
//! truncated or made again, inputs are deleted before they were read. Then it has to stop and say why, touch nothing, and
//! reach the exact result once that is put right.
//!
//! # Example
//! ```
//! use streams_dsl::StreamsBuilder;
//! use streams_testkit::simulate::{Compare, InputRecord, Simulation};
//!
//! let builder = StreamsBuilder::new();
//! builder.stream::<String, String>("in").filter(|_, value| value != "skip").to("out");
//! let inputs: Vec<_> = ["one", "skip", "two"]
//!     .iter()
//!     .enumerate()
//!     .map(|(at, value)| InputRecord::new("in", "key", *value, 1_000 + at as i64))
//!     .collect();
//! let report = Simulation::new(builder.build()?, vec![inputs]).compare(Compare::Exact).run(0..5)?;
//! assert_eq!(report.seeds, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calamity;
mod calls;
mod coordinator;
mod disruption;
mod drive;
mod effects;
mod ends;
mod fates;
mod foreign;
mod harm;
mod heartbeats;
mod machines;
mod oracle;
mod process;
mod restorer;
mod retention;
mod scenario;
mod serve;
mod trace;
mod user_faults;
mod watch;
mod weather;
mod world;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use streams_core::Error;
use streams_core::config::ProcessingGuarantee;
use streams_core::processor::{ErrorHandlers, LogAndContinue};
use streams_core::topology::Topology;

use self::oracle::Written;
use self::scenario::Scenario;
use self::weather::Weather;
use self::world::World;
use crate::Seeded;

pub use self::scenario::{Compare, InputRecord, Phases};
pub use self::user_faults::UserFaults;
pub use self::weather::FaultCounts;

/// Lines of a trace that a failure shows.
const SHOWN_LINES: usize = 120;

/// A topology to be simulated.
#[derive(Clone)]
pub struct Simulation {
    topology: Topology,
    phases: Phases,
    partitions: BTreeMap<String, i32>,
    compare: Compare,
    /// Of topics that are compared in another way.
    compare_of: BTreeMap<String, Compare>,
    guarantee: ProcessingGuarantee,
    settle_ms: i64,
    handlers: ErrorHandlers,
    user_faults: Option<UserFaults>,
    /// Records that must change nothing.
    harmless: Vec<InputRecord>,
    /// What outputs must have.
    expected: Vec<InputRecord>,
}

/// What many runs were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulationReport {
    /// Runs.
    pub seeds: u64,
    /// Faults by kind, over all runs.
    pub faults: FaultCounts,
    /// Output records compared.
    pub records: u64,
    /// Virtual time, milliseconds.
    pub virtual_ms: i64,
}

impl SimulationReport {
    /// Adds another report.
    pub fn add(&mut self, other: &SimulationReport) {
        self.seeds += other.seeds;
        self.records += other.records;
        self.virtual_ms += other.virtual_ms;
        for (what, count) in &other.faults {
            *self.faults.entry(what).or_default() += count;
        }
    }
}

/// A run that did not end as it must. Its text has the seed and the end of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFailure {
    /// The seed: the same one fails in the same way.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
    /// What happened, in order; times are virtual milliseconds since the start.
    pub trace: Vec<String>,
}

impl fmt::Display for SimulationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} fails: {}", self.seed, self.what)?;
        let first = self.trace.len().saturating_sub(SHOWN_LINES);
        writeln!(
            f,
            "the last {} of {} lines of its trace:",
            self.trace.len() - first,
            self.trace.len()
        )?;
        for line in self.trace.get(first..).unwrap_or_default() {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SimulationFailure {}

/// Runs a topology under faults, once for each seed, and compares what comes out with a run without faults.
///
/// The input is one phase, topics have two partitions, and outputs are compared by the last value of each key; for
/// anything else use [`Simulation`]. A seed takes some tens of milliseconds, so that a test runs hundreds.
///
/// # Errors
/// The first run that does not end as it must: its text has the seed and what happened, in order.
///
/// # Example
/// ```
/// use streams_dsl::StreamsBuilder;
/// use streams_testkit::simulate::{InputRecord, simulate};
///
/// let builder = StreamsBuilder::new();
/// builder.stream::<String, String>("words").group_by_key().count("counts").to_stream().to("totals");
/// let inputs = (0..20).map(|at| InputRecord::new("words", ["tea", "milk"][at % 2], "sold", 1_000 + at as i64)).collect();
/// match simulate(&builder.build()?, inputs, 0..10) {
///     Ok(report) => assert_eq!(report.seeds, 10),
///     Err(failure) => panic!("{failure}"), // the seed, what is wrong, and the trace up to there
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate(
    topology: &Topology,
    inputs: Vec<InputRecord>,
    seeds: Range<u64>,
) -> Result<SimulationReport, SimulationFailure> {
    Simulation::new(topology.clone(), vec![inputs]).run(seeds)
}

impl Simulation {
    /// A topology with its input.
    #[must_use]
    pub fn new(topology: Topology, phases: Phases) -> Self {
        Simulation {
            topology,
            phases,
            partitions: BTreeMap::new(),
            compare: Compare::Latest,
            compare_of: BTreeMap::new(),
            guarantee: ProcessingGuarantee::ExactlyOnceV2,
            settle_ms: 1_000,
            handlers: ErrorHandlers::default(),
            user_faults: None,
            harmless: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// The number of partitions of an external topic; the default is 2.
    #[must_use]
    pub fn partitions(mut self, topic: &str, count: i32) -> Self {
        self.partitions.insert(topic.to_owned(), count);
        self
    }

    /// How outputs are compared; the default is [`Compare::Latest`]. Only with it runs use the record cache.
    #[must_use]
    pub fn compare(mut self, compare: Compare) -> Self {
        self.compare = compare;
        self
    }

    /// How one output topic is compared, if in another way than the others.
    #[must_use]
    pub fn compare_topic(mut self, topic: &str, compare: Compare) -> Self {
        self.compare_of.insert(topic.to_owned(), compare);
        self
    }

    /// `processing.guarantee`; the default is exactly once. Without transactions a run in which something was given up that
    /// was not committed (a crash, a failed commit, a lost membership) may repeat records, or lose some:
    ///
    /// - at least once, each record of the run without faults must be there, and no other; outputs compared by
    ///   [`Compare::Latest`] must end with the same values, so only results belong there that do not change when a record
    ///   comes twice;
    /// - at most once, no record may be there more often than in the run without faults; outputs compared by
    ///   [`Compare::Latest`] may have anything.
    ///
    /// A run in which nothing was given up must be exact, and stores equal their changelogs always.
    #[must_use]
    pub fn guarantee(mut self, guarantee: ProcessingGuarantee) -> Self {
        self.guarantee = guarantee;
        self
    }

    /// For how long nothing may change before the topology counts as done with its input, milliseconds: longer than its
    /// wall-clock punctuations. The default is 1000.
    #[must_use]
    pub fn settle_ms(mut self, settle_ms: i64) -> Self {
        self.settle_ms = settle_ms;
        self
    }

    /// Records that can't be read or processed are dropped, as with the handlers `continue`, instead of ending the thread.
    #[must_use]
    pub fn continue_on_errors(mut self) -> Self {
        self.handlers.deserialization = Arc::new(LogAndContinue);
        self.handlers.processing = Arc::new(LogAndContinue);
        self
    }

    /// The topology asks these faults whether to fail.
    #[must_use]
    pub fn user_faults(mut self, faults: &UserFaults) -> Self {
        self.user_faults = Some(faults.clone());
        self
    }

    /// Records that must change nothing, such as ones that the topology drops as broken. They are mixed into the inputs of
    /// runs with faults; the run without faults does not get them.
    #[must_use]
    pub fn harmless(mut self, records: Vec<InputRecord>) -> Self {
        self.harmless = records;
        self
    }

    /// What outputs must have, by a model of the application: their topic, key, value and event time. Each output topic that
    /// is named here must have exactly these records, in any order; with [`Compare::Latest`] these values of its keys. The run
    /// without faults is compared with them, and all others with that run.
    ///
    /// ```
    /// use streams_dsl::StreamsBuilder;
    /// use streams_testkit::simulate::{InputRecord, Simulation};
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream::<String, String>("in").map_values(|_, value| value.to_uppercase()).to("out");
    /// let inputs = vec![InputRecord::new("in", "key", "tea", 1_000)];
    /// let simulation = Simulation::new(builder.build()?, vec![inputs]);
    /// assert!(simulation.clone().expect(vec![InputRecord::new("out", "key", "TEA", 1_000)]).run(0..3).is_ok());
    /// assert!(simulation.expect(vec![InputRecord::new("out", "key", "MILK", 1_000)]).run(0..3).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expect(mut self, records: Vec<InputRecord>) -> Self {
        self.expected = records;
        self
    }

    /// Runs each seed.
    ///
    /// # Errors
    /// The first run that does not end as it must, with its seed and trace.
    pub fn run(&self, seeds: Range<u64>) -> Result<SimulationReport, SimulationFailure> {
        let first = seeds.start;
        let failed = |seed, what: String| SimulationFailure {
            seed,
            what,
            trace: Vec::new(),
        };
        let scenario = self.scenario().map_err(|error| failed(first, error.to_string()))?;
        let expected = self.expected(&scenario).map_err(|what| failed(first, what))?;
        let mut report = SimulationReport::default();
        for seed in seeds {
            let run = self.run_one(&scenario, &expected, seed, false);
            if let Err(what) = run.result {
                let again = self.run_one(&scenario, &expected, seed, true);
                return Err(SimulationFailure {
                    seed,
                    what,
                    trace: again.trace,
                });
            }
            report.add(&SimulationReport {
                seeds: 1,
                faults: run.faults,
                records: expected.records() as u64,
                virtual_ms: run.virtual_ms,
            });
        }
        Ok(report)
    }

    /// The whole trace of one seed.
    ///
    /// # Errors
    /// When the topology can't be run at all.
    pub fn trace(&self, seed: u64) -> Result<Vec<String>, String> {
        let scenario = self.scenario().map_err(|error| error.to_string())?;
        let expected = self.expected(&scenario)?;
        Ok(self.run_one(&scenario, &expected, seed, true).trace)
    }

    fn scenario(&self) -> Result<Scenario, Box<Error>> {
        let handlers = self.handlers.clone();
        Scenario::new(
            &self.topology,
            &self.partitions,
            self.settle_ms,
            handlers,
            self.guarantee,
        )
    }

    fn comparison(&self, topic: &str) -> Compare {
        self.compare_of.get(topic).copied().unwrap_or(self.compare)
    }

    /// A cache skips steps of results, so only the last ones can be compared.
    fn may_cache(&self) -> bool {
        self.compare == Compare::Latest && self.compare_of.values().all(|compare| *compare == Compare::Latest)
    }

    fn expected(&self, scenario: &Scenario) -> Result<Written, String> {
        let mut world = World::new(scenario, &self.phases, 0, Weather::calm(), false);
        world.run();
        match world.failure.take() {
            Some(what) => Err(format!("the run without faults fails: {what}")),
            None => {
                let written = self.as_expected(Written::of(&world), scenario)?;
                self.as_exact(&written).map_or(Ok(written), Err)
            }
        }
    }

    /// Without faults every guarantee gives the same.
    fn as_exact(&self, written: &Written) -> Option<String> {
        if self.guarantee == ProcessingGuarantee::ExactlyOnceV2 {
            return None;
        }
        let exact = self.clone().guarantee(ProcessingGuarantee::ExactlyOnceV2);
        let scenario = exact.scenario().map_err(|error| error.to_string());
        let difference = match scenario.and_then(|scenario| exact.expected(&scenario)) {
            Ok(exact) => written.difference(&exact, |topic| self.comparison(topic)),
            Err(what) => Some(what),
        };
        difference.map(|what| format!("the run without faults differs from that of exactly once: {what}"))
    }

    /// The run without faults must have written what the model says.
    fn as_expected(&self, written: Written, scenario: &Scenario) -> Result<Written, String> {
        let compare = |topic: &str| match self.comparison(topic) {
            Compare::Latest => Compare::Latest,
            _ => Compare::AnyOrder,
        };
        match written.differs_from_model(&self.expected, scenario, compare) {
            Some(what) => Err(format!("the run without faults does not give what is expected: {what}")),
            None => Ok(written),
        }
    }

    fn run_one(&self, scenario: &Scenario, expected: &Written, seed: u64, traced: bool) -> Run {
        let mut weather = Weather::draw(&mut Seeded::new(seed), self.may_cache());
        if !scenario.is_transactional() {
            // They are explained by what a transaction ties together.
            weather.calamity = None;
        }
        let phases = self.mixed_phases(seed);
        let world = World::new(scenario, &phases, seed, weather, traced);
        self.finish(world, expected)
    }

    /// The inputs with the harmless records anywhere among them.
    fn mixed_phases(&self, seed: u64) -> Phases {
        let mut phases = self.phases.clone();
        let mut rng = Seeded::new(seed ^ 0x01BE);
        for record in &self.harmless {
            let chosen = usize::try_from(rng.below(phases.len() as u64)).unwrap_or(0);
            if let Some(phase) = phases.get_mut(chosen) {
                let at = usize::try_from(rng.below(phase.len() as u64 + 1)).unwrap_or(0);
                phase.insert(at.min(phase.len()), record.clone());
            }
        }
        phases
    }

    fn finish(&self, mut world: World<'_>, expected: &Written) -> Run {
        world.user_faults.clone_from(&self.user_faults);
        world.arm_user_faults();
        world.run();
        world.end_user_faults();
        if world.failure.is_none() {
            let written = Written::of(&world);
            let compare = |topic: &str| self.comparison(topic);
            let wrong = match self.guarantee {
                ProcessingGuarantee::ExactlyOnceV2 => written.difference(expected, compare),
                guarantee => {
                    for (what, count) in written.more_and_less(expected) {
                        *world.weather.counts.entry(what).or_default() += count;
                    }
                    written.breaks(expected, compare, guarantee, world.given_up > 0)
                }
            };
            if let Some(what) = wrong.or_else(|| oracle::stores_differ(&mut world)) {
                world.fail(what);
            }
        }
        Run {
            result: world.failure.take().map_or(Ok(()), Err),
            faults: std::mem::take(&mut world.weather.counts),
            virtual_ms: world.now_ms - world::START_MS,
            trace: world.trace.into_lines(),
        }
    }
}

struct Run {
    result: Result<(), String>,
    faults: FaultCounts,
    virtual_ms: i64,
    trace: Vec<String>,
}
