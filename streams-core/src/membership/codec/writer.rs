//! Writing of the primitive types of Kafka's protocol, flexible (compact) forms first.

use super::wire::Wire;

/// Collects a message.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes written so far.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// int8.
    pub fn i8(&mut self, value: i8) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// int16.
    pub fn i16(&mut self, value: i16) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// uint16.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// int32.
    pub fn i32(&mut self, value: i32) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// int64.
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend(value.to_be_bytes());
    }

    /// boolean.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Unsigned varint, seven bits a byte, lowest first.
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Length of a compact string, array or of bytes: length + 1.
    fn compact_len(&mut self, len: usize) {
        self.uvarint(u32::try_from(len).unwrap_or(u32::MAX - 1) + 1);
    }

    /// Compact string.
    pub fn string(&mut self, value: &str) {
        self.compact_len(value.len());
        self.bytes.extend(value.as_bytes());
    }

    /// Compact nullable string; null is length 0.
    pub fn opt_string(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.string(value),
            None => self.bytes.push(0),
        }
    }

    /// String with an int16 length, as request headers have it. Longer than an int16 can say: cut at a character.
    pub fn short_string(&mut self, value: &str) {
        let mut end = value.len().min(i16::MAX as usize);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        let value = value.get(..end).unwrap_or_default();
        self.i16(i16::try_from(value.len()).unwrap_or(0));
        self.bytes.extend(value.as_bytes());
    }

    /// Compact array of `items`.
    pub fn list<T: Wire>(&mut self, items: &[T]) {
        self.compact_len(items.len());
        for item in items {
            item.write(self);
        }
    }

    /// Compact nullable array.
    pub fn opt_list<T: Wire>(&mut self, items: Option<&[T]>) {
        match items {
            Some(items) => self.list(items),
            None => self.bytes.push(0),
        }
    }

    /// Nullable struct: one byte -1 for null, 1 before the struct otherwise.
    pub fn opt_struct<T: Wire>(&mut self, value: Option<&T>) {
        match value {
            Some(value) => {
                self.i8(1);
                value.write(self);
            }
            None => self.i8(-1),
        }
    }

    /// End of a struct without tagged fields.
    pub fn no_tags(&mut self) {
        self.bytes.push(0);
    }

    /// Bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// A struct inside a struct.
    pub fn nested<T: Wire>(&mut self, value: &T) {
        value.write(self);
    }
}
