//! Where a mutation is in its file, and how it is written there.

use std::ops::Range;

use super::list::Mutation;

/// A text in a file, of which a part is replaced.
#[derive(Clone, Debug)]
pub(super) struct Text {
    before: String,
    replaced: String,
    after: String,
}

impl Text {
    /// The text of a list, with the marks « and » around what is replaced.
    pub(super) fn of(text: &str) -> Result<Self, String> {
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
    pub(super) fn marked(&self) -> &str {
        &self.replaced
    }

    /// The place of the part that is replaced.
    pub(super) fn find(&self, source: &str) -> Result<Range<usize>, String> {
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

/// The source of a file with its mutations, each behind its switch.
pub(super) fn mutated(source: &str, mutations: &[&Mutation]) -> Result<String, String> {
    let mut places: Vec<(Range<usize>, Vec<&Mutation>)> = Vec::new();
    for mutation in mutations {
        let place = mutation.text.find(source)?;
        match places
            .iter_mut()
            .find(|(other, _)| other.start < place.end && place.start < other.end)
        {
            None => places.push((place, vec![mutation])),
            Some((other, same)) if *other == place => same.push(mutation),
            Some((_, others)) => {
                return Err(format!(
                    "`{}` and `{}` overlap",
                    others[0].text.replaced, mutation.text.replaced
                ));
            }
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    let mut written = source.to_owned();
    for (place, mutations) in places.into_iter().rev() {
        let original = &source[place.clone()];
        let branch = |mutation: &&Mutation| {
            let Mutation { switch, replacement, .. } = mutation;
            format!("if crate::mutation::on({switch}) {{ {replacement} }} else ")
        };
        let branches: String = mutations.iter().map(branch).collect();
        let statement = original.ends_with([';', '}']);
        let [open, close] = if statement { ["", ""] } else { ["(", ")"] };
        written.replace_range(place, &format!("{open}{branches}{{ {original} }}{close}"));
    }
    Ok(written)
}
