//! What a task measures besides its counters: by node, by topic, by store. Plain cells of one thread, which the shell
//! looks at a few times a second; a record costs a few additions, and reads no clock below the level DEBUG.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::RecordingLevel;
use super::samples::Samples;

/// How much is measured, and by which clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording {
    /// `metrics.recording.level`.
    pub level: RecordingLevel,
    /// Nanoseconds since some moment, never falling: the core has no clock of its own. `None`: nothing is timed.
    pub clock_ns: Option<fn() -> u64>,
}

impl Recording {
    /// Now, for what happens a few times per round.
    #[must_use]
    pub fn now_ns(&self) -> Option<u64> {
        self.clock_ns.map(|clock| clock())
    }

    /// Now, for what happens with every record: only from the level DEBUG on.
    #[must_use]
    #[inline]
    pub fn detailed_ns(&self) -> Option<u64> {
        match self.level {
            RecordingLevel::Info => None,
            RecordingLevel::Debug | RecordingLevel::Trace => self.now_ns(),
        }
    }

    /// How long something took that began at what [`now_ns`](Self::now_ns) or [`detailed_ns`](Self::detailed_ns) said.
    #[must_use]
    pub fn since_ns(&self, started: Option<u64>) -> Option<u64> {
        Some(self.now_ns()?.saturating_sub(started?))
    }
}

/// The meters of one task. They outlive the task: one made anew after an abort goes on with them.
#[derive(Debug, Default)]
pub struct TaskMeters {
    /// How much is measured.
    pub recording: Recording,
    /// Time spent on the task's records and punctuations, ns; 0 without a clock.
    pub busy_ns: Cell<u64>,
    /// Time spent in punctuations, ns.
    pub punctuating_ns: Cell<u64>,
    /// How long punctuations took, ns.
    pub punctuations_ns: Samples,
    /// How long records took, ns (DEBUG).
    pub records_ns: Samples,
    /// How far records lay behind the stream time, ms (DEBUG). Java: `PartitionGroup.nextRecord`.
    pub lateness_ms: Samples,
    nodes: RefCell<Vec<Rc<NodeMeter>>>,
    topics: RefCell<Vec<Rc<TopicMeter>>>,
    stores: RefCell<Vec<Rc<StoreMeter>>>,
}

impl TaskMeters {
    /// Meters without anything measured.
    #[must_use]
    pub fn new(recording: Recording) -> Rc<Self> {
        Rc::new(TaskMeters {
            recording,
            ..TaskMeters::default()
        })
    }

    /// The meter of a node.
    pub fn node(&self, node: &str) -> Rc<NodeMeter> {
        found(
            &self.nodes,
            |meter| &*meter.node == node,
            || NodeMeter::new(node, self.recording),
        )
    }

    /// The meter of what a source node takes from a topic, or a sink node writes to one.
    pub fn topic(&self, node: &str, topic: &str, direction: Direction) -> Rc<TopicMeter> {
        let is_it = |meter: &TopicMeter| meter.direction == direction && *meter.topic == *topic && *meter.node == *node;
        found(&self.topics, is_it, || TopicMeter::new(node, topic, direction))
    }

    /// The meter of a store; `scope` is Java's, such as `rocksdb-window`.
    pub fn store(&self, store: &str, scope: &'static str) -> Rc<StoreMeter> {
        found(
            &self.stores,
            |meter| &*meter.store == store,
            || StoreMeter::new(store, scope, self.recording),
        )
    }

    /// Every node that was asked for, in that order; a later call adds to the end alone.
    pub fn nodes(&self) -> Vec<Rc<NodeMeter>> {
        self.nodes.borrow().clone()
    }

    /// As [`nodes`](Self::nodes).
    pub fn topics(&self) -> Vec<Rc<TopicMeter>> {
        self.topics.borrow().clone()
    }

    /// As [`nodes`](Self::nodes).
    pub fn stores(&self) -> Vec<Rc<StoreMeter>> {
        self.stores.borrow().clone()
    }
}

