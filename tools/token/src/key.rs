//! The key that signs the tokens of a stack on one machine.
//!
//! Everybody has it, because it is in the source. So its tokens prove nothing, and no API with data may trust it. A
//! stack on one machine listens only at the loopback address, and its tokens are for programs and tests that need one.
//! A fixed key needs no file and no server: each program can sign.

use base64::{Engine, prelude::BASE64_STANDARD, prelude::BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair, RsaParameters, RsaPublicKeyComponents};
use serde_json::{Value, json};

/// The issuer of the tokens. Nothing answers at this URL: the stack has the key.
pub const ISSUER: &str = "https://ringfence.localhost";
/// The audience of the tokens.
pub const AUDIENCE: &str = "ringfence-local";
/// A stack on one machine that checks tokens shows the key at this path of its API.
pub const JWKS_PATH: &str = "/.well-known/jwks.json";
/// The claim `kid` of the key.
pub(crate) const KEY_ID: &str = "ringfence-local";

/// In PKCS 8 and base 64.
const PRIVATE: &str = include_str!("key.txt");

/// The key.
pub struct TokenKey(RsaKeyPair);

impl TokenKey {
    /// The key of stacks on one machine.
    #[must_use]
    pub fn local() -> Self {
        let bytes = PRIVATE.split_whitespace().collect::<String>();
        let bytes = BASE64_STANDARD.decode(bytes).expect("the file is in base 64");
        Self(RsaKeyPair::from_pkcs8(&bytes).expect("the file has a key"))
    }

    fn public(&self) -> PublicKeyComponents<Vec<u8>> {
        PublicKeyComponents::from(self.0.public())
    }

    /// The modulus, which identifies the public key.
    pub(crate) fn modulus(&self) -> Vec<u8> {
        self.public().n
    }

    /// The public key as a JSON Web Key Set.
    #[must_use]
    pub fn jwks(&self) -> Value {
        let PublicKeyComponents { n, e } = self.public();
        let [n, e] = [n, e].map(encoded);
        json!({ "keys": [{ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID, "n": n, "e": e }] })
    }

    /// A token with these claims.
    #[must_use]
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_under(&json!({ "alg": "RS256", "typ": "JWT", "kid": KEY_ID }), claims)
    }

    /// A token under a header that may be wrong.
    pub(crate) fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let mut signature = vec![0; self.0.public().modulus_len()];
        let random = SystemRandom::new();
        let signed = self.0.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature);
        signed.expect("the signature has the length of the modulus");
        format!("{message}.{}", encoded(signature))
    }

    /// Whether it has signed the message.
    pub(crate) fn has_signed(&self, how: &RsaParameters, message: &str, signature: &[u8]) -> bool {
        let PublicKeyComponents { n, e } = self.public();
        RsaPublicKeyComponents { n, e }.verify(how, message.as_bytes(), signature).is_ok()
    }
}

/// The part of a token that is signed.
pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()))
}

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
