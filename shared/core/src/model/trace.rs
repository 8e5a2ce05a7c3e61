//! The place of a command in a trace.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{Metadata, canonical_json};

/// The id of a span in a trace, in the format of the header `traceparent` of the W3C's Trace Context.
///
/// The span of a command follows from the command's id. So a run and its repeat have the same span, and the stored
/// facts of a command are enough to find its span years later. Nothing here is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent {
    trace: u128,
    span: u64,
    sampled: bool,
}

/// A text that is not a `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a traceparent is 00-<32 digits>-<16 digits>-<2 digits>, hexadecimal in lower case, and no id of zeros"
)]
pub struct TraceparentError;

impl Traceparent {
    /// The span of the command with this id of this slice. It is in the trace of `parent`. Without a parent it begins
    /// a trace, whose id also follows from the command. The trace does not use the correlation id, because a caller
    /// may give one id for a whole session.
    #[must_use]
    pub fn of_command(command_id: &str, slice: &str, parent: Option<Self>) -> Self {
        let [span, trace] = ["span", "trace"].map(|part| hash(&[command_id, slice, part]));
        let (trace, sampled) =
            parent.map_or((trace, true), |parent| (parent.trace, parent.sampled));
        Self { trace, span: upper(span), sampled }
    }

    /// The span of a run of this command that left nothing, in the invocation with this id. The span of the command
    /// stays free for the run that takes effect.
    #[must_use]
    pub fn of_try(self, request_id: &str) -> Self {
        Self { span: upper(hash(&[&self.span_id(), request_id, "try"])), ..self }
    }

    /// The span of a run that handles a batch. It begins a new trace.
    #[must_use]
    pub fn of_batch(function: &str, request_id: &str) -> Self {
        Self::of_command(request_id, function, None)
    }

    /// The span of the command of the event with this metadata, if it is recorded.
    #[must_use]
    pub fn of_event(metadata: &Metadata) -> Option<Self> {
        metadata.text(Metadata::TRACEPARENT)?.parse().ok()
    }

    /// The id of the trace: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The id of the span: 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// Whether the spans of the trace should be kept. The program that began the trace decides this.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }
}

/// The first 16 bytes of the SHA-256 of these texts.
fn hash(texts: &[&str]) -> u128 {
    // JSON gives every list a different text.
    let digest = Sha256::digest(canonical_json(&texts));
    let (first, _) = digest.split_first_chunk().expect("it has 32 bytes");
    u128::from_be_bytes(*first)
}

fn upper(hash: u128) -> u64 {
    u64::try_from(hash >> 64).expect("64 bits are left")
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, sampled } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

impl FromStr for Traceparent {
    type Err = TraceparentError;

    /// A version after 00 may have more fields; only the first four count.
    fn from_str(text: &str) -> Result<Self, TraceparentError> {
        let mut fields = text.split('-');
        let mut next = |digits: usize| {
            let field = fields.next().filter(|field| field.len() == digits)?;
            let is_hex = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            u128::from_str_radix(field, 16).ok().filter(|_| is_hex)
        };
        let parsed = (|| Some((next(2)?, next(32)?, next(16)?, next(2)?)))();
        let (version, trace, span, flags) = parsed.ok_or(TraceparentError)?;
        let is_version = version < 0xff && (version > 0 || fields.next().is_none());
        let span = u64::try_from(span).expect("16 digits");
        let right = is_version && trace != 0 && span != 0;
        right.then_some(Self { trace, span, sampled: flags & 1 == 1 }).ok_or(TraceparentError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parsed(text: &str) -> Result<Traceparent, TraceparentError> {
        text.parse()
    }

    #[test]
    fn a_traceparent_is_read_as_the_w3c_says() {
        assert_eq!(parsed(CALLER).unwrap().to_string(), CALLER);
        let check = |text: &str, expected: Option<&str>| {
            let found = parsed(text).ok().map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        let flags = |flags: &str| format!("{}{flags}", &CALLER[..53]);
        check(&flags("00"), Some(&flags("00")));
        // The second bit describes how the ids were created.
        check(&flags("03"), Some(CALLER));
        for version in ["01", "fe"] {
            let later = CALLER.replacen("00", version, 1);
            check(&later, Some(CALLER));
            check(&format!("{later}-more"), Some(CALLER));
        }
        for wrong in [
            "",
            &CALLER[1..],
            &format!("{CALLER}-more"),
            &format!("{CALLER}0"),
            &CALLER.replacen("00", "ff", 1),
            &CALLER.replace('-', "0"),
            &CALLER.replace('f', "F"),
            &CALLER.replace("4bf92", "+bf92"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            check(wrong, None);
        }
    }

    /// Later versions find the spans of commands by these ids, so they never change.
    #[test]
    fn the_ids_of_a_command_follow_from_its_id_and_its_slice() {
        let own = Traceparent::of_command("c-1", "place-order", None);
        assert_eq!(own.to_string(), "00-b9e7d8e4d918d92865b4a6e05eaa171f-19b650872328976f-01");
        let child = Traceparent::of_command("c-1", "place-order", parsed(CALLER).ok());
        assert_eq!((child.trace_id(), child.span_id()), (CALLER[3..35].to_owned(), own.span_id()));
        let unsampled = parsed(&CALLER.replace("-01", "-00")).ok();
        assert!(!Traceparent::of_command("c-1", "place-order", unsampled).is_sampled());
        for other in [
            Traceparent::of_command("c-2", "place-order", None),
            Traceparent::of_command("c-1", "cancel-order", None),
        ] {
            assert!(other.trace != own.trace && other.span != own.span, "{other}");
        }
        let tries = ["r-1", "r-2"].map(|request| child.of_try(request));
        assert!(tries.iter().all(|it| it.trace == child.trace && it.span != child.span));
        assert_ne!(tries[0], tries[1]);
    }
}
