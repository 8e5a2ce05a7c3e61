//! AWS's Signature Version 4 ("Create a signed AWS API request" in AWS's IAM User Guide), for requests for items. The
//! SDK's signer derives the signing key for each request; here it is kept for the day.
//!
//! Requests to other services have paths and queries of any form, so [`crate::http`] signs them with the SDK's signer. To
//! sign them here, the SDK's rules for URLs would have to be written again.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Signs the requests to one service in one Region with the same credentials.
#[derive(Debug)]
pub(super) struct ItemSigner {
    credentials: Credentials,
    region: String,
    service: String,
    /// The names of the headers that are signed, in lower case, sorted, with `;` between them.
    signed_headers: String,
    /// The second of the newest request, in the form of a signature.
    second: Mutex<(i64, String)>,
    /// The day of the newest request, and its key.
    day: Mutex<Option<(String, Hmac<Sha256>)>>,
}

/// The signed parts of a request besides its headers and its time. Its query is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a [u8],
}

impl ItemSigner {
    /// The signer that made this `Authorization` header.
    pub(super) fn like(authorization: &str, credentials: Credentials) -> Option<Self> {
        let parts = authorization.strip_prefix(ALGORITHM)?.split(',').map(str::trim);
        let part = |name: &str| parts.clone().find_map(|part| part.strip_prefix(name));
        let mut scope = part("Credential=")?.split('/').skip(2);
        let (region, service) = (scope.next()?.to_owned(), scope.next()?.to_owned());
        let signed_headers = part("SignedHeaders=")?.to_owned();
        let (second, day) = Default::default();
        Some(Self { credentials, region, service, signed_headers, second, day })
    }

    /// The credentials that it signs with.
    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// A time in the form of a signature, such as `20150830T123600Z`.
    pub(super) fn timestamp(&self, time: SystemTime) -> String {
        let second = DateTime::from(time).secs();
        let mut known = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != second || known.1.is_empty() {
            *known = (second, timestamp(second));
        }
        known.1.clone()
    }

    /// The `Authorization` header of a request whose `x-amz-date` is `time`. `value` returns the value of a signed
    /// header.
    pub(super) fn authorization<'a>(
        &self,
        signed: Signed<'_>,
        time: &str,
        value: impl Fn(&str) -> &'a str,
    ) -> String {
        let names = &self.signed_headers;
        let mut canonical = String::with_capacity(1_024);
        for part in [signed.method, "\n", signed.path, "\n\n"] {
            canonical.push_str(part);
        }
        for name in names.split(';') {
            canonical.push_str(name);
            canonical.push(':');
            for (index, word) in value(name).split_ascii_whitespace().enumerate() {
                canonical.push_str(if index == 0 { "" } else { " " });
                canonical.push_str(word);
            }
            canonical.push('\n');
        }
        canonical.push('\n');
        canonical.push_str(names);
        canonical.push('\n');
        push_hex(&mut canonical, &Sha256::digest(signed.body));

        let date = &time[..time.find('T').unwrap_or(time.len())];
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let mut text = String::with_capacity(256);
        for part in [ALGORITHM, "\n", time, "\n", &scope, "\n"] {
            text.push_str(part);
        }
        push_hex(&mut text, &Sha256::digest(canonical));
        let signature = self.key(date).chain_update(text).finalize().into_bytes();

        let id = self.credentials.access_key_id();
        let mut authorization = String::with_capacity(512);
        for part in
            [ALGORITHM, " Credential=", id, "/", &scope, ", SignedHeaders=", names, ", Signature="]
        {
            authorization.push_str(part);
        }
        push_hex(&mut authorization, &signature);
        authorization
    }

    /// The key for the requests of a day.
    fn key(&self, date: &str) -> Hmac<Sha256> {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, key)) = &*day
            && known == date
        {
            return key.clone();
        }
        let secret = format!("AWS4{}", self.credentials.secret_access_key());
        let parts = [date, &self.region, &self.service, "aws4_request"];
        let key = parts.iter().fold(hmac(secret.as_bytes()), |key, part| {
            hmac(&key.chain_update(part).finalize().into_bytes())
        });
        *day = Some((date.to_owned(), key.clone()));
        key
    }
}

/// Seconds since 1970 in the form of a signature.
pub(super) fn timestamp(second: i64) -> String {
    // A year of five digits has no text. Then the service refuses the request, and its answer corrects the clock.
    let text = DateTime::from_secs(second).fmt(Format::DateTime).unwrap_or_default();
    text.replace(['-', ':'], "")
}

fn hmac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("a key may have any length")
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
}

/// The requests without a query from AWS's published test suite for Signature Version 4. Each is of 30 August 2015.
#[test]
fn signatures_equal_those_of_awss_test_suite() {
    const TOKEN: &str = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
    const FORM: &str = "application/x-www-form-urlencoded";
    const FORM_SHA256: &str = "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e";
    let credentials = || {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        Credentials::new("AKIDEXAMPLE", secret, None, None, "the test suite")
    };
    type Row = (
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
        &'static str,
        &'static str,
    );
    let rows: [Row; 7] = [
        (
            "get-vanilla",
            "GET",
            &[],
            "",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "get-vanilla-with-session-token",
            "GET",
            &[("x-amz-security-token", TOKEN)],
            "",
            "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
        ),
        (
            "get-header-value-order",
            "GET",
            &[("my-header1", "value4,value1,value3,value2")],
            "",
            "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
        ),
        (
            "get-header-value-trim",
            "GET",
            &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
            "",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            "post-vanilla",
            "POST",
            &[],
            "",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "post-header-key-sort",
            "POST",
            &[("my-header1", "value1")],
            "",
            "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
        ),
        (
            "post-x-www-form-urlencoded",
            "POST",
            &[
                ("content-length", "13"),
                ("content-type", FORM),
                ("x-amz-content-sha256", FORM_SHA256),
            ],
            "Param1=value1",
            "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
        ),
    ];
    let time = "20150830T123600Z";
    for (name, method, headers, body, expected) in rows {
        let mut headers = headers.to_vec();
        headers.extend([("host", "example.amazonaws.com"), ("x-amz-date", time)]);
        headers.sort_unstable();
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
        let known =
            format!("{ALGORITHM} Credential={scope}, SignedHeaders={names}, Signature={expected}");
        let signer = ItemSigner::like(&known, credentials()).expect("a header of the form");
        let signed = Signed { method, path: "/", body: body.as_bytes() };
        let authorization = |time| {
            signer.authorization(signed, time, |name| {
                headers.iter().find(|(other, _)| *other == name).expect("it is signed").1
            })
        };
        authorization("20150829T235959Z");
        for _ in ["with the key of another day", "with the key of the day"] {
            assert_eq!(authorization(time), known, "{name}");
        }
    }
}
