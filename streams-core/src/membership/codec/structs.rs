//! The structs that several streams-group messages share.
//!
//! Source: `StreamsGroupHeartbeatRequest.json`, `StreamsGroupHeartbeatResponse.json`, `StreamsGroupDescribeResponse.json`.

use super::wire::{Reader, Wire, WireError, Writer};

/// Writes the `Wire` implementation of a struct whose fields follow one another in the order given, all versions alike.
macro_rules! wire_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty => $method:ident $(by $borrow:tt)?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl Wire for $name {
            fn write(&self, out: &mut Writer) {
                $(out.$method($($borrow)? self.$field);)+
                out.no_tags();
            }

            fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
                let value = Self { $($field: bytes.$method()?,)+ };
                bytes.skip_tags()?;
                Ok(value)
            }
        }
    };
}

wire_struct! {
    /// A configuration or tag: a key with its value.
    KeyValue {
        /// The key.
        key: String => string by &,
        /// The value.
        value: String => string by &,
    }
}

wire_struct! {
    /// Where a member answers queries (`application.server`).
    Endpoint {
        /// Host name or address.
        host: String => string by &,
        /// Port.
        port: u16 => u16,
    }
}

wire_struct! {
    /// Tasks of one sub-topology.
    TaskIds {
        /// Decimal number of the sub-topology.
        subtopology_id: String => string by &,
        /// Partitions.
        partitions: Vec<i32> => list by &,
    }
}

wire_struct! {
    /// Sum of changelog offsets of a task.
    TaskOffset {
        /// Decimal number of the sub-topology.
        subtopology_id: String => string by &,
        /// Partition.
        partition: i32 => i32,
        /// Sum of the offsets.
        offset: i64 => i64,
    }
}

wire_struct! {
    /// An internal topic that the broker makes.
    WireTopicInfo {
        /// Full name.
        name: String => string by &,
        /// Number of partitions; 0 leaves it to the broker.
        partitions: i32 => i32,
        /// Replication factor; -1 is the broker's default.
        replication_factor: i16 => i16,
        /// Topic configs.
        configs: Vec<KeyValue> => list by &,
    }
}

wire_struct! {
    /// Topics that need equal partition counts, as indices into the lists of their sub-topology.
    WireCopartitionGroup {
        /// Indices into the source topics.
        source_topics: Vec<i16> => list by &,
        /// Indices into the source patterns; always empty, brokers refuse patterns.
        source_topic_regex: Vec<i16> => list by &,
        /// Indices into the repartition source topics.
        repartition_source_topics: Vec<i16> => list by &,
    }
}

wire_struct! {
    /// A sub-topology as a joining member sends it.
    WireSubtopology {
        /// Decimal number.
        id: String => string by &,
        /// External source topics.
        source_topics: Vec<String> => list by &,
        /// Source patterns; always empty, brokers refuse them.
        source_topic_regex: Vec<String> => list by &,
        /// Changelog topics.
        state_changelog_topics: Vec<WireTopicInfo> => list by &,
        /// Repartition topics it writes to.
        repartition_sink_topics: Vec<String> => list by &,
        /// Repartition topics it reads from.
        repartition_source_topics: Vec<WireTopicInfo> => list by &,
        /// Co-partition groups.
        copartition_groups: Vec<WireCopartitionGroup> => list by &,
    }
}

wire_struct! {
    /// The topology as a joining member sends it.
    WireTopology {
        /// Topology epoch; 0, as Java's client always sends.
        epoch: i32 => i32,
        /// The sub-topologies, sorted by id as text.
        subtopologies: Vec<WireSubtopology> => list by &,
    }
}

wire_struct! {
    /// Partitions of a topic.
    TopicPartitions {
        /// The topic.
        topic: String => string by &,
        /// Its partitions.
        partitions: Vec<i32> => list by &,
    }
}

wire_struct! {
    /// Source partitions of the tasks of the members with one endpoint.
    EndpointPartitions {
        /// The endpoint.
        endpoint: Endpoint => nested by &,
        /// Source partitions of active tasks.
        active: Vec<TopicPartitions> => list by &,
        /// Source partitions of standby tasks.
        standby: Vec<TopicPartitions> => list by &,
    }
}

wire_struct! {
    /// A status that the coordinator reports.
    WireStatus {
        /// Status code.
        code: i8 => i8,
        /// Text.
        detail: String => string by &,
    }
}

wire_struct! {
    /// The task lists of a member.
    TaskLists {
        /// Active tasks.
        active: Vec<TaskIds> => list by &,
        /// Standby tasks.
        standby: Vec<TaskIds> => list by &,
        /// Warm-up tasks.
        warmup: Vec<TaskIds> => list by &,
    }
}

impl TaskLists {
    /// Writes the lists the way heartbeats have them: three nullable arrays, no struct around.
    pub(super) fn write_nullable(lists: Option<&Self>, out: &mut Writer) {
        out.opt_list(lists.map(|lists| lists.active.as_slice()));
        out.opt_list(lists.map(|lists| lists.standby.as_slice()));
        out.opt_list(lists.map(|lists| lists.warmup.as_slice()));
    }

    /// Reads what [`Self::write_nullable`] writes. A mixture of null and non-null lists has no meaning
    /// (`StreamsMembershipManager` throws there) and is an error.
    pub(super) fn read_nullable(bytes: &mut Reader<'_>) -> Result<Option<Self>, WireError> {
        match (bytes.opt_list()?, bytes.opt_list()?, bytes.opt_list()?) {
            (Some(active), Some(standby), Some(warmup)) => Ok(Some(Self {
                active,
                standby,
                warmup,
            })),
            (None, None, None) => Ok(None),
            _ => Err(WireError::Impossible {
                what: "mixture of null and present task lists",
                value: 0,
                at: 0,
            }),
        }
    }
}
