//! What is suppressed of a table, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use streams_core::Windowed;

/// Which updates of a table are held back, and for how long. Java counterpart: `Suppressed`.
pub struct Suppressed<K> {
    pub(crate) until: Until<K>,
    pub(crate) name: Option<String>,
    pub(crate) max_records: usize,
    pub(crate) max_bytes: usize,
    /// `None`: not said.
    pub(crate) full: Option<WhenFull>,
    /// `None` = no changelog.
    pub(crate) logging: Option<BTreeMap<String, String>>,
}

/// Until when an update waits.
pub(crate) enum Until<K> {
    /// Until its window is closed; with the end of a key's window.
    WindowCloses(fn(&K) -> i64),
    /// For so long after its event time, ms.
    TimeLimit(Duration),
}

/// What happens when the buffer holds more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    EmitEarly,
    ShutDown,
}

impl<K> Suppressed<Windowed<K>> {
    /// Holds all updates of a window back until it is closed, and emits its final result: once, and no deletes. For tables
    /// of windowed aggregations, and those made of them row by row. The buffer has no bound unless it is given one, and a
    /// full buffer is a failure.
    #[must_use]
    pub fn until_window_closes() -> Self {
        Self::of(Until::WindowCloses(|key: &Windowed<K>| key.window.end_ms))
    }
}

impl<K> Suppressed<K> {
    /// Emits the last update of a key once the stream time (the highest event time of the table's updates) is `limit` after
    /// the event time of the first one held back. The buffer has no bound unless it is given one; a full buffer emits
    /// early.
    #[must_use]
    pub fn until_time_limit(limit: Duration) -> Self {
        Self::of(Until::TimeLimit(limit))
    }

    fn of(until: Until<K>) -> Self {
        Suppressed {
            until,
            name: None,
            max_records: usize::MAX,
            max_bytes: usize::MAX,
            full: None,
            logging: Some(BTreeMap::new()),
        }
    }

    /// Holds back at most so many keys.
    #[must_use]
    pub fn max_records(mut self, records: usize) -> Self {
        self.max_records = records;
        self
    }

    /// Holds back at most so many bytes: keys, values, the input topic's name and headers.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// A full buffer emits its first updates early. Not for final results, which would not be final.
    #[must_use]
    pub fn emit_early_when_full(mut self) -> Self {
        self.full = Some(WhenFull::EmitEarly);
        self
    }

    /// A full buffer is a failure, which goes to the processing handler.
    #[must_use]
    pub fn shut_down_when_full(mut self) -> Self {
        self.full = Some(WhenFull::ShutDown);
        self
    }

    /// Names the node; the buffer is named `NAME-store`.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// No changelog: what waits is gone when its disk is.
    #[must_use]
    pub fn without_logging(mut self) -> Self {
        self.logging = None;
        self
    }

    /// Topic configs of the changelog; they win over the usual ones.
    #[must_use]
    pub fn logging<'a>(mut self, configs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = configs.into_iter();
        self.logging = Some(owned.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        self
    }
}
