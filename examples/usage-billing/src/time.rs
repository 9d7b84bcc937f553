//! UTC calendar dates from and to milliseconds since the Unix epoch. The input has no other time zone.

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since the Unix epoch of `YYYY-MM-DDTHH:MM:SSZ`; `None` for any other form.
pub fn parse_utc(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        let digits = text.get(range)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse::<i64>().ok())?
    };
    let marks = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")];
    let formed = text.len() == 20 && marks.iter().all(|(at, mark)| text.get(*at..at + 1) == Some(mark));
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let valid =
        formed && (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    valid.then(|| days_from_date(year, month, day) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1_000)
}

/// `YYYY-MM-DD` of a time.
pub fn date(time_ms: i64) -> String {
    let (year, month, day) = date_from_days(time_ms.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `YYYY-MM` of a time.
pub fn month(time_ms: i64) -> String {
    let (year, month, _) = date_from_days(time_ms.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}")
}

/// `YYYY-MM-DDTHH:MM:SSZ` of a time.
pub fn format_utc(time_ms: i64) -> String {
    let seconds = time_ms.rem_euclid(DAY_MS) / 1_000;
    format!(
        "{}T{:02}:{:02}:{:02}Z",
        date(time_ms),
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Days since 1970-01-01. A year begins in March here, so that the leap day is its last.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before_year = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let before_month = (month * 153 + 2) / 5;
    before_year + before_month + day - 1 - 719_468
}

fn date_from_days(days: i64) -> (i64, i64, i64) {
    // Years of 365 days: never too early after 1970, and too late by one year in a few centuries at most.
    let guess = 1970 + days.div_euclid(365) + 1;
    let year = (0..)
        .map(|back| guess - back)
        .find(|year| days_from_date(*year, 1, 1) <= days)
        .unwrap_or(guess);
    let month = (1..=12)
        .rev()
        .find(|month| days_from_date(year, *month, 1) <= days)
        .unwrap_or(1);
    (year, month, days - days_from_date(year, month, 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_and_print_the_same() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2013-01-31T23:59:00Z",
            "2012-02-29T12:00:00Z",
            "2000-03-01T00:00:01Z",
            "2100-02-28T05:06:07Z",
        ] {
            assert_eq!(parse_utc(text).map(format_utc).as_deref(), Some(text));
        }
        assert_eq!(parse_utc("2013-01-01T10:00:00Z"), Some(1_357_034_400_000));
        assert_eq!(
            (date(1_357_034_400_000), month(1_357_034_400_000)),
            ("2013-01-01".to_owned(), "2013-01".to_owned())
        );
    }

    #[test]
    fn consecutive_days_have_consecutive_dates() {
        let dates: Vec<_> = (15_000..16_500).map(date_from_days).collect();
        for (at, (year, month, day)) in (15_000..).zip(&dates) {
            assert_eq!(days_from_date(*year, *month, *day), at);
        }
        assert!(dates.windows(2).all(|pair| pair.first() < pair.last()));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "NA",
            "2013-01-01 10:00:00",
            "2013-13-01T10:00:00Z",
            "2013-01-01T24:00:00Z",
            "2013-01-01T10:00:00+",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }
}
