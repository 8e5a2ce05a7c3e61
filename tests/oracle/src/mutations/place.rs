//! Where a mutation is in its file.

use std::ops::Range;

/// A text in a file. A part of it is replaced.
#[derive(Clone, Debug)]
pub struct Text {
    before: String,
    replaced: String,
    after: String,
}

impl Text {
    /// The text of a list, with the marks « and » around what is replaced.
    pub fn of(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(['«', '»']).collect();
        let [before, replaced, after] = match parts[..] {
            [replaced] => ["", replaced, ""],
            [before, replaced, after] => [before, replaced, after],
            _ => return Err("one « and one »".to_owned()),
        };
        if replaced.trim().is_empty() {
            return Err("nothing is replaced".to_owned());
        }
        let [before, replaced, after] = [before, replaced, after].map(str::to_owned);
        Ok(Self { before, replaced, after })
    }

    /// The part that is replaced.
    pub fn marked(&self) -> &str {
        &self.replaced
    }

    /// The place of the part that is replaced.
    pub fn find(&self, source: &str) -> Result<Range<usize>, String> {
        let mut found = source.char_indices().filter_map(|(at, _)| {
            let replaced = follows(source, at, self.before.trim_start())?;
            let start = if self.before.is_empty() { at } else { replaced };
            let end = follows(source, start, &self.replaced)?;
            follows(source, end, self.after.trim_end())?;
            Some(start..end)
        });
        match (found.next(), found.next()) {
            (None, _) => {
                Err(format!("does not have `{}{}{}`", self.before, self.replaced, self.after))
            }
            (Some(place), None) => Ok(place),
            _ => {
                Err(format!("has `{}{}{}` more than once", self.before, self.replaced, self.after))
            }
        }
    }
}

/// Where `text` ends in `source` if it begins at `at`. White space is as any other white space.
fn follows(source: &str, at: usize, text: &str) -> Option<usize> {
    let (mut end, mut text) = (at, text.chars().peekable());
    while let Some(c) = text.next() {
        let rest = &source[end..];
        if c.is_whitespace() {
            while text.next_if(|c| c.is_whitespace()).is_some() {}
            let skipped = rest.len() - rest.trim_start().len();
            end += (skipped > 0).then_some(skipped)?;
        } else {
            end += rest.starts_with(c).then_some(c.len_utf8())?;
        }
    }
    Some(end)
}
