//! Cuts texts of callers before they are repeated to the callers or to the log.

/// Marks a cut.
const CUT: &str = "…";

/// `text`, or its longest beginning that takes at most `bytes_max` bytes in JSON together with the mark of the cut. No
/// character is cut in the middle.
pub fn bounded(text: &str, bytes_max: usize) -> String {
    let mut bytes = 0;
    let mut fits = 0;
    for (at, c) in text.char_indices() {
        if bytes + CUT.len() <= bytes_max {
            fits = at;
        }
        bytes += json_bytes(c);
        if bytes > bytes_max {
            return format!("{}{CUT}", &text[..fits]);
        }
    }
    text.to_owned()
}

/// The bytes of a character in a JSON text.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\u{8}' | '\u{9}' | '\u{a}' | '\u{c}' | '\u{d}' => 2,
        '\0'..='\u{1f}' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_len(text: &str) -> usize {
        serde_json::to_string(text).expect("a text").len() - 2
    }

    #[test]
    fn a_text_is_cut_by_its_bytes_in_json_and_only_between_characters() {
        for character in ["a", "é", "🎈", "\"", "\\", "\n", "\u{1}", "\u{7f}", "\u{2028}"] {
            let long = character.repeat(100);
            for bytes_max in 3..100 {
                let short = bounded(&long, bytes_max);
                let kept = short.strip_suffix(CUT).expect("it is cut");
                assert!(long.starts_with(kept));
                // One more would be too many.
                let one = json_len(character);
                assert!(json_len(&short) <= bytes_max, "{short:?} in {bytes_max}");
                assert!(json_len(&short) + one > bytes_max, "{short:?} in {bytes_max}");
            }
            assert_eq!(bounded(&long, 600), long, "what fits is whole");
        }
    }
}
