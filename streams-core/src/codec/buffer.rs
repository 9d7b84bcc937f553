//! Changelog values of suppress and grace buffers (`BufferValue`, `ProcessorRecordContext`,
//! `TimeOrderedKeyValueBufferChangelogDeserializationHelper`).

use super::io::{CodecError, Reader, invalid, length_i32, put_nullable};
use crate::Headers;

/// The header of a suppress changelog record that names the value's version.
pub const SUPPRESS_VERSION_HEADER: &str = "v";
/// The version that is written.
pub const SUPPRESS_VERSION_VALUE: [u8; 1] = [3];
/// In the place of the old value's length: it equals the prior one.
const SAME_AS_PRIOR: i32 = -2;

/// Where and when a buffered record came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordContext {
    /// Event time, ms since the Unix epoch.
    pub timestamp_ms: i64,
    /// The input record's offset.
    pub offset: i64,
    /// The input topic.
    pub topic: String,
    /// The input partition.
    pub partition: i32,
    /// The record's headers.
    pub headers: Headers,
}

impl RecordContext {
    const WHAT: &'static str = "record context";

    /// Appends `time8 offset8 length4 topic partition4 headers4 {length4 key length4 value}*`.
    ///
    /// # Errors
    /// When a length exceeds 2^31−1.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        put_nullable(Self::WHAT, Some(self.topic.as_bytes()), out)?;
        out.extend_from_slice(&self.partition.to_be_bytes());
        out.extend_from_slice(&length_i32(Self::WHAT, self.headers.len())?.to_be_bytes());
        for header in &self.headers {
            put_nullable(Self::WHAT, Some(header.key.as_bytes()), out)?;
            put_nullable(Self::WHAT, header.value.as_deref(), out)?;
        }
        Ok(())
    }

    /// Reads a context that is all there is.
    ///
    /// # Errors
    /// When the bytes end early or are not a context.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(Self::WHAT, bytes);
        let context = Self::read(&mut reader)?;
        reader.end()?;
        Ok(context)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, CodecError> {
        let timestamp_ms = reader.i64()?;
        let offset = reader.i64()?;
        let topic = reader.text()?.to_owned();
        let partition = reader.i32()?;
        let mut headers = Headers::default();
        // Older versions wrote −1 for no headers.
        for _ in 0..reader.i32()?.max(0) {
            let key = reader.text()?;
            headers.add(key, reader.nullable()?);
        }
        Ok(RecordContext {
            timestamp_ms,
            offset,
            topic,
            partition,
            headers,
        })
    }
}

/// A buffered update: its old and new value, and the value that downstream saw before it was buffered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedValue {
    /// The record that made the update.
    pub context: RecordContext,
    /// What downstream saw last.
    pub prior: Option<Vec<u8>>,
    /// The update's old value.
    pub old: Option<Vec<u8>>,
    /// The update's new value.
    pub new: Option<Vec<u8>>,
    /// The time by which the buffer is ordered, ms.
    pub time_ms: i64,
}

impl BufferedValue {
    const WHAT: &'static str = "buffered value";

