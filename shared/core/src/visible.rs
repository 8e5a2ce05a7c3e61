//! Foreign texts, for people's eyes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with JSON escapes such as `\u202e` for characters that control a terminal, break a line, can't be seen, or
/// change the order in which others are shown. So a JSON text stays the same JSON.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    written(text, controls)
}

/// Does the same for a text of several lines, whose line feeds stay.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    written(text, |c| c != '\n' && controls(c))
}

fn written(text: &str, is_written: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_written) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match is_written(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(shown, "\\u{unit:04x}").expect("writing to a String does not fail");
                }
            }
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Joiners are not among them, because scripts and emoji need them.
fn controls(c: char) -> bool {
    let is_bidirectional = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    let breaks_a_line = matches!(c, '\u{2028}' | '\u{2029}');
    let is_unseen = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_bidirectional || breaks_a_line || is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_or_turn_text_around_are_escaped() {
        let hostile = "a\u{202e}b\u{9b}31m\u{1b}[2J\r\t\u{7f}\u{2066}\u{200f}\u{2028}\u{feff}c";
        let shown = r"a\u202eb\u009b31m\u001b[2J\u000d\u0009\u007f\u2066\u200f\u2028\ufeffc";
        assert_eq!(visible(hostile), shown);
        assert_eq!(visible("pay\u{ad}\u{e0078}\u{3164}"), r"pay\u00ad\udb40\udc78\u3164");
        assert_eq!(visible("one\ntwo"), r"one\u000atwo");
        assert_eq!(visible_lines("one\ntwo\r\u{85}"), "one\ntwo\\u000d\\u0085");
        let plain = "Ünïcode 🏳️‍🌈 ‎".trim_end_matches('\u{200e}');
        assert!(matches!(visible(plain), Cow::Borrowed(same) if same == plain));
    }

    #[test]
    fn a_json_text_stays_the_same_json() {
        let json = serde_json::json!({ "k\u{202e}": ["\u{9b}\n\u{1}", "\\u202e", "\u{2028}"] });
        for text in [json.to_string(), format!("{json:#}")] {
            let shown = visible_lines(&text);
            assert_ne!(shown, text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
        }
    }
}
