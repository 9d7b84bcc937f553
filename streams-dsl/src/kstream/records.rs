//! The steps whose code sees the whole record: event time and headers too, to be read and to be written.
//!
//! Java reaches them through `process` and `processValues` only.

use std::sync::Arc;

use streams_core::processor::{Downstream, TaskContext};
use streams_core::{Headers, ProcessResult, Record};

use super::{KStream, Keys};
use crate::graph::Processor;
use crate::names::Step;
use crate::node::{Parts, factory};

/// A record that a step makes: key, value, event time and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord<K, V> {
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
    /// Event time, milliseconds since the Unix epoch. A negative one is a failure of the step.
    pub timestamp_ms: i64,
    /// The headers.
    pub headers: Headers,
}

impl<K, V> NewRecord<K, V> {
    /// A record with the event time and the headers of another one.
    pub fn after<K0, V0>(record: &Record<'_, K0, V0>, key: K, value: V) -> Self {
        NewRecord {
            key,
            value,
            timestamp_ms: record.timestamp_ms,
            headers: record.headers.clone(),
        }
    }
}

/// What a step may change of a record without touching its key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordMeta {
    /// Event time, milliseconds since the Unix epoch. A negative one is a failure of the step.
    pub timestamp_ms: i64,
    /// The headers.
    pub headers: Headers,
}

