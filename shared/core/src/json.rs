//! Foreign JSON, read and written without loss.
//!
//! A text is refused, with the path of the field, if a key is repeated, if it nests too deep, or if a program can't
//! hold a number exactly. `serde_json` would drop a value or round.
//!
//! Stored JSON can't be refused: DynamoDB keeps 38 digits, and the body of a document has any number. A number that
//! does not fit becomes an object with its text, `{"$number": "1584097275961.1234"}`, and a store of the value writes
//! the number again. So a copy has the same number, and a type that takes a number refuses the event instead of taking
//! another number. serde_json's feature `arbitrary_precision` does not help: each number would be a text in memory, and
//! types that serde reads through a buffer (`untagged`, `flatten`) would fail on fractions.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde_json::{Map, Number, Value};

/// The one field of the object that stands for a number that does not fit.
pub const NUMBER: &str = "$number";
/// The depth limit of a text around and in a stored value: `serde_json` reads no deeper.
pub const LEVELS_MAX: usize = 127;

/// A text that can't be read without loss.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", prefix(.path))]
pub struct JsonError {
    /// The path of the field, such as `items[2].price`; empty for the whole.
    pub path: String,
    /// The fault.
    pub problem: String,
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// Parses a text, at most `levels_max` deep. The innermost value counts as a level.
///
/// # Errors
/// It is not JSON, a key is repeated, it nests too deep, or a number does not fit.
pub fn read(text: &str, levels_max: usize) -> Result<Value, JsonError> {
    Reader::whole(text, levels_max, false)
}

/// Parses a text from a store. A number that does not fit becomes an object.
///
/// # Errors
/// It is not JSON, a key is repeated, or it nests deeper than [`LEVELS_MAX`].
pub fn read_stored(text: &str) -> Result<Value, JsonError> {
    Reader::whole(text, LEVELS_MAX, true)
}

/// The text of a value for a store, with numbers in place of the objects that stand for them.
#[must_use]
pub fn stored_text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// The value of a number in a store; `None` if the text is not a number of JSON.
#[must_use]
pub fn stored_number(text: &str) -> Option<Value> {
    let kept = || Value::Object(Map::from_iter([(NUMBER.to_owned(), text.into())]));
    is_number(text).then(|| fitting(text).map_or_else(kept, Value::Number))
}

/// The text of the number for which this value stands.
#[must_use]
pub fn kept_number(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let text = object.get(NUMBER)?.as_str()?;
    (is_number(text) && fitting(text).is_none()).then_some(text)
}

/// The number in a text, unless its value would change.
#[must_use]
pub fn fitting(text: &str) -> Option<Number> {
    if !is_number(text) {
        return None;
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    let kept = Number::from_f64(text.parse().ok()?)?;
    (Digits::of(text) == Digits::of(&kept.to_string())).then_some(kept)
}

/// The integer of a text, also with a fraction or an exponent, such as `1250.0` and `1.25e3`: in JSON Schema they are
/// the same integer.
fn whole(text: &str) -> Option<Number> {
    let digits = Some(text).filter(|text| is_number(text)).map(Digits::of)?;
    let is_short = (0..=i64::from(u64::MAX.ilog10())).contains(&digits.power);
    let text = is_short.then(|| digits.plain())?;
    text.parse::<u64>().map(Number::from).or_else(|_| text.parse::<i64>().map(Number::from)).ok()
}

/// The value of a number, independent of its notation.
#[derive(Debug, PartialEq, Eq)]
pub struct Digits {
    /// Whether it is below zero.
    pub is_negative: bool,
    /// The digits without zeros at both ends; empty for zero.
    pub significant: String,
    /// The power of ten of the last digit.
    pub power: i64,
}

impl Digits {
    /// The value of a number of JSON.
    #[must_use]
    pub fn of(number: &str) -> Self {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{}{fraction}", whole.trim_start_matches('-'));
        let trimmed = all.trim_end_matches('0');
        let dropped = (all.len() - trimmed.len()) as i64 - fraction.len() as i64;
        let significant = trimmed.trim_start_matches('0').to_owned();
        if significant.is_empty() {
            return Self { is_negative: false, significant, power: 0 };
        }
        let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let power = exponent.parse().unwrap_or(beyond).saturating_add(dropped);
        Self { is_negative: number.starts_with('-'), significant, power }
    }

    /// The number in DynamoDB's notation: without an exponent, and 1.0 as 1.
    #[must_use]
    pub fn plain(&self) -> String {
        let Self { is_negative, significant, power } = self;
        let sign = if *is_negative { "-" } else { "" };
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        let whole = significant.len() as i64 + power;
        match (usize::try_from(whole), *power) {
            _ if significant.is_empty() => "0".to_owned(),
            (_, 0..) => format!("{sign}{significant}{}", zeros(*power)),
            (Ok(whole @ 1..), _) => {
                let (whole, fraction) = significant.split_at(whole);
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!("{sign}0.{}{significant}", zeros(-whole)),
        }
    }
}

/// Whether a text is a number of JSON.
fn is_number(text: &str) -> bool {
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(are_digits)
        && exponent.is_none_or(|it| are_digits(it.strip_prefix(['+', '-']).unwrap_or(it)))
}

fn write(value: &Value, text: &mut String) {
    if let Some(number) = kept_number(value) {
        return text.push_str(number);
    }
    let mut comma = "";
    match value {
        Value::Array(values) => {
            text.push('[');
            for value in values {
                text.push_str(std::mem::replace(&mut comma, ","));
                write(value, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (name, value) in fields {
                let name = Value::from(name.as_str());
                write!(text, "{}{name}:", std::mem::replace(&mut comma, ","))
                    .expect("writing to a String does not fail");
                write(value, text);
            }
            text.push('}');
        }
        scalar => write!(text, "{scalar}").expect("writing to a String does not fail"),
    }
}

/// Parses a text that is JSON, from its beginning.
struct Reader<'t> {
    rest: &'t str,
    /// The path of the value; empty for the whole.
    path: String,
    levels_max: usize,
    /// Whether a number that does not fit becomes an object.
    keeps_numbers: bool,
}

impl<'t> Reader<'t> {
    fn whole(text: &'t str, levels_max: usize, keeps_numbers: bool) -> Result<Value, JsonError> {
        let mut reader = Self { rest: text, path: String::new(), levels_max, keeps_numbers };
        if text.starts_with('\u{feff}') {
            return Err(reader.wrong("begins with a byte order mark; send UTF-8 without one"));
        }
        // This checks the form of the JSON, at any depth, except the escapes in its strings.
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| reader.no_json(&error))?;
        reader.value(1)
    }

    fn value(&mut self, level: usize) -> Result<Value, JsonError> {
        self.skip_space();
        if level > self.levels_max {
            return Err(self.wrong(format!("nests deeper than {} levels", self.levels_max)));
        }
        match self.rest.as_bytes()[0] {
            b'{' => self.object(level),
            b'[' => self.list(level),
            b'"' => self.text().map(Value::String),
            _ => self.word(),
        }
    }

    fn object(&mut self, level: usize) -> Result<Value, JsonError> {
        let mut object = Map::new();
        self.skip(1);
        while self.has_more('}') {
            let name = self.text()?;
            self.skip_space();
            self.skip(1);
            let dot = if self.path.is_empty() { "" } else { "." };
            // An empty name is shown in quotation marks.
            let shown = if name.is_empty() { r#""""# } else { &name };
            let value =
                self.inside(&format!("{dot}{shown}"), |reader| match object.contains_key(&name) {
                    true => Err(reader.wrong("is given twice")),
                    false => reader.value(level + 1),
                })?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }

    fn list(&mut self, level: usize) -> Result<Value, JsonError> {
        let mut list = Vec::new();
        self.skip(1);
        while self.has_more(']') {
            let step = format!("[{}]", list.len());
            list.push(self.inside(&step, |reader| reader.value(level + 1))?);
        }
        Ok(Value::Array(list))
    }

    fn text(&mut self) -> Result<String, JsonError> {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let text = self.skip(end + 1);
        serde_json::from_str(text).map_err(|error| self.no_json(&error))
    }

    /// A number, a boolean or null.
    fn word(&mut self) -> Result<Value, JsonError> {
        let end = self.rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
        let word = self.skip(end.unwrap_or(self.rest.len()));
        match word {
            "null" => Ok(Value::Null),
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            number if self.keeps_numbers => {
                stored_number(number).ok_or_else(|| self.wrong("is not a number"))
            }
            number => {
                whole(number).or_else(|| fitting(number)).map(Value::Number).ok_or_else(|| {
                    self.wrong(
                        "is a number that can't be kept as it is: an integer has 64 bits, any other 15 to 17 \
                         digits and at most 1.7e308; send it as a text",
                    )
                })
            }
        }
    }

    /// Whether the object or the list has another element. Skips the separator or the end.
    fn has_more(&mut self, end: char) -> bool {
        self.skip_space();
        self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        self.skip_space();
        let rest = self.rest.strip_prefix(end);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_none()
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn skip(&mut self, bytes: usize) -> &'t str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        skipped
    }

    /// Parses the value at `step` of the path.
    fn inside<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let here = self.path.len();
        self.path.push_str(step);
        let value = read(self);
        self.path.truncate(here);
        value
    }

    fn no_json(&self, error: &serde_json::Error) -> JsonError {
        self.wrong(format!("is not JSON: {error}"))
    }

    fn wrong(&self, problem: impl Into<String>) -> JsonError {
        JsonError { path: self.path.clone(), problem: problem.into() }
    }
}

#[cfg(test)]
mod tests;
