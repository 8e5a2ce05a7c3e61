//! The signature of Standard Webhooks: HMAC-SHA256 over `<id>.<timestamp>.<body>`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How a secret begins. The rest is base64.
const BEGIN: &str = "whsec_";
/// How long a secret is, in bytes.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The most secrets at once: the old and the new one, and two more in an emergency. The header has a signature for each.
const SECRETS_MAX: usize = 4;

/// The secrets can't be used. The error does not repeat them.
#[derive(Debug, thiserror::Error)]
#[error(
    "the parameter has 1 to {SECRETS_MAX} secrets, separated by spaces; each is {BEGIN} and the base64 of 24 to 64 bytes"
)]
pub(super) struct SecretsError;

/// The header `webhook-signature`: a signature with each of the secrets, in their order.
pub(super) fn of(
    secrets: &str,
    id: &str,
    timestamp: &str,
    body: &str,
) -> Result<String, SecretsError> {
    let signed = secrets.split_whitespace().map(|secret| {
        let secret = secret.strip_prefix(BEGIN).and_then(|secret| STANDARD.decode(secret).ok());
        let secret = secret.filter(|secret| SECRET_BYTES.contains(&secret.len()));
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.ok_or(SecretsError)?)
            .map_err(|_| SecretsError)?;
        for part in [id, ".", timestamp, ".", body] {
            mac.update(part.as_bytes());
        }
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    });
    let signed = signed.collect::<Result<Vec<_>, _>>()?;
    match signed.len() {
        1..=SECRETS_MAX => Ok(signed.join(" ")),
        _ => Err(SecretsError),
    }
}

/// The first signature is the example of the reference library, which the page of the specification shows too.
#[test]
fn a_request_is_signed_with_each_secret() {
    let first = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let second = format!("whsec_{}", STANDARD.encode([7; 24]));
    let (id, timestamp, body) =
        ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
    let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(of(first, id, timestamp, body).expect("a signature"), signature);
    let both = of(&format!(" {first}\n{second}"), id, timestamp, body).expect("signatures");
    let other = of(&second, id, timestamp, body).expect("a signature");
    assert_eq!(both, format!("{signature} {other}"));

    let short = format!("whsec_{}", STANDARD.encode([7; 23]));
    let five = [first; 5].join(" ");
    for wrong in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_?", &short, &five] {
        let error = of(wrong, id, timestamp, body).expect_err("no secrets").to_string();
        assert!(wrong.is_empty() || !error.contains(wrong) || wrong == "whsec_", "{error}");
    }
}
