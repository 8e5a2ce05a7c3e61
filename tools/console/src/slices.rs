//! The slices: their events, and for each slice a form of its command, the dry run, and the answer.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Form, Query, State};
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_core::{Lane, visible};
use ringfence_log::Dependence;
use ringfence_stack::{ContextInfo, SliceInfo, Stack};
use ringfence_template::map::Map;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::command;
use crate::explanation;
use crate::frame::{self, Kind, Path, Problem, chip, encoded, given, slice_url};
use crate::node::{page_link, slice_kind};
use crate::site::Site;
use crate::types::type_url;
use ringfence_cli::api::{Answer, IDEMPOTENCY_KEY};
use ringfence_cli::commands::CommandLine;
use ringfence_cli::explain::{Explanation, Issuers, OfSlice, counted};

/// The header with the correlation id of a command, by which its log line is found.
const CORRELATION_ID: &str = "x-correlation-id";
/// The page waits this long for the log line of a command that was sent.
const LINE_TIME: Duration = Duration::from_secs(3);
/// The pause between two searches.
const LINE_PAUSE: Duration = Duration::from_millis(100);
/// Why a command can't be sent.
const NO_ROUTE: &str = "Callers do not give this command: the slice has no route.";
/// The parameter for a dry run.
const EXPLAIN: &str = "explain";
/// The parameter with the idempotency key.
const KEY: &str = "key";

type Parameters = Vec<(String, String)>;

/// The page of all slices: a table for each context, with what goes before and after each slice.
pub(crate) async fn all(State(site): State<Arc<Site>>) -> Markup {
    let stack = &site.lists.stack;
    let map = Map::of(stack);
    let main = html! {
        @if stack.contexts.is_empty() { p { "The stack has no context yet." } }
        @for context in stack.contexts.iter().filter(|context| !context.slices.is_empty()) {
            h2 { (context.name) }
            div.wide tabindex="0" role="region" aria-label={ "Slices of " (context.name) } {
                table.figures.slices {
                    thead {
                        tr {
                            @for column in ["Slice", "Given by", "Depends on", "Writes", "Followed by"] {
                                th scope="col" { (column) }
                            }
                        }
                    }
                    tbody { @for slice in &context.slices { (in_table(&map, context, slice)) } }
                }
            }
        }
    };
    frame::page(&site, "/slices", "Slices", None, &main)
}

fn in_table(map: &Map, context: &ContextInfo, slice: &SliceInfo) -> Markup {
    let name = format!("{}/{}", context.name, slice.name);
    html! {
        tr {
            th scope="row" {
                (chip(slice_kind(context, slice), slice.name, &slice_url(&name)))
                @if !slice.about.is_empty() { p.note { (slice.about) } }
            }
            td { (givers(context, slice)) }
            td { @for shape in (slice.depends_on)().keys() { p { (shape) } } }
            td { ul.chips { @for name in &slice.writes { li { (of_type(name)) } } } }
            td { (followers(map, &name)) }
        }
    }
}

fn has_deadline(context: &ContextInfo, slice: &SliceInfo) -> bool {
    context.dues.iter().any(|due| due.name == slice.name)
}

fn of_type(name: &str) -> Markup {
    chip(Kind::Event, name, &type_url(name))
}

/// Who gives the commands of a slice: callers, events or the time.
fn givers(context: &ContextInfo, slice: &SliceInfo) -> Markup {
    html! {
        @if slice.scopes.is_some() { p { "callers" } }
        @if has_deadline(context, slice) { p { a href="/deadlines" { "a deadline" } } }
        ul.chips { @for cause in slice.reacts_to { li { (of_type(cause.event_type)) } } }
        @match slice.order {
            None => {}
            Some(Lane::Partition) => { p.note { "in the order of each partition" } }
            Some(Lane::Tag(key)) => { p.note { "one after another for each " (key) } }
        }
    }
}

/// The views, reactors and slices to which the events of a slice lead.
fn followers(map: &Map, slice: &str) -> Markup {
    html! { ul.chips { @for node in map.followers(slice) { li { (page_link(node)) } } } }
}

/// The part of a slice's page below its form.
enum Below {
    Nothing,
    Explained(Vec<Explanation>),
    /// The answer, and the line of the function that gave it.
    Sent(Answer, Option<anyhow::Result<Option<Box<CommandLine>>>>),
    /// The command was sent and got no answer, for this reason.
    Unanswered(String),
    Failed(String),
}

/// The page of a slice. With the fields of a command it makes a dry run of the command.
pub(crate) async fn page(
    State(site): State<Arc<Site>>,
    Path((context, slice)): Path<(String, String)>,
    Query(parameters): Query<Parameters>,
) -> Result<Markup, Problem> {
    let of = Of::find(&site, &context, &slice)?;
    let value = (of.of.command)();
    if !command::has_command(&parameters) {
        let sample = command::form(&value, &of.sample(&site));
        return Ok(of.markup(&site, &sample, &Below::Nothing));
    }
    let below = of.explained(&site, &parameters).await;
    Ok(of.markup(&site, &parameters, &below))
}

