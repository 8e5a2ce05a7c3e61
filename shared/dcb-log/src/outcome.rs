//! What a failed send of an append means, in the order of rule 9.

use ringfence::{Conflict, LogError, Position};
use ringfence_dynamo::{Failure, Item, Reason};

use crate::fence::difference;
use crate::item::HEAD;
use crate::transaction::{Action, Transaction};

/// What follows from a failed send.
pub(crate) enum Verdict {
    /// An earlier send of the same transaction is committed.
    Committed,
    /// The imported event is in the log already.
    Imported,
    /// The command is settled already, by this item.
    Recorded(Item),
    /// A count differs from what the decision saw.
    Conflict(Conflict),
    /// Only the heads of fences are not below the first position: the clock has to reach this, in
    /// milliseconds since 1970.
    Behind(u64),
    /// Nothing else is known than the failure itself.
    Failed(Failure),
}

/// Classifies a failed send.
///
/// # Errors
/// [`LogError::Corrupt`] when a fence counts fewer events than were seen.
pub(crate) fn classify(transaction: &Transaction, failure: Failure) -> Result<Verdict, LogError> {
    let Failure::Cancelled(reasons) = failure else {
        return Ok(Verdict::Failed(failure));
    };
    let failed = || {
        transaction.actions.iter().zip(&reasons).filter_map(|(action, reason)| match reason {
            Reason::Condition(item) => Some((action, item.as_ref())),
            _ => None,
        })
    };
    // The key holds a random UUID of this transaction, so an item that is there is ours. Before
    // anything else: our own commit makes the counts differ as well.
    if failed().any(|(action, _)| matches!(action, Action::Event)) {
        return Ok(Verdict::Committed);
    }
    for (action, item) in failed() {
        match (action, item) {
            (Action::Import, _) => return Ok(Verdict::Imported),
            (Action::Command, Some(item)) => return Ok(Verdict::Recorded(item.clone())),
            _ => {}
        }
    }
    let mut conflict = None;
    let mut raise = None;
    for (action, item) in failed() {
        if let Action::Fence(boundary, requires) = action {
            conflict = conflict.or(difference(boundary, requires, item)?);
            raise = raise.max(item.and_then(head).map(|head| head.ms() + 1));
        }
    }
    Ok(match (conflict, raise) {
        (Some(conflict), _) => Verdict::Conflict(conflict),
        (None, Some(raise)) => Verdict::Behind(raise),
        (None, None) => Verdict::Failed(Failure::Cancelled(reasons)),
    })
}

