//! The gate decides which changes of released things are allowed.
//!
//! | change | verdict |
//! |---|---|
//! | something is new, an optional member is new, a member is gone that no reader needs | the lock grows |
//! | a choice is new, a bound is wider, a member became optional | the lock grows, and readers go first: two deploys |
//! | a required member is new; a member has another name or type, or takes less | a new version with an upcast |
//! | a member becomes personal, which functions of the older build can't read | a new version, written at once |
//! | a string has another pattern or format | as if it took less, until a person writes the new one into the file |
//! | the older version that is still written can't hold a payload, or changes its meaning | refused |
//! | a tag, the partition, the separator, or how decisions read the type | refused |
//! | a type, a version, or a name on which stored things depend is gone | refused |
//! | a command takes less than before, or lacks a code | refused |
//! | a fold has other results for released histories, at the same version | refused until the version is raised |
//!
//! [`compare`] and [`forward`] are functions of two locks. [`check`] also runs the readers and folds on released
//! events.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_stack::Stack;

use crate::finding::Finding;
use crate::lock::{FoldKind, LockedFold};
use crate::running::Samples;
use crate::samples::add_samples;
use crate::words::Version;
use crate::{
    DifferenceKind, Lock, LockedCommand, LockedType, LockedVersion, Readers, ShapeDifference,
};
use crate::{boundaries, fold_words, folds, names, words, written_words};

/// The result of the gate for a lock and the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The lock as `UPDATE=1 cargo test` writes it, with all allowed additions. Refused things stay as they were.
    pub grown: Lock,
    /// The differences.
    pub findings: Vec<Finding>,
}

/// Compares the lock of a context with the lock that its code gives now.
#[must_use]
pub fn compare(context: &str, released: &Lock, now: &Lock) -> Comparison {
    compare_and_read(context, released, now, |_, _| Vec::new())
}

/// Compares a context with its lock. `read` gets each grown type and returns the findings of readers. If there are any,
/// nothing of the type is added.
fn compare_and_read(
    context: &str,
    released: &Lock,
    now: &Lock,
    read: impl Fn(&str, &LockedType) -> Vec<Finding>,
) -> Comparison {
    let mut gate = Gate { context, findings: Vec::new() };
    let mut grown = released.clone();
    for (name, now) in &now.events {
        let (was, before) = (released.events.get(name), gate.findings.len());
        let event_type = match was {
            Some(was) if !was.versions.is_empty() => gate.event_type(name, was, now),
            _ => {
                let Some(new) = gate.new_type(name, now) else { continue };
                // A person may already have marked the type as public.
                LockedType { public: was.is_some_and(|was| was.public), ..new }
            }
        };
        let mut unread = read(name, &event_type);
        let Some(last) = unread.last_mut() else {
            grown.events.insert(name.clone(), event_type);
            continue;
        };
        if was != Some(&event_type) {
            last.remedy.push(format!("until then, nothing of {name} is written into the file"));
        }
        gate.findings[before..].iter_mut().for_each(Finding::withhold);
        gate.findings.append(&mut unread);
    }
    for name in released.events.keys().filter(|name| !now.events.contains_key(*name)) {
        gate.findings.push(words::type_gone(context, name));
    }
    for (slice, now) in &now.commands {
        let command = match released.commands.get(slice) {
            Some(was) => gate.command(slice, was, now),
            None => gate.is_new(&format!("the command {slice}"), now),
        };
        grown.commands.insert(slice.clone(), command);
    }
    for slice in released.commands.keys().filter(|slice| !now.commands.contains_key(*slice)) {
        gate.findings.push(names::command_gone(context, slice));
    }
    for kind in FoldKind::ALL {
        *grown.folds_mut(kind) = gate.folds(kind, released, now);
    }
    for name in released.reactors.difference(&now.reactors) {
        gate.findings.push(names::reactor_gone(context, name));
    }
    for name in now.reactors.difference(&released.reactors) {
        gate.is_new(&format!("the reactor {name}"), &());
        grown.reactors.insert(name.clone());
    }
    Comparison { grown, findings: gate.findings }
}

/// Compares a context with its lock, and runs every reader of the stack on every sample of every version, released or
/// new, also with each optional member left out. A type that some reader can't read is not written. At the same
/// version, a stored fold must give the same results for released histories as before.
#[must_use]
pub fn check(
    stack: &Stack,
    readers: &Readers,
    context: &str,
    released: &Lock,
    now: &Lock,
) -> Comparison {
    let mut comparison = compare_and_read(context, released, now, |name, of| {
        let samples = Samples::of(stack, readers, context, name, of);
        samples.map_or_else(Vec::new, |samples| samples.check())
    });
    let Comparison { grown, findings } = &mut comparison;
    folds::check(stack, readers, (context, released, now), (grown, findings));
    comparison
}

