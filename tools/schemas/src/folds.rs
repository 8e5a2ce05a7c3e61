//! Compares the folds of a context with the released ones.
//!
//! A changed fold continues from the results that the old one has stored. So a lock has the results of each fold for
//! the histories of its context. A fold with other results needs another version.

use std::collections::BTreeMap;

use ringfence_core::SequencedEvent;
use ringfence_stack::Stack;

use crate::fold::{Fold, marks, steps};
use crate::lock::LockedFold;
use crate::words::grows;
use crate::{Finding, Lock, Readers, fold_words};

/// The folds of a context whose results for the histories of a lock differ from the lock, at the same version.
#[must_use]
pub fn changed_folds(
    stack: &Stack,
    readers: &Readers,
    context: &str,
    released: &Lock,
) -> Vec<Finding> {
    let changed = |fold: &Fold| {
        let was = released.folds(fold.kind).get(fold.name)?;
        let differs = |(number, events): (usize, Vec<SequencedEvent>)| {
            let (marked, read) = (was.made.get(&number)?, fold.read(&events));
            let made = fold.make(&stack.catalogs, &read);
            let now = made.as_deref().map(marks).unwrap_or_default();
            let is_same = |(was, now): &(&str, &str)| was == now;
            let same = marked.split(' ').zip(now.split(' ')).take_while(is_same).count();
            let types: Vec<_> = read.iter().take(same + 1).map(|it| &*it.event_type).collect();
            let made = made.map(|made| made.get(same).cloned().unwrap_or_default());
            (now != *marked).then(|| fold_words::changed(fold, number, &types, &made))
        };
        was.is_same_version(fold.kind, &fold.locked)
            .then(|| released.histories.all().find_map(differs))?
    };
    readers.folds(context).filter_map(changed).collect()
}

/// Compares the results of a context's folds for released histories. If nothing was refused, histories of cases that
/// show more are added to the lock. The lock also gets the results of each fold that is not refused.
pub(crate) fn check(
    stack: &Stack,
    readers: &Readers,
    (context, released, now): (&str, &Lock, &Lock),
    (grown, findings): (&mut Lock, &mut Vec<Finding>),
) {
    let folds: Vec<_> = readers.folds(context).collect();
    let make = |fold: &Fold, events: &[SequencedEvent]| {
        fold.make(&stack.catalogs, &fold.read(events)).ok().map(|made| marks(&made))
    };
    let before = grown.clone();
    if findings.iter().all(|finding| finding.is_written) {
        // Another check finds readers that fail.
        let is_made =
            |events: &Vec<SequencedEvent>| folds.iter().all(|fold| make(fold, events).is_some());
        let candidates = now.histories.all().map(|(_, events)| events).filter(is_made);
        grown.histories.add(candidates, |events| steps(&folds, events));
    }
    let mut refused = changed_folds(stack, readers, context, released);
    for fold in &folds {
        let subject = fold.kind.named(fold.name);
        if refused.iter().any(|finding| finding.subject == subject) {
            continue;
        }
        let Some(locked) = grown.folds(fold.kind).get(fold.name) else { continue };
        let mut locked = LockedFold { made: BTreeMap::new(), ..locked.clone() };
        if !locked.is_same_version(fold.kind, &fold.locked) {
            continue;
        }
        let mut by_chance = None;
        for (number, events) in grown.histories.all() {
            let (one, other) = (make(fold, &events), make(fold, &events));
            if one != other {
                by_chance.get_or_insert_with(|| fold_words::by_chance(fold, number));
            }
            locked.made.extend(one.filter(|one| !one.is_empty()).map(|one| (number, one)));
        }
        let all = grown.folds_mut(fold.kind);
        all.insert(fold.name.to_owned(), locked);
        let Some(by_chance) = by_chance else { continue };
        match released.folds(fold.kind).get(fold.name) {
            Some(was) => drop(all.insert(fold.name.to_owned(), was.clone())),
            None => drop(all.remove(fold.name)),
        }
        findings.iter_mut().filter(|it| it.subject == subject).for_each(Finding::withhold);
        refused.push(by_chance);
    }
    findings.append(&mut refused);
    if *grown != before && findings.is_empty() {
        let change = "what folds make of cases is new".to_owned();
        findings.push(grows(context, "the histories", vec![change], Vec::new()));
    }
}
