//! What is on the topics: one type for each, as JSON.

use serde::{Deserialize, Serialize};
use streams_dsl::{DefaultSerde, Json};

use crate::time;

const MINUTE_MS: i64 = 60_000;

/// What a departure costs whatever flew, cents.
pub const BASE_CENTS: i64 = 2_500;
/// For each seat, cents.
pub const SEAT_CENTS: i64 = 12;
/// For each mile, cents.
pub const MILE_CENTS: i64 = 3;
/// The seats of an aircraft that no record knows.
pub const ESTIMATED_SEATS: i64 = 100;

/// A row of `flights.csv` as it is: texts, `NA` where something is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the columns' own names")]
pub struct RawDeparture {
    pub year: String,
    pub month: String,
    pub day: String,
    pub dep_time: String,
    pub sched_dep_time: String,
    pub dep_delay: String,
    pub arr_time: String,
    pub sched_arr_time: String,
    pub arr_delay: String,
    pub carrier: String,
    pub flight: String,
    pub tailnum: String,
    pub origin: String,
    pub dest: String,
    pub air_time: String,
    pub distance: String,
    pub hour: String,
    pub minute: String,
    pub time_hour: String,
}

impl RawDeparture {
    /// Scheduled departure, milliseconds since the Unix epoch: `time_hour` (UTC) and `minute`.
    ///
    /// # Errors
    /// A text that says which column can't be read.
    pub fn scheduled_ms(&self) -> Result<i64, String> {
        let hour =
            time::parse_utc(&self.time_hour).ok_or_else(|| format!("time_hour `{}` is no UTC time", self.time_hour))?;
        Ok(hour + number("minute", &self.minute)? * MINUTE_MS)
    }

    /// When the record of this departure arrives, milliseconds since the Unix epoch: when it left, or was to leave if it
    /// was cancelled.
    ///
    /// # Errors
    /// As [`scheduled_ms`](Self::scheduled_ms).
    pub fn arrival_ms(&self) -> Result<i64, String> {
        let delay = if self.dep_delay == "NA" {
            0
        } else {
            number("dep_delay", &self.dep_delay)?
        };
        Ok(self.scheduled_ms()? + delay * MINUTE_MS)
    }
}

fn number(column: &str, text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("{column} `{text}` is no number"))
}

/// A raw departure whose numbers and times can be read. What can't be read is not decoded, so it goes to the
/// deserialization handler like any other damage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "RawDeparture", into = "RawDeparture")]
pub struct Departure {
    raw: RawDeparture,
    scheduled_ms: i64,
    miles: i64,
}

impl DefaultSerde for Departure {
    type Serde = Json<Self>;
}

impl TryFrom<RawDeparture> for Departure {
    type Error = String;

    fn try_from(raw: RawDeparture) -> Result<Self, String> {
        Ok(Departure {
            scheduled_ms: raw.scheduled_ms()?,
            miles: number("distance", &raw.distance)?,
            raw,
        })
    }
}

impl From<Departure> for RawDeparture {
    fn from(departure: Departure) -> RawDeparture {
        departure.raw
    }
}

impl Departure {
    /// Whether it never left.
    pub fn is_cancelled(&self) -> bool {
        self.raw.dep_time == "NA"
    }

    /// What counts for billing.
    pub fn usage(&self) -> Usage {
        let raw = &self.raw;
        Usage {
            carrier: raw.carrier.clone(),
            flight: raw.flight.clone(),
            tail: (raw.tailnum != "NA").then(|| raw.tailnum.clone()),
            origin: raw.origin.clone(),
            dest: raw.dest.clone(),
            scheduled: time::format_utc(self.scheduled_ms),
            miles: self.miles,
        }
    }
}

/// A departure in the form that is billed (`usage.normalized`), or that would have been (`departures.cancelled`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The airline's code.
    pub carrier: String,
    /// Its flight number.
    pub flight: String,
    /// The aircraft, where it is known.
    pub tail: Option<String>,
    /// From.
    pub origin: String,
    /// To.
    pub dest: String,
    /// Scheduled departure, UTC.
    pub scheduled: String,
    /// Distance.
    pub miles: i64,
}

impl DefaultSerde for Usage {
    type Serde = Json<Self>;
}

impl Usage {
    /// The join key: the tail number, `NA` where there is none (no aircraft has that one).
    pub fn tail_number(&self) -> String {
        self.tail.clone().unwrap_or_else(|| "NA".to_owned())
    }

