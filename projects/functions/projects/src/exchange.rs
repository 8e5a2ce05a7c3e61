//! The segments of an export: the lines of one project, as files whose names say what is in them.
//!
//! A segment is `<project>/<last>-<first>-<sha256>.jsonl`: the checkpoints of its last and its first line, with 19
//! digits, and the hash of its bytes. Nobody keeps a list of segments. So if two exporters run at once, or one begins
//! again, they only write the same lines again, in the same segments or in overlapping ones. A reader lists the
//! segments that sort after its last line, and skips lines that it has.

use std::collections::BTreeMap;

use ringfence::feed::{Checkpoint, Entry};

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

/// The contents of a segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentName {
    /// The checkpoint of the last line.
    pub last: i64,
    /// The checkpoint of the first line.
    pub first: i64,
    /// The hash of the bytes.
    pub sha256: Sha256,
}

impl SegmentName {
    /// The name in the project's folder; `None` if it is not the name of a segment.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(END)?.splitn(3, '-');
        let number = |text: &str| (text.len() == 19).then(|| text.parse().ok()).flatten();
        let (last, first) = (number(parts.next()?)?, number(parts.next()?)?);
        Some(Self { last, first, sha256: parts.next()?.parse().ok()? })
    }

    /// Whether the bytes have the hash in the name.
    #[must_use]
    pub fn is_of(&self, text: &str) -> bool {
        Sha256::of(text) == self.sha256
    }

    /// A name that sorts before all segments with a line after this checkpoint, and after the others.
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

/// The segments of consecutive entries of the index: one for each project.
#[derive(Default)]
pub struct Segments {
    of: BTreeMap<ProjectId, Open>,
    bytes: usize,
}

/// A segment that may get more lines.
struct Open {
    first: Checkpoint,
    last: Checkpoint,
    text: String,
}

impl Segments {
    /// Adds the next entry, if it is of a project.
    pub fn add(&mut self, entry: Entry) {
        let Some(line) = Line::of(entry) else { return };
        let (at, text) = (line.checkpoint, to_text(&line));
        let new = || Open { first: at, last: at, text: String::new() };
        let segment = self.of.entry(line.project).or_insert_with(new);
        segment.last = at;
        segment.text += &text;
        self.bytes += text.len();
    }

    /// The bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The segments as they are to be kept.
    #[must_use]
    pub fn close(self) -> BTreeMap<ProjectId, Segment> {
        let close = |Open { first, last, text }| {
            let (last, first) = (last.into(), first.into());
            Segment { name: SegmentName { last, first, sha256: Sha256::of(&text) }, text }
        };
        self.of.into_iter().map(|(project, open)| (project, close(open))).collect()
    }
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
    let mut all = Segments::default();
    for entry in [entry(2, 1), other(3, 1), foreign, entry(7, 2)] {
        all.add(entry);
    }
    let bytes = all.bytes();
    let found = all.close();
    assert_eq!(bytes, found.values().map(|segment| segment.text.len()).sum::<usize>());
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
