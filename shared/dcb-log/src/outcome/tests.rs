//! The verdict of each combination of reasons.

use std::collections::BTreeMap;

use super::*;
use crate::item::{ANNOUNCED, APPEND_ID, EVENT, count_name, number, text};

fn boundary(id: &str) -> BoundaryId {
    BoundaryId::tag("a", id)
}

fn fence_of(id: &str, seen: u64) -> Action {
    let requires = BTreeMap::from([("T".into(), seen)]);
    Action::Fence { boundary: boundary(id), requires, via: Via::Fence, copies: 0 }
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
        Ok(Judged::Known(Verdict::Again(Again { raise, taken, announce }))) => {
            let announce = (!announce.is_empty()).then(|| format!(" announce {announce:?}"));
            format!("again {raise} {taken:?}{}", announce.unwrap_or_default())
        }
        Ok(Judged::Known(Verdict::Copies(refused))) => format!("copies {refused:?}"),
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
            reasons.iter().map(move |reason| [&mixture[..], std::slice::from_ref(reason)].concat())
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
        reasons.dedup_by(|a, b| matches!((a, b), (Reason::Refused { .. }, Reason::Refused { .. })));
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
            let changes: Vec<_> = changes.into_iter().filter(|(is, _)| *is).map(|c| c.1).collect();
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
fn a_copy_alone_is_no_conflict_and_a_number_is_valid_for_ever() {
    let put = || Action::Event { partition: boundary("own"), slot: 3, is_read: true };
    let of = |via| {
        let requires = BTreeMap::from([("T".into(), 2)]);
        transaction(vec![
            put(),
            Action::Fence { boundary: boundary("tag"), requires, via, copies: 2 },
        ])
    };
    let copy = |open: bool, count| {
        let open = open.then(|| (OPEN.to_owned(), text("")));
        let item = open.into_iter().chain([(count_name("T"), number(count))]);
        Reason::Condition(Some(item.collect()))
    };
    let numbered = |announced, count| {
        let item = [(ANNOUNCED.to_owned(), number(announced)), (count_name("T"), number(count))];
        Reason::Condition(Some(item.into()))
    };
    let missing = || Reason::Condition(None);
    let theirs = || event("theirs", 9);
    let none = || Reason::None;
    let announce = "again 0 {} announce {a:tag}";
    for (via, sent_before, [own, fence], expected) in [
        (Via::Copy(1), false, [none(), copy(true, 3)], "copies {a:tag: Some(1)}"),
        (Via::Copy(1), true, [none(), copy(true, 3)], "copies {a:tag: Some(1)}"),
        (Via::Copy(1), true, [event("ours", 9), copy(true, 3)], "committed"),
        (Via::Copy(1), false, [none(), copy(true, 1)], "corrupt: a:tag holds 1 T, seen 2"),
        (Via::Copy(1), false, [theirs(), copy(true, 3)], "a:own has E in slot 3, which was free"),
        (Via::Copy(1), false, [none(), copy(false, 0)], "copies {a:tag: None}"),
        (Via::Copy(1), true, [none(), missing()], "copies {a:tag: None}"),
        // A slot that is taken refuses every later send too.
        (Via::Copy(1), true, [theirs(), missing()], "a:own has E in slot 3, which was free"),
        (Via::Fence, false, [none(), numbered(1, 2)], announce),
        (Via::Fence, true, [none(), numbered(1, 2)], announce),
        (Via::Fence, false, [none(), numbered(1, 3)], "a:tag holds 3 T, seen 2"),
        (Via::Announced(4), true, [none(), numbered(5, 2)], announce),
        (Via::Announced(4), true, [none(), numbered(5, 3)], "a:tag holds 3 T, seen 2"),
    ] {
        let actual = verdict(&of(via), &[own, fence], sent_before);
        assert_eq!(actual, expected, "{via:?}, sent before {sent_before}");
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
        let put = transaction(vec![Action::Event { partition: boundary("own"), slot: 3, is_read }]);
        for sent_before in [false, true] {
            let failure = Failure::Condition(item.clone());
            assert_eq!(described(classify(&put, failure, sent_before)), expected);
        }
    }
}
