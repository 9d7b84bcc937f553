//! Tells when everything that was fed is committed.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use streams_testkit::Backlog;
use tokio::sync::mpsc::Sender;

use crate::topics::Names;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// Without progress for so long, something is wrong.
const STALL_LIMIT: Duration = Duration::from_secs(120);

/// Looks, on a thread of its own, until the group has committed all its inputs, and sends how that ended. The thread ends
/// when nobody listens any more.
///
/// # Errors
/// When there is no thread to be had.
pub(crate) fn until_committed(bootstrap: &str, names: &Names, done: Sender<Result<()>>) -> Result<()> {
    let (bootstrap, names) = (bootstrap.to_owned(), names.clone());
    let body = move || {
        let result = watch(&bootstrap, &names, &done);
        let _ = done.blocking_send(result);
    };
    std::thread::Builder::new().name("watch".to_owned()).spawn(body)?;
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a wait for a broker, bounded by progress")]
fn watch(bootstrap: &str, names: &Names, done: &Sender<Result<()>>) -> Result<()> {
    let mut backlog = Backlog::open(bootstrap, &names.application_id(), names.inputs())?;
    let (mut last, mut moved) = (i64::MAX, Instant::now());
    while !done.is_closed() {
        let remaining = backlog.remaining()?;
        if remaining == 0 {
            return Ok(());
        }
        if remaining != last {
            (last, moved) = (remaining, Instant::now());
        }
        if moved.elapsed() > STALL_LIMIT {
            bail!(
                "{remaining} records are left and none was committed for {} s",
                STALL_LIMIT.as_secs()
            );
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