struct Gate<'a> {
    context: &'a str,
    findings: Vec<Finding>,
}

impl Gate<'_> {
    fn is_new<T: Clone>(&mut self, subject: &str, new: &T) -> T {
        self.grows(subject, vec!["is new".to_owned()], Vec::new());
        new.clone()
    }

    fn grows(&mut self, subject: &str, changes: Vec<String>, notes: Vec<String>) {
        self.findings.push(words::grows(self.context, subject, changes, notes));
    }

    fn folds(&mut self, kind: FoldKind, was: &Lock, now: &Lock) -> BTreeMap<String, LockedFold> {
        // No fold can have passed over events of a new type.
        let is_new =
            |name: &&String| now.events.contains_key(*name) && !was.events.contains_key(*name);
        let (was, now) = (was.folds(kind), now.folds(kind));
        let gone = was.keys().filter(|name| !now.contains_key(*name));
        self.findings.extend(gone.filter_map(|name| kind.gone(self.context, name)));
        let mut grown = was.clone();
        for (name, now) in now {
            let mut next = now.clone();
            let change = match was.get(name) {
                None => "is new".to_owned(),
                Some(was) if now.version < was.version => {
                    self.findings.push(fold_words::lowered(self.context, (kind, name), was, now));
                    continue;
                }
                Some(was) if now.version > was.version => {
                    format!("is of version {}, after {}", now.version, was.version)
                }
                Some(was) if now.types == was.types => continue,
                Some(_) if kind == FoldKind::State => {
                    "reads other types of events, or other versions of them".to_owned()
                }
                Some(was) => {
                    let differ = was.types.symmetric_difference(&now.types);
                    let differ: Vec<_> = differ.filter(|name| !is_new(name)).cloned().collect();
                    if !differ.is_empty() {
                        self.findings.push(fold_words::reads(self.context, (kind, name), &differ));
                        continue;
                    }
                    next.made.clone_from(&was.made);
                    "reads types that are new".to_owned()
                }
            };
            let is_raised = was.get(name).is_some_and(|was| !was.is_same_version(kind, now));
            let notes = is_raised.then(|| kind.when_raised(name));
            self.grows(&kind.named(name), vec![change], notes.into_iter().collect());
            grown.insert(name.clone(), next);
        }
        grown
    }

    /// A type that was not released; `None` if the lock lacks one of its earlier versions.
    fn new_type(&mut self, name: &str, now: &LockedType) -> Option<LockedType> {
        if let Some(missing) = missing(&LockedType::default(), now) {
            self.findings.push(words::version_missing(self.context, name, missing, now.newest()));
            return None;
        }
        Some(self.is_new(&format!("the type {name}"), now))
    }

    fn event_type(&mut self, name: &str, was: &LockedType, now: &LockedType) -> LockedType {
        let differences = boundaries::differences(was, now);
        if !differences.is_empty() {
            self.findings.push(words::boundaries(self.context, name, now, differences));
        }
        let mut grown = was.clone();
        if was.retired != now.retired {
            let change = if now.retired { "is retired" } else { "is written again" };
            self.grows(&format!("the type {name}"), vec![change.to_owned()], Vec::new());
            grown.retired = now.retired;
        }
        if was.write != now.write {
            let change = format!("is written in version {}", now.written());
            self.grows(&format!("the type {name}"), vec![change], Vec::new());
            grown.write = now.write;
        }
        let (known, newest) = (was.newest(), now.newest());
        if newest < known {
            self.findings.push(words::version_gone(self.context, name, known, newest));
        } else if let Some(missing) = missing(was, now) {
            self.findings.push(words::version_missing(self.context, name, missing, newest));
        } else {
            for (number, now) in &now.versions {
                let version = Version { name, number: *number, newest, of: now };
                match grown.versions.get_mut(number) {
                    Some(released) => self.version(&version, was.public, released),
                    None => {
                        let new = self.is_new(&format!("{name} version {number}"), now);
                        grown.versions.insert(*number, new);
                    }
                }
            }
        }
        grown
    }

    fn version(&mut self, version: &Version<'_>, is_public: bool, was: &mut LockedVersion) {
        let is_gone = |of: &ShapeDifference| matches!(of.kind, DifferenceKind::Removed { .. });
        let all = was.shape.differences(&version.of.shape);
        let gone: BTreeSet<_> =
            all.iter().filter(|of| is_gone(of)).map(|of| of.place.clone()).collect();
        // The lock already notes some members as gone.
        let is_new = |of: &ShapeDifference| !(is_gone(of) && was.gone.contains(&of.place));
        let differences: Vec<_> = all.into_iter().filter(is_new).collect();
        let breaks = |of: &ShapeDifference| {
            of.breaks_readers() || of.is_of_personal() || (is_public && is_gone(of))
        };
        if differences.iter().any(breaks) {
            self.findings.push(words::version_broken(
                self.context,
                version,
                is_public,
                &differences,
            ));
            return;
        }
        let (mut changes, mut notes) = (Vec::new(), Vec::new());
        let grown = was.shape.grown(&version.of.shape);
        if grown != was.shape || gone != was.gone {
            (changes, notes) = words::growth(&differences, is_public);
            changes
                .extend(was.gone.difference(&gone).map(|place| format!("{place} is there again")));
            (was.shape, was.gone) = (grown, gone);
        }
        let before = was.samples.len();
        add_samples(&mut was.samples, &was.shape, version.of.samples.iter().cloned());
        if was.samples.len() > before && changes.is_empty() {
            changes.push("a sample is new".to_owned());
        }
        if !changes.is_empty() {
            self.grows(&format!("{} version {}", version.name, version.number), changes, notes);
        }
    }

    fn command(&mut self, slice: &str, was: &LockedCommand, now: &LockedCommand) -> LockedCommand {
        let mut grown = was.clone();
        let differences = was.shape.differences(&now.shape);
        // A caller's values are plain.
        let breaks = |of: &ShapeDifference| of.breaks_callers() && !of.is_of_personal();
        if differences.iter().any(breaks) {
            self.findings.push(names::command_broken(self.context, slice, &differences));
        } else if was.shape != now.shape {
            let changes = differences.iter().map(ToString::to_string).collect();
            self.grows(&format!("the command {slice}"), changes, Vec::new());
            grown.shape = now.shape.clone();
        }
        for code in was.rejections.difference(&now.rejections) {
            self.findings.push(names::code_gone(self.context, slice, code));
        }
        for code in now.rejections.difference(&was.rejections) {
            self.is_new(&format!("the code {code} of the command {slice}"), &());
        }
        grown.rejections.extend(now.rejections.iter().cloned());
        grown
    }
}

