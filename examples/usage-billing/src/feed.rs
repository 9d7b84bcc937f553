//! The feeder: aircraft and airlines whole first, then departures in the order of their arrival, with damage in between.

use anyhow::{Context as _, Result, bail};
use streams_testkit::{Kafka, NewRecord, Seeded};

use crate::data::DataDir;
use crate::model::{Airline, Plane, RawDeparture};
use crate::topics::Names;

/// Beside so many real records one can't be decoded.
pub const POISON_EVERY: usize = 5_000;
/// Where the damaged records stand and what is wrong with them.
const SEED: u64 = 2_013;
/// Tables come first in event time too.
const BEFORE_MS: i64 = 86_400_000;

/// A record to be fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRecord {
    /// Its key.
    pub key: String,
    /// Its value; `None` is null.
    pub value: Option<Vec<u8>>,
    /// Event time, milliseconds since the Unix epoch.
    pub timestamp_ms: i64,
}

/// Everything that is fed, in order.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// For `planes`.
    pub planes: Vec<FeedRecord>,
    /// For `airlines`.
    pub airlines: Vec<FeedRecord>,
    /// For `departures.raw`.
    pub departures: Vec<FeedRecord>,
    /// Those of them that can't be decoded: key and value.
    pub poisoned: Vec<(String, Option<Vec<u8>>)>,
}

impl Feed {
    /// Reads the files of a folder; `take` chooses departures by their row number, counted from 0.
    ///
    /// # Errors
    /// When a file can't be read or holds what is no departure.
    pub fn read(data: &DataDir, take: impl Fn(usize) -> bool) -> Result<Self> {
        let mut arrivals = Vec::new();
        let mut first_ms = i64::MAX;
        for (row, raw) in data.flights()?.enumerate().filter(|(row, _)| take(*row)) {
            let raw = raw?;
            let unreadable = |error| anyhow::anyhow!("departure {row}: {error}");
            let (arrival_ms, timestamp_ms) = (
                raw.arrival_ms().map_err(unreadable)?,
                raw.scheduled_ms().map_err(unreadable)?,
            );
            first_ms = first_ms.min(timestamp_ms);
            let value = Some(serde_json::to_vec(&raw)?);
            arrivals.push((
                arrival_ms,
                row,
                FeedRecord {
                    key: key_of(&raw),
                    value,
                    timestamp_ms,
                },
            ));
        }
        if arrivals.is_empty() {
            bail!("there is no departure to feed");
        }
        arrivals.sort_by_key(|(arrival_ms, row, _)| (*arrival_ms, *row));
        let mut feed = Feed {
            planes: planes(data, first_ms - BEFORE_MS)?,
            airlines: airlines(data, first_ms - BEFORE_MS)?,
            ..Feed::default()
        };
        feed.add_departures(arrivals.into_iter().map(|(_, _, record)| record));
        Ok(feed)
    }

    fn add_departures(&mut self, arrivals: impl Iterator<Item = FeedRecord>) {
        let mut seeded = Seeded::new(SEED);
        let mut at = seeded.below(POISON_EVERY as u64) as usize;
        let mut pending = None;
        for (number, record) in arrivals.enumerate() {
            let place = number % POISON_EVERY;
            if place == at {
                pending = Some(poison(number / POISON_EVERY, seeded.below(5), &record));
            }
            self.departures.push(record);
            // A block that is not full gets none: one for every 5,000, not one for a part of them.
            if place + 1 == POISON_EVERY {
                if let Some(poison) = pending.take() {
                    let behind = POISON_EVERY - 1 - at;
                    self.poisoned.push((poison.key.clone(), poison.value.clone()));
                    self.departures.insert(self.departures.len() - behind, poison);
                }
                at = seeded.below(POISON_EVERY as u64) as usize;
            }
        }
    }

    /// Writes the tables, or finds that they are there.
    ///
    /// # Errors
    /// When the broker refuses, or a topic holds something else.
    pub fn write_tables(&self, kafka: &Kafka, names: &Names) -> Result<()> {
        write_once(kafka, &names.planes(), &self.planes)?;
        write_once(kafka, &names.airlines(), &self.airlines)
    }

    /// Writes the departures, or finds that they are there.
    ///
    /// # Errors
    /// As [`write_tables`](Self::write_tables).
    pub fn write_departures(&self, kafka: &Kafka, names: &Names) -> Result<()> {
        write_once(kafka, &names.raw(), &self.departures)
    }
}

fn key_of(raw: &RawDeparture) -> String {
    format!(
        "{}{}|{}|{}-{:0>2}-{:0>2}",
        raw.carrier, raw.flight, raw.origin, raw.year, raw.month, raw.day
    )
}

