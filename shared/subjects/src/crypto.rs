//! Sealing, opening and hashing. Only this module calls `ring`, and makes random bytes.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest;
use ring::hkdf::{HKDF_SHA256, Prk};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

/// The length of each key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;
/// The first byte of a sealed text.
const VERSION: u8 = 1;
/// A sealed text has this many bytes more than the plain one: the version, the nonce, and the tag of AES-GCM.
pub(crate) const SEAL_BYTES: usize = 1 + NONCE_LEN + 16;
/// The uses of a key. Each has its own key, derived from it.
const SEAL: &[u8] = b"ringfence seal";
const MARK: &[u8] = b"ringfence mark";
/// The characters of a blind value: 5 bits each, 130 bits together.
const BLIND_CHARS: usize = 26;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A key. Its bytes are overwritten when it is dropped, and it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// A sealed text that can't be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Short,
    Version,
    Changed,
}

impl Broken {
    pub(crate) fn why(self) -> &'static str {
        match self {
            Self::Short => "it is cut off",
            Self::Version => "it has another version, so a newer program has sealed it",
            Self::Changed => "it was changed, or sealed for another subject, key or stack",
        }
    }
}

impl SecretKey {
    /// A new key.
    pub(crate) fn random() -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill(&mut *key);
        Self(key)
    }

    /// The key with these bytes, if it has the right number.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// Its bytes, to wrap them.
    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    /// Seals a text for one place. It opens there alone.
    pub(crate) fn seal(&self, place: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce);
        let mut sealed = Vec::with_capacity(SEAL_BYTES + plain.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let (nonce, text) = (Nonce::assume_unique_for_key(nonce), &mut sealed[1 + NONCE_LEN..]);
        let tag = self.sealing().seal_in_place_separate_tag(nonce, Aad::from(place), text);
        let tag = tag.expect("a text in memory is shorter than AES-GCM's limit");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Opens a text that was sealed for this place.
    pub(crate) fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Broken> {
        let (version, rest) = sealed.split_first().ok_or(Broken::Short)?;
        if *version != VERSION {
            return Err(Broken::Version);
        }
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or(Broken::Short)?;
        let mut text = Zeroizing::new(text.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.sealing().open_in_place(nonce, Aad::from(place), &mut text);
        let length = opened.map_err(|_| Broken::Changed)?.len();
        text.truncate(length);
        Ok(text)
    }

    /// The HMAC of a text, in hexadecimal.
    pub(crate) fn mark(&self, text: &str) -> String {
        let key = hmac::Key::from(self.prk().expand(&[MARK], HMAC_SHA256).expect(SHORT));
        hex(hmac::sign(&key, text.as_bytes()).as_ref())
    }

    /// The blind value of a tag: 130 bits of an HMAC. A key of a tag has no NUL, so no two tags have one text.
    pub(crate) fn blind(&self, key: &str, value: &str) -> String {
        let text = [key.as_bytes(), &[0], value.as_bytes()].concat();
        let mac = hmac::sign(&hmac::Key::new(HMAC_SHA256, &*self.0), &text);
        let bit = |at: usize| mac.as_ref()[at / 8] >> (7 - at % 8) & 1;
        let char = |n: usize| (5 * n..5 * n + 5).fold(0, |five, at| five << 1 | bit(at));
        (0..BLIND_CHARS).map(|n| char::from(BASE32[usize::from(char(n))])).collect()
    }

    fn sealing(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::from(self.prk().expand(&[SEAL], &AES_256_GCM).expect(SHORT)))
    }

    /// The key is random, so it needs no extraction.
    fn prk(&self) -> Prk {
        Prk::new_less_safe(HKDF_SHA256, &*self.0)
    }
}

const SHORT: &str = "HKDF makes a key of 32 bytes";

/// Where a text opens, as bytes. Each part has its length in front, so no two places have the same bytes.
pub(crate) fn place(parts: &[&str]) -> Vec<u8> {
    let bytes = |part: &&str| [&(part.len() as u64).to_be_bytes(), part.as_bytes()].concat();
    parts.iter().flat_map(bytes).collect()
}

fn fill(bytes: &mut [u8]) {
    SystemRandom::new().fill(bytes).expect("the system makes random bytes");
}

/// The SHA-256 of some bytes, in hexadecimal.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(byte: u8) -> SecretKey {
        SecretKey::of(&[byte; KEY_BYTES]).expect("32 bytes")
    }

    proptest! {
        #[test]
        fn a_text_opens_with_its_key_at_its_place_and_no_other(
            text in any::<Vec<u8>>(), place in prop::collection::vec(any::<String>(), 0..4),
            other in prop::collection::vec(any::<String>(), 0..4), flipped in any::<prop::sample::Index>(),
        ) {
            let bytes = |it: &Vec<String>| super::place(&it.iter().map(|it| &**it).collect::<Vec<_>>());
            let [place, other] = [bytes(&place), bytes(&other)];
            let sealed = key(1).seal(&place, &text);
            prop_assert_eq!(sealed.len(), SEAL_BYTES + text.len());
            prop_assert_eq!(&*key(1).open(&place, &sealed).expect("it opens"), &text);
            prop_assert_eq!(key(2).open(&place, &sealed), Err(Broken::Changed));
            prop_assert_eq!(key(1).open(&other, &sealed).is_ok(), place == other);
            // Every bit, and every cut, counts.
            let mut changed = sealed.clone();
            let at = flipped.index(8 * sealed.len());
            changed[at / 8] ^= 1 << (at % 8);
            prop_assert!(key(1).open(&place, &changed).is_err());
            prop_assert!(key(1).open(&place, &sealed[..flipped.index(sealed.len())]).is_err());
            // The same text is never sealed in the same way.
            prop_assert_ne!(key(1).seal(&place, &text), sealed);
        }
    }

    /// The HMACs were computed with Python's `hmac`.
    #[test]
    fn blind_values_have_26_characters_of_base32_and_keys_are_not_shown() {
        let blind = key(7).blind("email", "ada@example.com");
        assert_eq!(blind, "rdi2gp674a335nd7ynsi44g3tb");
        assert_ne!(key(8).blind("email", "ada@example.com"), blind);
        assert_eq!(format!("{:?}", key(7)), "SecretKey(…)");
        assert_eq!(
            key(7).mark("{}"),
            "1675d7656e42e4ed17cc7ec039dab467ba1cf0f31907b5fbdba4ceacf50403f6"
        );
        assert_eq!(key(1).open(&[], &[9; 40]), Err(Broken::Version));
    }
}
