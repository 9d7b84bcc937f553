//! Reading of the primitive types of Kafka's protocol, flexible (compact) forms first.

use super::wire::{Wire, WireError};

/// Walks through a received message. Every read can fail; none panics or allocates more than the message's own size.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The next `needed` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], like every method of this type when the bytes end early.
    pub fn take(&mut self, needed: usize) -> Result<&'a [u8], WireError> {
        let truncated = WireError::Truncated {
            at: self.at,
            needed,
            left: self.left(),
        };
        let end = self.at.checked_add(needed).ok_or_else(|| truncated.clone())?;
        let taken = self.bytes.get(self.at..end).ok_or(truncated)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let at = self.at;
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| WireError::Truncated {
            at,
            needed: N,
            left: taken.len(),
        })
    }

    /// int8.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn i8(&mut self) -> Result<i8, WireError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// int16.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn i16(&mut self) -> Result<i16, WireError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// uint16.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// int32.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// int64.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn i64(&mut self) -> Result<i64, WireError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// boolean; every value but 0 is true, as in Java's reader.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn bool(&mut self) -> Result<bool, WireError> {
        Ok(self.i8()? != 0)
    }

    /// Unsigned varint of at most five bytes.
    ///
    /// # Errors
    /// [`WireError::Impossible`] beyond 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, WireError> {
        let at = self.at;
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| WireError::Impossible {
                    what: "varint",
                    value: value as i64,
                    at,
                });
            }
        }
        Err(WireError::Impossible {
            what: "varint",
            value: value as i64,
            at,
        })
    }

    /// Length of something compact; `None` is null. Bounded by what is left, so that no length makes us allocate.
    fn compact_len(&mut self, what: &'static str) -> Result<Option<usize>, WireError> {
        let at = self.at;
        let Some(len) = self.uvarint()?.checked_sub(1) else {
            return Ok(None);
        };
        // Every element takes at least one byte.
        if len as usize > self.left() {
            return Err(WireError::Impossible {
                what,
                value: i64::from(len),
                at,
            });
        }
        Ok(Some(len as usize))
    }

    /// Compact nullable string.
    ///
    /// # Errors
    /// [`WireError::NotUtf8`], [`WireError::Impossible`] for a length beyond the message.
    pub fn opt_string(&mut self) -> Result<Option<String>, WireError> {
        let Some(len) = self.compact_len("string length")? else {
            return Ok(None);
        };
        let at = self.at;
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| WireError::NotUtf8 { at })?;
        Ok(Some(text.to_owned()))
    }

    /// Compact string.
    ///
    /// # Errors
    /// As [`Reader::opt_string`], and [`WireError::Impossible`] for null.
    pub fn string(&mut self) -> Result<String, WireError> {
        let at = self.at;
        self.opt_string()?.ok_or(WireError::Impossible {
            what: "null string",
            value: -1,
            at,
        })
    }

    /// String with an int16 length; -1 is null.
    ///
    /// # Errors
    /// As [`Reader::opt_string`].
    pub fn short_string(&mut self) -> Result<Option<String>, WireError> {
        let Ok(len) = usize::try_from(self.i16()?) else {
            return Ok(None);
        };
        let at = self.at;
        let text = std::str::from_utf8(self.take(len)?).map_err(|_| WireError::NotUtf8 { at })?;
        Ok(Some(text.to_owned()))
    }

    /// Compact nullable array.
    ///
    /// # Errors
    /// [`WireError::Impossible`] for a count beyond the message, and what the elements give.
    pub fn opt_list<T: Wire>(&mut self) -> Result<Option<Vec<T>>, WireError> {
        let Some(len) = self.compact_len("array length")? else {
            return Ok(None);
        };
        (0..len).map(|_| T::read(self)).collect::<Result<Vec<T>, _>>().map(Some)
    }

    /// Compact array.
    ///
    /// # Errors
    /// As [`Reader::opt_list`], and [`WireError::Impossible`] for null.
    pub fn list<T: Wire>(&mut self) -> Result<Vec<T>, WireError> {
        let at = self.at;
        self.opt_list()?.ok_or(WireError::Impossible {
            what: "null array",
            value: -1,
            at,
        })
    }

    /// Nullable struct.
    ///
    /// # Errors
    /// [`WireError::Impossible`] for a flag that is neither -1 nor 1, and what the struct gives.
    pub fn opt_struct<T: Wire>(&mut self) -> Result<Option<T>, WireError> {
        let at = self.at;
        match self.i8()? {
            -1 => Ok(None),
            1 => T::read(self).map(Some),
            flag => Err(WireError::Impossible {
                what: "null flag of a struct",
                value: i64::from(flag),
                at,
            }),
        }
    }

    /// Tagged fields at the end of a struct, as (tag, bytes).
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn tags(&mut self) -> Result<Vec<(u32, &'a [u8])>, WireError> {
        let count = self.uvarint()?;
        let mut tags = Vec::new();
        for _ in 0..count {
            let tag = self.uvarint()?;
            let len = self.uvarint()? as usize;
            tags.push((tag, self.take(len)?));
        }
        Ok(tags)
    }

    /// Tagged fields that nobody needs.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn skip_tags(&mut self) -> Result<(), WireError> {
        self.tags().map(drop)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`WireError::LeftOver`].
    pub fn end(&self) -> Result<(), WireError> {
        match self.left() {
            0 => Ok(()),
            left => Err(WireError::LeftOver { left }),
        }
    }

    /// A struct inside a struct.
    ///
    /// # Errors
    /// What the struct gives.
    pub fn nested<T: Wire>(&mut self) -> Result<T, WireError> {
        T::read(self)
    }
}
