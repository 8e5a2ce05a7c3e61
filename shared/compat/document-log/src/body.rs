//! Bodies of events: bytes and their encoding, which every reader of the table knows.

use std::io::Read;

use brotli::enc::BrotliEncoderParams;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use ringfence_core::json::{JsonError, read_stored, stored_text};
use serde_json::Value;

/// Bodies up to this size, in bytes, are not compressed, because compression gains nothing.
const COMPRESSED_BYTES_MIN: usize = 49;
/// The largest size of an unpacked body, in bytes. A larger one counts as an attack.
pub const DECOMPRESSED_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Quick, and within a few percent of the best.
const BROTLI_QUALITY: i32 = 6;

/// The encoding of a body's bytes; its number is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// 0: not compressed.
    Raw,
    /// 1: deflate without header.
    Deflate,
    /// 2: Brotli.
    #[default]
    Brotli,
}

/// A stored body. Without bytes, there is no body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The stored number of the encoding.
    pub encoding: u64,
    /// The stored bytes.
    pub bytes: Vec<u8>,
}

/// The reason that a body can't be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The encoding is unknown.
    #[error("encoding {0} is unknown")]
    Encoding(u64),
    /// The bytes do not unpack.
    #[error("the compressed bytes are broken")]
    Broken(#[source] std::io::Error),
    /// The bytes unpack to more than the limit.
    #[error("the body unpacks to more than {DECOMPRESSED_BYTES_MAX} bytes")]
    TooLarge,
    /// The unpacked bytes are not UTF-8.
    #[error("the body is not UTF-8")]
    Utf8(#[source] std::string::FromUtf8Error),
    /// The unpacked text can't be read without loss.
    #[error("the body can't be read")]
    Json(#[source] JsonError),
}

impl Encoding {
    /// The number that is stored.
    #[must_use]
    pub fn number(self) -> u64 {
        match self {
            Self::Raw => 0,
            Self::Deflate => 1,
            Self::Brotli => 2,
        }
    }
}

impl Body {
    /// No body.
    pub const NONE: Self = Self { encoding: 0, bytes: Vec::new() };

    /// The body of `value`, compressed with `encoding` if that makes it smaller.
    #[must_use]
    pub fn of_json(value: &Value, encoding: Encoding) -> Self {
        Self::of_bytes(stored_text(value).into_bytes(), encoding)
    }

    /// The body of `bytes`, compressed with `encoding` if that makes it smaller.
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>, encoding: Encoding) -> Self {
        if bytes.len() >= COMPRESSED_BYTES_MIN {
            let packed = match encoding {
                Encoding::Raw => None,
                Encoding::Deflate => deflate(&bytes),
                Encoding::Brotli => brotli(&bytes),
            };
            if let Some(packed) = packed.filter(|packed| packed.len() < bytes.len()) {
                return Self { encoding: encoding.number(), bytes: packed };
            }
        }
        Self { encoding: Encoding::Raw.number(), bytes }
    }

    /// Whether there is no body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The unpacked bytes.
    ///
    /// # Errors
    /// The encoding is unknown, or the bytes do not unpack within the limit.
    pub fn unpacked(&self) -> Result<Vec<u8>, BodyError> {
        match self.encoding {
            0 => Ok(self.bytes.clone()),
            _ if self.bytes.is_empty() => Ok(Vec::new()),
            1 => inflate(&self.bytes),
            2 => {
                let mut bytes = Vec::new();
                let decoder = brotli::Decompressor::new(self.bytes.as_slice(), 4_096);
                let limit = DECOMPRESSED_BYTES_MAX as u64 + 1;
                decoder.take(limit).read_to_end(&mut bytes).map_err(BodyError::Broken)?;
                bounded(bytes)
            }
            other => Err(BodyError::Encoding(other)),
        }
    }

    /// The JSON that it holds; `None` if there is no body.
    ///
    /// # Errors
    /// As [`Body::unpacked`]; or the bytes are not JSON, or have a key twice.
    pub fn json(&self) -> Result<Option<Value>, BodyError> {
        if self.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8(self.unpacked()?).map_err(BodyError::Utf8)?;
        read_stored(&text).map(Some).map_err(BodyError::Json)
    }
}

fn bounded(bytes: Vec<u8>) -> Result<Vec<u8>, BodyError> {
    if bytes.len() > DECOMPRESSED_BYTES_MAX { Err(BodyError::TooLarge) } else { Ok(bytes) }
}

/// `None` if it does not become smaller.
fn deflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packed = Vec::with_capacity(bytes.len());
    let mut compress = Compress::new(Compression::default(), false);
    let status = compress.compress_vec(bytes, &mut packed, FlushCompress::Finish).ok()?;
    (status == Status::StreamEnd).then_some(packed)
}

fn brotli(bytes: &[u8]) -> Option<Vec<u8>> {
    let params = BrotliEncoderParams { quality: BROTLI_QUALITY, ..Default::default() };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut packed, &params).ok()?;
    Some(packed)
}