/// Sends the command of a form, or explains one whose address would keep personal data. The guard has checked that this
/// console may send.
pub(crate) async fn send(
    State(site): State<Arc<Site>>,
    Path((context, slice)): Path<(String, String)>,
    Form(parameters): Form<Parameters>,
) -> Result<Markup, Problem> {
    let of = Of::find(&site, &context, &slice)?;
    let below = match command::json(&(of.of.command)(), &parameters) {
        _ if given(&parameters, EXPLAIN).is_some() => of.explained(&site, &parameters).await,
        _ if of.slice.scopes.is_none() => Below::Failed(NO_ROUTE.to_owned()),
        Err(wrong) => Below::Failed(wrong),
        Ok(command) => post(&site, &of.of.name, &command, key(&parameters))
            .await
            .unwrap_or_else(|error| Below::Failed(format!("{error:#}"))),
    };
    Ok(of.markup(&site, &parameters, &below))
}

/// The idempotency key that a form names, or an empty text.
fn key(form: &Parameters) -> &str {
    given(form, KEY).unwrap_or_default().trim()
}

/// A command in the form that its function takes.
fn payload(command: &Value, key: &str) -> Value {
    let mut payload = json!({ "command": command });
    if !key.is_empty() {
        payload["commandId"] = key.into();
    }
    payload
}

async fn post(site: &Site, slice: &str, command: &Value, key: &str) -> anyhow::Result<Below> {
    let clock = Clock::system();
    let (began_ms, correlation) = (clock.now_ms(), clock.uuid().to_string());
    let mut headers = vec![(CORRELATION_ID, &*correlation)];
    headers.extend((!key.is_empty()).then_some((IDEMPOTENCY_KEY, key)));
    let api = site.api().await?;
    let answer = match api.post(slice, &command.to_string(), &headers).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Below::Unanswered(format!("{error:#}"))),
    };
    // API Gateway itself answers a request that reaches no function, and then no function has a log line.
    let line = match answer.is_of_stack() {
        true => {
            Some(timeout(LINE_TIME, line(site, began_ms, &correlation)).await.unwrap_or(Ok(None)))
        }
        false => None,
    };
    Ok(Below::Sent(answer, line))
}

/// The log line of a command; `None` if no flag says where the lines are.
async fn line(
    site: &Site,
    began_ms: u64,
    correlation: &str,
) -> anyhow::Result<Option<Box<CommandLine>>> {
    // The clock of the function may be slow.
    let since = began_ms.saturating_sub(60_000);
    while site.flags.commands.are_known() {
        let lines = site.flags.commands.since(since).await?;
        let is_it = |line: &CommandLine| line.correlation_id.as_deref() == Some(correlation);
        if let Some(line) = lines.into_iter().find(is_it) {
            return Ok(Some(Box::new(line)));
        }
        sleep(LINE_PAUSE).await;
    }
    Ok(None)
}

/// A slice of the stack, with its code.
struct Of<'a> {
    context: &'a ContextInfo,
    slice: &'a SliceInfo,
    of: &'a OfSlice,
}

impl<'a> Of<'a> {
    fn find(site: &'a Site, context: &str, slice: &str) -> Result<Self, Problem> {
        let name = format!("{context}/{slice}");
        let is_it = |(of, it): &(&ContextInfo, &SliceInfo)| of.name == context && it.name == slice;
        let found = site.lists.stack.slices().find(is_it).zip(site.lists.slices.get(&name));
        let ((context, slice), of) =
            found.ok_or_else(|| Problem::nothing(format!("No context has the slice {name}.")))?;
        Ok(Self { context, slice, of })
    }

    /// The command of the slice's sample, if there is one.
    fn sample(&self, site: &Site) -> Value {
        let file = site.samples.join(self.slice.name).join("direct.json");
        let sample = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let mut sample: Value = sample.unwrap_or_default();
        if sample.get("command").is_some() { sample["command"].take() } else { sample }
    }

    /// A dry run of a form's command.
    async fn explained(&self, site: &Site, form: &Parameters) -> Below {
        let command = match command::json(&(self.of.command)(), form) {
            Ok(command) => command,
            Err(wrong) => return Below::Failed(wrong),
        };
        let payload = payload(&command, key(form)).to_string();
        let (slices, issuers) = (&site.lists.slices, Issuers::default());
        let explained = async {
            slices.explain(&site.opened().await?, &self.of.name, &payload, &issuers).await
        };
        explained.await.map_or_else(|error| Below::Failed(format!("{error:#}")), Below::Explained)
    }

