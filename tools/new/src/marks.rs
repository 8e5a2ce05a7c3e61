//! The marks around the text that `ringfence template` writes into a template: a pair in each of its sections. The
//! closing mark has a hash of the text between them, so an edit by hand is found and not lost.

const BEGIN: &str = "  # --- written by ringfence template; settings: Metadata, Ringfence ---\n";
const END: &str = "  # --- end ";

/// A section of a template, such as `Resources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'t> {
    /// Its name; empty for the lines before the first section.
    pub name: &'t str,
    /// Its lines up to the opening mark; without marks, its first line.
    pub before: &'t str,
    /// The block between its marks, if it has marks.
    pub block: Option<Block<'t>>,
    /// The lines after the closing mark; without marks, all lines after the first.
    pub after: &'t str,
}

/// The text between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'t> {
    /// The lines.
    pub body: &'t str,
    /// Whether the hash shows that nobody has edited them.
    pub is_intact: bool,
}

/// The sections of a template, in their order.
#[must_use]
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let (mut begins, mut at) = (vec![0], 0);
    for line in text.split_inclusive('\n') {
        if at > 0 && line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            begins.push(at);
        }
        at += line.len();
    }
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    begins.iter().zip(ends).map(|(begin, end)| section(&text[*begin..end])).collect()
}

fn section(text: &str) -> Section<'_> {
    let first = text.find('\n').map_or(text.len(), |at| at + 1);
    let line = text[..first].split(" #").next().unwrap_or_default();
    let name = line.trim_end().strip_suffix(':').unwrap_or_default();
    let marked = text.split_once(BEGIN).and_then(|(before, rest)| {
        let end = rest.find(END)?;
        let (mark, after) = rest[end..].split_once('\n').unwrap_or((&rest[end..], ""));
        let is_intact = *mark == *mark_of(&rest[..end]).trim_end();
        Some((before, Block { body: &rest[..end], is_intact }, after))
    });
    match marked {
        Some((before, block, after)) => Section { name, before, block: Some(block), after },
        None => Section { name, before: &text[..first], block: None, after: &text[first..] },
    }
}

/// A written text with its marks.
#[must_use]
pub fn sealed(body: &str) -> String {
    format!("{BEGIN}{body}{}", mark_of(body))
}

/// The template with new hashes of its blocks.
pub(crate) fn resealed(text: &str) -> String {
    let sections = sections(text).into_iter().map(|Section { before, block, after, .. }| {
        let block = block.map_or_else(String::new, |block| sealed(block.body));
        format!("{before}{block}{after}")
    });
    sections.collect()
}

/// The closing mark of a text. Its hash is FNV-1a, which needs no library.
fn mark_of(body: &str) -> String {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{END}{:08x} ---\n", body.bytes().fold(0x811c_9dc5, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_between_the_marks_is_seen_and_one_outside_is_not() {
        let written = format!("A: 1\nResources:\n  # mine\n{}  Own: 1\n", sealed("  Api: 1\n"));
        let found = |text: &str| {
            sections(text).last().and_then(|section| section.block.map(|it| it.is_intact))
        };
        assert_eq!(found(&written), Some(true));
        assert_eq!(found(&written.replace("Own: 1", "Own: 2")), Some(true));
        let edited = written.replace("Api: 1", "Api: 2");
        assert_eq!(found(&edited), Some(false));
        assert_eq!(found(&resealed(&edited)), Some(true));
        assert_eq!(found("Resources:\n  Own: 1\n"), None);
        assert_eq!(
            sections(&written).iter().map(|it| it.name).collect::<Vec<_>>(),
            ["", "Resources"]
        );
    }
}
