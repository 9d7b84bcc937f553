//! Admin requests, each sent and awaited with a bound. They work over any client, so a consumer can list offsets.

mod handles;

use std::ffi::{CString, c_char};

use handles::{ConfigResource, DeleteTopic, NewTopic, Request};

use super::client::Client;
use super::error::{self, NativeError, code, text};
use super::list::{ListEntry, PartitionList, c_string, read_element, read_list};
use super::sys::{self, b};

/// A result of one item (topic, partition) inside an answer.
pub(crate) type PerItem<T> = (String, Result<T, NativeError>);

/// A topic to be made. Negative numbers leave partitions or replication to the broker.
pub(crate) struct TopicSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) partitions: i32,
    pub(crate) replication_factor: i32,
    pub(crate) configs: &'a [(String, String)],
}

/// What a broker says about a topic.
#[derive(Clone, Debug)]
pub(crate) struct DescribedTopic {
    pub(crate) topic_id: [u8; 16],
    pub(crate) partitions: i32,
    pub(crate) internal: bool,
    /// Numbers of the operations that this client may do with it; none unless they were asked for.
    pub(crate) authorized: Vec<i32>,
}

/// One setting of a topic; `is_default` says that it was not set on the topic itself.
#[derive(Clone, Debug)]
pub(crate) struct ConfigEntry {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) is_default: bool,
}

pub(crate) fn create_topics(
    client: &Client,
    specs: &[TopicSpec<'_>],
    timeout_ms: i32,
) -> Result<Vec<PerItem<()>>, NativeError> {
    let made = specs.iter().map(NewTopic::new).collect::<Result<Vec<_>, _>>()?;
    let mut topics: Vec<_> = made.iter().map(|topic| topic.0.as_ptr()).collect();
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_CREATETOPICS,
        timeout_ms,
    )?;
    // The broker's own waiting for the topics to exist everywhere is part of the bound.
    request.set_operation_timeout(timeout_ms)?;
    // SAFETY: all handles are alive during the call, which copies the specifications.
    unsafe {
        b::rd_kafka_CreateTopics(
            client.as_ptr(),
            topics.as_mut_ptr(),
            topics.len(),
            request.options(),
            request.queue(),
        );
    }
    let event = request.wait()?;
    // SAFETY: the event is alive; a result of the wrong kind would be null.
    unsafe {
        let result = b::rd_kafka_event_CreateTopics_result(event.0.as_ptr());
        let mut count = 0;
        let topics = b::rd_kafka_CreateTopics_result_topics(result, &raw mut count);
        Ok((0..count).map(|index| topic_result(*topics.add(index))).collect())
    }
}

