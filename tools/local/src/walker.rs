//! A walk through a stack: it sends commands, reads views and the index, watches the topic, and shows all of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Instant, sleep, timeout_at},
};

use crate::{notices::Notice, stack::RunningStack};

/// The longest wait for the events of a step.
pub const EVENTS_WAIT_MAX: Duration = Duration::from_secs(120);

/// The pause between two reads of the index.
pub const INDEX_PAUSE: Duration = Duration::from_millis(20);

/// At the end, the topic is watched this long for unexpected events.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// The time for which a view may wait for an event, in milliseconds: the most that it accepts.
const VIEW_WAIT_MS: u64 = 10_000;

/// Longest wait for one answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// Status and body of an answer of the HTTP API.
pub type HttpAnswer = (u16, Value);

/// Walks through a stack. It records the events of the topic, and which of them were expected.
pub struct Walker<'a> {
    stack: &'a RunningStack,
    client: reqwest::Client,
    caller: String,
    /// The scopes of views. Their routes may have none.
    scopes: &'a [&'a str],
    topic: Receiver<Notice>,
    /// Ids of the events seen: the bus delivers each at least once.
    seen: BTreeSet<String>,
    /// Events seen and not yet expected, by type.
    open: BTreeMap<String, usize>,
    /// The latest event of each type on the topic.
    latest: BTreeMap<String, Value>,
    /// Mails that arrived and were not yet expected.
    mails: Vec<String>,
}

impl<'a> Walker<'a> {
    /// Walks on a stack that nobody else uses, as a caller of this name. If the API asks for tokens, the caller's token
    /// has the scopes of all routes, and these.
    ///
    /// # Errors
    /// There is no HTTP client.
    pub fn new(stack: &'a RunningStack, caller: &str, scopes: &'a [&'a str]) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_WAIT_MAX).build()?;
        let topic = stack.watch();
        let (seen, open, latest) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        let (caller, mails) = (caller.to_owned(), Vec::new());
        Ok(Self { stack, client, caller, scopes, topic, seen, open, latest, mails })
    }

    /// Continues as this caller. The caller's commands have the correlation id `walk-<caller>`.
    pub fn go_on_as(&mut self, caller: &str) {
        println!("  as {caller}");
        caller.clone_into(&mut self.caller);
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.stack.api()));
        let request = request.header("x-correlation-id", format!("walk-{}", self.caller));
        match self.stack.token_of(&self.caller, self.scopes) {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The stack.
    #[must_use]
    pub fn stack(&self) -> &'a RunningStack {
        self.stack
    }

    /// The latest event of this type on the topic.
    #[must_use]
    pub fn latest(&self, event: &str) -> Value {
        self.latest[event].clone()
    }

