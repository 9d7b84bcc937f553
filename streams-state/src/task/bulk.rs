//! The rows of a restore from zero on their way to disk: the last value of each key, until there are enough for a file.

use hashbrown::HashMap;

/// What a row costs beyond its bytes, about.
const ROW_BYTES: usize = 48;

/// The last value of each key since the last file; `None` is a deletion.
#[derive(Debug, Default)]
pub(super) struct BulkRows {
    rows: HashMap<Box<[u8]>, Option<Box<[u8]>>>,
    bytes: usize,
    /// A file was written already: deletions may concern its rows.
    pub(super) has_files: bool,
}

impl BulkRows {
    /// A later record of a key replaces the one before.
    pub(super) fn add(&mut self, key: &[u8], value: Option<&[u8]>) {
        let size = value.map_or(0, <[u8]>::len);
        self.bytes += size;
        match self.rows.get_mut(key) {
            Some(old) => {
                self.bytes -= old.as_ref().map_or(0, |old| old.len());
                *old = value.map(Into::into);
            }
            None => {
                self.bytes += key.len() + ROW_BYTES;
                self.rows.insert(key.into(), value.map(Into::into));
            }
        }
    }

    /// The memory that the rows hold, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the rows out, in the order of their keys. Deletions are left out as long as there is nothing to delete.
    pub(super) fn take(&mut self) -> Vec<(Box<[u8]>, Option<Box<[u8]>>)> {
        self.bytes = 0;
        let keep_deletions = self.has_files;
        let rows = std::mem::take(&mut self.rows).into_iter();
        let mut rows: Vec<_> = rows.filter(|(_, value)| keep_deletions || value.is_some()).collect();
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::BulkRows;

    #[test]
    fn the_last_record_of_a_key_counts_and_the_keys_come_in_order() {
        let mut rows = BulkRows::default();
        rows.add(b"b", Some(b"1"));
        rows.add(b"a", Some(b"2"));
        rows.add(b"b", Some(b"three"));
        rows.add(b"c", None);
        let taken: Vec<_> = rows
            .take()
            .into_iter()
            .map(|(key, value)| (key.to_vec(), value.map(|v| v.to_vec())))
            .collect();
        assert_eq!(
            taken,
            [
                (b"a".to_vec(), Some(b"2".to_vec())),
                (b"b".to_vec(), Some(b"three".to_vec()))
            ]
        );
        assert_eq!(rows.bytes(), 0);
    }

    #[test]
    fn deletions_are_kept_once_a_file_may_hold_their_rows() {
        let mut rows = BulkRows {
            has_files: true,
            ..BulkRows::default()
        };
        rows.add(b"a", None);
        assert_eq!(rows.take().len(), 1);
    }

    #[test]
    fn overwriting_does_not_add_up() {
        let mut rows = BulkRows::default();
        for _ in 0..1_000 {
            rows.add(b"key", Some(&[7; 100]));
        }
        assert!(rows.bytes() < 300, "{}", rows.bytes());
    }
}
