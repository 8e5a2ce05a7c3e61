//! Email addresses.

use std::fmt;
use std::str::FromStr;

use ringfence::MailAddress;

/// The longest address that mail can be sent to, in bytes (RFC 5321, 4.5.3.1.3, without brackets).
pub const EMAIL_BYTES_MAX: usize = 254;

/// A text before and after the last `@`, without white space and control characters.
const PATTERN: &str = concat!(
    r"^[^\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+",
    r"@[^@\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$",
);

/// The address of a customer, as an event has it. A command takes a [`MailAddress`], which is stricter: older events
/// may have addresses to which no mail can be sent.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("maxLength" = EMAIL_BYTES_MAX, "pattern" = PATTERN))]
pub struct Email(String);

/// The string is not an email address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an email address has the form name@domain, at most {EMAIL_BYTES_MAX} bytes, and no white space \
     or control characters"
)]
pub struct EmailError;

impl TryFrom<String> for Email {
    type Error = EmailError;

    fn try_from(text: String) -> Result<Self, EmailError> {
        let parts = text.rsplit_once('@');
        let whole = parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
        let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if whole && plain && text.len() <= EMAIL_BYTES_MAX {
            Ok(Self(text))
        } else {
            Err(EmailError)
        }
    }
}

impl FromStr for Email {
    type Err = EmailError;

    fn from_str(text: &str) -> Result<Self, EmailError> {
        Self::try_from(text.to_owned())
    }
}

impl From<MailAddress> for Email {
    fn from(address: MailAddress) -> Self {
        Self(address.into())
    }
}

impl From<Email> for String {
    fn from(email: Email) -> Self {
        email.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use regex_lite::Regex;

    use super::*;

    #[test]
    fn an_address_has_text_before_and_after_an_at_sign() {
        let pattern = Regex::new(PATTERN).expect("a pattern");
        let is_like = |text: &str| pattern.is_match(text) && text.len() <= EMAIL_BYTES_MAX;
        for text in ["a@b", "ada.l@example.com", "a@b@c"] {
            assert!(text.parse::<Email>().is_ok() && is_like(text), "{text}");
        }
        let long = format!("{}@b", "x".repeat(253));
        for text in ["", "@", "a", "a@", "@b", "a b@c", "a@b\n", &long] {
            assert!(text.parse::<Email>().is_err() && !is_like(text), "{text}");
        }
    }
}