fn found<T>(known: &RefCell<Vec<Rc<T>>>, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Rc<T> {
    let mut known = known.borrow_mut();
    if let Some(meter) = known.iter().find(|meter| is_it(meter)) {
        return Rc::clone(meter);
    }
    let meter = Rc::new(make());
    known.push(Rc::clone(&meter));
    meter
}

/// What a source or sink node measures, and one that emits later than it is told.
#[derive(Debug)]
pub struct NodeMeter {
    /// The node.
    pub node: Arc<str>,
    /// Records taken from the input; of source nodes alone, as in Java.
    pub records: Cell<u64>,
    /// Wall clock minus event time, ms: at a source before the record is processed, at a sink when it is written.
    pub e2e_ms: Samples,
    /// Updates that a suppressed table let go.
    pub suppressed: Cell<u64>,
    /// Final results of windows that were emitted on close.
    pub finals: Cell<u64>,
    /// How long it took to emit those that were due together, ns (DEBUG).
    pub finals_ns: Samples,
    recording: Recording,
}

impl NodeMeter {
    fn new(node: &str, recording: Recording) -> Self {
        NodeMeter {
            node: node.into(),
            records: Cell::new(0),
            e2e_ms: Samples::default(),
            suppressed: Cell::new(0),
            finals: Cell::new(0),
            finals_ns: Samples::default(),
            recording,
        }
    }

    /// One update was let go.
    pub fn let_go(&self) {
        self.suppressed.set(self.suppressed.get() + 1);
    }

    /// Emits final results by `emit`, which answers how many.
    ///
    /// # Errors
    /// Those of `emit`; then nothing is counted.
    pub fn emit_finals<E>(&self, emit: impl FnOnce() -> Result<u64, E>) -> Result<(), E> {
        let started = self.recording.detailed_ns();
        let emitted = emit()?;
        if emitted > 0 {
            self.finals.set(self.finals.get() + emitted);
            if let Some(took_ns) = self.recording.since_ns(started) {
                self.finals_ns.note(took_ns);
            }
        }
        Ok(())
    }
}

/// Whether a node reads a topic or writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A source.
    Consumed,
    /// A sink.
    Produced,
}

/// What passed between a node and a topic (KIP-846).
#[derive(Debug)]
pub struct TopicMeter {
    /// The node.
    pub node: Arc<str>,
    /// The topic.
    pub topic: Arc<str>,
    /// Which way.
    pub direction: Direction,
    /// Records.
    pub records: Cell<u64>,
    /// Their bytes, as `ClientUtils` counts them: key, value, headers, the topic's name, and 20 for timestamp, offset and
    /// partition.
    pub bytes: Cell<u64>,
    /// The bytes of a record besides key, value and headers.
    fixed_bytes: u64,
}

/// Timestamp, offset and partition of a record.
const RECORD_BYTES: usize = 8 + 8 + 4;

impl TopicMeter {
    fn new(node: &str, topic: &str, direction: Direction) -> Self {
        TopicMeter {
            node: node.into(),
            topic: topic.into(),
            direction,
            records: Cell::new(0),
            bytes: Cell::new(0),
            fixed_bytes: (topic.len() + RECORD_BYTES) as u64,
        }
    }

    /// Counts `copies` of a record with `payload` bytes of key, value and headers.
    #[inline]
    pub fn count(&self, copies: u64, payload: usize) {
        self.records.set(self.records.get() + copies);
        self.bytes
            .set(self.bytes.get() + copies * (self.fixed_bytes + payload as u64));
    }
}

/// The bytes of headers: names and values.
#[must_use]
pub(crate) fn header_bytes(headers: &crate::Headers) -> usize {
    if headers.is_empty() {
        return 0;
    }
    let bytes = |header: &crate::Header| header.key.len() + header.value.as_deref().map_or(0, <[u8]>::len);
    headers.iter().map(bytes).sum()
}

/// What is done with a store, by Java's names (`StateStoreMetrics`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// A row is written. In an update in place: what comes after the application's code.
    Put,
    /// A row of a key-value store is read. In an update in place: what comes before the application's code.
    Get,
    /// A row of a window or session store is read.
    Fetch,
    /// Rows between two keys are asked for; reading them is the iterator's time.
    Range,
    /// All rows are asked for.
    All,
    /// The rows whose keys begin alike are asked for.
    PrefixScan,
    /// Cached rows are written through, what that forwards included.
    Flush,
}

impl StoreOp {
    /// All of them.
    pub const ALL: [StoreOp; 7] = [
        StoreOp::Put,
        StoreOp::Get,
        StoreOp::Fetch,
        StoreOp::Range,
        StoreOp::All,
        StoreOp::PrefixScan,
        StoreOp::Flush,
    ];
}

/// What a store measures.
#[derive(Debug)]
pub struct StoreMeter {
    /// The store.
    pub store: Arc<str>,
    /// Java's scope of the store, such as `rocksdb-window`.
    pub scope: &'static str,
    /// Look-ups in the cache.
    pub lookups: Cell<u64>,
    /// Those that found their row.
    pub hits: Cell<u64>,
    /// Iterators that are not dropped yet.
    pub open_iterators: Cell<u64>,
    /// How long iterators lived, ns (DEBUG).
    pub iterators_ns: Samples,
    /// Bytes in a suppress buffer, at each change (DEBUG).
    pub buffer_bytes: Samples,
    /// Keys in a suppress buffer, at each change (DEBUG).
    pub buffer_count: Samples,
    recording: Recording,
    ops_ns: [Samples; StoreOp::ALL.len()],
}

