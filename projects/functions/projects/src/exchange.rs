//! The segments of an export: the lines of one project, as files whose names say what is in them.
//!
//! A segment is `<project>/<last>-<first>-<sha256>.jsonl`: the checkpoints of its last and its first line, with 19 digits,
//! and the hash of its bytes. Nothing else says what an export has. So two exporters at once, or one that begins again, can
//! only write what is there already, in the same segments or in others that overlap them. A reader lists what sorts
//! after its last line, and passes over the lines that it has.

use std::collections::BTreeMap;

use ringfence_feed::{Checkpoint, Entry};

use crate::line::{Line, to_text};
use crate::{ProjectId, Sha256};

/// The end of a segment's name.
const END: &str = ".jsonl";

/// Lines of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub name: SegmentName,
    pub text: String,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    /// The checkpoint of the last line.
    pub last: i64,
    /// That of the first line.
    pub first: i64,
    /// Of the bytes.
    pub sha256: Sha256,
}

impl SegmentName {
    /// The name in the project's folder; `None` if it is not one of a segment.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(END)?.splitn(3, '-');
        let number = |text: &str| (text.len() == 19).then(|| text.parse().ok()).flatten();
        let (last, first) = (number(parts.next()?)?, number(parts.next()?)?);
        Some(Self { last, first, sha256: parts.next()?.parse().ok()? })
    }

    /// Whether the bytes are those that the name says.
    #[must_use]
    pub fn is_of(&self, text: &str) -> bool {
        Sha256::of(text) == self.sha256
    }

    /// What sorts before all segments with a line after this checkpoint, and not before the others.
    #[must_use]
    pub fn after(checkpoint: i64) -> String {
        format!("{checkpoint:019}~")
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:019}-{:019}-{}{END}", self.last, self.first, self.sha256)
    }
}

/// The segments of entries that follow each other in the index: one for each project that they are of.
#[must_use]
pub fn segments(entries: impl IntoIterator<Item = Entry>) -> BTreeMap<ProjectId, Segment> {
    let mut texts: BTreeMap<ProjectId, (Checkpoint, Checkpoint, String)> = BTreeMap::new();
    for line in entries.into_iter().filter_map(Line::of) {
        let at = line.checkpoint;
        let of = texts.entry(line.project.clone()).or_insert((at, at, String::new()));
        of.1 = at;
        of.2 += &to_text(&line);
    }
    let segment = |(first, last, text): (Checkpoint, Checkpoint, String)| {
        let (last, first) = (last.into(), first.into());
        Segment { name: SegmentName { last, first, sha256: Sha256::of(&text) }, text }
    };
    texts.into_iter().map(|(project, text)| (project, segment(text))).collect()
}

#[test]
fn entries_become_a_segment_of_each_project_whose_name_says_what_is_in_it() {
    use crate::facts::entry;

    let other = |checkpoint, slot| {
        let mut entry = entry(checkpoint, slot);
        entry.event.data["edge"] = "other/REQ-F-AUTH-001/design_code".into();
        entry
    };
    let mut foreign = entry(4, 9);
    foreign.event.context = "ordering".to_owned();
    let found = segments([entry(2, 1), other(3, 1), foreign, entry(7, 2)]);
    let names: Vec<_> = found.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["other", "shop"]);
    let Segment { name, text } = &found[&"shop".parse().expect("a name")];
    assert_eq!((name.first, name.last, text.lines().count()), (2, 7, 2));
    assert!(name.is_of(text) && !name.is_of(&text[1..]));
    let written = name.to_string();
    assert_eq!(SegmentName::parse(&written).as_ref(), Some(name));
    for wrong in ["cursor.json", "7-2-ab.jsonl", &written[1..], &written[..written.len() - 1]] {
        assert_eq!(SegmentName::parse(wrong), None, "{wrong}");
    }
    assert!(SegmentName::after(6) < written && SegmentName::after(7) > written);
}
