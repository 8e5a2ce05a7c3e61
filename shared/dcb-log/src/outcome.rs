//! The meaning of a failed send of an append, in the order of rule 9.

use std::collections::BTreeSet;

use ringfence_aws::{Failure, Item, Judged, Reason};
use ringfence_core::{BoundaryId, Change, Conflict, LogError};

use crate::fence::differences;
use crate::item::{AT, HEAD, append_id, event_type, whole};
use crate::transaction::{Action, Transaction};

/// How a draft ended.
pub(crate) enum End {
    /// The events are in the log, as the last request has them.
    Committed,
    /// The command took effect before, as this item shows.
    Recorded(Item),
    /// The imported event was in the log before.
    Imported,
}

/// The consequence of a failed send.
pub(crate) enum Verdict {
    /// The append has ended.
    End(End),
    /// Something was added to what the decision saw.
    Conflict(Conflict),
    /// Nothing that the decision depends on has changed, but the events can't have these slots or times.
    Again(Again),
}

/// The slots and times that an append can't have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// The clock must reach this time, in milliseconds since 1970.
    pub(crate) raise: u64,
    /// Partitions that the decision did not read, and whose slots are taken.
    pub(crate) taken: BTreeSet<BoundaryId>,
}

/// Classifies a failed send. `sent_before` means that the outcome of an earlier send of the same append is unknown.
///
/// # Errors
/// [`LogError::Corrupt`] when a fence counts fewer events than were seen.
pub(crate) fn classify(
    transaction: &Transaction,
    failure: Failure,
    sent_before: bool,
) -> Result<Judged<Verdict>, LogError> {
    let ended = |end| Ok(Judged::Known(Verdict::End(end)));
    let reasons = match failure {
        // The condition of a single put.
        Failure::Condition(item) => vec![Reason::Condition(item)],
        Failure::Cancelled(reasons) => reasons,
        failure => return Ok(Judged::Failed(failure)),
    };
    let failed = || {
        transaction.actions.iter().zip(&reasons).filter_map(|(action, reason)| match reason {
            Reason::Condition(item) => Some((action, item.as_ref())),
            _ => None,
        })
    };
    // This comes first: our own commit makes everything else differ as well.
    let is_ours = |item: &Item| append_id(item) == Some(&*transaction.append_id);
    let own = failed().filter(|(action, _)| matches!(action, Action::Event { .. }));
    if own.clone().any(|(_, item)| item.is_some_and(is_ours)) {
        return ended(End::Committed);
    }
    // DynamoDB does not judge items that others hold, and may not judge the other items either. It did judge a put of
    // ours if the put failed because of another's event.
    let held = reasons.iter().any(|reason| matches!(reason, Reason::Conflict | Reason::Throttled));
    if sent_before && held && own.count() == 0 {
        return Ok(Judged::Held(Failure::Cancelled(reasons)));
    }
    for (action, item) in failed() {
        match (action, item) {
            (Action::Import, _) => return ended(End::Imported),
            (Action::Command, Some(item)) => return ended(End::Recorded(item.clone())),
            _ => {}
        }
    }
    let mut changes = Vec::new();
    let mut named = BTreeSet::new();
    let mut again = Again::default();
    for (action, item) in failed() {
        match action {
            Action::Event { partition, slot, is_read: true }
            | Action::Check { partition, slot } => {
                // If several puts go into one partition, the first one counts.
                if named.insert(partition) {
                    changes.push(taken(partition, *slot, item));
                }
            }
            Action::Event { partition, is_read: false, .. } => {
                again.taken.insert(partition.clone());
                again.raise = again.raise.max(after(item, AT));
            }
            Action::Fence(boundary, requires) => {
                changes.extend(differences(boundary, requires, item)?);
                again.raise = again.raise.max(after(item, HEAD));
            }
            Action::Copy | Action::Command | Action::Import => {}
        }
    }
    Ok(match (changes.is_empty(), again == Again::default()) {
        (false, _) => Judged::Known(Verdict::Conflict(Conflict(changes))),
        (true, false) => Judged::Known(Verdict::Again(again)),
        (true, true) => Judged::Failed(Failure::Cancelled(reasons)),
    })
}

