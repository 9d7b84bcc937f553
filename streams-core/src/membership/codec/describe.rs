//! StreamsGroupDescribe v0 and v1: what the coordinator has stored about a group.
//!
//! Source: `StreamsGroupDescribeRequest.json`, `StreamsGroupDescribeResponse.json`, KIP-1071.

use super::Request;
use super::structs::{Endpoint, KeyValue, TaskLists, TaskOffset, WireTopicInfo};
use super::wire::{Reader, Wire, WireError, Writer};

/// Highest version of this codec.
pub const HIGHEST_VERSION: i16 = 1;

/// Asks about one group, without authorized operations and without the topology's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeRequest {
    /// The group.
    pub group_id: String,
}

/// A group as its coordinator sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedGroup {
    /// Error code; everything but the id is then empty.
    pub error_code: i16,
    /// Error text.
    pub error_message: Option<String>,
    /// The group.
    pub group_id: String,
    /// Empty, NotReady, Assigning, Reconciling, Stable or Dead.
    pub state: String,
    /// Group epoch.
    pub group_epoch: i32,
    /// Epoch of the target assignment.
    pub assignment_epoch: i32,
    /// The topology.
    pub topology: Option<DescribedTopology>,
    /// The members.
    pub members: Vec<DescribedMember>,
    /// The assignor that computes the next assignment (v1).
    pub assignor_name: Option<String>,
}

/// The stored topology. Partition counts are those in force, not those that were sent; co-partition groups are not told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedTopology {
    /// Topology epoch.
    pub epoch: i32,
    /// Null while source topics are missing or wrongly partitioned.
    pub subtopologies: Option<Vec<DescribedSubtopology>>,
}

/// A sub-topology of the stored topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedSubtopology {
    /// Decimal number.
    pub id: String,
    /// External source topics.
    pub source_topics: Vec<String>,
    /// Repartition topics it writes to.
    pub repartition_sink_topics: Vec<String>,
    /// Changelog topics.
    pub state_changelog_topics: Vec<WireTopicInfo>,
    /// Repartition topics it reads from.
    pub repartition_source_topics: Vec<WireTopicInfo>,
}

/// A member of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribedMember {
    /// Member id.
    pub member_id: String,
    /// Its epoch.
    pub member_epoch: i32,
    /// Static identity.
    pub instance_id: Option<String>,
    /// Rack.
    pub rack_id: Option<String>,
    /// Client id.
    pub client_id: String,
    /// Address it speaks from.
    pub client_host: String,
    /// Its topology epoch.
    pub topology_epoch: i32,
    /// Its process.
    pub process_id: String,
    /// Its endpoint.
    pub endpoint: Option<Endpoint>,
    /// Its tags.
    pub client_tags: Vec<KeyValue>,
    /// The tasks it has.
    pub assignment: TaskLists,
    /// The tasks it shall have.
    pub target_assignment: TaskLists,
}

impl Request for DescribeRequest {
    /// One entry per asked group.
    type Response = Vec<DescribedGroup>;
    const API_KEY: i16 = 89;

    fn write(&self, version: i16, out: &mut Writer) {
        out.list(std::slice::from_ref(&self.group_id));
        out.bool(false);
        if version >= 1 {
            out.bool(false);
        }
        out.no_tags();
    }

    fn read_response(version: i16, bytes: &mut Reader<'_>) -> Result<Vec<DescribedGroup>, WireError> {
        let _throttle_time_ms = bytes.i32()?;
        let groups = if version == 0 {
            bytes.list::<InVersion<0>>()?.into_iter().map(|group| group.0).collect()
        } else {
            bytes.list::<InVersion<1>>()?.into_iter().map(|group| group.0).collect()
        };
        bytes.skip_tags()?;
        Ok(groups)
    }
}

/// A group in the form of one message version.
struct InVersion<const VERSION: i16>(DescribedGroup);

impl<const VERSION: i16> Wire for InVersion<VERSION> {
    fn write(&self, out: &mut Writer) {
        self.0.write(VERSION, out);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        DescribedGroup::read(VERSION, bytes).map(Self)
    }
}

