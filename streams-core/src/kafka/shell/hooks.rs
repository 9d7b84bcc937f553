//! Named points at which a test can pause, fail or kill the process. Only with the feature `test-hooks`.
//!
//! Armed by the environment: `STREAMS_TEST_HOOKS=point=action[@n][,…]`, `action` one of `abort` (the process ends at
//! once, as by SIGKILL), `pause` (until the file named by `STREAMS_TEST_HOOKS_GO_ON` exists, else for ever), `fail` (the
//! step fails for good); `@n` = the n-th time (default 1).

/// The points, in the order of a commit and a task's life.
#[cfg(feature = "test-hooks")]
pub(crate) const POINTS: [&str; 10] = [
    "after-flush-before-offsets",
    "after-offsets-sent-before-commit",
    "after-commit-before-apply",
    "after-apply",
    "during-restore",
    "during-revoke",
    "after-send",
    "before-acknowledge",
    // Around the OffsetCommit of the guarantees without transactions.
    "before-offsets",
    "after-offsets",
];

/// What a hook does.
#[cfg(feature = "test-hooks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Abort,
    Pause,
    Fail,
}

/// Reaches a point; answers whether the step has to fail.
#[cfg(feature = "test-hooks")]
pub(crate) fn reach(point: &str) -> bool {
    match armed::take(point) {
        None => false,
        Some(Action::Fail) => true,
        Some(Action::Abort) => std::process::abort(),
        Some(Action::Pause) => {
            let go_on = std::env::var_os("STREAMS_TEST_HOOKS_GO_ON").map(std::path::PathBuf::from);
            while !go_on.as_ref().is_some_and(|file| file.exists()) {
                std::thread::park_timeout(std::time::Duration::from_millis(20));
            }
            false
        }
    }
}

/// Reaches a point: nothing without the feature `test-hooks`.
#[cfg(not(feature = "test-hooks"))]
#[inline(always)]
pub(crate) fn reach(_point: &str) -> bool {
    false
}

#[cfg(feature = "test-hooks")]
mod armed {
    use std::sync::{Mutex, OnceLock, PoisonError};

    use super::Action;

    struct Armed {
        point: String,
        action: Action,
        left: u32,
    }

    fn parse(text: &str) -> Option<Armed> {
        let (point, rest) = text.split_once('=')?;
        if !super::POINTS.contains(&point) {
            tracing::error!(point, points = ?super::POINTS, "there is no such test hook");
            return None;
        }
        let (action, count) = rest.split_once('@').unwrap_or((rest, "1"));
        let action = match action {
            "abort" => Action::Abort,
            "pause" => Action::Pause,
            "fail" => Action::Fail,
            _ => return None,
        };
        Some(Armed {
            point: point.to_owned(),
            action,
            left: count.parse().ok()?,
        })
    }

    pub(super) fn take(point: &str) -> Option<Action> {
        static ARMED: OnceLock<Mutex<Vec<Armed>>> = OnceLock::new();
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var("STREAMS_TEST_HOOKS").unwrap_or_default();
            Mutex::new(text.split(',').filter_map(parse).collect())
        });
        let mut armed = armed.lock().unwrap_or_else(PoisonError::into_inner);
        let hook = armed.iter_mut().find(|hook| hook.point == point && hook.left > 0)?;
        hook.left -= 1;
        (hook.left == 0).then_some(hook.action)
    }
}
