//! The catalogue of functions that cases name. Keys and values are nullable strings, and a null is printed `null`.

use super::{Step, broken};

pub(crate) type Text = Option<String>;

/// A function of key and value.
pub(crate) type Eval = Box<dyn Fn(Option<&str>, Option<&str>) -> Text + Send + Sync>;
/// A question about key and value.
pub(crate) type Test = Box<dyn Fn(Option<&str>, Option<&str>) -> bool + Send + Sync>;
/// A function of two values, or of a value and an aggregate.
pub(crate) type Combine = Box<dyn Fn(Option<&str>, Option<&str>) -> Text + Send + Sync>;

pub(crate) fn shown(text: Option<&str>) -> &str {
    text.unwrap_or("null")
}

/// `part:N`, `nullif:X`, `throwif:X`, `const:X`, `key`, `value`, `number` (of letters), `upper`, `dup`, `keyvalue`.
pub(crate) fn eval(name: &str) -> Step<Eval> {
    let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
    let argument = argument.to_owned();
    Ok(match kind {
        "key" => Box::new(|key, _| key.map(str::to_owned)),
        "value" => Box::new(|_, value| value.map(str::to_owned)),
        "number" => Box::new(|_, value| value.map(|value| value.encode_utf16().count().to_string())),
        "upper" => Box::new(|_, value| value.map(str::to_uppercase)),
        "dup" => Box::new(|_, value| value.map(|value| format!("{value}{value}"))),
        "keyvalue" => Box::new(|key, value| Some(format!("{}:{}", shown(key), shown(value)))),
        "const" => Box::new(move |_, _| Some(argument.clone())),
        "nullif" => Box::new(move |_, value| value.filter(|value| *value != argument).map(str::to_owned)),
        "throwif" => Box::new(move |_, value| {
            assert!(value != Some(&*argument), "IllegalStateException: told to throw");
            value.map(str::to_owned)
        }),
        "part" => {
            let Ok(at) = argument.parse::<usize>() else {
                return broken(format!("function {name}"));
            };
            Box::new(move |_, value| {
                value?
                    .split('|')
                    .nth(at)
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
            })
        }
        _ => return broken(format!("unknown function {name}")),
    })
}

/// `notnull`, `keynotnull`, `ne:X`, `eq:X`, `gt:N`.
pub(crate) fn test(name: &str) -> Step<Test> {
    let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
    let argument = argument.to_owned();
    Ok(match kind {
        "notnull" => Box::new(|_, value| value.is_some()),
        "keynotnull" => Box::new(|key, _| key.is_some()),
        "ne" => Box::new(move |_, value| value != Some(&*argument)),
        "eq" => Box::new(move |_, value| value == Some(&*argument)),
        "gt" => Box::new(move |_, value| value.is_some_and(|value| number(value) > number(&argument))),
        _ => return broken(format!("unknown test {name}")),
    })
}

/// A joiner of left and right: `pair`, `nullifright`.
pub(crate) fn joiner(name: &str) -> Step<Combine> {
    let pair = |left: Option<&str>, right: Option<&str>| format!("({},{})", shown(left), shown(right));
    Ok(match name {
        "pair" => Box::new(move |left, right| Some(pair(left, right))),
        "nullifright" => Box::new(move |left, right| right.map(|right| pair(left, Some(right)))),
        _ => return broken(format!("unknown joiner {name}")),
    })
}

/// An aggregator of value and aggregate.
pub(crate) fn aggregator(name: &str) -> Step<Combine> {
    let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
    let argument = argument.to_owned();
    Ok(match kind {
        "add" => Box::new(|value, old| Some(format!("{}+{}", shown(old), shown(value)))),
        "sub" => Box::new(|value, old| Some(format!("{}-{}", shown(old), shown(value)))),
        "sum" => Box::new(|value, old| Some(number(shown(old)).wrapping_add(number(shown(value))).to_string())),
        "minus" => Box::new(|value, old| Some(number(shown(old)).wrapping_sub(number(shown(value))).to_string())),
        "last" => Box::new(|value, _| value.map(str::to_owned)),
        "cat" => Box::new(|value, old| Some(format!("{}.{}", shown(old), shown(value)))),
        "nullon" => Box::new(move |value, old| {
            assert!(value.is_some(), "NullPointerException: a null value");
            (value != Some(&*argument)).then(|| format!("{}+{}", old.unwrap_or("0"), shown(value)))
        }),
        _ => return broken(format!("unknown aggregator {name}")),
    })
}

/// A reducer of the value so far and the new one.
pub(crate) fn reducer(name: &str) -> Step<Combine> {
    Ok(match name {
        "cat" => Box::new(|old, new| Some(format!("{},{}", shown(old), shown(new)))),
        "sub" => Box::new(|old, new| Some(format!("{}-{}", shown(old), shown(new)))),
        "sum" => Box::new(|old, new| Some(number(shown(old)).wrapping_add(number(shown(new))).to_string())),
        "minus" => Box::new(|old, new| Some(number(shown(old)).wrapping_sub(number(shown(new))).to_string())),
        "max" => Box::new(|old, new| Some(number(shown(old)).max(number(shown(new))).to_string())),
        "last" => Box::new(|_, new| new.map(str::to_owned)),
        _ => return broken(format!("unknown reducer {name}")),
    })
}

/// A decimal number; a case's function fails on anything else, as Java's does.
fn number(text: &str) -> i64 {
    match text.parse() {
        Ok(number) => number,
        Err(_) => std::panic::panic_any(format!("NumberFormatException: {text}")),
    }
}
