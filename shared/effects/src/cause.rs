//! What the cause of a failure may say.

use ringfence_lambda::bounded;

/// The longest cause, in bytes.
const CAUSE_BYTES_MAX: usize = 500;

/// A text of a server, in which each word that may be an address is replaced.
pub(crate) fn without_addresses(text: &str) -> String {
    let word = |word| if str::contains(word, '@') { "(address)" } else { word };
    let words: Vec<_> = text.split_whitespace().map(word).collect();
    bounded(&words.join(" "), CAUSE_BYTES_MAX)
}
