//! The search of the head: an id of any kind, or a name of the stack.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use ringfence_cli::readable;
use ringfence_core::{Boundary, BoundaryId, Catalog};
use ringfence_feed::{Checkpoint, FeedError, Index, Reference};
use ringfence_stack::Stack;
use ringfence_template::map::{Map, Node};

use crate::events::{event_url, url_of_id};
use crate::frame::{self, Problem, boundary_url, given, url};
use crate::node::{page_link, page_url};
use crate::site::Site;

/// A longer text is no id.
const BYTES_MAX: usize = 2_048;
/// The most answers on a page.
const ANSWERS_MAX: usize = 100;
/// Commands and correlations are searched in so many of the newest events.
const EVENTS_MAX: usize = 25;
/// The same if a person asks for more.
const FURTHER_MAX: usize = 10_000;
/// So many bodies are read at once, each of a block of 4 KB on average.
const BODIES_MAX: usize = 500;
/// The metadata that is searched, with its name for people.
const IDS: [(&str, &str); 2] = [("commandId", "command"), ("correlationId", "correlation id")];

/// Something that the text names.
struct Answer {
    link: Markup,
    /// Its kind, for people.
    what: String,
    url: String,
    /// Whether the text is its whole name.
    is_exact: bool,
}

impl Answer {
    fn exact(text: &str, what: &str, url: String) -> Self {
        let link = html! { a href=(url) { (text) } };
        Self { link, what: what.to_owned(), url, is_exact: true }
    }
}

/// The result of a search in the newest events of the index.
struct Looked {
    found: Option<Answer>,
    events: usize,
    is_whole: bool,
}

pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Query(parameters): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let text = given(&parameters, "q").unwrap_or_default().trim();
    if text.len() > BYTES_MAX {
        let limit = format!("q: an id or a name has at most {BYTES_MAX} bytes. Write less.");
        return Err(Problem::bad(limit));
    }
    let index = site.index();
    let is_far = given(&parameters, "further") == Some("true");
    let mut answers = Vec::new();
    if !text.is_empty() {
        answers = named(&site.lists.stack, text);
        answers.extend(placed(&index, &site.lists.stack, text).await?);
        exact_first(&mut answers);
    }
    let mut looked = None;
    if !text.is_empty() && !text.contains(char::is_whitespace) && exact(&answers).count() == 0 {
        let most = if is_far { FURTHER_MAX } else { EVENTS_MAX };
        let Looked { found, events, is_whole } = look(&index, text, most).await?;
        answers.extend(found);
        looked = Some((events, is_whole));
    }
    if let [answer] = exact(&answers).collect::<Vec<_>>()[..] {
        return Ok(Redirect::to(&answer.url).into_response());
    }
    let further = url("/search", [("q", text), ("further", "true")]);
    let main = html! {
        @if text.is_empty() {
            p {
                "The search takes a partition, a tag, an event, a checkpoint, the id of a command, a correlation id, and "
                "the name of a slice, a type of events, a view or a reactor, or a part of it."
            }
        }
        @if !text.is_empty() && answers.is_empty() {
            @match looked {
                Some((events, false)) => p { "Not found in the newest " (events) " events: " code { (text) } "." },
                _ => p { "Nothing has the name or the id " code { (text) } "." },
            }
        }
        ul.found {
            @for answer in answers.iter().take(ANSWERS_MAX) { li { (answer.link) " " span.note { (answer.what) } } }
        }
        @if answers.len() > ANSWERS_MAX { p.note { "These are the first " (ANSWERS_MAX) " of " (answers.len()) "." } }
        @if let Some((events, is_whole)) = looked {
            p.note {
                "The ids of commands and correlations were looked for in the newest " (events) " events of the index"
                @if is_whole { ", which are all." }
                @else if is_far { ". " code { "ringfence trace" } " reads all events." }
                @else {
                    ". " a href=(further) { "Look in " (FURTHER_MAX) }
                    ", for half a read unit each: up to " (FURTHER_MAX / 2) " read units."
                }
            }
        }
    };
    Ok(frame::page(&site, "/search", "Search", Some(index.usage()), &main).into_response())
}

/// The limit of a page must not hide what has the whole name.
fn exact_first(answers: &mut [Answer]) {
    answers.sort_by_key(|answer| !answer.is_exact);
}

fn exact(answers: &[Answer]) -> impl Iterator<Item = &Answer> {
    answers.iter().filter(|answer| answer.is_exact)
}