impl StoreMeter {
    pub(crate) fn new(store: &str, scope: &'static str, recording: Recording) -> Self {
        StoreMeter {
            store: store.into(),
            scope,
            lookups: Cell::new(0),
            hits: Cell::new(0),
            open_iterators: Cell::new(0),
            iterators_ns: Samples::default(),
            buffer_bytes: Samples::default(),
            buffer_count: Samples::default(),
            recording,
            ops_ns: Default::default(),
        }
    }

    /// A suppress buffer holds this much now.
    pub fn buffered(&self, keys: usize, bytes: usize) {
        if self.recording.level != RecordingLevel::Info {
            self.buffer_count.note(keys as u64);
            self.buffer_bytes.note(bytes as u64);
        }
    }

    /// What reading one row is called here.
    #[must_use]
    pub fn read_op(&self) -> StoreOp {
        if self.scope.ends_with("-window") || self.scope.ends_with("-session") {
            StoreOp::Fetch
        } else {
            StoreOp::Get
        }
    }

    /// The begin of an operation; `None` below the level DEBUG.
    #[inline]
    #[must_use]
    pub fn start(&self) -> Option<u64> {
        self.recording.detailed_ns()
    }

    /// The end of an operation that [`start`](Self::start) began; answers the begin of the next.
    #[inline]
    pub fn done(&self, op: StoreOp, started: Option<u64>) -> Option<u64> {
        let (started, now) = (started?, self.recording.now_ns()?);
        if let Some(samples) = self.ops_ns.get(op as usize) {
            samples.note(now.saturating_sub(started));
        }
        Some(now)
    }

    /// How long an operation took, ns.
    #[must_use]
    pub fn op_ns(&self, op: StoreOp) -> Option<&Samples> {
        self.ops_ns.get(op as usize)
    }
}

/// Counts an iterator as open until it is dropped.
#[derive(Debug)]
pub struct OpenIterator {
    meter: Rc<StoreMeter>,
    opened: Option<u64>,
}

impl OpenIterator {
    /// An iterator of a store, open from now on.
    #[must_use]
    pub fn new(meter: &Rc<StoreMeter>) -> Self {
        meter.open_iterators.set(meter.open_iterators.get() + 1);
        OpenIterator {
            meter: Rc::clone(meter),
            opened: meter.start(),
        }
    }
}

impl Drop for OpenIterator {
    fn drop(&mut self) {
        let meter = &self.meter;
        meter.open_iterators.set(meter.open_iterators.get().saturating_sub(1));
        if let Some(lived_ns) = meter.recording.since_ns(self.opened) {
            meter.iterators_ns.note(lived_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_as_javas_clients_count_them() {
        let meters = TaskMeters::default();
        let topic = meters.topic("SOURCE", "usage", Direction::Consumed);
        topic.count(1, 3 + 10);
        topic.count(2, 0);
        assert_eq!((topic.records.get(), topic.bytes.get()), (3, (5 + 20 + 13) + 2 * 25));
        let headers: crate::Headers = [("trace", Some(&b"x"[..])), ("no", None)].into_iter().collect();
        assert_eq!(header_bytes(&headers), 5 + 1 + 2);
    }

    #[test]
    fn a_task_made_anew_goes_on_with_the_same_meters() {
        let meters = TaskMeters::default();
        meters.node("a").records.set(5);
        assert_eq!(meters.node("a").records.get(), 5);
        meters.topic("a", "t", Direction::Consumed).count(1, 0);
        assert_eq!(meters.topic("a", "t", Direction::Produced).records.get(), 0);
        assert_eq!((meters.nodes().len(), meters.topics().len()), (1, 2));
    }

    #[test]
    fn only_from_debug_on_is_a_store_timed_and_iterators_are_always_counted() {
        for (level, timed) in [(RecordingLevel::Info, 0), (RecordingLevel::Debug, 1)] {
            let recording = Recording {
                level,
                clock_ns: Some(|| 7),
            };
            let meter = TaskMeters::new(recording).store("rows", "rocksdb-window");
            meter.done(meter.read_op(), meter.start());
            let iterator = OpenIterator::new(&meter);
            assert_eq!(meter.open_iterators.get(), 1);
            drop(iterator);
            assert_eq!(meter.open_iterators.get(), 0);
            assert_eq!(meter.read_op(), StoreOp::Fetch);
            let seen = meter.op_ns(StoreOp::Fetch).map(|samples| samples.count());
            assert_eq!((seen, meter.iterators_ns.count()), (Some(timed), timed));
        }
    }
}
