//! Steps in words.

use super::{
    rules::Actor,
    steps::{Announced, Model, Request, State, Step},
};

/// One line for a step.
pub(super) fn line(model: &Model, before: &State, step: &Step, after: &State) -> String {
    match *step {
        Step::Send(actor, request, held) => {
            let refused = if held { String::new() } else { refused(request) };
            format!("{} {}{refused}", name(model, actor), does(model, after, request))
        }
        Step::Lose(actor, Request::Announce(_)) => {
            format!("{} announces: no answer", name(model, actor))
        }
        Step::Lose(actor, request) => {
            format!("{} {}: no answer", name(model, actor), does(model, before, request))
        }
        Step::Arrive(request, held) => {
            let refused = if held { String::new() } else { refused(request) };
            format!("a late request arrives: somebody {}{refused}", does(model, after, request))
        }
        Step::Crash(actor) => format!("{} crashes", name(model, actor)),
        Step::Read => {
            let (folded, required) = after.check.unwrap_or_default();
            let all = before.events;
            let required = match required == folded {
                true => String::new(),
                false => format!(", and {required} in a copy"),
            };
            format!("C reads {folded} of {all} events{required}")
        }
        Step::Check(of, commits) => {
            let (folded, required) = before.check.unwrap_or_default();
            let of = of.map_or("the fence".to_owned(), |n| format!("copy {}", n + 1));
            let all = before.events;
            match commits {
                true if folded == all => format!("C finds {required} in {of} and commits"),
                true => {
                    format!("C finds {required} in {of} and commits; it folded {folded} of {all}")
                }
                false => format!("C does not find {required} in {of}"),
            }
        }
    }
}

/// Writers are W1, W2; levellings are L1, L2.
fn name(model: &Model, actor: usize) -> String {
    let is_writer = matches!(model.scenario.actors[actor], Actor::Writes(_));
    format!("{}{}", if is_writer { "W" } else { "L" }, actor + 1)
}

fn does(model: &Model, state: &State, request: Request) -> String {
    match request {
        Request::Append(_) => "appends without an announcement".to_owned(),
        Request::Announce(_) => {
            let fence = state.fence;
            format!("announces number {}; the fence names {} copies", fence.announced, fence.copies)
        }
        Request::Put(Announced { number, count, stay, .. }, n) if n < usize::from(stay) => {
            format!("puts {count} into copy {} as number {number}", n + 1)
        }
        Request::Put(Announced { number, .. }, n) if model.rules.closes => {
            format!("closes copy {} as number {number}", n + 1)
        }
        Request::Put(Announced { number, .. }, n) => {
            format!("deletes copy {} as number {number}", n + 1)
        }
        Request::End(of, Announced { number, .. }) if model.adds(of) > 0 => {
            format!("appends as number {number}")
        }
        Request::End(_, Announced { number, stay, .. }) => {
            format!("ends number {number}; the fence names {stay} copies")
        }
    }
}

fn refused(request: Request) -> String {
    let why = match request {
        Request::Append(_) => "somebody has announced",
        Request::Announce(_) => "it is open",
        Request::Put(..) => "the copy is of a later number",
        Request::End(..) => "there is a later number",
    };
    format!(": refused, {why}")
}
