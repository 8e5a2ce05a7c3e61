//! Steps in words.

use super::{
    pages::{Request, Sets, slots, until},
    rules::PARTITIONS,
    state::State,
    steps::{Model, Step},
};

/// One line for a step.
pub(super) fn line(model: &Model, before: &State, step: &Step, after: &State) -> String {
    let applies = |request: Request| before.clone().apply(request, model.rules);
    match *step {
        Step::Append => {
            let new = |p| until(after.committed[p]) & !until(before.committed[p]);
            format!("a writer commits {}", listed(std::array::from_fn(new)))
        }
        Step::Show(p, slot) => format!("c{}/{slot} shows in the table", p + 1),
        Step::Arrive(request) => {
            let fails = if applies(request) { "" } else { ": the condition fails" };
            match request {
                Request::Page(page) => {
                    let (events, place) = (listed(page.events), page.place);
                    format!("the page of {events} arrives in place {place}{fails}")
                }
                Request::Move(p, to, _) => {
                    format!("the move of c{} to {} arrives{fails}", p + 1, to.slot)
                }
            }
        }
        Step::Crash(i) => format!("I{} crashes", i + 1),
        Step::GiveUp(i) => format!("I{} gives up", i + 1),
        Step::Take(i, leased) => {
            let it = &after.indexers[i];
            let at_once = if model.rules.waits { "" } else { " and acknowledges" };
            let end = it.end.map(|end| format!("; it remembers the end {end}"));
            let end =
                if leased { "; it takes the lease".to_owned() } else { end.unwrap_or_default() };
            format!("I{} gets{at_once} {}{end}", i + 1, listed(it.images))
        }
        Step::Check(i, (end, p)) => {
            let counts = after.indexers[i].end == Some(end);
            let says = if counts { "counts" } else { "does not count" };
            format!("I{}: the lease's end, {end} after an event of c{}, {says}", i + 1, p + 1)
        }
        Step::Find(i) => {
            let last = before.pages.last().map(|page| listed(page.events));
            let last = last.map(|events| format!(", after a page of {events}"));
            let (end, last) = (after.indexers[i].end.unwrap_or(0), last.unwrap_or_default());
            format!("I{} finds the end, {end}{last}", i + 1)
        }
        Step::Follow(i) => {
            let from = before.indexers[i].end.unwrap_or(0);
            let pages = before.pages.iter().filter(|page| page.place >= from);
            let pages: Vec<_> = pages.map(|page| listed(page.events)).collect();
            let end = after.indexers[i].end.unwrap_or(0);
            format!(
                "I{} reads what was put meanwhile, {}: the end is {end}",
                i + 1,
                pages.join("; ")
            )
        }
        Step::Look(i) => {
            let unsettled = after.indexers[i].mark().is_some();
            let says =
                if unsettled { "that the last page is not settled" } else { "nothing to settle" };
            format!("I{} looks at the last entry's progress and finds {says}", i + 1)
        }
        Step::Progress(i, p) => {
            let slot = before.progress[p].slot;
            format!("I{} reads the progress of c{}: {slot}", i + 1, p + 1)
        }
        Step::Read(i) => {
            let (known, before) = (after.indexers[i].known, before.indexers[i].known);
            let new = listed(std::array::from_fn(|p| known[p] & !before[p]));
            format!("I{} reads on in the table and finds {new}", i + 1)
        }
        Step::Send(i, request, answered) => {
            let came = match answered {
                false => "; no answer",
                true if before.clone().apply(request, before.indexers[i].rules(model.rules)) => "",
                true if model.finishes(after, i) => ": the condition fails",
                true => ": the condition fails, and will fail for ever",
            };
            let sent = match request {
                Request::Page(page) => {
                    format!("puts a page in place {}: {}", page.place, listed(page.events))
                }
                Request::Move(p, to, _) => {
                    format!("moves the progress of c{} to {}", p + 1, to.slot)
                }
            };
            format!("I{} {sent}{came}", i + 1)
        }
        Step::Acknowledge(i) => {
            format!("I{} acknowledges {}", i + 1, listed(before.indexers[i].done()))
        }
    }
}

fn listed(events: Sets) -> String {
    let of = |p: usize| slots(events[p]).map(move |slot| format!("c{}/{slot}", p + 1));
    let listed: Vec<_> = (0..PARTITIONS).flat_map(of).collect();
    if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") }
}
