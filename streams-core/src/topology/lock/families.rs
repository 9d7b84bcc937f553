//! Generated names: a text, a number of ten digits, a text. All that differ in the number alone are a family, and the
//! numbers of a family move together when an operator is inserted before them.

/// A generated name in its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generated<'n> {
    pub(super) family: (&'n str, &'n str),
    pub(super) number: u64,
}

/// The parts of a generated name; `None` = it was given.
pub(super) fn generated(name: &str) -> Option<Generated<'_>> {
    let start = name
        .char_indices()
        .filter(|(at, _)| *at > 0 && name.get(..*at).is_some_and(|before| before.ends_with('-')))
        .map(|(at, _)| at)
        .find(|at| is_number(name.get(*at..*at + 10)))?;
    let (before, rest) = name.split_at_checked(start)?;
    let (number, after) = rest.split_at_checked(10)?;
    if !(after.is_empty() || after.starts_with('-')) {
        return None;
    }
    Some(Generated {
        family: (before, after),
        number: number.parse().ok()?,
    })
}

fn is_number(digits: Option<&str>) -> bool {
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_generated_name_is_found_wherever_it_stands() {
        let parts = |name| generated(name).map(|found| (found.family, found.number));
        assert_eq!(
            parts("KSTREAM-AGGREGATE-STATE-STORE-0000000003"),
            Some((("KSTREAM-AGGREGATE-STATE-STORE-", ""), 3))
        );
        assert_eq!(
            parts("KSTREAM-JOINTHIS-0000000012-store"),
            Some((("KSTREAM-JOINTHIS-", "-store"), 12))
        );
        assert_eq!(parts("bills"), None);
        assert_eq!(parts("bills-2026"), None);
        assert_eq!(parts("0000000003"), None);
        assert_eq!(parts("by-00000000031"), None);
        assert_eq!(parts("héé-0000000003"), Some((("héé-", ""), 3)));
    }
}
