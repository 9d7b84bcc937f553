//! A list of headers (`HeadersSerializer`): varint count, and for each varint key length, key, varint value length
//! (−1 for null), value. An empty list is no bytes at all.

use super::io::{CodecError, Reader, invalid, length_i32, put_varint};
use crate::Headers;

const WHAT: &str = "headers";

/// Appends the byte form of headers.
///
/// # Errors
/// When a key or value is longer than 2^31−1 bytes.
pub fn encode_headers(headers: &Headers, out: &mut Vec<u8>) -> Result<(), CodecError> {
    if headers.is_empty() {
        return Ok(());
    }
    put_varint(length_i32(WHAT, headers.len())?, out);
    for header in headers {
        put_varint(length_i32(WHAT, header.key.len())?, out);
        out.extend_from_slice(header.key.as_bytes());
        match &header.value {
            None => put_varint(-1, out),
            Some(value) => {
                put_varint(length_i32(WHAT, value.len())?, out);
                out.extend_from_slice(value);
            }
        }
    }
    Ok(())
}

/// Reads headers; no bytes are no headers.
///
/// # Errors
/// When the bytes are not such a list, or something is left over.
pub fn decode_headers(bytes: &[u8]) -> Result<Headers, CodecError> {
    let mut headers = Headers::default();
    if bytes.is_empty() {
        return Ok(headers);
    }
    let mut reader = Reader::new(WHAT, bytes);
    let count = reader.varint()?;
    for _ in 0..reader.length(count)? {
        let key_length = reader.varint()?;
        let key = reader.utf8(reader.length(key_length)?)?;
        let value = match reader.varint()? {
            -1 => None,
            length => Some(reader.bytes(reader.length(length)?)?),
        };
        headers.add(key, value);
    }
    reader.end()?;
    Ok(headers)
}

/// Appends varint(size of the headers) and the headers.
pub(super) fn encode_sized_headers(headers: &Headers, out: &mut Vec<u8>) -> Result<(), CodecError> {
    if headers.is_empty() {
        out.push(0);
        return Ok(());
    }
    let mut bytes = Vec::new();
    encode_headers(headers, &mut bytes)?;
    put_varint(length_i32(WHAT, bytes.len())?, out);
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Takes varint(size) and that many bytes of headers.
pub(super) fn decode_sized_headers(reader: &mut Reader<'_>) -> Result<Headers, CodecError> {
    let size = reader.varint()?;
    if size < 0 {
        return Err(invalid(WHAT, format!("a size of {size}")));
    }
    decode_headers(reader.bytes(reader.length(size)?)?)
}
