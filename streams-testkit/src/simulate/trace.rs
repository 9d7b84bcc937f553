//! What happened, in order, in lines that a person can read.

/// Lines kept for a report; older ones give way, as the end of a run explains it.
const KEPT_LINES: usize = 4_000;

/// A trace: kept only when somebody will read it, since most runs succeed.
#[derive(Debug, Default)]
pub(super) struct Trace {
    on: bool,
    lines: std::collections::VecDeque<String>,
}

impl Trace {
    pub(super) fn new(on: bool) -> Self {
        Trace { on, ..Trace::default() }
    }

    pub(super) fn note(&mut self, now_ms: i64, line: impl FnOnce() -> String) {
        if !self.on {
            return;
        }
        if self.lines.len() == KEPT_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{now_ms:>8} {}", line()));
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
