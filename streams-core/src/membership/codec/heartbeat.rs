//! StreamsGroupHeartbeat v0 and v1: joining, staying, acknowledging and leaving.
//!
//! Source: `StreamsGroupHeartbeatRequest.json`, `StreamsGroupHeartbeatResponse.json`, KIP-1071; version 1 by KIP-1331.

use super::Request;
use super::structs::{Endpoint, EndpointPartitions, KeyValue, TaskLists, TaskOffset, WireStatus, WireTopology};
use super::wire::{Reader, WireError, Writer};

/// Member epoch of a join.
pub const JOIN_EPOCH: i32 = 0;
/// Member epoch of a leave.
pub const LEAVE_EPOCH: i32 = -1;
/// Highest version of this codec.
pub const HIGHEST_VERSION: i16 = 1;

/// A heartbeat. Null means "as last said".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatRequest {
    /// The group (application id).
    pub group_id: String,
    /// The member.
    pub member_id: String,
    /// 0 joins, -1 leaves, otherwise the last epoch received.
    pub member_epoch: i32,
    /// Last endpoint epoch received, -1 at first.
    pub endpoint_epoch: i32,
    /// Static identity; null for dynamic members.
    pub instance_id: Option<String>,
    /// Rack, on join.
    pub rack_id: Option<String>,
    /// Time to give up revoked tasks, milliseconds; -1 except on join.
    pub rebalance_timeout_ms: i32,
    /// The topology; on join and only there.
    pub topology: Option<WireTopology>,
    /// Owned tasks: empty on join, null when unchanged since last said.
    pub tasks: Option<TaskLists>,
    /// The process, on join.
    pub process_id: Option<String>,
    /// Endpoint for queries, on join.
    pub endpoint: Option<Endpoint>,
    /// Client tags, on join.
    pub client_tags: Option<Vec<KeyValue>>,
    /// Offset sums of tasks; brokers accept null.
    pub task_offsets: Option<Vec<TaskOffset>>,
    /// End offset sums of tasks; brokers accept null.
    pub task_end_offsets: Option<Vec<TaskOffset>>,
    /// Asks every member of the group to stop.
    pub shutdown_application: bool,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatResponse {
    /// Milliseconds for which the broker wants silence.
    pub throttle_time_ms: i32,
    /// Error code.
    pub error_code: i16,
    /// Error text.
    pub error_message: Option<String>,
    /// The member.
    pub member_id: String,
    /// Its epoch now; -1 after a leave.
    pub member_epoch: i32,
    /// Time to the next heartbeat, milliseconds.
    pub heartbeat_interval_ms: i32,
    /// Lag in offsets up to which a task counts as caught up.
    pub acceptable_recovery_lag: i64,
    /// How often task offsets are wanted, milliseconds.
    pub task_offset_interval_ms: i32,
    /// Statuses; null leaves the known ones.
    pub status: Option<Vec<WireStatus>>,
    /// The whole assignment, or null when this heartbeat did not change it.
    pub tasks: Option<TaskLists>,
    /// The broker wants the topology's description (v1, with a plugin only).
    pub topology_description_required: bool,
    /// Epoch of the endpoint map.
    pub endpoint_epoch: i32,
    /// The endpoint map, when newer than the epoch in the request.
    pub endpoints: Option<Vec<EndpointPartitions>>,
}

impl HeartbeatRequest {
    /// Reads a request's body; the codec's own tests and recorded frames need it.
    ///
    /// # Errors
    /// [`WireError`] when the bytes are not such a request.
    pub fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let request = Self {
            group_id: bytes.string()?,
            member_id: bytes.string()?,
            member_epoch: bytes.i32()?,
            endpoint_epoch: bytes.i32()?,
            instance_id: bytes.opt_string()?,
            rack_id: bytes.opt_string()?,
            rebalance_timeout_ms: bytes.i32()?,
            topology: bytes.opt_struct()?,
            tasks: TaskLists::read_nullable(bytes)?,
            process_id: bytes.opt_string()?,
            endpoint: bytes.opt_struct()?,
            client_tags: bytes.opt_list()?,
            task_offsets: bytes.opt_list()?,
            task_end_offsets: bytes.opt_list()?,
            shutdown_application: bytes.bool()?,
        };
        bytes.skip_tags()?;
        Ok(request)
    }
}

impl Request for HeartbeatRequest {
    type Response = HeartbeatResponse;
    const API_KEY: i16 = 88;

    /// Both versions have the same body.
    fn write(&self, _version: i16, out: &mut Writer) {
        out.string(&self.group_id);
        out.string(&self.member_id);
        out.i32(self.member_epoch);
        out.i32(self.endpoint_epoch);
        out.opt_string(self.instance_id.as_deref());
        out.opt_string(self.rack_id.as_deref());
        out.i32(self.rebalance_timeout_ms);
        out.opt_struct(self.topology.as_ref());
        TaskLists::write_nullable(self.tasks.as_ref(), out);
        out.opt_string(self.process_id.as_deref());
        out.opt_struct(self.endpoint.as_ref());
        out.opt_list(self.client_tags.as_deref());
        out.opt_list(self.task_offsets.as_deref());
        out.opt_list(self.task_end_offsets.as_deref());
        out.bool(self.shutdown_application);
        out.no_tags();
    }

    fn read_response(version: i16, bytes: &mut Reader<'_>) -> Result<HeartbeatResponse, WireError> {
        HeartbeatResponse::read(version, bytes)
    }
}

impl HeartbeatResponse {
    /// Writes the body; tests and coordinators made for tests need it.
    pub fn write(&self, version: i16, out: &mut Writer) {
        out.i32(self.throttle_time_ms);
        out.i16(self.error_code);
        out.opt_string(self.error_message.as_deref());
        out.string(&self.member_id);
        out.i32(self.member_epoch);
        out.i32(self.heartbeat_interval_ms);
        if version == 0 {
            out.i32(i32::try_from(self.acceptable_recovery_lag).unwrap_or(i32::MAX));
            out.i32(self.task_offset_interval_ms);
        } else {
            out.i32(self.task_offset_interval_ms);
            out.i64(self.acceptable_recovery_lag);
        }
        out.opt_list(self.status.as_deref());
        TaskLists::write_nullable(self.tasks.as_ref(), out);
        if version >= 1 {
            out.bool(self.topology_description_required);
        }
        out.i32(self.endpoint_epoch);
        out.opt_list(self.endpoints.as_deref());
        out.no_tags();
    }

    /// Reads the body. Version 1 moved the recovery lag behind the offset interval and made it an int64.
    fn read(version: i16, bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let mut response = Self {
            throttle_time_ms: bytes.i32()?,
            error_code: bytes.i16()?,
            error_message: bytes.opt_string()?,
            member_id: bytes.string()?,
            member_epoch: bytes.i32()?,
            heartbeat_interval_ms: bytes.i32()?,
            ..Self::default()
        };
        if version == 0 {
            response.acceptable_recovery_lag = i64::from(bytes.i32()?);
            response.task_offset_interval_ms = bytes.i32()?;
        } else {
            response.task_offset_interval_ms = bytes.i32()?;
            response.acceptable_recovery_lag = bytes.i64()?;
        }
        response.status = bytes.opt_list()?;
        response.tasks = TaskLists::read_nullable(bytes)?;
        if version >= 1 {
            response.topology_description_required = bytes.bool()?;
        }
        response.endpoint_epoch = bytes.i32()?;
        response.endpoints = bytes.opt_list()?;
        bytes.skip_tags()?;
        Ok(response)
    }
}
