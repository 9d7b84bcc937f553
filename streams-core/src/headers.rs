//! Record headers: ordered key–value pairs beside a record's key and value.

use std::sync::Arc;

/// One header: a UTF-8 key and nullable bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The key; keys may repeat within one record.
    pub key: Arc<str>,
    /// The value; `None` is Kafka's null.
    pub value: Option<Arc<[u8]>>,
}

/// The headers of one record, in order. Cloning is cheap and a change copies first, so that an operator's change
/// is never seen by its siblings (Java shares the mutable object).
///
/// ```
/// use streams_core::Headers;
/// let mut headers = Headers::default();
/// headers.add("trace", Some(b"abc"));
/// assert_eq!(headers.last("trace").and_then(|h| h.value.as_deref()), Some(&b"abc"[..]));
/// ```
///
/// Java counterpart: `org.apache.kafka.common.header.Headers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Option<Arc<Vec<Header>>>);

static EMPTY: Headers = Headers(None);

impl Headers {
    /// The shared empty headers; allocates nothing.
    #[must_use]
    pub fn empty() -> &'static Headers {
        &EMPTY
    }

    /// Appends a header; equal keys are kept side by side, as in Java.
    pub fn add(&mut self, key: &str, value: Option<&[u8]>) {
        let list = self.0.get_or_insert_with(Arc::default);
        Arc::make_mut(list).push(Header {
            key: key.into(),
            value: value.map(Into::into),
        });
    }

    /// Removes every header with this key.
    pub fn remove(&mut self, key: &str) {
        if let Some(list) = &mut self.0 {
            Arc::make_mut(list).retain(|header| &*header.key != key);
        }
        if self.is_empty() {
            self.0 = None;
        }
    }

    /// The last header with this key, which is the one that counts by Kafka's convention.
    #[must_use]
    pub fn last(&self, key: &str) -> Option<&Header> {
        self.iter().rev().find(|header| &*header.key == key)
    }

    /// The headers in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Header> {
        self.as_slice().iter()
    }

    /// The headers in order, as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[Header] {
        self.0.as_ref().map_or(&[], |list| list.as_slice())
    }

    /// How many headers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = &'a Header;
    type IntoIter = std::slice::Iter<'a, Header>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> FromIterator<(&'a str, Option<&'a [u8]>)> for Headers {
    fn from_iter<I: IntoIterator<Item = (&'a str, Option<&'a [u8]>)>>(iter: I) -> Self {
        let mut headers = Headers::default();
        for (key, value) in iter {
            headers.add(key, value);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_not_seen_by_a_clone() {
        let mut first = Headers::default();
        first.add("a", Some(b"1"));
        let second = first.clone();
        first.add("a", None);
        assert_eq!(second.len(), 1);
        assert_eq!(first.last("a").map(|h| h.value.clone()), Some(None));
    }

    #[test]
    fn removing_the_last_header_gives_the_empty_value() {
        let mut headers = Headers::default();
        headers.add("a", None);
        headers.remove("a");
        assert_eq!(headers, Headers::default());
    }
}
