//! The same bills by plain code from the same files, without topics, joins or windows: what the pipeline is compared with.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};

use crate::data::DataDir;
use crate::model::Totals;

/// What the topics must hold at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// By `carrier|origin|YYYY-MM-DD`.
    pub daily: BTreeMap<String, Totals>,
    /// By `carrier|YYYY-MM`.
    pub invoices: BTreeMap<String, Totals>,
    /// Departures that left.
    pub billed: usize,
    /// Departures that did not.
    pub cancelled: usize,
}

/// Computes all totals of a folder; `take` chooses rows by their number, counted from 0.
///
/// # Errors
/// When the files can't be read.
pub fn compute(data: &DataDir, take: impl Fn(usize) -> bool) -> Result<Expected> {
    let mut seats = HashMap::new();
    for row in data.planes()? {
        let row = row?;
        seats.insert(
            row.tailnum,
            row.seats
                .parse::<i64>()
                .with_context(|| format!("seats `{}`", row.seats))?,
        );
    }
    let airlines = data
        .airlines()?
        .map(|row| row.map(|row| (row.carrier, row.name)))
        .collect::<Result<HashMap<_, _>>>()?;
    let mut expected = Expected::default();
    for (number, row) in data.flights()?.enumerate() {
        let row = row?;
        if !take(number) {
            continue;
        }
        if row.dep_time == "NA" {
            expected.cancelled += 1;
            continue;
        }
        expected.billed += 1;
        let known = seats.get(&row.tailnum).copied();
        let miles: i64 = row
            .distance
            .parse()
            .with_context(|| format!("distance `{}`", row.distance))?;
        let bill = Totals {
            airline: airlines.get(&row.carrier).cloned(),
            departures: 1,
            seats: known.unwrap_or(100),
            miles,
            estimated: i64::from(known.is_none()),
            amount_cents: 2_500 + 12 * known.unwrap_or(100) + 3 * miles,
        };
        // The minutes of the schedule are added to a full hour, so they change neither day nor month.
        let (day, month) = (
            row.time_hour.get(..10).unwrap_or_default(),
            row.time_hour.get(..7).unwrap_or_default(),
        );
        add(
            expected
                .daily
                .entry(format!("{}|{}|{day}", row.carrier, row.origin))
                .or_default(),
            &bill,
        );
        add(
            expected.invoices.entry(format!("{}|{month}", row.carrier)).or_default(),
            &bill,
        );
    }
    Ok(expected)
}

fn add(sum: &mut Totals, bill: &Totals) {
    sum.airline.clone_from(&bill.airline);
    sum.departures += bill.departures;
    sum.seats += bill.seats;
    sum.miles += bill.miles;
    sum.estimated += bill.estimated;
    sum.amount_cents += bill.amount_cents;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::data::sample_dir;

    #[test]
    fn the_totals_of_the_sample_add_up() {
        let expected = compute(&DataDir::new(sample_dir()), |_| true).unwrap();
        assert_eq!((expected.billed, expected.cancelled), (26_483, 521));
        let sum = |totals: &BTreeMap<String, Totals>| totals.values().map(|t| t.amount_cents).sum::<i64>();
        assert_eq!(sum(&expected.daily), sum(&expected.invoices));
        assert_eq!(expected.invoices.values().map(|t| t.departures).sum::<i64>(), 26_483);
        assert_eq!(
            expected.invoices["UA|2013-01"].airline.as_deref(),
            Some("United Air Lines Inc.")
        );
    }
}