pub(crate) fn delete_topics(client: &Client, names: &[&str], timeout_ms: i32) -> Result<Vec<PerItem<()>>, NativeError> {
    let made = names
        .iter()
        .map(|name| DeleteTopic::new(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut topics: Vec<_> = made.iter().map(|topic| topic.0.as_ptr()).collect();
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETETOPICS,
        timeout_ms,
    )?;
    request.set_operation_timeout(timeout_ms)?;
    // SAFETY: all handles are alive during the call, which copies the names.
    unsafe {
        b::rd_kafka_DeleteTopics(
            client.as_ptr(),
            topics.as_mut_ptr(),
            topics.len(),
            request.options(),
            request.queue(),
        );
    }
    let event = request.wait()?;
    // SAFETY: as in `create_topics`.
    unsafe {
        let result = b::rd_kafka_event_DeleteTopics_result(event.0.as_ptr());
        let mut count = 0;
        let topics = b::rd_kafka_DeleteTopics_result_topics(result, &raw mut count);
        Ok((0..count).map(|index| topic_result(*topics.add(index))).collect())
    }
}

/// # Safety
/// `result` must belong to an event that is alive.
unsafe fn topic_result(result: *const b::rd_kafka_topic_result_t) -> PerItem<()> {
    // SAFETY: the caller vouches for the result; strings are copied.
    unsafe {
        let name = text(b::rd_kafka_topic_result_name(result));
        let code = sys::rd_kafka_topic_result_error(result);
        let said = text(b::rd_kafka_topic_result_error_string(result));
        (name, outcome(code, said))
    }
}

fn outcome(code: i32, said: String) -> Result<(), NativeError> {
    match code {
        code::NO_ERROR => Ok(()),
        _ if said.is_empty() => Err(NativeError::from_code(code)),
        _ => Err(NativeError::new(code, said)),
    }
}

/// Describes topics, with what this client may do with them if `authorized`.
pub(crate) fn describe_topics(
    client: &Client,
    names: &[&str],
    authorized: bool,
    timeout_ms: i32,
) -> Result<Vec<PerItem<DescribedTopic>>, NativeError> {
    let names = names
        .iter()
        .map(|name| c_string(name))
        .collect::<Result<Vec<CString>, _>>()?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS,
        timeout_ms,
    )?;
    // SAFETY: names and handles are alive; the collection copies the names and is freed right after the request.
    unsafe {
        error::take(b::rd_kafka_AdminOptions_set_include_authorized_operations(
            request.options(),
            authorized.into(),
        ))?;
        let topics = b::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        b::rd_kafka_DescribeTopics(client.as_ptr(), topics, request.options(), request.queue());
        b::rd_kafka_TopicCollection_destroy(topics);
    }
    let event = request.wait()?;
    // SAFETY: as in `create_topics`.
    unsafe {
        let result = b::rd_kafka_event_DescribeTopics_result(event.0.as_ptr());
        let mut count = 0;
        let topics = b::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        Ok((0..count).map(|index| described_topic(*topics.add(index))).collect())
    }
}

/// # Safety
/// `topic` must belong to an event that is alive.
unsafe fn described_topic(topic: *const b::rd_kafka_TopicDescription_t) -> PerItem<DescribedTopic> {
    // SAFETY: the caller vouches for the description; everything is copied.
    unsafe {
        let name = text(b::rd_kafka_TopicDescription_name(topic));
        if let Err(error) = error::peek(b::rd_kafka_TopicDescription_error(topic)) {
            return (name, Err(error));
        }
        let mut partitions = 0;
        b::rd_kafka_TopicDescription_partitions(topic, &raw mut partitions);
        let id = b::rd_kafka_TopicDescription_topic_id(topic);
        let mut topic_id = [0; 16];
        if !id.is_null() {
            let bits = (
                b::rd_kafka_Uuid_most_significant_bits(id),
                b::rd_kafka_Uuid_least_significant_bits(id),
            );
            let (high, low) = topic_id.split_at_mut(8);
            high.copy_from_slice(&bits.0.to_be_bytes());
            low.copy_from_slice(&bits.1.to_be_bytes());
        }
        let partitions = i32::try_from(partitions).unwrap_or(i32::MAX);
        let internal = b::rd_kafka_TopicDescription_is_internal(topic) != 0;
        let mut count = 0;
        let operations = b::rd_kafka_TopicDescription_authorized_operations(topic, &raw mut count);
        // As numbers: a newer broker may know an operation that the enum does not have.
        let operation = |index| *operations.cast::<i32>().add(index);
        let authorized = match operations.is_null() {
            true => Vec::new(),
            false => (0..count).map(operation).collect(),
        };
        (
            name,
            Ok(DescribedTopic {
                topic_id,
                partitions,
                internal,
                authorized,
            }),
        )
    }
}