/// Some writers end a stream with a flush instead of its last block. All bytes that are there count; the
/// JSON shows whether they are complete.
fn inflate(packed: &[u8]) -> Result<Vec<u8>, BodyError> {
    let broken = |message: &str| BodyError::Broken(std::io::Error::other(message.to_owned()));
    let mut decompress = Decompress::new(false);
    let mut bytes = Vec::with_capacity(packed.len().saturating_mul(4));
    loop {
        let read = usize::try_from(decompress.total_in()).map_err(|_| BodyError::TooLarge)?;
        let before = (read, bytes.len());
        let status = decompress
            .decompress_vec(&packed[read..], &mut bytes, FlushDecompress::Sync)
            .map_err(|error| broken(&error.to_string()))?;
        if bytes.len() > DECOMPRESSED_BYTES_MAX {
            return Err(BodyError::TooLarge);
        }
        let read = usize::try_from(decompress.total_in()).map_err(|_| BodyError::TooLarge)?;
        let stood = before == (read, bytes.len());
        match status {
            Status::StreamEnd => return Ok(bytes),
            _ if read == packed.len() && bytes.len() < bytes.capacity() => return Ok(bytes),
            _ if stood && bytes.len() < bytes.capacity() => return Err(broken("no progress")),
            _ => bytes.reserve(bytes.capacity().max(1_024)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ENCODINGS: [Encoding; 3] = [Encoding::Raw, Encoding::Deflate, Encoding::Brotli];

    #[test]
    fn a_body_is_compressed_only_if_that_makes_it_smaller() {
        let long = json!({ "note": "x".repeat(500) });
        let short = json!({ "note": "x" });
        for encoding in ENCODINGS {
            assert_eq!(Body::of_json(&long, encoding).encoding, encoding.number());
            assert_eq!(Body::of_json(&short, encoding).encoding, 0);
            let noise: Vec<u8> = (0..60_u8).map(|n| n.wrapping_mul(151) ^ (n >> 1)).collect();
            let body = Body::of_bytes(noise.clone(), encoding);
            assert_eq!((body.encoding, body.bytes), (0, noise), "{encoding:?}");
        }
    }

    #[test]
    fn a_body_that_cannot_be_read_says_why() {
        let body = |encoding, bytes: &[u8]| Body { encoding, bytes: bytes.to_vec() };
        let fails = |body: Body| body.json().expect_err("it is broken").to_string();
        assert_eq!(fails(body(3, b"{}")), "encoding 3 is unknown");
        assert_eq!(fails(body(0, b"{")), "the body can't be read");
        assert_eq!(fails(body(1, &[0xff, 0xff, 0xff])), "the compressed bytes are broken");
        assert_eq!(fails(body(2, &[0xff, 0xff, 0xff])), "the compressed bytes are broken");
        assert_eq!(Body::NONE.json().expect("nothing"), None);
    }

    #[test]
    fn a_number_is_read_as_it_was_written() {
        for number in [0.01 + 0.2, 0.1, f64::MAX, f64::MIN_POSITIVE, 1e22 + 1e6] {
            let value = json!({ "amount": number });
            let read = Body::of_json(&value, Encoding::Raw).json().expect("it is JSON");
            assert_eq!(read, Some(value));
        }
        let text = r#"{"amount":79228162514264.3375935439503,"n":1}"#;
        let body = Body::of_bytes(text.into(), Encoding::Raw);
        let read = body.json().expect("it is JSON").expect("a body");
        assert_eq!(read["amount"]["$number"], "79228162514264.3375935439503");
        assert_eq!(Body::of_json(&read, Encoding::Raw), body);
    }

    #[test]
    fn the_size_of_an_unpacked_body_is_bounded() {
        let zeros = vec![b'0'; DECOMPRESSED_BYTES_MAX + 1];
        for encoding in [Encoding::Deflate, Encoding::Brotli] {
            let body = Body::of_bytes(zeros.clone(), encoding);
            assert!(body.bytes.len() < 400_000, "{encoding:?}");
            assert!(matches!(body.unpacked(), Err(BodyError::TooLarge)), "{encoding:?}");
            let body = Body::of_bytes(zeros[1..].to_vec(), encoding);
            assert_eq!(body.unpacked().expect("at the limit").len(), DECOMPRESSED_BYTES_MAX);
        }
    }

    #[test]
    fn deflate_without_a_last_block_is_read() {
        let text = json!({ "note": "abc".repeat(2_000) }).to_string();
        let mut packed = Vec::with_capacity(text.len());
        let mut compress = Compress::new(Compression::default(), false);
        let flush = FlushCompress::Sync;
        compress.compress_vec(text.as_bytes(), &mut packed, flush).expect("it compresses");
        let body = Body { encoding: 1, bytes: packed };
        assert_eq!(body.unpacked().expect("whole"), text.into_bytes());
    }

    proptest! {
        #[test]
        fn unpacking_returns_the_bytes(bytes in proptest::collection::vec(0..4_u8, 1..5_000)) {
            for encoding in ENCODINGS {
                let body = Body::of_bytes(bytes.clone(), encoding);
                prop_assert!(body.bytes.len() <= bytes.len());
                prop_assert_eq!(&body.unpacked().expect("it unpacks"), &bytes);
            }
        }
    }
}