/// `AuthorizedOperations` when they were not asked for.
const NOT_ASKED: i32 = i32::MIN;

impl DescribedGroup {
    /// Writes the group; tests and coordinators made for tests need it.
    pub fn write(&self, version: i16, out: &mut Writer) {
        out.i16(self.error_code);
        out.opt_string(self.error_message.as_deref());
        out.string(&self.group_id);
        out.string(&self.state);
        out.i32(self.group_epoch);
        out.i32(self.assignment_epoch);
        out.opt_struct(self.topology.as_ref());
        out.list(&self.members);
        out.i32(NOT_ASKED);
        if version >= 1 {
            // No description of the topology, because it was not asked for (status 0).
            out.i8(-1);
            out.i8(0);
            out.opt_string(self.assignor_name.as_deref());
        }
        out.no_tags();
    }

    fn read(version: i16, bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut group = Self {
            error_code: bytes.i16()?,
            error_message: bytes.opt_string()?,
            group_id: bytes.string()?,
            state: bytes.string()?,
            group_epoch: bytes.i32()?,
            assignment_epoch: bytes.i32()?,
            topology: bytes.opt_struct()?,
            members: bytes.list()?,
            assignor_name: None,
        };
        let _authorized_operations = bytes.i32()?;
        if version >= 1 {
            let flag = bytes.i8()?;
            if flag != -1 {
                let value = i64::from(flag);
                return Err(WireError::Impossible {
                    what: "topology description that was not asked for",
                    value,
                    at: 0,
                });
            }
            let _description_status = bytes.i8()?;
            group.assignor_name = bytes.opt_string()?;
        }
        bytes.skip_tags()?;
        Ok(group)
    }
}

impl Wire for DescribedTopology {
    fn write(&self, out: &mut Writer) {
        out.i32(self.epoch);
        out.opt_list(self.subtopologies.as_deref());
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let topology = Self {
            epoch: bytes.i32()?,
            subtopologies: bytes.opt_list()?,
        };
        bytes.skip_tags()?;
        Ok(topology)
    }
}

impl Wire for DescribedSubtopology {
    fn write(&self, out: &mut Writer) {
        out.string(&self.id);
        out.list(&self.source_topics);
        out.list(&self.repartition_sink_topics);
        out.list(&self.state_changelog_topics);
        out.list(&self.repartition_source_topics);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let subtopology = Self {
            id: bytes.string()?,
            source_topics: bytes.list()?,
            repartition_sink_topics: bytes.list()?,
            state_changelog_topics: bytes.list()?,
            repartition_source_topics: bytes.list()?,
        };
        bytes.skip_tags()?;
        Ok(subtopology)
    }
}

impl Wire for DescribedMember {
    fn write(&self, out: &mut Writer) {
        out.string(&self.member_id);
        out.i32(self.member_epoch);
        out.opt_string(self.instance_id.as_deref());
        out.opt_string(self.rack_id.as_deref());
        out.string(&self.client_id);
        out.string(&self.client_host);
        out.i32(self.topology_epoch);
        out.string(&self.process_id);
        out.opt_struct(self.endpoint.as_ref());
        out.list(&self.client_tags);
        out.list::<TaskOffset>(&[]);
        out.list::<TaskOffset>(&[]);
        out.nested(&self.assignment);
        out.nested(&self.target_assignment);
        out.bool(false);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut member = Self {
            member_id: bytes.string()?,
            member_epoch: bytes.i32()?,
            instance_id: bytes.opt_string()?,
            rack_id: bytes.opt_string()?,
            client_id: bytes.string()?,
            client_host: bytes.string()?,
            topology_epoch: bytes.i32()?,
            process_id: bytes.string()?,
            endpoint: bytes.opt_struct()?,
            client_tags: bytes.list()?,
            ..Self::default()
        };
        let _task_offsets: Vec<TaskOffset> = bytes.list()?;
        let _task_end_offsets: Vec<TaskOffset> = bytes.list()?;
        member.assignment = bytes.nested()?;
        member.target_assignment = bytes.nested()?;
        let _is_classic = bytes.bool()?;
        bytes.skip_tags()?;
        Ok(member)
    }
}