/// The change that the item in a taken slot means.
pub(crate) fn taken(partition: &BoundaryId, slot: u64, item: Option<&Item>) -> Change {
    let event_type = item.and_then(event_type).unwrap_or("something else").to_owned();
    Change::Slot { partition: partition.clone(), slot, event_type: event_type.into() }
}

/// The millisecond after a time in an item; 0 without an item.
fn after(item: Option<&Item>, name: &str) -> u64 {
    item.and_then(|item| whole(item, name)).map_or(0, |ms| ms + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::item::{APPEND_ID, EVENT, count_name, number, text};

    fn boundary(id: &str) -> BoundaryId {
        BoundaryId::tag("a", id)
    }

    fn fence_of(id: &str, seen: u64) -> Action {
        Action::Fence(boundary(id), BTreeMap::from([("T".into(), seen)]))
    }

    fn transaction(actions: Vec<Action>) -> Transaction {
        Transaction { append_id: "ours".to_owned(), actions, items: vec![] }
    }

    /// An event in a partition that was read or not, its index item, the command item, a slot that must be free, and
    /// a fence that was seen at 2.
    fn decided(is_read: bool) -> Transaction {
        let partition = boundary("own");
        transaction(vec![
            Action::Event { partition, slot: 3, is_read },
            Action::Copy,
            Action::Command,
            Action::Check { partition: boundary("else"), slot: 5 },
            fence_of("tag", 2),
        ])
    }

    fn event(append_id: &str, at: u64) -> Reason {
        let item = [(APPEND_ID, text(append_id)), (EVENT, text("E")), (AT, number(at))];
        Reason::Condition(Some(item.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    fn found() -> Reason {
        Reason::Condition(Some(Item::from([("events".to_owned(), text("x"))])))
    }

    fn fence(count: u64, head: u64) -> Reason {
        let item = [(count_name("T"), number(count)), (HEAD.to_owned(), number(head))];
        Reason::Condition(Some(item.into()))
    }

    fn refused(code: &str) -> Reason {
        Reason::Refused { code: code.into(), message: String::new() }
    }

    fn described(judged: Result<Judged<Verdict>, LogError>) -> String {
        match judged {
            Ok(Judged::Known(Verdict::End(end))) => match end {
                End::Committed => "committed".to_owned(),
                End::Imported => "imported".to_owned(),
                End::Recorded(item) => format!("recorded, {} attributes", item.len()),
            },
            Ok(Judged::Known(Verdict::Conflict(conflict))) => conflict.to_string(),
            Ok(Judged::Known(Verdict::Again(Again { raise, taken }))) => {
                format!("again {raise} {taken:?}")
            }
            Ok(Judged::Held(_)) => "unjudged".to_owned(),
            Ok(Judged::Failed(failure)) if failure.is_transient() => "transient".to_owned(),
            Ok(Judged::Failed(_)) => "permanent".to_owned(),
            Err(LogError::Corrupt(change)) => format!("corrupt: {change}"),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn verdict(transaction: &Transaction, reasons: &[Reason], sent_before: bool) -> String {
        described(classify(transaction, Failure::Cancelled(reasons.to_vec()), sent_before))
    }

    /// Every combination of reasons, one for each action, in the order of the actions.
    fn mixtures(of_each: &[Vec<Reason>]) -> Vec<Vec<Reason>> {
        of_each.iter().fold(vec![vec![]], |mixtures, reasons| {
            let with = |mixture: &Vec<Reason>| {
                let mixture = mixture.clone();
                reasons
                    .iter()
                    .map(move |reason| [&mixture[..], std::slice::from_ref(reason)].concat())
            };
            mixtures.iter().flat_map(with).collect()
        })
    }

    /// Checks every reason that the API lists for a cancelled transaction, at each action, in every combination. The
    /// expected verdict is the first rule that holds.
    #[test]
    fn every_combination_of_reasons_has_the_verdict_of_its_first_rule() {
        let others = |failed: Vec<Reason>| {
            let codes = ["ItemCollectionSizeLimitExceeded", "ValidationError"].map(refused);
            let others = [Reason::None, Reason::Conflict, Reason::Throttled];
            others.into_iter().chain(codes).chain(failed).collect::<Vec<_>>()
        };
        let of_each = [
            others(vec![event("ours", 9), event("theirs", 9)]),
            others(vec![found()]),
            others(vec![found()]),
            others(vec![event("theirs", 9)]),
            // More than was seen, as many with a late head, fewer.
            others(vec![fence(3, 9), fence(2, 9), fence(1, 9)]),
        ];
        let of_each = of_each.map(|mut reasons| {
            // One refusal of two, and one code of two, keep the table small.
            reasons.dedup_by(|a, b| {
                matches!((a, b), (Reason::Refused { .. }, Reason::Refused { .. }))
            });
            reasons
        });
        let fails = |reason: &Reason| matches!(reason, Reason::Condition(_));
        let holds = |reason: &Reason| matches!(reason, Reason::Conflict | Reason::Throttled);
        let all = mixtures(&of_each);
        assert_eq!(all.len(), 6 * 5 * 5 * 5 * 7);
        for (is_read, sent_before) in [(true, false), (true, true), (false, false), (false, true)] {
            let transaction = decided(is_read);
            for mixture in &all {
                let [own, _, command, check, one] = &mixture[..] else { panic!("{mixture:?}") };
                let held = mixture.iter().any(holds);
                let slot = fails(own) && is_read;
                let own_slot = "a:own has E in slot 3, which was free";
                let other_slot = "a:else has E in slot 5, which was free";
                let count = "a:tag holds 3 T, seen 2";
                let changes =
                    [(slot, own_slot), (fails(check), other_slot), (*one == fence(3, 9), count)];
                let changes: Vec<_> =
                    changes.into_iter().filter(|(is, _)| *is).map(|c| c.1).collect();
                let changes = changes.join("; ");
                let rules = [
                    (*own == event("ours", 9), "committed"),
                    (sent_before && held && !fails(own), "unjudged"),
                    (fails(command), "recorded, 1 attributes"),
                    (*one == fence(1, 9), "corrupt: a:tag holds 1 T, seen 2"),
                    (!changes.is_empty(), &changes),
                    (fails(own), "again 10 {a:own}"),
                    (fails(one), "again 10 {}"),
                    (mixture.iter().any(fails), "permanent"),
                    (held, "transient"),
                    (true, "permanent"),
                ];
                let (_, expected) = rules.iter().find(|(holds, _)| *holds).expect("the last");
                let actual = verdict(&transaction, mixture, sent_before);
                assert_eq!(actual, *expected, "read {is_read}, sent {sent_before}: {mixture:?}");
            }
        }
    }

    #[test]
    fn the_first_match_of_the_rule_wins() {
        use Reason::{Conflict, None as Fine, Throttled};
        let theirs = || event("theirs", 9);
        let missing = || Reason::Condition(None);
        let refused = || refused("ValidationError");
        for (sent_before, reasons, expected) in [
            // Our own commit makes everything else differ too.
            (false, [event("ours", 9), found(), found(), theirs(), fence(1, 9)], "committed"),
            (true, [event("ours", 9), Conflict, Conflict, Conflict, Conflict], "committed"),
            // While others hold something, only a put of ours that failed was surely judged.
            (true, [Conflict, Fine, found(), theirs(), fence(3, 9)], "unjudged"),
            (true, [Fine, Throttled, found(), theirs(), fence(1, 9)], "unjudged"),
            (true, [theirs(), Conflict, Fine, Fine, Fine], "a:own has E in slot 3, which was free"),
            (true, [theirs(), Conflict, found(), Fine, Fine], "recorded, 1 attributes"),
            (true, [Fine, Fine, found(), theirs(), Fine], "recorded, 1 attributes"),
            (false, [Conflict, Fine, found(), theirs(), Fine], "recorded, 1 attributes"),
            (false, [Conflict, Fine, Fine, Fine, fence(3, 9)], "a:tag holds 3 T, seen 2"),
            (
                false,
                [missing(), Fine, Fine, missing(), Fine],
                "a:own has something else in slot 3, which was free; \
                 a:else has something else in slot 5, which was free",
            ),
            (false, [theirs(), Fine, Fine, Fine, fence(1, 9)], "corrupt: a:tag holds 1 T, seen 2"),
            (false, [Fine, Fine, Fine, Fine, missing()], "corrupt: a:tag holds 0 T, seen 2"),
            (false, [Fine, Fine, Fine, Fine, fence(2, 11)], "again 12 {}"),
            (false, [Fine, Conflict, Fine, Fine, fence(2, 9)], "again 10 {}"),
            (true, [Fine, Fine, Fine, Fine, fence(2, 9)], "again 10 {}"),
            (true, [Fine, Conflict, Fine, Fine, fence(2, 9)], "unjudged"),
            (true, [Conflict, Fine, Fine, Fine, Fine], "unjudged"),
            (false, [Fine, Fine, Fine, Conflict, Throttled], "transient"),
            (false, [Fine, Throttled, Fine, refused(), Fine], "transient"),
            (true, [Fine, Fine, Fine, refused(), Fine], "permanent"),
        ] {
            let actual = verdict(&decided(true), &reasons, sent_before);
            assert_eq!(actual, expected, "{sent_before}: {reasons:?}");
        }
    }

    #[test]
    fn an_unread_partition_moves_the_put_and_makes_no_conflict() {
        let put = |slot| Action::Event { partition: boundary("own"), slot, is_read: false };
        let two = transaction(vec![put(3), put(4), fence_of("tag", 0)]);
        let theirs = |at| event("theirs", at);
        for (reasons, expected) in [
            // The later of the two times, or the head if that is later.
            ([theirs(9), theirs(20), Reason::None], "again 21 {a:own}"),
            ([theirs(9), Reason::None, fence(0, 30)], "again 31 {a:own}"),
            // The command must be decided again, so the conflict counts.
            ([theirs(9), Reason::None, fence(1, 30)], "a:tag holds 1 T, seen 0"),
            ([event("ours", 9), theirs(20), fence(1, 30)], "committed"),
        ] {
            assert_eq!(verdict(&two, &reasons, false), expected, "{reasons:?}");
        }
    }

    #[test]
    fn the_conflict_names_the_first_of_several_puts_into_one_partition() {
        let put = |slot| Action::Event { partition: boundary("own"), slot, is_read: true };
        let two = transaction(vec![put(3), put(4)]);
        let both = [event("theirs", 8), event("theirs", 9)];
        assert_eq!(verdict(&two, &both, false), "a:own has E in slot 3, which was free");
    }

    #[test]
    fn an_event_that_was_imported_before_is_not_imported_again() {
        let put = Action::Event { partition: boundary("own"), slot: 3, is_read: false };
        let import = transaction(vec![put, Action::Import]);
        let theirs = || event("theirs", 9);
        assert_eq!(verdict(&import, &[Reason::None, found()], false), "imported");
        assert_eq!(verdict(&import, &[theirs(), found()], true), "imported");
        assert_eq!(verdict(&import, &[event("ours", 9), found()], true), "committed");
        assert_eq!(verdict(&import, &[Reason::Conflict, found()], true), "unjudged");
    }

    #[test]
    fn a_single_put_is_judged_by_the_item_that_it_found() {
        for (is_read, reason, expected) in [
            (true, event("ours", 9), "committed"),
            (false, event("ours", 9), "committed"),
            (true, event("theirs", 9), "a:own has E in slot 3, which was free"),
            (false, event("theirs", 9), "again 10 {a:own}"),
        ] {
            let Reason::Condition(item) = reason else { panic!("{reason:?}") };
            let put =
                transaction(vec![Action::Event { partition: boundary("own"), slot: 3, is_read }]);
            for sent_before in [false, true] {
                let failure = Failure::Condition(item.clone());
                assert_eq!(described(classify(&put, failure, sent_before)), expected);
            }
        }
    }
}
