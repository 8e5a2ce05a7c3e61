//! A value in one line, which readers of YAML 1.1 and 1.2 read alike. CloudFormation reads 1.1.

use std::fmt::Write;

use serde_yaml_ng::Value;

/// Words, in lowercase, that YAML 1.1 does not read as texts.
const WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// A value in one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => match number.to_string() {
            // YAML 1.1 needs a point and a sign: it reads `1e30` as a text.
            text if text.contains('e') => {
                let (digits, power) = text.split_once('e').unwrap_or_default();
                let point = if digits.contains('.') { "" } else { ".0" };
                let sign = if power.starts_with('-') { "" } else { "+" };
                format!("{digits}{point}e{sign}{power}")
            }
            text => text,
        },
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Sequence(all) => {
            format!("[{}]", all.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Mapping(all) if all.is_empty() => "{}".to_owned(),
        Value::Mapping(all) => {
            let all = all.iter().map(|(name, value)| format!("{}: {}", flow(name), flow(value)));
            format!("{{ {} }}", all.collect::<Vec<_>>().join(", "))
        }
        Value::Tagged(tagged) => format!("{} {}", tagged.tag, flow(&tagged.value)),
    }
}

/// Whether a text needs no quotes. Numbers, dates, times and the other forms of YAML 1.1 begin with a digit, a sign or
/// a point.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || "/$".contains(c))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./$ ".contains(c))
        && !text.ends_with(' ')
        && !WORDS.contains(&&*text.to_ascii_lowercase())
}

fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            // Readers refuse these characters, or take them for the end of a line.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(quoted, "\\u{:04x}", u32::from(c))
            }
            c if c.is_control() => write!(quoted, "\\x{:02x}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use serde_yaml_ng::{Mapping, Value};

    use super::*;

    /// Texts that YAML 1.1 reads as something else without quotes, and texts that are hard to quote.
    const HARD: [&str; 66] = [
        "y",
        "Y",
        "yes",
        "Yes",
        "YES",
        "n",
        "N",
        "no",
        "No",
        "NO",
        "on",
        "On",
        "ON",
        "off",
        "Off",
        "OFF",
        "true",
        "True",
        "TRUE",
        "false",
        "False",
        "FALSE",
        "null",
        "Null",
        "NULL",
        "~",
        "",
        "012",
        "0o17",
        "0x1F",
        "0b10",
        "1_000",
        "1e3",
        "1.5",
        "-1",
        "+1",
        "12:30:45",
        "190:20:30",
        ".5",
        ".inf",
        "-.INF",
        ".NaN",
        "2026-01-01",
        "2026-01-01 10:00:00",
        "=",
        "<<",
        "-",
        "- a",
        "?",
        "# a",
        "a #b",
        "a: b",
        "[a]",
        "{a}",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "'a'",
        "\"a\"",
        " a",
        "a ",
        "a\tb\r\nc",
        "\\",
    ];

    #[test]
    fn every_text_is_read_as_it_was_in_a_list_a_map_and_as_a_key() {
        let mut texts: Vec<String> = HARD.map(str::to_owned).to_vec();
        // Every character that may have a meaning in YAML, alone and between letters.
        let chars = (0..=0x2ff_u32).chain([0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff, 0x1f600]);
        for c in chars.filter_map(char::from_u32) {
            texts.extend([c.to_string(), format!("a{c}b"), format!("a {c}"), format!("{c} a")]);
        }
        for text in &texts {
            let map: Mapping = [(Value::from(&**text), Value::from(&**text))].into_iter().collect();
            let value = Value::Sequence(vec![text.clone().into(), map.into()]);
            let written = flow(&value);
            let read: Value = serde_yaml_ng::from_str(&written).expect("YAML");
            assert_eq!(read, value, "{written}");
        }
        // This library reads YAML 1.2, so this only checks the quotes that YAML 1.1 needs.
        for text in HARD {
            assert!(flow(&text.into()).starts_with('"'), "{text}");
        }
        for text in ["arn/of", "AWS", "a-b.c_d $e", "/shop/{x}", "sts.amazonaws.com"] {
            assert_eq!(flow(&text.into()).starts_with('"'), text.contains('{'), "{text}");
        }
        assert_eq!(flow(&Value::from(1e30)), "1.0e+30");
    }
}
