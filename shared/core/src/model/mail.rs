//! Addresses of mail.

use std::str::FromStr;
use std::{borrow::Cow, fmt};

use email_address::EmailAddress;
use ringfence_derive::value;

use crate::TagValue;

/// The most bytes of an address as it is sent, with its domain (RFC 5321, 4.5.3.1.3, without brackets).
pub const MAIL_ADDRESS_BYTES_MAX: usize = 254;

/// An address for mail, as a person has typed it. The name is plain ASCII without quotes. The domain is a DNS domain
/// with at least two parts, and may have letters of any script (IDNA). Only a mail that arrives proves more.
///
/// A command takes this type, so that no effect fails later because of the address. `Debug` does not show it, so it
/// gets into no log.
#[value]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend(
    "format" = "idn-email",
    "maxLength" = MAIL_ADDRESS_BYTES_MAX,
    "pattern" = r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[^@\u0000-\u0020]+$"
))]
pub struct MailAddress(String);

/// The text is not an address for mail. The error does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not an address for mail: it has the form name@example.com, at most {MAIL_ADDRESS_BYTES_MAX} bytes, and no \
     quotes or blanks"
)]
pub struct MailAddressError;

impl MailAddress {
    /// The address in ASCII, as it is sent: its domain is in Punycode.
    #[must_use]
    pub fn to_ascii(&self) -> String {
        in_ascii(&self.0).expect("it was checked when it was made")
    }
}

fn in_ascii(text: &str) -> Option<String> {
    let (name, domain) = text.rsplit_once('@')?;
    // IDNA drops these, so two texts would mean one address.
    let is_shown =
        !domain.contains(['\u{ad}', '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}']);
    // A domain without dots is a host of the local network. The last part of an IP address begins with a digit.
    let domain = idna::domain_to_ascii_strict(domain).ok()?;
    let (_, last) = domain.rsplit_once('.')?;
    let is_domain = is_shown && last.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_name = name.is_ascii() && !name.contains('"') && EmailAddress::is_valid_local_part(name);
    let ascii = format!("{name}@{domain}");
    (is_domain && is_name && ascii.len() <= MAIL_ADDRESS_BYTES_MAX).then_some(ascii)
}

/// The address in lower case and in ASCII, so all spellings of one mailbox are one value.
impl TagValue for MailAddress {
    fn tag_value(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_ascii().to_lowercase())
    }
}

impl TryFrom<String> for MailAddress {
    type Error = MailAddressError;

    fn try_from(text: String) -> Result<Self, MailAddressError> {
        // IDNA shortens some domains, such as those with selectors of variants.
        in_ascii(&text).filter(|_| text.len() <= MAIL_ADDRESS_BYTES_MAX).ok_or(MailAddressError)?;
        Ok(Self(text))
    }
}

impl FromStr for MailAddress {
    type Err = MailAddressError;

    fn from_str(text: &str) -> Result<Self, MailAddressError> {
        text.to_owned().try_into()
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.0
    }
}

impl fmt::Debug for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MailAddress(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_plain_name_and_a_domain_of_dns() {
        for (text, ascii) in [
            ("a@b.c", "a@b.c"),
            ("Ada.L+shop@example.com", "Ada.L+shop@example.com"),
            ("ada@bücher.example", "ada@xn--bcher-kva.example"),
            ("ada@EXAMPLE.com", "ada@example.com"),
        ] {
            let address: MailAddress = text.parse().expect(text);
            assert_eq!(
                (address.to_ascii(), &*address.tag_value()),
                (ascii.to_owned(), &*ascii.to_lowercase())
            );
            assert_eq!(String::from(address), text);
        }
        let long = format!("{}@{}.example", "x".repeat(64), ["y".repeat(60).as_str(); 4].join("."));
        for text in [
            "",
            "@",
            "a",
            "a@",
            "@b.c",
            "a@b",
            "a b@c.de",
            "a@b.c\n",
            "a..b@c.de",
            ".a@b.de",
            "a.@b.de",
            "x@-",
            "x@-a.de",
            "x@a-.de",
            "x@a..de",
            "x@a.de.",
            "<x>@a.de",
            "<x@a.de>",
            "x@<a.de>",
            "\"a b\"@c.de",
            "zoë@example.com",
            "a@[127.0.0.1]",
            "a@127.0.0.1",
            "a@b@c.de",
            "a,b@c.de",
            "a@b,c.de",
            "a@b_c.de",
            "a@1.0x7f",
            "a@b.de\u{200b}",
            "a@b\u{ad}c.de",
            &long,
            &format!("a@b{}.de", "\u{fe0f}".repeat(100)),
        ] {
            assert_eq!(text.parse::<MailAddress>(), Err(MailAddressError), "{text}");
        }
        assert_eq!(format!("{:?}", "a@b.c".parse::<MailAddress>()), "Ok(MailAddress(…))");
    }
}