/// The parts of a stack whose names have the text in them, without regard to capital letters.
fn named(stack: &Stack, text: &str) -> Vec<Answer> {
    let part = text.to_lowercase();
    let answer = |node: &Node| {
        let is_exact = [&node.name, &node.id].iter().any(|name| *name == text);
        if !is_exact && !node.id.to_lowercase().contains(&part) {
            return None;
        }
        let what = format!("{} of {}", node.words(), node.context);
        Some(Answer { link: page_link(node), what, url: page_url(node), is_exact })
    };
    Map::of(stack).nodes.iter().filter_map(answer).collect()
}

/// Places in the index and boundaries that the text names.
async fn placed(index: &Index, stack: &Stack, text: &str) -> Result<Vec<Answer>, FeedError> {
    let mut answers = Vec::new();
    let mut add = |what: &str, url: String| answers.push(Answer::exact(text, what, url));
    if let Ok(at) = text.parse::<Checkpoint>() {
        if at > Checkpoint::START && at <= index.end().await? {
            add("event at this checkpoint", event_url(at));
        }
        return Ok(answers);
    }
    let event = text.rsplit_once('/').and_then(|(partition, slot)| {
        Some((BoundaryId::stored(partition), slot.parse::<u64>().ok()?, url_of_id(text)?))
    });
    if let Some((partition, slot, url)) = event
        && slot > 0
        && index.indexed(&partition, slot).await?.is_some()
    {
        add("event", url);
        return Ok(answers);
    }
    let partition = BoundaryId::stored(text);
    let has_key = |key: &str| {
        let schemas = stack.catalogs.0.iter().flat_map(Catalog::schemas);
        schemas.flat_map(|schema| schema.tags.iter()).any(|tag| tag.key == key)
    };
    // A person may write the value without the escapes that ids have.
    let tag = match partition.decode() {
        Some(Boundary::Tag(tag)) => Some((tag.key.into_owned(), tag.value)),
        Some(_) => None,
        None => text.split_once(':').map(|(key, value)| (key.to_owned(), value.to_owned())),
    };
    if index.last_of(&partition).await?.is_some() {
        add("partition", boundary_url(text));
    } else if let Some((key, value)) = tag.filter(|(key, _)| has_key(key)) {
        add("tag", boundary_url(BoundaryId::tag(&key, &value).as_str()));
    }
    Ok(answers)
}

/// Looks for an event with this id of a command or a correlation, among the newest events of the index.
async fn look(index: &Index, text: &str, most: usize) -> Result<Looked, FeedError> {
    let (mut events, mut at, mut blocks) = (0, index.end().await?, most as u64);
    while events < most {
        let mut references = index.references(at, BODIES_MAX.min(most - events), false).await?;
        let fits = |(_, reference): &&(Checkpoint, Reference)| {
            let left = blocks.checked_sub(reference.blocks());
            blocks = left.unwrap_or_default();
            left.is_some()
        };
        let (count, fit) = (references.len(), references.iter().take_while(fits).count());
        references.truncate(fit);
        if references.is_empty() && count > 0 {
            break;
        }
        let Some(reached) = references.last().and_then(|(it, _)| it.previous()) else {
            return Ok(Looked { found: None, events, is_whole: true });
        };
        at = reached;
        events += references.len();
        for (entry, why) in index.events(references).await? {
            let entry = readable((entry, why));
            let has = |(key, _): &&(&str, &str)| entry.event.metadata.text(key) == Some(text);
            if let Some((_, what)) = IDS.iter().find(has) {
                let found = Some(Answer::exact(text, what, event_url(entry.checkpoint)));
                return Ok(Looked { found, events, is_whole: false });
            }
        }
        if fit < count {
            break;
        }
        if at == Checkpoint::START {
            return Ok(Looked { found: None, events, is_whole: true });
        }
    }
    Ok(Looked { found: None, events, is_whole: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_answers_come_first_and_the_rest_stays_in_order() {
        let answer = |url: &str, is_exact| Answer {
            is_exact,
            ..Answer::exact("lend", "slice", url.to_owned())
        };
        let mut answers =
            [answer("a", false), answer("b", true), answer("c", false), answer("d", true)];
        exact_first(&mut answers);
        assert_eq!(answers.map(|answer| answer.url), ["b", "d", "a", "c"]);
    }
}