    /// Invokes a function directly.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn invoke(&self, function: &str, command: &Value) -> Result<Value> {
        println!("→ invoke {function} {command}");
        let answer = self.stack.invoke(function, command).await?;
        println!("← {answer}");
        Ok(answer)
    }

    /// Sends commands at the same time. The answers are in the order of the commands.
    ///
    /// # Errors
    /// As [`Walker::post`].
    pub async fn post_at_once(&self, path: &str, commands: &[Value]) -> Result<Vec<HttpAnswer>> {
        try_join_all(commands.iter().map(|command| self.post(path, command))).await
    }

    /// Sends a command.
    ///
    /// # Errors
    /// There is no answer, or it is not JSON.
    pub async fn post(&self, path: &str, command: &Value) -> Result<HttpAnswer> {
        println!("→ POST {path} {command}");
        let answer = self.request(Method::POST, path).json(command).send().await?;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.context("the answer is not JSON")?;
        println!("← {status} {body}");
        Ok((status, body))
    }

    /// Puts a command into the queue. Returns its id.
    ///
    /// # Errors
    /// The queue refuses it.
    pub async fn queue(&self, path: &str, command: &Value) -> Result<String> {
        let (status, body) = self.post(&format!("/commands{path}"), command).await?;
        ensure!(status == 202, "the queue does not take it: {status} {body}");
        body["commandId"].as_str().map(str::to_owned).context("the answer names no commandId")
    }

    /// Waits for the answer to a queued command.
    ///
    /// # Errors
    /// It does not come.
    pub async fn answer(&self, id: &str) -> Result<HttpAnswer> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let path = format!("/commands/{id}");
        loop {
            let known = self.request(Method::GET, &path).send().await?.error_for_status()?;
            let known: Value = known.json().await?;
            let status = match known["state"].as_str() {
                Some("accepted") => 200,
                Some("rejected") => 422,
                _ => {
                    ensure!(Instant::now() < deadline, "{id} has no answer: {known}");
                    sleep(INDEX_PAUSE).await;
                    continue;
                }
            };
            println!("→ GET {path}\n← {known}");
            return Ok((status, known["answer"].clone()));
        }
    }

    /// Reads a row of a view that has this event, and compares one of its fields.
    ///
    /// # Errors
    /// There is no such row, or the field has another value.
    pub async fn expect_row(
        &self,
        path: &str,
        event: &Value,
        field: &str,
        expected: &Value,
    ) -> Result<()> {
        let partition = event["partition"].as_str().unwrap_or_default().replace('#', "%23");
        let slot = &event["slot"];
        let query = format!("partition={partition}&slot={slot}&wait={VIEW_WAIT_MS}");
        let (status, body) = self.get(path, &query).await?;
        ensure!(status == 200, "{path} has no row");
        let found = body.pointer(field).unwrap_or(&Value::Null);
        ensure!(found == expected, "{path}: {field} is {found}, not {expected}");
        Ok(())
    }

    /// Expects that there is no such row of a view, or that the caller does not see it.
    ///
    /// # Errors
    /// The caller sees it.
    pub async fn expect_no_row(&self, path: &str) -> Result<()> {
        let (status, _) = self.get(path, "").await?;
        ensure!(status == 404, "{path} has a row for {}", self.caller);
        Ok(())
    }

    /// The console's pages at these paths.
    ///
    /// # Errors
    /// The stack serves no console, or one of them is an error.
    pub async fn pages(&self, paths: &[&str]) -> Result<Vec<String>> {
        // The API's path `/` leads to the console.
        let home = self.client.get(format!("{}/", self.stack.api())).send().await?;
        let mut pages = Vec::with_capacity(paths.len());
        for path in paths {
            let page = self.client.get(home.url().join(path)?).send().await?;
            pages.push(page.error_for_status()?.text().await?);
        }
        Ok(pages)
    }

    async fn get(&self, path: &str, query: &str) -> Result<HttpAnswer> {
        println!("→ GET {path}");
        let answer = self.request(Method::GET, &format!("{path}?{query}")).send().await?;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.context("the answer is not JSON")?;
        println!("← {status} {body}");
        Ok((status, body))
    }

    /// Waits until the index has the event with this id.
    ///
    /// # Errors
    /// It does not come, or it is there more than once.
    pub async fn expect_indexed(&self, event: &str, id: &str) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let page = loop {
            let mut pages = self.pages_with(id)?;
            match pages.pop() {
                Some(page) if pages.is_empty() => break page,
                Some(_) => bail!("the index has {event} {} times", pages.len() + 1),
                None if Instant::now() > deadline => bail!("{event} did not come to the index"),
                None => sleep(INDEX_PAUSE).await,
            }
        };
        println!("  index: {event} on {page}");
        Ok(())
    }

    /// The pages of the index, one for each entry of the event.
    fn pages_with(&self, id: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for page in self.stack.items("IndexTable")? {
            let entries = page["e"]["L"].as_array().into_iter().flatten();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let fits = |entry: &&Value| {
                let [partition, slot] = [&entry["L"][0]["S"], &entry["L"][1]["N"]].map(text);
                format!("{partition}/{slot}") == id
            };
            let page = format!("page {} of {}", text(&page["i"]["N"]), text(&page["p"]["S"]));
            found.extend(entries.filter(fits).map(|_| page.clone()));
        }
        Ok(found)
    }

    /// Waits until each type has come as often as given, and takes these events.
    ///
    /// # Errors
    /// One does not come.
    pub async fn expect_events(&mut self, expected: &[(&str, usize)]) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let missing = |open: &BTreeMap<String, usize>| {
            let come = |kind: &str| open.get(kind).copied().unwrap_or(0);
            expected.iter().find(|(kind, count)| come(kind) < *count).map(|(kind, _)| *kind)
        };
        while let Some(kind) = missing(&self.open) {
            let Ok(notice) = timeout_at(deadline, self.topic.recv()).await else {
                bail!("{kind} did not come on the topic");
            };
            self.note(notice)?;
        }
        for (kind, count) in expected {
            if let Some(open) = self.open.get_mut(*kind) {
                *open -= count;
            }
        }
        Ok(())
    }

    /// Waits for a mail with this line, and takes it.
    ///
    /// # Errors
    /// It does not come.
    pub async fn expect_mail(&mut self, line: &str) -> Result<()> {
        let deadline = Instant::now() + EVENTS_WAIT_MAX;
        let has_line = |mail: &String| mail.lines().any(|found| found == line);
        while !self.mails.iter().any(has_line) {
            let Ok(notice) = timeout_at(deadline, self.topic.recv()).await else {
                bail!("no mail with the line {line} has come");
            };
            self.note(notice)?;
        }
        self.mails.retain(|mail| !has_line(mail));
        println!("  mail:  {line}");
        Ok(())
    }

    /// Expects that no mail with this line has come.
    ///
    /// # Errors
    /// One has come.
    pub fn expect_no_mail(&self, line: &str) -> Result<()> {
        let has_line = |mail: &String| mail.lines().any(|found| found == line);
        ensure!(!self.mails.iter().any(has_line), "a mail with the line {line} has come");
        Ok(())
    }

    /// Ends the walk.
    ///
    /// # Errors
    /// An event has come that was not expected, or a queue has messages.
    pub async fn expect_quiet(&mut self) -> Result<()> {
        sleep(QUIET_MAX).await;
        while !self.topic.is_empty() {
            let notice = self.topic.recv().await;
            self.note(notice)?;
        }
        if let Some((kind, count)) = self.open.iter().find(|(_, count)| **count > 0) {
            bail!("the topic has {count} {kind} too many");
        }
        for (queue, messages) in self.stack.queues() {
            ensure!(messages.is_empty(), "queue {queue} has {} messages", messages.len());
        }
        Ok(())
    }

    fn note(&mut self, notice: Result<Notice, RecvError>) -> Result<()> {
        match notice.context("the topic cannot be watched")? {
            Notice::Trouble(text) => bail!("{text}"),
            Notice::Webhook(_) => Ok(()),
            Notice::Mail(path) => {
                self.mails.push(fs::read_to_string(&*path).context("a mail that can't be read")?);
                Ok(())
            }
            Notice::Event(event) => {
                let (kind, detail) = (&event["detail-type"], &event["detail"]);
                let kind = kind.as_str().context("an event without a type")?;
                // A notification is not an event of a log.
                let Some(id) = detail["id"].as_str() else { return Ok(()) };
                if self.seen.insert(id.to_owned()) {
                    println!("  topic: {kind} {}", detail["data"]);
                    *self.open.entry(kind.to_owned()).or_default() += 1;
                    self.latest.insert(kind.to_owned(), detail.clone());
                }
                Ok(())
            }
        }
    }
}

/// Prints the title of the next step.
pub fn title(text: &str) {
    println!("\n{text}");
}

/// Whether the command was accepted.
#[must_use]
pub fn is_accepted((status, body): &HttpAnswer) -> bool {
    *status == 200 && body["accepted"] == true
}

/// Expects that the command was accepted with an event of this type first.
///
/// # Errors
/// It was not.
pub fn expect_accepted(answer: &HttpAnswer, event: &str) -> Result<()> {
    let (status, body) = answer;
    ensure!(is_accepted(answer), "not accepted: {status} {body}");
    let found = &body["events"][0]["type"];
    ensure!(found == event, "the answer names {found}, not {event}");
    Ok(())
}

/// Expects that the command was rejected with this code.
///
/// # Errors
/// It was not.
pub fn expect_rejected((status, body): &HttpAnswer, code: &str) -> Result<()> {
    ensure!(*status == 422 && body["code"] == code, "not rejected as {code}: {status} {body}");
    Ok(())
}
