//! Identities of stream threads that the process had and has no longer (design rule 6.2).

use streams_state::StateDirectory;

use crate::config::{ClientIds, ProcessingGuarantee, StreamsConfig};
use crate::kafka::group::{GroupTarget, leave_surplus};
use crate::kafka::producer::TransactionalProducer;

/// How long fencing one identity may take: its transaction, if one is open, is aborted by the broker meanwhile.
const FENCE_MS: u64 = 10_000;

/// Lets stored members of threads above `threads` go, or they would keep their tasks for a session timeout and readers
/// waiting for their open transactions. Each is fenced first, so that whoever gets its tasks finds them settled. What can't
/// be done now is told and done at the next start.
pub(super) fn let_go(config: &StreamsConfig, ids: &ClientIds, directory: &StateDirectory, threads: usize) {
    for (thread, member) in directory.surplus_members(threads) {
        if let Err(why) = let_one_go(config, ids, thread, &member) {
            tracing::warn!(
                thread,
                why,
                "a stream thread that this process no longer has could not be taken out of its group; its tasks wait for \
                 the session timeout"
            );
            continue;
        }
        tracing::info!(
            thread,
            "a stream thread that this process no longer has is fenced and has left its group"
        );
        if let Err(error) = directory.forget_member(thread) {
            tracing::warn!(thread, %error, "the member of a thread that is no more could not be forgotten");
        }
    }
}

fn let_one_go(config: &StreamsConfig, ids: &ClientIds, thread: usize, member: &str) -> Result<(), String> {
    if config.processing_guarantee == ProcessingGuarantee::ExactlyOnceV2 {
        let producer = TransactionalProducer::new(&config.producer_properties(ids, thread));
        let settled = producer.and_then(|producer| producer.init_transactions(FENCE_MS));
        settled.map_err(|error| format!("its transactions could not be settled: {error}"))?;
    }
    let target = GroupTarget::new(&config.bootstrap_servers, &config.application_id);
    leave_surplus(&target, member).map_err(|error| error.to_string())
}