    /// The bill of this departure; an unknown aircraft has [`ESTIMATED_SEATS`].
    pub fn bill(&self, plane: Option<&Plane>) -> BillingEvent {
        let seats = plane.map_or(ESTIMATED_SEATS, |plane| plane.seats);
        BillingEvent {
            usage: self.clone(),
            airline: None,
            seats,
            estimated: plane.is_none(),
            amount_cents: BASE_CENTS + SEAT_CENTS * seats + MILE_CENTS * self.miles,
        }
    }
}

/// An aircraft (`planes`, by tail number).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plane {
    /// Its seats.
    pub seats: i64,
    /// Its model, to be looked at.
    pub model: String,
}

impl DefaultSerde for Plane {
    type Serde = Json<Self>;
}

/// An airline (`airlines`, by code).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Airline {
    /// Its name.
    pub name: String,
}

impl DefaultSerde for Airline {
    type Serde = Json<Self>;
}

/// One departure with its charge (`billing.events`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillingEvent {
    /// What was used.
    #[serde(flatten)]
    pub usage: Usage,
    /// The airline's name, where its code is known.
    pub airline: Option<String>,
    /// Seats of the aircraft.
    pub seats: i64,
    /// Whether the seats are an estimate.
    pub estimated: bool,
    /// The charge.
    pub amount_cents: i64,
}

impl DefaultSerde for BillingEvent {
    type Serde = Json<Self>;
}

/// Totals of a day (`billing.daily`) or of a month (`billing.invoice-candidates`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The airline's name, where its code is known.
    pub airline: Option<String>,
    /// How many departures.
    pub departures: i64,
    /// Their seats.
    pub seats: i64,
    /// Their miles.
    pub miles: i64,
    /// How many of them with estimated seats.
    pub estimated: i64,
    /// Their charge.
    pub amount_cents: i64,
}

impl DefaultSerde for Totals {
    type Serde = Json<Self>;
}

impl Totals {
    /// One departure more.
    #[must_use]
    pub fn with(self, event: &BillingEvent) -> Totals {
        Totals {
            airline: event.airline.clone(),
            departures: self.departures + 1,
            seats: self.seats + event.seats,
            miles: self.miles + event.usage.miles,
            estimated: self.estimated + i64::from(event.estimated),
            amount_cents: self.amount_cents + event.amount_cents,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn raw(dep_time: &str, distance: &str) -> String {
        format!(
            r#"{{"year":"2013","month":"1","day":"1","dep_time":"{dep_time}","sched_dep_time":"515","dep_delay":"2","arr_time":"830",
            "sched_arr_time":"819","arr_delay":"11","carrier":"UA","flight":"1545","tailnum":"N14228","origin":"EWR","dest":"IAH",
            "air_time":"227","distance":"{distance}","hour":"5","minute":"15","time_hour":"2013-01-01T10:00:00Z"}}"#
        )
    }

    #[test]
    fn a_departure_is_charged_by_seats_and_miles() {
        let departure: Departure = serde_json::from_str(&raw("517", "1400")).unwrap();
        assert!(!departure.is_cancelled());
        let usage = departure.usage();
        assert_eq!(usage.scheduled, "2013-01-01T10:15:00Z");
        let plane = Plane {
            seats: 149,
            model: "737-824".to_owned(),
        };
        assert_eq!(usage.bill(Some(&plane)).amount_cents, 2_500 + 12 * 149 + 3 * 1_400);
        let unknown = usage.bill(None);
        assert_eq!(
            (unknown.seats, unknown.estimated, unknown.amount_cents),
            (100, true, 2_500 + 1_200 + 4_200)
        );
    }

    #[test]
    fn a_departure_without_a_time_is_cancelled_and_arrives_as_scheduled() {
        let departure: Departure = serde_json::from_str(&raw("NA", "1400")).unwrap();
        assert!(departure.is_cancelled());
        let mut raw: RawDeparture = departure.into();
        assert_eq!(raw.arrival_ms(), Ok(raw.scheduled_ms().unwrap() + 120_000));
        raw.dep_delay = "NA".to_owned();
        assert_eq!(raw.arrival_ms(), raw.scheduled_ms());
    }

    #[test]
    fn a_number_that_is_none_is_not_decoded() {
        let error = serde_json::from_str::<Departure>(&raw("517", "far")).unwrap_err();
        assert!(error.to_string().contains("distance `far` is no number"), "{error}");
    }
}
