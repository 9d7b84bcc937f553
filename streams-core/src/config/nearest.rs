//! The known name that a mistyped one was probably meant to be.

/// The name with the least edit distance, if it is near enough to be meant.
pub(super) fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (length, most) = (wanted.chars().count(), (wanted.len() / 3).max(2));
    // A distance is at least the difference of the lengths, which costs nothing to know.
    names
        .filter(|name| name.chars().count().abs_diff(length) <= most)
        .map(|name| (distance(wanted, name), name))
        .min()
        .filter(|(distance, _)| *distance <= most)
        .map(|(_, name)| name)
}

/// Levenshtein's distance, row by row.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (line, from) in a.chars().enumerate() {
        let mut next = Vec::with_capacity(row.len());
        let mut left = line + 1;
        next.push(left);
        for (to, (diagonal, above)) in b.chars().zip(row.iter().zip(row.iter().skip(1))) {
            left = (diagonal + usize::from(from != to)).min(left + 1).min(above + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, expected) in [
            ("", "", 0),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
            ("abc", "", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_name_that_is_like_none_has_no_nearest() {
        assert_eq!(
            nearest("linger.m", ["linger.ms", "poll.ms"].into_iter()),
            Some("linger.ms")
        );
        assert_eq!(nearest("zzzzzz", ["linger.ms", "poll.ms"].into_iter()), None);
    }
}