fn head(fence: &Item) -> Option<Position> {
    Position::try_from(fence.get(HEAD)?.as_s().ok()?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringfence::BoundaryId;

    use super::*;
    use crate::item::{count_name, number, text};

    /// An event, a command item, a fence that was seen at 2 and one that was never seen.
    fn transaction() -> Transaction {
        let fence = |id: &str, seen| {
            Action::Fence(BoundaryId::tag("a", id), BTreeMap::from([("T".into(), seen)]))
        };
        Transaction {
            token: String::new(),
            actions: vec![Action::Event, Action::Command, fence("1", 2), fence("2", 0)],
            items: vec![],
            events: vec![],
        }
    }

    fn fence(count: u64, head_ms: u64) -> Reason {
        let head = text(format!("{head_ms:013}-x"));
        let item = [(count_name("T"), number(count)), (HEAD.to_owned(), head)];
        Reason::Condition(Some(item.into()))
    }

    fn verdict(reasons: Vec<Reason>) -> String {
        match classify(&transaction(), Failure::Cancelled(reasons)) {
            Ok(Verdict::Committed) => "committed".to_owned(),
            Ok(Verdict::Imported) => "imported".to_owned(),
            Ok(Verdict::Recorded(item)) => format!("recorded, {} attributes", item.len()),
            Ok(Verdict::Conflict(conflict)) => format!("conflict: {conflict}"),
            Ok(Verdict::Behind(ms)) => format!("behind {ms}"),
            Ok(Verdict::Failed(failure)) if failure.is_transient() => "transient".to_owned(),
            Ok(Verdict::Failed(_)) => "permanent".to_owned(),
            Err(LogError::Corrupt(conflict)) => format!("corrupt: {conflict}"),
            Err(error) => panic!("{error:?}"),
        }
    }

    /// Every reason that the API lists for a cancelled transaction, at each action, in every
    /// mixture: the rules from the first to the last, and the first that holds is the verdict.
    #[test]
    fn every_mixture_of_reasons_has_the_verdict_of_its_first_rule() {
        let refused = |code: &str| Reason::Refused { code: code.into(), message: String::new() };
        let found = || Reason::Condition(Some(Item::from([(HEAD.to_owned(), text("x"))])));
        let others = || {
            let refused = ["ItemCollectionSizeLimitExceeded", "ValidationError"].map(refused);
            [Reason::None, Reason::Conflict, Reason::Throttled].into_iter().chain(refused)
        };
        let item = || others().chain([found()]).collect::<Vec<_>>();
        // What the fences say: more, as many with a late head, or fewer than seen.
        let seen_two = others().chain([fence(3, 9), fence(2, 9), fence(1, 9)]).collect::<Vec<_>>();
        let seen_none = others().chain([fence(1, 9), fence(0, 9)]).collect::<Vec<_>>();
        let fails = |reason: &Reason| matches!(reason, Reason::Condition(_));
        let mut mixtures = 0;
        for (event, command) in item().iter().flat_map(|e| item().into_iter().map(move |c| (e, c)))
        {
            for (one, two) in seen_two.iter().flat_map(|o| seen_none.iter().map(move |t| (o, t))) {
                let mixture = [event.clone(), command.clone(), one.clone(), two.clone()];
                let waits = |r: &Reason| matches!(r, Reason::Conflict | Reason::Throttled);
                let rules = [
                    (fails(event), "committed"),
                    (fails(&command), "recorded, 1 attributes"),
                    (*one == fence(1, 9), "corrupt: a:1 holds 1 T, seen 2"),
                    (*one == fence(3, 9), "conflict: a:1 holds 3 T, seen 2"),
                    (*two == fence(1, 9), "conflict: a:2 holds 1 T, seen 0"),
                    (fails(one) || fails(two), "behind 10"),
                    (mixture.iter().any(waits), "transient"),
                    (true, "permanent"),
                ];
                let (_, expected) = rules.iter().find(|(holds, _)| *holds).expect("the last");
                assert_eq!(verdict(mixture.to_vec()), *expected, "{mixture:?}");
                mixtures += 1;
            }
        }
        assert_eq!(mixtures, 6 * 6 * 8 * 7);
    }

    #[test]
    fn the_first_match_of_the_rule_wins() {
        use Reason::{Conflict, None as Fine, Throttled};
        let found = || Reason::Condition(Some(Item::from([(HEAD.to_owned(), text("x"))])));
        let missing = || Reason::Condition(None);
        let refused = || Reason::Refused { code: "ValidationError".into(), message: String::new() };
        for (reasons, expected) in [
            // Our own commit makes everything else differ too.
            (vec![found(), found(), fence(3, 9), fence(1, 9)], "committed"),
            (vec![Fine, found(), fence(3, 9), Throttled], "recorded, 1 attributes"),
            (vec![Fine, Fine, fence(3, 9), Conflict], "conflict: a:1 holds 3 T, seen 2"),
            (vec![Fine, Fine, fence(2, 9), fence(1, 5)], "conflict: a:2 holds 1 T, seen 0"),
            (vec![Fine, Fine, fence(1, 9), fence(1, 9)], "corrupt: a:1 holds 1 T, seen 2"),
            (vec![Fine, Fine, missing(), Fine], "corrupt: a:1 holds 0 T, seen 2"),
            (vec![Fine, Fine, fence(2, 9), fence(0, 11)], "behind 12"),
            (vec![Fine, Fine, fence(2, 9), Conflict], "behind 10"),
            (vec![Fine, Fine, Conflict, Throttled], "transient"),
            (vec![Fine, Throttled, refused(), Fine], "transient"),
            (vec![Fine, Fine, refused(), Fine], "permanent"),
            // No condition of ours fails on a fence that is not there and was not seen.
            (vec![Fine, Fine, Fine, missing()], "permanent"),
        ] {
            assert_eq!(verdict(reasons.clone()), expected, "{reasons:?}");
        }
    }
}
