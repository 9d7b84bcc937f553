//! Bad records as a stream: what can't be read or processed goes on to steps of the topology, in the same transaction.

use std::rc::Rc;
use std::sync::Arc;

use super::{Children, DeadLetter, RecordContext, TaskContext};
use crate::Record;
use crate::error::ProcessResult;

/// Keys and values as they lie in the source topic.
pub type RawBytes = Option<Vec<u8>>;

/// Where the bad records of some topics go.
struct Outlet {
    topics: Box<[Arc<str>]>,
    children: Rc<Children<RawBytes, RawBytes>>,
}

/// What a task has of bad records.
#[derive(Default)]
pub(crate) struct BadRecords {
    outlets: Vec<Outlet>,
    /// They go on when the record in hand is done: a failure may come from within the update of a store's row.
    waiting: Vec<(usize, RecordContext, DeadLetter)>,
    /// Steps behind an outlet fail as if there were none.
    forwarding: bool,
}

impl TaskContext {
    /// Hands the records of these topics that can't be read or processed to `children`, as dead letters have them (KIP-1034:
    /// bytes of the source record, and headers that say what failed). The handlers are not asked about them any more.
    pub fn take_bad_records(
        &mut self,
        topics: impl IntoIterator<Item = Arc<str>>,
        children: Children<RawBytes, RawBytes>,
    ) {
        self.bad_records.outlets.push(Outlet {
            topics: topics.into_iter().collect(),
            children: Rc::new(children),
        });
    }

    /// Whether a failure can be let pass: by a handler, or as a bad record.
    pub(crate) fn may_resume(&self) -> bool {
        self.handlers().processing.may_resume() || !self.bad_records.outlets.is_empty()
    }

    /// Notes that the record in hand is bad, if some stream takes it: then the failure is dealt with. `class` is the
    /// exception's class in Java.
    pub(crate) fn note_bad_record(&mut self, class: &str, message: &str) -> bool {
        if self.bad_records.forwarding {
            return false;
        }
        let topic = Arc::clone(&self.current.topic);
        let takes: Vec<usize> = (0..)
            .zip(&self.bad_records.outlets)
            .filter(|(_, outlet)| outlet.topics.contains(&topic))
            .map(|(at, _)| at)
            .collect();
        for at in &takes {
            let letter = self.usual_dead_letter(Arc::clone(&topic), class, message);
            let place = self.current.without_raw();
            self.bad_records.waiting.push((*at, place, letter));
        }
        !takes.is_empty()
    }

    /// Runs `work`, in which failures go to the handlers alone: it follows from bad records, and would go round for ever.
    pub(crate) fn without_bad_records<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.bad_records.forwarding, true);
        let result = work(self);
        self.bad_records.forwarding = outer;
        result
    }

    /// Whether bad records wait to go on.
    pub(crate) fn has_bad_records(&self) -> bool {
        !self.bad_records.waiting.is_empty()
    }

    /// Hands the bad records on that were noted, in the order of their failures.
    pub(crate) fn forward_bad_records(&mut self) -> ProcessResult {
        if !self.has_bad_records() {
            return Ok(());
        }
        for (at, place, letter) in std::mem::take(&mut self.bad_records.waiting) {
            let Some(outlet) = self.bad_records.outlets.get(at) else {
                continue;
            };
            let children = Rc::clone(&outlet.children);
            let record = Record::new(&letter.key, &letter.value, letter.timestamp_ms).with_headers(&letter.headers);
            self.without_bad_records(|cx| cx.at_place(place, |cx| children.forward(cx, record)))?;
        }
        Ok(())
    }
}