pub(crate) fn describe_topic_configs(
    client: &Client,
    names: &[&str],
    timeout_ms: i32,
) -> Result<Vec<PerItem<Vec<ConfigEntry>>>, NativeError> {
    let made = names
        .iter()
        .map(|name| ConfigResource::of_topic(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut resources: Vec<_> = made.iter().map(|resource| resource.0.as_ptr()).collect();
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
        timeout_ms,
    )?;
    let (array, count) = (resources.as_mut_ptr(), resources.len());
    // SAFETY: all handles are alive during the call, which copies the resources.
    unsafe { b::rd_kafka_DescribeConfigs(client.as_ptr(), array, count, request.options(), request.queue()) };
    let event = request.wait()?;
    // SAFETY: as in `create_topics`.
    unsafe {
        let result = b::rd_kafka_event_DescribeConfigs_result(event.0.as_ptr());
        let mut count = 0;
        let resources = b::rd_kafka_DescribeConfigs_result_resources(result, &raw mut count);
        Ok((0..count)
            .map(|index| described_configs(*resources.add(index)))
            .collect())
    }
}

/// # Safety
/// `resource` must belong to an event that is alive.
unsafe fn described_configs(resource: *const b::rd_kafka_ConfigResource_t) -> PerItem<Vec<ConfigEntry>> {
    // SAFETY: the caller vouches for the resource; everything is copied.
    unsafe {
        let name = text(b::rd_kafka_ConfigResource_name(resource));
        let code = sys::rd_kafka_ConfigResource_error(resource);
        if let Err(error) = outcome(code, text(b::rd_kafka_ConfigResource_error_string(resource))) {
            return (name, Err(error));
        }
        let mut count = 0;
        let entries = b::rd_kafka_ConfigResource_configs(resource, &raw mut count);
        let entries = (0..count).map(|index| {
            let entry = *entries.add(index);
            let value = b::rd_kafka_ConfigEntry_value(entry);
            ConfigEntry {
                name: text(b::rd_kafka_ConfigEntry_name(entry)),
                value: (!value.is_null()).then(|| text(value)),
                is_default: b::rd_kafka_ConfigEntry_is_default(entry) != 0,
            }
        });
        (name, Ok(entries.collect()))
    }
}

/// Deletes the records below the offsets in `before`; answers with the new log starts.
pub(crate) fn delete_records(
    client: &Client,
    before: &PartitionList,
    timeout_ms: i32,
) -> Result<Vec<ListEntry>, NativeError> {
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DELETERECORDS,
        timeout_ms,
    )?;
    request.set_operation_timeout(timeout_ms)?;
    // SAFETY: list and handles are alive; the request copies the list and is freed right after sending.
    unsafe {
        let mut records = b::rd_kafka_DeleteRecords_new(before.as_ptr());
        b::rd_kafka_DeleteRecords(client.as_ptr(), &raw mut records, 1, request.options(), request.queue());
        b::rd_kafka_DeleteRecords_destroy(records);
    }
    let event = request.wait()?;
    // SAFETY: as in `create_topics`.
    unsafe {
        let result = b::rd_kafka_event_DeleteRecords_result(event.0.as_ptr());
        Ok(read_list(b::rd_kafka_DeleteRecords_result_offsets(result)))
    }
}

/// Lists offsets. In `specs` an offset of -2 asks for the start of the log, -1 for its end, and a value ≥ 0 for the
/// first record with at least that timestamp.
pub(crate) fn list_offsets(
    client: &Client,
    specs: &PartitionList,
    read_committed: bool,
    timeout_ms: i32,
) -> Result<Vec<ListEntry>, NativeError> {
    use b::rd_kafka_IsolationLevel_t as I;
    let request = Request::new(
        client,
        b::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTOFFSETS,
        timeout_ms,
    )?;
    let isolation = if read_committed {
        I::RD_KAFKA_ISOLATION_LEVEL_READ_COMMITTED
    } else {
        I::RD_KAFKA_ISOLATION_LEVEL_READ_UNCOMMITTED
    };
    // SAFETY: list and handles are alive during the calls; the request copies the list.
    unsafe {
        error::take(b::rd_kafka_AdminOptions_set_isolation_level(
            request.options(),
            isolation,
        ))?;
        b::rd_kafka_ListOffsets(client.as_ptr(), specs.as_ptr(), request.options(), request.queue());
    }
    let event = request.wait()?;
    // SAFETY: as in `create_topics`.
    unsafe {
        let result = b::rd_kafka_event_ListOffsets_result(event.0.as_ptr());
        let mut count = 0;
        let infos = b::rd_kafka_ListOffsets_result_infos(result, &raw mut count);
        let entry = |index| read_element(b::rd_kafka_ListOffsetsResultInfo_topic_partition(*infos.add(index)));
        Ok((0..count).map(entry).collect())
    }
}