    fn markup(&self, site: &Site, form: &Parameters, below: &Below) -> Markup {
        let posts = self.slice.is_personal;
        let url = slice_url(&self.of.name);
        let main = html! {
            (self.picture(&site.lists.stack))
            h2 { "Command" }
            form.command method="get" action=(url) {
                (command::inputs(&(self.of.command)(), form))
                label { "Idempotency key (may be empty)" input name=(KEY) value=(key(form)) size="40"; }
                div.buttons {
                    @if posts && !site.may_write {
                        span.note { "To explain a command with personal data, start the console with --write: else the "
                            "address would keep them." }
                    } @else {
                        button name=(EXPLAIN) value="yes" formmethod=[posts.then_some("post")] { "Explain" }
                    }
                    @if self.slice.scopes.is_none() { span.note { (NO_ROUTE) } }
                    @else if site.may_write { button formmethod="post" { "Send" } }
                    @else { span.note { "To send commands, start the console with --write." } }
                }
            }
            div aria-live="polite" {
                @match below {
                    Below::Nothing => {}
                    Below::Failed(message) => { h2 { "Not carried out" } p role="alert" { (message) } }
                    Below::Explained(all) => { @for one in all { (explanation::markup(one)) } }
                    Below::Sent(answer, line) => { (sent(answer, line.as_ref())) }
                    Below::Unanswered(why) => {
                        h2 { "No answer" }
                        p role="alert" { (why) }
                        p {
                            "The command may have taken effect. If it has an idempotency key, sending it again does no harm; "
                            "otherwise look at the events first."
                        }
                    }
                }
            }
        };
        frame::page(site, "/slices", &self.of.name, None, &main)
    }

    /// What goes before and after the slice, in boxes from left to right.
    fn picture(&self, stack: &Stack) -> Markup {
        let SliceInfo { name, about, writes, scopes, .. } = self.slice;
        let kind = slice_kind(self.context, self.slice);
        html! {
            @if !about.is_empty() { p { (about) } }
            div.picture role="group" aria-label="What goes before and after the slice" {
                div {
                    h2 { "Given by" }
                    (givers(self.context, self.slice))
                    @if let Some(scopes) = scopes.filter(|scopes| !scopes.is_empty()) {
                        p.note { "A token needs one of the scopes " (scopes.join(", ")) "." }
                    }
                }
                div {
                    h2 { "Decides" }
                    p class={ "box " (kind.name()) } {
                        strong { (self.context.name) "/" (name) }
                        br;
                        a href={ "/map/" (encoded(self.context.name)) "/" (encoded(name)) } { "On the map" }
                    }
                    @for (shape, Dependence { by, types }) in (self.slice.depends_on)() {
                        p.box { strong { (shape) } br; span.note { "by " (by) } }
                        ul.chips { @for name in types { li { (of_type(&name)) } } }
                    }
                }
                div { h2 { "Writes" } ul.chips { @for name in writes { li { (of_type(name)) } } } }
                div { h2 { "Followed by" } (followers(&Map::of(stack), &self.of.name)) }
            }
        }
    }
}

fn sent(answer: &Answer, line: Option<&anyhow::Result<Option<Box<CommandLine>>>>) -> Markup {
    let document = serde_json::to_string_pretty(&answer.document).unwrap_or_default();
    let events = answer.document["events"].as_array().into_iter().flatten();
    let events = events.filter_map(|event| {
        let (event_type, partition) = (event["type"].as_str()?, event["partition"].as_str()?);
        let slot = event["slot"].as_u64()?;
        Some((event_type, partition, slot, format!("/events/{}/{slot}", encoded(partition))))
    });
    html! {
        h2 { @if answer.status == 200 && answer.is_of_stack() { "Accepted" } @else { "Answer " (answer.status) } }
        pre tabindex="0" { code { (document) } }
        ul.list {
            @for (event_type, partition, slot, url) in events {
                li { a href=(url) { (event_type) } " " code { (partition) "/" (slot) } }
            }
        }
        @match line {
            None => { p.note { "No function has given this answer, so it has no line in the log." } }
            Some(Err(error)) => { p.note { "Its line in the log can't be read: " (format!("{error:#}")) } }
            Some(Ok(None)) => { p.note { "Its line in the log was not found, so attempts and units are not known." } }
            Some(Ok(Some(line))) => {
                p {
                    "It was decided " (counted(line.attempts.into(), "time")) ", in " (line.duration_ms) " ms, with "
                    (counted(line.requests.into(), "request")) ", " (counted(line.read_units, "read unit")) " and "
                    (counted(line.write_units, "write unit")) "."
                    @if let Some(principal) = &line.principal { " It was given by " (visible(principal)) "." }
                }
                @if !line.conflicts.is_empty() {
                    p { "It met conflicts on " (line.conflicts.join(", ")) "." }
                }
            }
        }
    }
}
