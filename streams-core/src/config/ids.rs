//! Names of groups, threads and clients (`KafkaStreams`, `StreamThread`, `ClientUtils`, `ActiveTaskCreator`).

use super::StreamsConfig;

/// The names that one process uses. Threads are counted from 1.
///
/// ```
/// use streams_core::config::{ClientIds, StreamsConfig};
/// let ids = ClientIds::new(&StreamsConfig::new("app", "localhost:9092"), "p1");
/// assert_eq!(ids.main_consumer(1), "app-p1-StreamThread-1-consumer");
/// assert_eq!(ids.transactional_id(1), "app-p1-1");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIds {
    application_id: String,
    process_id: String,
    client_id: String,
}

impl ClientIds {
    /// The names of a process. `process_id` is the settled one: given, or kept in the state directory.
    #[must_use]
    pub fn new(config: &StreamsConfig, process_id: &str) -> Self {
        let given = config.client_id.clone().filter(|id| !id.is_empty());
        ClientIds {
            application_id: config.application_id.clone(),
            process_id: process_id.to_owned(),
            client_id: given.unwrap_or_else(|| format!("{}-{process_id}", config.application_id)),
        }
    }

    /// What the ids of all clients begin with: `client.id`, else `<application.id>-<process id>`.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The name of a stream thread.
    #[must_use]
    pub fn stream_thread(&self, thread: usize) -> String {
        format!("{}-StreamThread-{thread}", self.client_id)
    }

    /// The name of the thread that restores stores.
    #[must_use]
    pub fn state_updater(&self, thread: usize) -> String {
        format!("{}-StateUpdater-{thread}", self.client_id)
    }

    /// The name of the thread that keeps global stores up to date.
    #[must_use]
    pub fn global_thread(&self) -> String {
        format!("{}-GlobalStreamThread", self.client_id)
    }

    /// The name of the thread that cleans up state of tasks that are elsewhere.
    #[must_use]
    pub fn cleanup_thread(&self) -> String {
        format!("{}-CleanupThread", self.client_id)
    }

    /// The client id of a stream thread's consumer.
    #[must_use]
    pub fn main_consumer(&self, thread: usize) -> String {
        format!("{}-consumer", self.stream_thread(thread))
    }

    /// The client id of a restoring consumer.
    #[must_use]
    pub fn restore_consumer(&self, thread: usize) -> String {
        format!("{}-restore-consumer", self.state_updater(thread))
    }

    /// The client id of the consumer of global stores.
    #[must_use]
    pub fn global_consumer(&self) -> String {
        format!("{}-global-consumer", self.global_thread())
    }

    /// The client id of a stream thread's producer.
    #[must_use]
    pub fn producer(&self, thread: usize) -> String {
        format!("{}-producer", self.stream_thread(thread))
    }

    /// The client id of the admin client.
    #[must_use]
    pub fn admin(&self) -> String {
        format!("{}-admin", self.client_id)
    }

    /// The transactional id of a stream thread's producer: `<application.id>-<process id>-<thread>`.
    #[must_use]
    pub fn transactional_id(&self, thread: usize) -> String {
        format!("{}-{}-{thread}", self.application_id, self.process_id)
    }
}
