//! Templates whose lines end with CR LF.

use std::borrow::Cow;

use super::error::WriteError;

/// The text with LF at the end of each line.
pub(super) fn unix(text: &str) -> Result<Cow<'_, str>, WriteError> {
    let ends = text.matches("\r\n").count();
    if ends != 0 && ends != text.matches('\n').count() {
        return Err(WriteError::LineEnds);
    }
    Ok(if ends == 0 { text.into() } else { text.replace("\r\n", "\n").into() })
}

/// Changes a text, and keeps its line ends, which may be CR LF.
pub(super) fn in_its_line_ends(
    text: &str,
    change: impl FnOnce(&str) -> Result<String, WriteError>,
) -> Result<String, WriteError> {
    let unix = unix(text)?;
    let changed = change(&unix)?;
    Ok(if *unix == *text { changed } else { changed.replace('\n', "\r\n") })
}
