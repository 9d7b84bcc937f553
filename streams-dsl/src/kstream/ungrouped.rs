//! What is asked of a stream and only a grouped one can do. These methods are never there for a program that compiles; they
//! make the compiler say what is missing, which "no method named `count`" does not.

use super::KStream;
use crate::grouped::TimeWindowedKStream;
use crate::ktable::KTable;

/// A stream whose records are grouped. No `KStream` is.
#[diagnostic::on_unimplemented(
    message = "a stream has to be grouped before it is counted or put into windows",
    label = "`{Self}` is not grouped",
    note = "`.group_by_key()` groups it by its keys, `.group_by(|key, value| …)` by keys of your own"
)]
pub trait InGroups<K, V> {
    /// The count of each group.
    fn counted(&self) -> KTable<K, i64>;
    /// The groups in windows.
    fn in_windows(&self) -> TimeWindowedKStream<K, V>;
}

impl<K: 'static, V: 'static> KStream<K, V> {
    #[doc(hidden)]
    pub fn count<M>(&self, _materialized: M) -> KTable<K, i64>
    where
        Self: InGroups<K, V>,
    {
        self.counted()
    }

    #[doc(hidden)]
    pub fn windowed_by<W>(&self, _windows: W) -> TimeWindowedKStream<K, V>
    where
        Self: InGroups<K, V>,
    {
        self.in_windows()
    }
}