/// A record that can't be decoded, with the event time of the one beside it.
fn poison(number: usize, kind: u64, beside: &FeedRecord) -> FeedRecord {
    let text = beside
        .value
        .as_deref()
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default();
    let value = match kind {
        0 => Some(text.get(..text.len() / 2).unwrap_or_default().as_bytes().to_vec()),
        1 => Some(vec![0xff, 0xfe, 0x00, 0x80]),
        2 => Some(text.replace("\"carrier\":", "\"carier\":").into_bytes()),
        3 => Some(text.replace("\"distance\":\"", "\"distance\":\"about ").into_bytes()),
        _ => None,
    };
    FeedRecord {
        key: format!("poison-{number}"),
        value,
        timestamp_ms: beside.timestamp_ms,
    }
}

fn planes(data: &DataDir, timestamp_ms: i64) -> Result<Vec<FeedRecord>> {
    let rows = data.planes()?.map(|row| {
        let row = row?;
        let seats = row
            .seats
            .parse()
            .with_context(|| format!("seats `{}` of {}", row.seats, row.tailnum))?;
        let value = Some(serde_json::to_vec(&Plane {
            seats,
            model: row.model,
        })?);
        Ok(FeedRecord {
            key: row.tailnum,
            value,
            timestamp_ms,
        })
    });
    rows.collect()
}

fn airlines(data: &DataDir, timestamp_ms: i64) -> Result<Vec<FeedRecord>> {
    let rows = data.airlines()?.map(|row| {
        let row = row?;
        let value = Some(serde_json::to_vec(&Airline { name: row.name })?);
        Ok(FeedRecord {
            key: row.carrier,
            value,
            timestamp_ms,
        })
    });
    rows.collect()
}

/// Writes records to a topic.
///
/// # Errors
/// When the broker refuses.
pub fn write(kafka: &Kafka, topic: &str, records: &[FeedRecord]) -> Result<()> {
    let records = records.iter().map(|record| {
        let new = match &record.value {
            Some(value) => NewRecord::new(record.key.as_str(), value.as_slice()),
            None => NewRecord::tombstone(record.key.as_str()),
        };
        new.at(record.timestamp_ms)
    });
    kafka.produce(topic, records)?;
    Ok(())
}

/// Feeding twice would bill twice: a topic that holds as many records as it should is left alone.
fn write_once(kafka: &Kafka, topic: &str, records: &[FeedRecord]) -> Result<()> {
    let there: i64 = kafka.topics().end_offsets(topic)?.values().sum();
    match usize::try_from(there) {
        Ok(0) => write(kafka, topic, records),
        Ok(count) if count == records.len() => Ok(()),
        _ => bail!(
            "topic {topic} holds {there} records, not 0 or {}: it was fed with other data or the feeder was interrupted. \
             Delete the topics, or use others by --prefix",
            records.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::data::sample_dir;
    use crate::model::Departure;

    fn decodes(record: &FeedRecord) -> bool {
        record
            .value
            .as_deref()
            .is_some_and(|value| serde_json::from_slice::<Departure>(value).is_ok())
    }

    #[test]
    fn the_sample_has_one_undecodable_record_in_every_full_5000() {
        let feed = Feed::read(&DataDir::new(sample_dir()), |_| true).unwrap();
        assert_eq!((feed.departures.len(), feed.poisoned.len()), (27_004 + 5, 5));
        for block in feed.departures[..25_005].chunks(5_001) {
            assert_eq!(block.iter().filter(|record| !decodes(record)).count(), 1);
        }
        assert!(feed.departures[25_005..].iter().all(decodes));
        let found: Vec<_> = feed
            .departures
            .iter()
            .filter(|r| !decodes(r))
            .map(|r| (r.key.clone(), r.value.clone()))
            .collect();
        assert_eq!(found, feed.poisoned);
    }

    #[test]
    fn departures_come_in_the_order_of_arrival_and_out_of_the_order_of_events() {
        let data = DataDir::new(sample_dir());
        let feed = Feed::read(&data, |_| true).unwrap();
        let arrivals = feed.departures.iter().filter_map(|record| {
            serde_json::from_slice::<RawDeparture>(record.value.as_deref()?)
                .ok()?
                .arrival_ms()
                .ok()
        });
        assert!(arrivals.is_sorted());
        assert!(!feed.departures.is_sorted_by_key(|record| record.timestamp_ms));
        let first = feed.departures.iter().map(|record| record.timestamp_ms).min().unwrap();
        assert!(
            feed.planes
                .iter()
                .chain(&feed.airlines)
                .all(|record| record.timestamp_ms < first)
        );
    }

    #[test]
    fn feeds_are_the_same_every_time() {
        let data = DataDir::new(sample_dir());
        let (one, two) = (
            Feed::read(&data, |_| true).unwrap(),
            Feed::read(&data, |_| true).unwrap(),
        );
        assert_eq!(one.departures, two.departures);
    }
}