    /// Appends version 3: `context ++ prior ++ old ++ new ++ time8`.
    ///
    /// # Errors
    /// When a length exceeds 2^31−1.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.context.encode(out)?;
        put_nullable(Self::WHAT, self.prior.as_deref(), out)?;
        if self.old.is_some() && self.old == self.prior {
            out.extend_from_slice(&SAME_AS_PRIOR.to_be_bytes());
        } else {
            put_nullable(Self::WHAT, self.old.as_deref(), out)?;
        }
        put_nullable(Self::WHAT, self.new.as_deref(), out)?;
        out.extend_from_slice(&self.time_ms.to_be_bytes());
        Ok(())
    }

    /// Reads a changelog value of any version. `version` is the value of the header
    /// [`SUPPRESS_VERSION_HEADER`]; `None` is version 0, whose context is the changelog record's own, `record`.
    /// `buffered_prior` is the prior value of this key if it is buffered already: versions 0 and 1 do not carry it.
    ///
    /// # Errors
    /// When the version is unknown or the bytes are not of that version.
    pub fn decode(
        version: Option<&[u8]>,
        bytes: &[u8],
        record: &RecordContext,
        buffered_prior: Option<&[u8]>,
    ) -> Result<Self, CodecError> {
        match version {
            Some([3]) => Self::read_v3(bytes),
            // Java 2.4.0, 2.4.1 and 2.5.0 wrote version 3 under the name of 2.
            Some([2]) => Self::read_v2(bytes).or_else(|_| Self::read_v3(bytes)),
            Some([1]) => {
                let mut reader = Reader::new(Self::WHAT, bytes);
                let time_ms = reader.i64()?;
                let context = RecordContext::read(&mut reader)?;
                let (old, new) = old_and_new(&mut reader)?;
                reader.end()?;
                Ok(Self::without_prior(context, old, new, time_ms, buffered_prior))
            }
            None => {
                let mut reader = Reader::new(Self::WHAT, bytes);
                let time_ms = reader.i64()?;
                let (old, new) = (reader.nullable()?, reader.nullable()?);
                reader.end()?;
                Ok(Self::without_prior(record.clone(), old, new, time_ms, buffered_prior))
            }
            Some(other) => Err(invalid(
                Self::WHAT,
                format!("version {other:?}, which is not known here"),
            )),
        }
    }

    /// Reads the value of a grace buffer's changelog record: version 3 without a version header.
    ///
    /// # Errors
    /// When the bytes are not of that version.
    pub fn decode_grace(bytes: &[u8]) -> Result<Self, CodecError> {
        Self::read_v3(bytes)
    }

    fn read_v3(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(Self::WHAT, bytes);
        let context = RecordContext::read(&mut reader)?;
        let prior = reader.nullable()?;
        let old = match reader.peek_i32()? {
            SAME_AS_PRIOR => {
                reader.i32()?;
                prior
            }
            _ => reader.nullable()?,
        };
        let new = reader.nullable()?;
        let time_ms = reader.i64()?;
        reader.end()?;
        Ok(BufferedValue {
            context,
            prior: owned(prior),
            old: owned(old),
            new: owned(new),
            time_ms,
        })
    }

    fn read_v2(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(Self::WHAT, bytes);
        let context = RecordContext::read(&mut reader)?;
        let (old, new) = old_and_new(&mut reader)?;
        let prior = reader.nullable()?;
        let time_ms = reader.i64()?;
        reader.end()?;
        Ok(BufferedValue {
            context,
            prior: owned(prior),
            old: owned(old),
            new: owned(new),
            time_ms,
        })
    }

    fn without_prior(
        context: RecordContext,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        time_ms: i64,
        buffered_prior: Option<&[u8]>,
    ) -> Self {
        let prior = owned(buffered_prior.or(old));
        BufferedValue {
            context,
            prior,
            old: owned(old),
            new: owned(new),
            time_ms,
        }
    }
}

fn owned(bytes: Option<&[u8]>) -> Option<Vec<u8>> {
    bytes.map(<[u8]>::to_vec)
}

type OldAndNew<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// `nullable( old ++ new )`, as versions 1 and 2 nest them.
fn old_and_new<'a>(reader: &mut Reader<'a>) -> Result<OldAndNew<'a>, CodecError> {
    let Some(inner) = reader.nullable()? else {
        return Ok((None, None));
    };
    let mut inner = Reader::new(BufferedValue::WHAT, inner);
    let pair = (inner.nullable()?, inner.nullable()?);
    inner.end()?;
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> RecordContext {
        RecordContext {
            timestamp_ms: 1,
            offset: 2,
            topic: "in".into(),
            partition: 3,
            headers: Headers::default(),
        }
    }

    fn nested(old: Option<&[u8]>, new: Option<&[u8]>) -> Vec<u8> {
        let mut inner = Vec::new();
        put_nullable("test", old, &mut inner).unwrap();
        put_nullable("test", new, &mut inner).unwrap();
        inner
    }

    fn value(prior: &[u8]) -> BufferedValue {
        let (old, new) = (Some(b"o".to_vec()), Some(b"n".to_vec()));
        BufferedValue {
            context: context(),
            prior: Some(prior.to_vec()),
            old,
            new,
            time_ms: 9,
        }
    }

    #[test]
    fn older_versions_are_read() {
        let v0 = [&9i64.to_be_bytes()[..], &nested(Some(b"o"), Some(b"n"))].concat();
        assert_eq!(BufferedValue::decode(None, &v0, &context(), None), Ok(value(b"o")));
        assert_eq!(
            BufferedValue::decode(None, &v0, &context(), Some(b"p")),
            Ok(value(b"p"))
        );

        let mut v1 = 9i64.to_be_bytes().to_vec();
        context().encode(&mut v1).unwrap();
        put_nullable("test", Some(&nested(Some(b"o"), Some(b"n"))), &mut v1).unwrap();
        assert_eq!(
            BufferedValue::decode(Some(&[1]), &v1, &context(), Some(b"p")),
            Ok(value(b"p"))
        );

        let mut v2 = Vec::new();
        context().encode(&mut v2).unwrap();
        put_nullable("test", Some(&nested(Some(b"o"), Some(b"n"))), &mut v2).unwrap();
        put_nullable("test", Some(b"p"), &mut v2).unwrap();
        v2.extend_from_slice(&9i64.to_be_bytes());
        assert_eq!(
            BufferedValue::decode(Some(&[2]), &v2, &context(), None),
            Ok(value(b"p"))
        );
    }

    #[test]
    fn version_3_under_the_name_of_2_is_read() {
        let mut v3 = Vec::new();
        value(b"p").encode(&mut v3).unwrap();
        assert_eq!(
            BufferedValue::decode(Some(&[2]), &v3, &context(), None),
            Ok(value(b"p"))
        );
        assert!(BufferedValue::decode(Some(&[4]), &v3, &context(), None).is_err());
    }
}
