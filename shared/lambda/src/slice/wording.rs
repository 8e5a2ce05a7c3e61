//! The message for an invalid value of a field. serde's message has words of Rust and the whole value; this one has
//! words of JSON and the limit.

use crate::bounded;

/// The longest part of a value that is repeated, in bytes.
const SHOWN_BYTES_MAX: usize = 64;

/// The field and its fault, from the path of a value and serde's message. `whole` names the root, for an empty path.
///
/// A message that begins with a path and a colon concerns a field inside the value. In this way the variants of a
/// command name the wrong field.
#[must_use]
pub fn plain(whole: &str, path: &str, message: &str) -> (String, String) {
    let (inside, message) = match message.split_once(": ") {
        Some((inside, message)) if is_path(inside) => (inside, message),
        _ => ("", message),
    };
    let missing = within(message, "missing field `", "`");
    let parts = [path, inside, missing.unwrap_or_default()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let field = if parts.is_empty() { whole.to_owned() } else { parts.join(".") };
    (field, missing.map_or_else(|| reworded(message), |_| "is missing".to_owned()))
}

fn is_path(text: &str) -> bool {
    let of_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    !text.is_empty() && text.chars().all(of_path)
}

fn reworded(message: &str) -> String {
    if message.starts_with("unknown field `") {
        return format!("is unknown{}", choice(message, "; the fields are "));
    }
    if message.starts_with("unknown variant `") {
        return format!("has an unknown value{}", choice(message, "; the values are "));
    }
    if message.starts_with("data did not match any variant") {
        return "does not match any form that is possible here".to_owned();
    }
    // The expected type is at the end. Before it is the caller's text, which may contain anything.
    let Some((start, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    if let Some(length) = start.strip_prefix("invalid length ") {
        return format!("must be {}, has {length}", taken(expected));
    }
    let found = ["invalid type: ", "invalid value: "].iter().find_map(|k| start.strip_prefix(k));
    match found {
        Some(found) => format!("must be {}, is {}", taken(expected), given(found)),
        None => message.to_owned(),
    }
}

/// The possible names according to serde, after `before`.
fn choice(message: &str, before: &str) -> String {
    let names = message.rsplit_once(", expected ").map_or("", |(_, expected)| expected);
    let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    if names.is_empty() { String::new() } else { format!("{before}{}", names.join(", ")) }
}

fn within<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.split_once(after).map(|(inside, _)| inside)
}

/// The valid values of a field.
fn taken(expected: &str) -> String {
    if let Some(range) = whole_numbers(expected) {
        return format!("an integer {range}");
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| expected.starts_with(start));
    match expected {
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" => "a string",
        "a character" => "a string of one character",
        "a boolean" => "true or false",
        "string or map" => "a string or an object",
        _ if begins(&["unit"]) => "null",
        _ if begins(&["a sequence", "tuple", "a tuple", "an array"]) => {
            let length = expected.split(' ').find(|word| word.parse::<usize>().is_ok());
            return length.map_or("a list".to_owned(), |length| format!("a list of {length}"));
        }
        _ if begins(&["a map", "struct", "enum", "internally tagged", "adjacently tagged"]) => {
            "an object"
        }
        // The words of the type's author.
        other => other,
    }
    .to_owned()
}

/// The range of an integer type, by its name in Rust.
fn whole_numbers(name: &str) -> Option<String> {
    let nonzero = name.strip_prefix("a nonzero ");
    let (least, most) = match nonzero.unwrap_or(name) {
        "u8" => (0, u8::MAX.into()),
        "u16" => (0, u16::MAX.into()),
        "u32" => (0, u32::MAX.into()),
        "u64" | "usize" | "u128" => (0, u64::MAX),
        "i8" => (i8::MIN.into(), i8::MAX as u64),
        "i16" => (i16::MIN.into(), i16::MAX as u64),
        "i32" => (i32::MIN.into(), i32::MAX as u64),
        "i64" | "isize" | "i128" => (i64::MIN, i64::MAX as u64),
        _ => return None,
    };
    Some(match (nonzero, least) {
        (None, least) => format!("from {least} to {most}"),
        (Some(_), 0) => format!("from 1 to {most}"),
        (Some(_), least) => format!("from {least} to {most}, and not 0"),
    })
}

/// The given value.
fn given(found: &str) -> String {
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" => "null".to_owned(),
        _ => {
            let literal = ["integer `", "floating point `", "boolean `", "character `"];
            let literal = literal.iter().find_map(|kind| within(found, kind, "`"));
            let text = literal.or_else(|| found.strip_prefix("string "));
            bounded(text.unwrap_or(found), SHOWN_BYTES_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, message: &str, field: &str, expected: &str) {
        assert_eq!(plain("body", path, message), (field.to_owned(), expected.to_owned()));
    }

    #[test]
    fn the_field_is_the_whole_path() {
        check("", "missing field `orderId`", "orderId", "is missing");
        check("price", "missing field `amount`", "price.amount", "is missing");
        check("", "lines[0].price: missing field `amount`", "lines[0].price.amount", "is missing");
        check("a", "b: c", "a.b", "c");
        check("", "what an author says", "body", "what an author says");
        check("e", "an id has: a, b", "e", "an id has: a, b");
    }

    #[test]
    fn limits_take_the_place_of_types() {
        let of = |expected: &str| {
            let (_, message) =
                plain("body", "n", &format!("invalid type: null, expected {expected}"));
            message.strip_suffix(", is null").expect("the value is named").to_owned()
        };
        for (expected, said) in [
            ("u8", "must be an integer from 0 to 255"),
            ("a nonzero u32", "must be an integer from 1 to 4294967295"),
            ("a nonzero i8", "must be an integer from -128 to 127, and not 0"),
            ("i64", "must be an integer from -9223372036854775808 to 9223372036854775807"),
            ("f64", "must be a number"),
            ("a string", "must be a string"),
            ("a boolean", "must be true or false"),
            ("a sequence", "must be a list"),
            ("a tuple of size 2", "must be a list of 2"),
            ("tuple struct Pair with 2 elements", "must be a list of 2"),
            ("struct Money", "must be an object"),
            ("unit", "must be null"),
            ("a date such as 2026-01-31", "must be a date such as 2026-01-31"),
        ] {
            assert_eq!(of(expected), said);
        }
    }

    #[test]
    fn the_message_for_a_list_of_a_wrong_length_has_both_lengths() {
        let message = "invalid length 3, expected an array of length 2";
        check("at", message, "at", "must be a list of 2, has 3");
    }

    #[test]
    fn the_value_is_shown_shortened() {
        let long = format!("invalid type: string {:?}, expected u8", "x, expected ".repeat(100));
        let (_, message) = plain("body", "n", &long);
        assert!(message.starts_with(r#"must be an integer from 0 to 255, is "x, expected x"#));
        assert!(message.len() < 120, "{message}");
        for (found, shown) in [
            ("map", "an object"),
            ("sequence", "a list"),
            ("integer `-1`", "-1"),
            ("floating point `1.5`", "1.5"),
            ("boolean `true`", "true"),
            (r#"string "a""#, r#""a""#),
        ] {
            let message = format!("invalid type: {found}, expected a string");
            check("n", &message, "n", &format!("must be a string, is {shown}"));
        }
    }

    #[test]
    fn the_possible_names_are_listed() {
        let fields = "unknown field `a`, expected one of `b`, `c`, `d`";
        check("a", fields, "a", "is unknown; the fields are b, c, d");
        check("a", "unknown field `a`, there are no fields", "a", "is unknown");
        let values = "unknown variant `a, expected `x``, expected `B` or `C`";
        check("type", values, "type", "has an unknown value; the values are B, C");
        let untagged = "data did not match any variant of untagged enum Target";
        check("to", untagged, "to", "does not match any form that is possible here");
    }
}
