//! The times of a windowed aggregation: how far its stream is, and how far it has emitted on close.

use std::sync::Arc;

use streams_core::processor::{OperatorTime, TaskContext};

use crate::windows::Closing;

/// The times of a windowed aggregation in the offset-commit metadata.
#[derive(Clone)]
pub(super) struct Clocks {
    /// The key of the operator's stream time. The mark keeps it apart from Java's own entries.
    pub(super) observed: Arc<str>,
    /// The key of the last emitted close time, as Java writes it: the store's name.
    pub(super) emitted: Option<Arc<str>>,
}

impl Clocks {
    pub(super) fn of(store: &str, emits_on_close: bool) -> Self {
        Clocks {
            observed: format!("~{store}").into(),
            emitted: emits_on_close.then(|| store.into()),
        }
    }

    pub(super) fn keys(&self) -> Vec<Arc<str>> {
        std::iter::once(&self.observed).chain(&self.emitted).cloned().collect()
    }

    pub(super) fn open(&self, cx: &mut TaskContext) -> OpenClocks {
        OpenClocks {
            observed: cx.operator_time(&self.observed),
            emitted: self.emitted.as_deref().map(|key| cx.operator_time(key)),
        }
    }
}

/// Those times in one task.
#[derive(Clone, Copy)]
pub(super) struct OpenClocks {
    pub(super) observed: OperatorTime,
    pub(super) emitted: Option<OperatorTime>,
}

/// The ends (first, last; ms) of the windows that are to be emitted now.
pub(super) type Ends = (i64, i64);

impl OpenClocks {
    /// The ends of windows that are closed and not emitted, which are emitted with this; `None` where there can be none.
    pub(super) fn take_closed(self, cx: &mut TaskContext, closing: Closing) -> Option<Ends> {
        let emitted = self.emitted?;
        let (before, now) = (cx.observed(emitted), closing.close_time_ms(cx.observed(self.observed)));
        if now <= before || now < 0 {
            return None;
        }
        let first = self.first_open_end_ms(cx, closing);
        cx.observe(emitted, now);
        let last = closing.last_closed_end_at(now);
        (first <= last).then_some((first, last))
    }

    /// Windows with an end from here on were not emitted yet.
    pub(super) fn first_open_end_ms(self, cx: &TaskContext, closing: Closing) -> i64 {
        match self.emitted.map_or(-1, |emitted| cx.observed(emitted)) {
            ..0 => 0,
            emitted => closing.last_closed_end_at(emitted).saturating_add(1),
        }
    }
}
