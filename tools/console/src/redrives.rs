//! Redrives and deletions of dead letters, as jobs.

use std::sync::Arc;

use anyhow::Result;
use axum::Form;
use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};

use crate::dead_letters::{DEAD_LETTERS_MAX, PATH, Place, missing, reason};
use crate::frame::{Path, Problem, given};
use crate::site::Site;
use ringfence_cli::kept::Receive;
use ringfence_cli::work::{self, Fate, SENT, Tried, each, look};

/// What is done with dead letters.
#[derive(Clone)]
enum Does {
    Redrive,
    /// For this reason.
    Delete(String),
}

/// Starts the redrive of the chosen dead letters, or of all, and redirects to the page of its progress.
pub(crate) async fn redrive(
    State(site): State<Arc<Site>>,
    Path((kind, store)): Path<(String, String)>,
    Form(form): Form<Vec<(String, String)>>,
) -> Result<Redirect, Problem> {
    let place = Place::find(&site, &kind, &store)?;
    if !place.has_work() {
        let why = format!("failed batches of {} need no redrive: delete them.", place.named.name);
        return Err(Problem::bad(why));
    }
    if given(&form, "all") != Some("yes") {
        return one_by_one(&site, place, chosen(&form)?, Does::Redrive);
    }
    let does = site.does()?;
    let of_job = site.clone();
    let title = format!("{}: redrive", place.title());
    let url = site.jobs.start(title, (PATH, PATH.to_owned()), async move |job| {
        let mut tried = Vec::new();
        let mut store = place.open(&of_job, Receive::Work).await?;
        let on_tried = |dead_letter| {
            tried.push(dead_letter);
            job.say(format!("{} tried.", tried.len()));
        };
        let ended = each(&mut store, Some(&does), on_tried).await;
        Ok(html! {
            @if let Err(error) = ended { p role="alert" { "It ended early: " (format!("{error:#}")) } }
            (outcome(&place, &tried))
        })
    });
    Ok(Redirect::to(&url))
}

/// Starts the deletion of the chosen dead letters, and redirects to the page of its progress.
pub(crate) async fn delete(
    State(site): State<Arc<Site>>,
    Path((kind, store)): Path<(String, String)>,
    Form(form): Form<Vec<(String, String)>>,
) -> Result<Redirect, Problem> {
    let place = Place::find(&site, &kind, &store)?;
    let why = given(&form, "why").unwrap_or_default();
    work::ensure_why(why).map_err(|wrong| Problem::bad(format!("{wrong}.")))?;
    one_by_one(&site, place, chosen(&form)?, Does::Delete(why.to_owned()))
}

/// The names of the dead letters that a form has chosen.
fn chosen(form: &[(String, String)]) -> Result<Vec<String>, Problem> {
    let names = form.iter().filter(|(field, _)| field == "name").map(|(_, name)| name.clone());
    let names: Vec<_> = names.collect();
    match names.len() {
        1..=DEAD_LETTERS_MAX => Ok(names),
        _ => Err(Problem::bad(format!("name: choose 1 to {DEAD_LETTERS_MAX} dead letters."))),
    }
}

/// Starts a job for the dead letters of these names.
fn one_by_one(
    site: &Arc<Site>,
    place: Place,
    names: Vec<String>,
    does: Does,
) -> Result<Redirect, Problem> {
    let verb = if matches!(does, Does::Redrive) { "redrive" } else { "deletion" };
    let title = format!("{}: {verb} of {}", place.title(), names.join(", "));
    let (redrives, of_job) = (site.does()?, site.clone());
    let url = site.jobs.start(title, (PATH, PATH.to_owned()), async move |job| {
        let (mut tried, mut wrong) = (Vec::new(), Vec::new());
        for (number, name) in names.iter().enumerate() {
            job.say(format!("{number} tried."));
            match one(&of_job, &place, name, &redrives, &does).await {
                Ok(Some(it)) => tried.push(it),
                Ok(None) => wrong.push(missing(name)),
                Err(error) => wrong.push(format!("{name}: {error:#}.")),
            }
        }
        Ok(html! {
            @for wrong in wrong { p role="alert" { (wrong) } }
            @match &does {
                Does::Redrive => (outcome(&place, &tried)),
                Does::Delete(why) => {
                    p role="status" { (tried.len()) " deleted: " (why) }
                    ul { @for it in &tried { li { code { (it.name) } } } }
                }
            }
        })
    });
    Ok(Redirect::to(&url))
}

/// Does one dead letter; `None` if it is not there.
async fn one(
    site: &Site,
    place: &Place,
    name: &str,
    redrives: &work::Does,
    does: &Does,
) -> Result<Option<Tried>> {
    // A FIFO queue deletes only a message that its receiver hides.
    let mut store = place.open(site, Receive::Work).await?;
    let Some(kept) = store.find(name).await? else { return Ok(None) };
    let tried = match does {
        Does::Redrive => Ok(redrives.redrive(&store, kept).await),
        Does::Delete(why) => work::delete(&store, &kept, why)
            .await
            .map(|()| Tried { fate: Fate::Done, ..look(kept.dead_letter, kept.name) }),
    };
    if !matches!(&tried, Ok(Tried { fate: Fate::Done | Fate::Sent, .. })) {
        store.show(&[name.to_owned()]).await;
    }
    tried.map(Some)
}

/// The results of a redrive. A dead letter that stays can be deleted.
fn outcome(place: &Place, tried: &[Tried]) -> Markup {
    let count = |is_it: fn(&Fate) -> bool| tried.iter().filter(|it| is_it(&it.fate)).count();
    let (done, sent) =
        (count(|fate| matches!(fate, Fate::Done)), count(|fate| matches!(fate, Fate::Sent)));
    html! {
        p role="status" {
            (done) " done, "
            @if sent > 0 { (sent) " sent again, " }
            (tried.len() - done - sent) " left."
        }
        @if sent > 0 { p { (SENT) ". " a href=(PATH) { "Look again" } } }
        ul {
            @for dead_letter in tried {
                li {
                    code { (dead_letter.name) } ": "
                    @match dead_letter.fate {
                        Fate::Done => "done",
                        Fate::Sent => "sent again",
                        _ => {
                            (why(dead_letter))
                            form method="post" action={ (place.url()) "/delete" } {
                                input type="hidden" name="name" value=(dead_letter.name);
                                (reason(&dead_letter.name))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Why a dead letter was kept, its function, its past failures, and why it stays.
fn why(Tried { whose, history, kept, fate, .. }: &Tried) -> Markup {
    html! {
        @if let Some(kept) = kept { (kept) }
        @else if fate.cause().is_none() { "It does not say why." }
        span.note { (whose.to_string()) (history.to_string()) }
        @if let Some(cause) = fate.cause() { span.bad { " It stays: " (cause) "." } }
    }
}
