//! What came out, compared with what must come out, and shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use streams_testkit::{Kafka, Record};

use crate::feed::Feed;
use crate::model::Totals;
use crate::plain::Expected;
use crate::topics::Names;

/// Differences shown one by one.
const SHOWN: usize = 10;

/// What the topics hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// `billing.daily`, the last value of each key.
    pub daily: BTreeMap<String, Totals>,
    /// `billing.invoice-candidates`, the last value of each key.
    pub invoices: BTreeMap<String, Totals>,
    /// Records in `billing.events`.
    pub events: usize,
    /// Records in `usage.normalized`.
    pub normalized: usize,
    /// Records in `departures.cancelled`.
    pub cancelled: usize,
    /// `billing.dlq`: keys and values.
    pub dead_letters: Vec<(String, Option<Vec<u8>>)>,
}

/// A record as a reader sees it: key and value.
pub type KeyValue = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Results {
    /// Reads what is committed.
    ///
    /// # Errors
    /// When a topic can't be read or holds what is no total.
    pub fn read(kafka: &Kafka, names: &Names) -> Result<Self> {
        let pairs = |topic: &str| -> Result<Vec<KeyValue>> {
            Ok(kafka
                .collect(topic)?
                .into_iter()
                .map(|Record { key, value, .. }| (key, value))
                .collect())
        };
        Self::from_topics(names, pairs)
    }

    /// Reads topics by a function that gives the records of one in the order of each key.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_topics(names: &Names, read: impl Fn(&str) -> Result<Vec<KeyValue>>) -> Result<Self> {
        let dead_letters = read(&names.dead_letters())?;
        Ok(Results {
            daily: latest(read(&names.daily())?)?,
            invoices: latest(read(&names.invoices())?)?,
            events: read(&names.events())?.len(),
            normalized: read(&names.normalized())?.len(),
            cancelled: read(&names.cancelled())?.len(),
            dead_letters: dead_letters
                .into_iter()
                .map(|(key, value)| (text(key), value))
                .collect(),
        })
    }

    /// Everything that is not as it must be; nothing = every cent is right.
    pub fn differences(&self, expected: &Expected, feed: &Feed) -> Vec<String> {
        let mut found = Vec::new();
        compare("billing.daily", &self.daily, &expected.daily, &mut found);
        compare(
            "billing.invoice-candidates",
            &self.invoices,
            &expected.invoices,
            &mut found,
        );
        let counts = [
            ("usage.normalized", self.normalized, expected.billed),
            ("billing.events", self.events, expected.billed),
            ("departures.cancelled", self.cancelled, expected.cancelled),
        ];
        for (topic, is, must) in counts {
            if is != must {
                found.push(format!("{topic} holds {is} records, it must hold {must}"));
            }
        }
        let (mut is, mut must) = (self.dead_letters.clone(), feed.poisoned.clone());
        is.sort();
        must.sort();
        if is != must {
            let keys =
                |records: &[(String, Option<Vec<u8>>)]| records.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            found.push(format!(
                "billing.dlq holds {:?}, it must hold {:?}",
                keys(&is),
                keys(&must)
            ));
        }
        found
    }

    /// The invoices as a table.
    pub fn invoice_table(&self) -> String {
        let mut table = format!(
            "{:<12} {:<28} {:>10} {:>11} {:>12} {:>9} {:>16}\n",
            "invoice", "airline", "departures", "seats", "miles", "estimated", "amount in $"
        );
        let mut sum = Totals::default();
        for (key, totals) in &self.invoices {
            let airline = totals.airline.as_deref().unwrap_or("(unknown)");
            line(&mut table, key, airline, totals);
            sum.departures += totals.departures;
            sum.seats += totals.seats;
            sum.miles += totals.miles;
            sum.estimated += totals.estimated;
            sum.amount_cents += totals.amount_cents;
        }
        line(&mut table, "all", "", &sum);
        table
    }
}

fn line(table: &mut String, key: &str, airline: &str, totals: &Totals) {
    let Totals {
        departures,
        seats,
        miles,
        estimated,
        amount_cents,
        ..
    } = totals;
    let amount = format!("{}.{:02}", amount_cents / 100, amount_cents % 100);
    let _ = writeln!(
        table,
        "{key:<12} {airline:<28} {departures:>10} {seats:>11} {miles:>12} {estimated:>9} {amount:>16}"
    );
}

fn text(bytes: Option<Vec<u8>>) -> String {
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

fn latest(records: Vec<KeyValue>) -> Result<BTreeMap<String, Totals>> {
    let mut latest = BTreeMap::new();
    for (key, value) in records {
        let key = text(key);
        match value {
            Some(value) => {
                let totals = serde_json::from_slice(&value).with_context(|| format!("the totals of {key}"))?;
                latest.insert(key, totals);
            }
            None => {
                latest.remove(&key);
            }
        }
    }
    Ok(latest)
}

fn compare(topic: &str, is: &BTreeMap<String, Totals>, must: &BTreeMap<String, Totals>, found: &mut Vec<String>) {
    let keys = is.keys().chain(must.keys().filter(|key| !is.contains_key(*key)));
    let different: Vec<_> = keys.filter(|key| is.get(*key) != must.get(*key)).collect();
    for key in different.iter().take(SHOWN) {
        found.push(format!(
            "{topic} {key}: {:?}, it must be {:?}",
            is.get(*key),
            must.get(*key)
        ));
    }
    if different.len() > SHOWN {
        found.push(format!("{topic}: {} more keys differ", different.len() - SHOWN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cent_a_missing_key_and_a_lost_dead_letter_are_found() {
        let totals = |amount_cents| Totals {
            amount_cents,
            ..Totals::default()
        };
        let invoices = |cents| BTreeMap::from([("UA|2013-01".to_owned(), totals(cents))]);
        let expected = Expected {
            invoices: invoices(100),
            ..Expected::default()
        };
        let right = Results {
            invoices: invoices(100),
            ..Results::default()
        };
        assert!(right.differences(&expected, &Feed::default()).is_empty());
        let wrong = Results {
            invoices: invoices(101),
            ..Results::default()
        };
        assert_eq!(wrong.differences(&expected, &Feed::default()).len(), 1);
        assert_eq!(Results::default().differences(&expected, &Feed::default()).len(), 1);
        let feed = Feed {
            poisoned: vec![("poison-0".to_owned(), None)],
            ..Feed::default()
        };
        assert_eq!(right.differences(&expected, &feed).len(), 1);
    }
}