impl<K: 'static, V: 'static> KStream<K, V> {
    /// As [`filter`](Self::filter), by the whole record.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("in").filter_record(|record| record.timestamp_ms >= 10).to("out"))
    ///     .pipe("in", [("a", 1, at(9)), ("a", 2, at(10))])
    ///     .gives("out", [("a", 2, at(10))]);
    /// ```
    pub fn filter_record(&self, keep: impl Fn(&Record<'_, K, V>) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        self.pass_step(Step::Filter, keep)
    }

    /// The records for which `drop` is false, by the whole record.
    pub fn filter_not_record(&self, drop: impl Fn(&Record<'_, K, V>) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        self.filter_record(move |record| !drop(record))
    }

    /// As [`peek`](Self::peek), at the whole record.
    pub fn peek_record(&self, look: impl Fn(&Record<'_, K, V>) + Send + Sync + 'static) -> KStream<K, V> {
        self.pass_step(Step::Peek, move |record| {
            look(record);
            true
        })
    }

    /// As [`for_each`](Self::for_each), with the whole record.
    pub fn for_each_record(&self, action: impl Fn(&Record<'_, K, V>) + Send + Sync + 'static) -> crate::Step {
        let action = Arc::new(action);
        let factory = factory::<K, V, K, V, _>(move |parts| {
            let action = Arc::clone(&action);
            let keep = move |record: &Record<'_, K, V>| {
                action(record);
                false
            };
            Pass { parts, keep }
        });
        self.terminal(Step::ForEach, None, Processor::stateless(factory))
    }

    /// As [`map_values`](Self::map_values), from the whole record.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| b.stream::<String, i64>("in").map_values_record(|record| record.value + record.timestamp_ms).to("out"))
    ///     .pipe("in", [("a", 1, at(9))])
    ///     .gives("out", [("a", 10, at(9))]);
    /// ```
    pub fn map_values_record<V2: 'static>(
        &self,
        map: impl Fn(&Record<'_, K, V>) -> V2 + Send + Sync + 'static,
    ) -> KStream<K, V2> {
        self.values_step(Step::MapValues, move |record| Some(map(record)))
    }

    /// As [`flat_map_values`](Self::flat_map_values), from the whole record.
    pub fn flat_map_values_record<V2: 'static, I>(
        &self,
        map: impl Fn(&Record<'_, K, V>) -> I + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        I: IntoIterator<Item = V2> + 'static,
    {
        self.values_step(Step::FlatMapValues, map)
    }

    /// As [`select_key`](Self::select_key), from the whole record.
    pub fn select_key_record<K2: 'static>(
        &self,
        select: impl Fn(&Record<'_, K, V>) -> K2 + Send + Sync + 'static,
    ) -> KStream<K2, V> {
        let select = Arc::new(select);
        let factory = factory::<K, V, K2, V, _>(move |parts| SelectKey {
            parts,
            select: Arc::clone(&select),
        });
        self.step(Step::SelectKey, factory, Keys::Changed, self.value.clone())
    }

    /// As [`map`](Self::map), from the whole record to a whole record.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let stream = b.stream::<String, i64>("in");
    ///     stream.map_record(|record| NewRecord { timestamp_ms: *record.value, ..NewRecord::after(record, *record.value, record.key.clone()) }).to("out")
    /// })
    /// .pipe("in", [("a", 7, at(9))])
    /// .gives("out", [(7, "a", at(7))]);
    /// ```
    pub fn map_record<K2: 'static, V2: 'static>(
        &self,
        map: impl Fn(&Record<'_, K, V>) -> NewRecord<K2, V2> + Send + Sync + 'static,
    ) -> KStream<K2, V2> {
        self.records_step(Step::Map, move |record| Some(map(record)))
    }

    /// As [`flat_map`](Self::flat_map), from the whole record to whole records.
    pub fn flat_map_record<K2: 'static, V2: 'static, I>(
        &self,
        map: impl Fn(&Record<'_, K, V>) -> I + Send + Sync + 'static,
    ) -> KStream<K2, V2>
    where
        I: IntoIterator<Item = NewRecord<K2, V2>> + 'static,
    {
        self.records_step(Step::FlatMap, map)
    }

    /// Changes event time and headers; key and value stay, and so do the partitions. Steps beside this one see the record
    /// as it was.
    ///
    /// ```
    /// # use streams_dsl::doctest::*;
    /// run(|b| {
    ///     let stamped = b.stream::<String, i64>("in").update_meta(|record, meta| {
    ///         meta.timestamp_ms = *record.value;
    ///         meta.headers.add("unit", Some(b"ms"));
    ///     });
    ///     stamped.to("out")
    /// })
    /// .pipe("in", [("a", 7, at(9))])
    /// .gives("out", [("a", 7, at(7))]);
    /// ```
    pub fn update_meta(
        &self,
        update: impl Fn(&Record<'_, K, V>, &mut RecordMeta) + Send + Sync + 'static,
    ) -> KStream<K, V> {
        let update = Arc::new(update);
        let factory = factory::<K, V, K, V, _>(move |parts| UpdateMeta {
            parts,
            update: Arc::clone(&update),
        });
        self.step(
            Step::ProcessValues,
            factory,
            Keys::Kept(self.key.clone()),
            self.value.clone(),
        )
    }

    fn pass_step(&self, step: Step, keep: impl Fn(&Record<'_, K, V>) -> bool + Send + Sync + 'static) -> KStream<K, V> {
        let keep = Arc::new(keep);
        let factory = factory::<K, V, K, V, _>(move |parts| {
            let keep = Arc::clone(&keep);
            Pass {
                parts,
                keep: move |record: &Record<'_, K, V>| keep(record),
            }
        });
        self.step(step, factory, Keys::Kept(self.key.clone()), self.value.clone())
    }

    fn values_step<V2: 'static, I>(
        &self,
        step: Step,
        map: impl Fn(&Record<'_, K, V>) -> I + Send + Sync + 'static,
    ) -> KStream<K, V2>
    where
        I: IntoIterator<Item = V2> + 'static,
    {
        let map = Arc::new(map);
        let factory = factory::<K, V, K, V2, _>(move |parts| MapValues {
            parts,
            map: Arc::clone(&map),
        });
        self.step(step, factory, Keys::Kept(self.key.clone()), None)
    }

    fn records_step<K2: 'static, V2: 'static, I>(
        &self,
        step: Step,
        map: impl Fn(&Record<'_, K, V>) -> I + Send + Sync + 'static,
    ) -> KStream<K2, V2>
    where
        I: IntoIterator<Item = NewRecord<K2, V2>> + 'static,
    {
        let map = Arc::new(map);
        let factory = factory::<K, V, K2, V2, _>(move |parts| MapRecords {
            parts,
            map: Arc::clone(&map),
        });
        self.step(step, factory, Keys::Changed, None)
    }
}

/// Hands records on, or not.
struct Pass<K, V, F> {
    parts: Parts<K, V>,
    keep: F,
}

impl<K, V, F: Fn(&Record<'_, K, V>) -> bool> Downstream<K, V> for Pass<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.keep)(&record))? {
            Some(true) => self.parts.children.forward(cx, record),
            Some(false) | None => Ok(()),
        }
    }
}

struct MapValues<K, V2, F> {
    parts: Parts<K, V2>,
    map: Arc<F>,
}

impl<K, V, V2, I, F> Downstream<K, V> for MapValues<K, V2, F>
where
    I: IntoIterator<Item = V2>,
    F: Fn(&Record<'_, K, V>) -> I,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let values = cx.call_user(&self.parts.name, || (self.map)(&record).into_iter())?;
        let Some(mut values) = values else { return Ok(()) };
        while let Some(Some(value)) = cx.call_user(&self.parts.name, || values.next())? {
            self.parts.children.forward(cx, record.with_value(&value))?;
        }
        Ok(())
    }
}

struct SelectKey<K2, V, F> {
    parts: Parts<K2, V>,
    select: Arc<F>,
}

impl<K, V, K2, F: Fn(&Record<'_, K, V>) -> K2> Downstream<K, V> for SelectKey<K2, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        match cx.call_user(&self.parts.name, || (self.select)(&record))? {
            Some(key) => self.parts.children.forward(cx, record.with_key(&key)),
            None => Ok(()),
        }
    }
}

struct MapRecords<K2, V2, F> {
    parts: Parts<K2, V2>,
    map: Arc<F>,
}

impl<K, V, K2, V2, I, F> Downstream<K, V> for MapRecords<K2, V2, F>
where
    I: IntoIterator<Item = NewRecord<K2, V2>>,
    F: Fn(&Record<'_, K, V>) -> I,
{
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let made = cx.call_user(&self.parts.name, || (self.map)(&record).into_iter())?;
        let Some(mut made) = made else { return Ok(()) };
        while let Some(Some(made)) = cx.call_user(&self.parts.name, || made.next())? {
            if !check_time(cx, &self.parts.name, made.timestamp_ms)? {
                continue;
            }
            let record = Record {
                key: &made.key,
                value: &made.value,
                timestamp_ms: made.timestamp_ms,
                headers: &made.headers,
            };
            self.parts.children.forward(cx, record)?;
        }
        Ok(())
    }
}

struct UpdateMeta<K, V, F> {
    parts: Parts<K, V>,
    update: Arc<F>,
}

impl<K, V, F: Fn(&Record<'_, K, V>, &mut RecordMeta)> Downstream<K, V> for UpdateMeta<K, V, F> {
    fn process(&self, cx: &mut TaskContext, record: Record<'_, K, V>) -> ProcessResult {
        let mut meta = RecordMeta {
            timestamp_ms: record.timestamp_ms,
            headers: record.headers.clone(),
        };
        let updated = cx.call_user(&self.parts.name, || (self.update)(&record, &mut meta))?;
        if updated.is_none() || !check_time(cx, &self.parts.name, meta.timestamp_ms)? {
            return Ok(());
        }
        let record = record.with_timestamp(meta.timestamp_ms).with_headers(&meta.headers);
        self.parts.children.forward(cx, record)
    }
}

/// A record can't have a time before the Unix epoch: as in Java it is a failure of the code that made it. False = the
/// handler let it pass, without the record.
fn check_time(cx: &mut TaskContext, node: &str, timestamp_ms: i64) -> ProcessResult<bool> {
    let checked = cx.try_user(node, || match timestamp_ms {
        0.. => Ok(()),
        _ => Err(format!("a record can't have the event time {timestamp_ms}: it must not be negative").into()),
    })?;
    Ok(checked.is_some())
}
