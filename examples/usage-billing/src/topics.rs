//! The topics: names, partitions, configs.

use anyhow::Result;
use streams_testkit::Kafka;

/// Kept for ever: event times are of 2013, and a broker deletes what is older than its retention.
pub const RETENTION: (&str, &str) = ("retention.ms", "-1");

/// Partitions of every topic but the global one.
pub const PARTITIONS: i32 = 2;

/// The names of the topics, all with a prefix, so that several runs can share a broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

macro_rules! topics {
    ($($(#[$doc:meta])* $method:ident = $name:literal, $cleanup:literal, $partitions:expr;)*) => {
        impl Names {
            $($(#[$doc])*
            pub fn $method(&self) -> String {
                format!("{}{}", self.prefix, $name)
            })*

            /// Every topic: name, cleanup policy, partitions.
            pub fn all(&self) -> Vec<(String, &'static str, i32)> {
                vec![$((self.$method(), $cleanup, $partitions)),*]
            }
        }
    };
}

topics! {
    /// Aircraft by tail number.
    planes = "planes", "compact", PARTITIONS;
    /// Airlines by code; read whole by every instance.
    airlines = "airlines", "compact", 1;
    /// Departures as they arrive.
    raw = "departures.raw", "delete", PARTITIONS;
    /// Departures in the form that is billed.
    normalized = "usage.normalized", "delete", PARTITIONS;
    /// Departures that never left.
    cancelled = "departures.cancelled", "delete", PARTITIONS;
    /// Records that can't be decoded.
    dead_letters = "billing.dlq", "delete", PARTITIONS;
    /// Departures with their charge.
    events = "billing.events", "delete", PARTITIONS;
    /// Totals by carrier, origin and day.
    daily = "billing.daily", "compact", PARTITIONS;
    /// Totals by carrier and month.
    invoices = "billing.invoice-candidates", "compact", PARTITIONS;
}

impl Names {
    /// Names that begin with `prefix`, which may be empty.
    pub fn with_prefix(prefix: &str) -> Self {
        Names {
            prefix: prefix.to_owned(),
        }
    }

    /// The application's id.
    pub fn application_id(&self) -> String {
        format!("{}usage-billing", self.prefix)
    }

    /// What the application's group commits offsets of: its inputs and its repartition topics.
    pub fn inputs(&self) -> Vec<String> {
        let repartitions =
            ["by-tail", "by-origin", "by-month"].map(|name| format!("{}-{name}-repartition", self.application_id()));
        let mut inputs = vec![self.raw(), self.planes()];
        inputs.extend(repartitions);
        inputs
    }

    /// Makes the topics that are not there yet.
    ///
    /// # Errors
    /// When the broker refuses.
    pub fn create(&self, kafka: &Kafka) -> Result<()> {
        let there = kafka.topics().list()?;
        for (name, cleanup, partitions) in self.all() {
            if !there.contains(&name) {
                kafka.create_topic(&name, partitions, &[("cleanup.policy", cleanup), RETENTION])?;
            }
        }
        Ok(())
    }
}
