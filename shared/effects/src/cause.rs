//! Causes of failures, without addresses.

use ringfence_lambda::bounded;

/// The longest cause, in bytes.
const CAUSE_BYTES_MAX: usize = 500;

/// The words of a server, with each word replaced that may be an address.
pub(crate) fn without_addresses(text: &str) -> String {
    let word = |word| if str::contains(word, '@') { "(address)" } else { word };
    let words: Vec<_> = text.split_whitespace().map(word).collect();
    bounded(&words.join(" "), CAUSE_BYTES_MAX)
}