/// The first version below the newest one of the code that both locks lack.
fn missing(was: &LockedType, now: &LockedType) -> Option<u32> {
    let is_missing =
        |number: &u32| !was.versions.contains_key(number) && !now.versions.contains_key(number);
    (1..now.newest()).find(is_missing)
}

/// Findings about events that the code writes now and the readers of a base can't read: they want two deploys. Shapes
/// are compared only in versions that the base has. An older version that the base has and `now` lacks was taken out of
/// the file.
#[must_use]
pub fn forward(context: &str, base: &Lock, now: &Lock) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, now) in &now.events {
        let Some(base) = base.events.get(name) else { continue };
        let (known, written) = (base.newest(), now.written());
        // A type without a version is not released yet.
        if known > 0 && known < written {
            let of =
                |lock: &LockedType, number| lock.versions.get(&number).map(|it| it.shape.clone());
            let differences =
                of(base, known).zip(of(now, written)).map(|(was, is)| was.differences(&is));
            let is_personal = differences
                .iter()
                .flatten()
                .any(|it| it.kind == DifferenceKind::Personal { is_now: true });
            found.push(written_words::written_unread(context, name, (written, known), is_personal));
        }
        let is_lost = |number: &&u32| **number < now.newest() && !now.versions.contains_key(number);
        let lost = base.versions.keys().find(is_lost);
        found.extend(lost.map(|lost| words::version_missing(context, name, *lost, now.newest())));
        for (number, now) in &now.versions {
            let Some(of_base) = base.versions.get(number) else { continue };
            let unread = (1..).zip(&now.samples).find_map(|(sample, data)| {
                of_base.shape.reads(data).err().map(|why| (sample, why))
            });
            let two_deploys =
                |unread| written_words::two_deploys(context, (name, *number), base.public, unread);
            found.extend(unread.map(two_deploys));
        }
    }
    found
}
