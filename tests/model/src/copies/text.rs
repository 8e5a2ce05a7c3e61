//! Steps in words.

use super::{
    rules::Actor,
    steps::{Announced, Check, Model, Request, State, Step, Turn},
};

/// One line for a step.
pub(super) fn line(model: &Model, before: &State, step: &Step, after: &State) -> String {
    let refused = |request, held| if held { String::new() } else { refused(request) };
    match *step {
        Step::Send(actor, request, held) => {
            let does = does(model, before, after, request);
            format!("{} {does}{}", name(model, actor), refused(request, held))
        }
        Step::Lose(actor, Request::Announce(..)) => {
            format!("{} announces: no answer", name(model, actor))
        }
        Step::Lose(actor, request) => {
            format!("{} {}: no answer", name(model, actor), does(model, before, before, request))
        }
        Step::Arrive(request, held) => {
            let does = does(model, before, after, request);
            format!("a late request arrives: somebody {does}{}", refused(request, held))
        }
        Step::Crash(actor) => format!("{} crashes", name(model, actor)),
        Step::Read(actor, Check { folded, required, .. }) => {
            let required = match required == folded {
                true => String::new(),
                false => format!(", and {required} in a copy"),
            };
            let side = match model.scenario.actors[actor] {
                Actor::Crosses(side) => 1 - side,
                _ => 0,
            };
            let all = before.sides[side].events;
            format!("{} reads {folded} of {all} events{required}", name(model, actor))
        }
        Step::Look(actor, turn) => {
            let goes_on = match turn {
                Turn::Check(Check { copy: None, .. }) => "and will check it",
                Turn::Check(_) => "and will check the copy again",
                Turn::Over => "and gives up",
                _ => "and decides again",
            };
            let count = before.sides[0].fence.count;
            format!("{} reads {count} in the fence, {goes_on}", name(model, actor))
        }
        Step::Examine(actor, Turn::Over) => format!("{} ends in order", name(model, actor)),
        Step::Examine(actor, _) => format!("{} finds a wrong copy", name(model, actor)),
    }
}

/// Writers are W1, W2; checks C1, C2; levellings L1, L2; repairs R1, R2.
fn name(model: &Model, actor: usize) -> String {
    let letter = match model.scenario.actors[actor] {
        Actor::Writes(_) | Actor::Crosses(_) => 'W',
        Actor::Checks => 'C',
        Actor::Levels(_) => 'L',
        Actor::Repairs => 'R',
    };
    format!("{letter}{}", actor + 1)
}

fn does(model: &Model, before: &State, after: &State, request: Request) -> String {
    match request {
        Request::Append(_) => "appends without an announcement".to_owned(),
        Request::Announce(id, _) => {
            let fence = after.sides[model.side(id)].fence;
            format!("announces number {}; the fence names {} copies", fence.announced, fence.copies)
        }
        Request::Put(_, Announced { number, count, stay, .. }, n) if n < usize::from(stay) => {
            format!("puts {count} into copy {} as number {number}", n + 1)
        }
        Request::Put(_, Announced { number, .. }, n) if model.rules.closes => {
            format!("closes copy {} as number {number}", n + 1)
        }
        Request::Put(_, Announced { number, .. }, n) => {
            format!("deletes copy {} as number {number}", n + 1)
        }
        Request::End(of, Announced { number, .. }, check) if model.adds(of) > 0 => {
            let check = check
                .map(|check| format!(", and finds {}", found(before, check, 1 - model.side(of))));
            format!("appends as number {number}{}", check.unwrap_or_default())
        }
        Request::End(_, Announced { number, stay, .. }, _) => {
            format!("ends number {number}; the fence names {stay} copies")
        }
        Request::Check(_, check) => {
            format!("appends elsewhere, and finds {}", found(before, check, 0))
        }
        Request::Mend => "mends the fence".to_owned(),
    }
}

/// The count that a check requires, where, and how many events it knows.
fn found(before: &State, Check { folded, required, copy }: Check, side: usize) -> String {
    let place = copy.map_or("the fence".to_owned(), |n| format!("copy {}", n + 1));
    let all = before.sides[side].events;
    let folded =
        if folded == all { String::new() } else { format!("; it folded {folded} of {all}") };
    format!("{required} in {place}{folded}")
}

fn refused(request: Request) -> String {
    let why = match request {
        Request::Append(_) => "somebody has announced",
        Request::Announce(..) => "it is open",
        Request::Put(..) => "the copy is of a later number",
        Request::End(_, _, None) => "there is a later number",
        Request::End(..) => "there is a later number or another count",
        Request::Check(..) => "the count is another",
        Request::Mend => "it is mended",
    };
    format!(": refused, {why}")
}
