//! Lists of topic partitions with offsets.

use std::ffi::CString;
use std::ptr::NonNull;

use super::client::Client;
use super::error::{NativeError, code, text};
use super::sys::{self, b};

/// One element of a list: what goes in, or what came back.
#[derive(Clone, Debug)]
pub(crate) struct ListEntry {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) metadata: Option<String>,
    pub(crate) code: i32,
}

/// An owned `rd_kafka_topic_partition_list_t`.
pub(crate) struct PartitionList(NonNull<b::rd_kafka_topic_partition_list_t>);

// SAFETY: the list is plain memory with one owner.
unsafe impl Send for PartitionList {}

impl PartitionList {
    pub(crate) fn with_capacity(capacity: usize) -> Result<Self, NativeError> {
        // SAFETY: a plain allocation; null is checked.
        let list = unsafe { b::rd_kafka_topic_partition_list_new(i32::try_from(capacity).unwrap_or(i32::MAX)) };
        NonNull::new(list)
            .map(PartitionList)
            .ok_or_else(|| NativeError::from_code(code::FAIL))
    }

    /// Appends a partition with an offset. A negative leader epoch is "unknown".
    pub(crate) fn add(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        leader_epoch: i32,
    ) -> Result<(), NativeError> {
        self.push(topic, partition, offset, leader_epoch).map(drop)
    }

    /// Appends a partition with an offset and the metadata to commit; empty metadata is sent as Kafka's empty string.
    pub(crate) fn add_commit(
        &mut self,
        client: &Client,
        topic: &str,
        partition: i32,
        offset: i64,
        leader_epoch: i32,
        metadata: &str,
    ) -> Result<(), NativeError> {
        let element = self.push(topic, partition, offset, leader_epoch)?;
        if metadata.is_empty() {
            return Ok(());
        }
        // SAFETY: the list frees its elements' metadata with librdkafka's allocator, so it must come from there; the
        // new block has the length of the text, and `element` was just made by this list.
        unsafe {
            let copy = b::rd_kafka_mem_malloc(client.as_ptr(), metadata.len());
            if copy.is_null() {
                return Err(NativeError::from_code(code::FAIL));
            }
            copy.cast::<u8>()
                .copy_from_nonoverlapping(metadata.as_ptr(), metadata.len());
            (*element).metadata = copy;
            (*element).metadata_size = metadata.len();
        }
        Ok(())
    }

    fn push(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
        leader_epoch: i32,
    ) -> Result<*mut sys::TopicPartition, NativeError> {
        let name = c_string(topic)?;
        // SAFETY: the list is alive and the name is copied by the call; the element it returns stays valid until the
        // next change of the list, which needs `&mut self`.
        unsafe {
            let element = b::rd_kafka_topic_partition_list_add(self.0.as_ptr(), name.as_ptr(), partition);
            if leader_epoch >= 0 {
                b::rd_kafka_topic_partition_set_leader_epoch(element, leader_epoch);
            }
            let element = element.cast::<sys::TopicPartition>();
            (*element).offset = offset;
            Ok(element)
        }
    }

    pub(super) fn as_ptr(&self) -> *mut b::rd_kafka_topic_partition_list_t {
        self.0.as_ptr()
    }

    /// Copies of all elements.
    pub(crate) fn entries(&self) -> Vec<ListEntry> {
        // SAFETY: the list is alive during the call.
        unsafe { read_list(self.0.as_ptr()) }
    }
}

impl Drop for PartitionList {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { b::rd_kafka_topic_partition_list_destroy(self.0.as_ptr()) }
    }
}

/// Copies the elements of a list; null is the empty list.
///
/// # Safety
/// `list` must be null or valid during the call.
pub(super) unsafe fn read_list(list: *const b::rd_kafka_topic_partition_list_t) -> Vec<ListEntry> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: `elems` points to `cnt` initialized elements; the mirror type has their layout.
    unsafe {
        let count = usize::try_from((*list).cnt).unwrap_or(0);
        let elements = (*list).elems;
        (0..count).map(|index| read_element(elements.add(index))).collect()
    }
}

/// Copies one element.
///
/// # Safety
/// `element` must be valid during the call.
pub(super) unsafe fn read_element(element: *const b::rd_kafka_topic_partition_t) -> ListEntry {
    // SAFETY: the caller vouches for the element; strings and metadata are copied.
    unsafe {
        let leader_epoch = b::rd_kafka_topic_partition_get_leader_epoch(element);
        let element = &*element.cast::<sys::TopicPartition>();
        let metadata = (!element.metadata.is_null()).then(|| {
            let bytes = std::slice::from_raw_parts(element.metadata.cast::<u8>(), element.metadata_size);
            String::from_utf8_lossy(bytes).into_owned()
        });
        ListEntry {
            topic: text(element.topic),
            partition: element.partition,
            offset: element.offset,
            leader_epoch,
            metadata,
            code: element.err,
        }
    }
}

/// A C string of a name; a NUL inside is refused.
pub(super) fn c_string(name: &str) -> Result<CString, NativeError> {
    CString::new(name).map_err(|_| NativeError::new(code::INVALID_ARG, format!("{name:?} contains a NUL character")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn entries_are_what_was_added() {
        let mut list = PartitionList::with_capacity(1).unwrap();
        list.add("a", 3, 42, 7).unwrap();
        list.add("b", 0, 0, -1).unwrap();
        let entries: Vec<_> = list
            .entries()
            .into_iter()
            .map(|e| (e.topic, e.partition, e.offset, e.leader_epoch))
            .collect();
        assert_eq!(entries, [("a".to_owned(), 3, 42, 7), ("b".to_owned(), 0, 0, -1)]);
        assert_eq!(list.add("a\0b", 0, 0, -1).unwrap_err().code, code::INVALID_ARG);
    }
}
