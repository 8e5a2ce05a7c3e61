//! Differences in how events of a type are filed and read. Events are filed when they are written, so a new version
//! does not help.

use crate::{LockedTag, LockedType};

/// The differences, in words.
pub(crate) fn differences(was: &LockedType, now: &LockedType) -> Vec<String> {
    let mut found = Vec::new();
    let tag = |of: &LockedType, key: &str| of.tags.iter().find(|tag| tag.key == key).cloned();
    for old in &was.tags {
        match tag(now, &old.key) {
            None => found.push(format!("the tag {} is gone", old.key)),
            Some(new) => found.extend(of_tag(old, &new)),
        }
    }
    let is_new = |new: &&LockedTag| tag(was, &new.key).is_none();
    found.extend(now.tags.iter().filter(is_new).map(|new| format!("the tag {} is new", new.key)));
    let partition = |of: &LockedType| {
        let keys = of.tags.iter().filter(|tag| tag.partition).map(|tag| tag.key.clone());
        keys.collect::<Vec<_>>()
    };
    let (old, new) = (partition(was), partition(now));
    let is_ordered_anew = old != new && old.iter().all(|key| new.contains(key));
    if is_ordered_anew && old.len() == new.len() {
        found.push(format!("the partition is {}, and was {}", new.join(", "), old.join(", ")));
    }
    let separator =
        |of: &LockedType| of.separator.map_or("none".to_owned(), |it| format!("`{it}`"));
    if was.separator != now.separator {
        found.push(format!("the separator is {}, and was {}", separator(now), separator(was)));
    }
    for (name, was, now) in [
        ("read_as_composite", was.read_as_composite, now.read_as_composite),
        ("read_by_type", was.read_by_type, now.read_by_type),
        ("fenced", was.fenced, now.fenced),
    ] {
        found.extend(flag("it", name, was, now));
    }
    found
}

fn of_tag(was: &LockedTag, now: &LockedTag) -> Vec<String> {
    let subject = format!("the tag {}", was.key);
    let flags = [
        ("partition", was.partition, now.partition),
        ("cross_partition", was.cross_partition, now.cross_partition),
        ("strong", was.strong, now.strong),
        ("a list", was.many, now.many),
        ("blind", was.blind, now.blind),
    ];
    flags.into_iter().filter_map(|(name, was, now)| flag(&subject, name, was, now)).collect()
}

fn flag(subject: &str, name: &str, was: bool, now: bool) -> Option<String> {
    match (was, now) {
        (false, true) => Some(format!("{subject} is {name}, and was not")),
        (true, false) => Some(format!("{subject} is not {name} any more")),
        (true, true) | (false, false) => None,
    }
}
