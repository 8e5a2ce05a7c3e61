//! Steps in words.

use super::{
    indexer::End,
    pages::{Page, Request, Sets, between, slots, until},
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
                Request::Move(p, to) => {
                    format!("the move of c{} to {} arrives{fails}", p + 1, to.slot)
                }
            }
        }
        Step::Crash(i) => format!("I{} crashes", i + 1),
        Step::GiveUp(i) => format!("I{} gives up", i + 1),
        Step::Take(i, leased, lease) => {
            let it = &after.indexers[i];
            let at_once = if model.rules.waits { "" } else { " and acknowledges" };
            let end = it.end.map(|end| format!("; it remembers the end {}", end.at));
            let end = match lease {
                Some(end) => format!("; it takes the lease, which says the end {end}"),
                None if leased => "; it takes the lease".to_owned(),
                None => end.unwrap_or_default(),
            };
            format!("I{} gets{at_once} {}{end}", i + 1, listed(it.images))
        }
        Step::Find(i) => {
            let End { settled, at } = after.indexers[i].end.unwrap_or_default();
            let pages = between(&before.pages, settled, at).map(|page| listed(page.events));
            let pages = pages.collect::<Vec<_>>().join("; ");
            let pages = if at == 0 { pages } else { format!(", and reads {pages}") };
            format!("I{} finds the end, {at}{pages}", i + 1)
        }
        Step::Follow(i) => {
            let from = before.indexers[i].end.unwrap_or_default().at;
            let pages: Vec<_> =
                between(&before.pages, from, u8::MAX).map(|page| listed(page.events)).collect();
            let end = after.indexers[i].end.unwrap_or_default().at;
            format!(
                "I{} reads what was put meanwhile, {}: the end is {end}",
                i + 1,
                pages.join("; ")
            )
        }
        Step::Settle(i, page) => {
            format!("I{} settles the page in place {}", i + 1, page.place)
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
                Request::Page(Page { place, events, settled }) => {
                    let says = match settled == place {
                        true => String::new(),
                        false => format!(", settled before {settled}"),
                    };
                    format!("puts a page in place {place}{says}: {}", listed(events))
                }
                Request::Move(p, to) => {
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
