//! Stores of work that failed: a dead-letter queue or a bucket of failed batches.

use std::collections::{BTreeSet, VecDeque};

use anyhow::{Context, Result, anyhow};
use aws_config::SdkConfig;

use crate::letter::{Letter, To};

/// Most messages of one call: the limit of SQS.
const MESSAGES_MAX: i32 = 10;

/// What messages are received for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receive {
    /// For their work: meanwhile they are hidden from others, the next redrive among them.
    Work,
    /// For a look: they stay visible.
    Look,
}

impl Receive {
    fn hidden_seconds(self) -> i32 {
        match self {
            Self::Work => 30,
            Self::Look => 0,
        }
    }

    /// How long a call waits for messages. A call that does not wait may miss some.
    fn wait_seconds(self) -> i32 {
        match self {
            Self::Work => 2,
            Self::Look => 1,
        }
    }
}

/// One message or object.
pub(crate) struct Kept {
    /// The message's id or the object's key.
    pub(crate) name: String,
    /// What deletes it.
    pub(crate) handle: String,
    /// As it was kept.
    pub(crate) body: String,
    /// The work that it asks for; an error if it can't be understood.
    pub(crate) letter: Result<Letter>,
}

pub(crate) enum Store {
    Queue { client: aws_sdk_sqs::Client, url: String, receive: Receive, seen: BTreeSet<String> },
    Bucket { client: aws_sdk_s3::Client, name: String, to: Option<To>, keys: VecDeque<String> },
}

impl Store {
    pub(crate) fn queue(config: &SdkConfig, url: &str, receive: Receive) -> Self {
        let client = aws_sdk_sqs::Client::new(config);
        Self::Queue { client, url: url.to_owned(), receive, seen: BTreeSet::new() }
    }

    /// The bucket with the objects that it has now, in the order of their keys, which is the order of time. Without
    /// `to` its objects ask for no work.
    pub(crate) async fn bucket(config: &SdkConfig, name: &str, to: Option<To>) -> Result<Self> {
        let client = aws_sdk_s3::Client::new(config);
        let mut pages = client.list_objects_v2().bucket(name).into_paginator().send();
        let mut keys = VecDeque::new();
        while let Some(page) = pages.next().await {
            let page = page.with_context(|| format!("listing bucket {name}"))?;
            keys.extend(page.contents.unwrap_or_default().into_iter().filter_map(|o| o.key));
        }
        Ok(Self::Bucket { client, name: name.to_owned(), to, keys })
    }

    /// Some that it has not returned yet; empty when it has returned all.
    pub(crate) async fn next(&mut self) -> Result<Vec<Kept>> {
        match self {
            Self::Queue { client, url, receive, seen } => {
                messages(client, url, *receive, seen).await
            }
            Self::Bucket { client, name, to, keys } => match keys.pop_front() {
                Some(key) => Ok(vec![object(client, name, *to, key).await?]),
                None => Ok(Vec::new()),
            },
        }
    }

    /// The message or object of this name; `None` if it is not there, or a receiver has it.
    pub(crate) async fn find(&mut self, wanted: &str) -> Result<Option<Kept>> {
        if let Self::Bucket { keys, .. } = self {
            keys.retain(|key| key == wanted);
        }
        loop {
            let mut some = self.next().await?.into_iter().peekable();
            if some.peek().is_none() {
                return Ok(None);
            }
            if let Some(found) = some.find(|kept| kept.name == wanted) {
                return Ok(Some(found));
            }
        }
    }

    /// Deletes the message or object of this handle.
    pub(crate) async fn delete(&self, handle: &str) -> Result<()> {
        match self {
            Self::Queue { client, url, .. } => {
                let delete = client.delete_message().queue_url(url).receipt_handle(handle);
                delete
                    .send()
                    .await
                    .context("the work is done, but the message can't be deleted")?;
            }
            Self::Bucket { client, name, .. } => {
                let delete = client.delete_object().bucket(name).key(handle);
                delete.send().await.context("the work is done, but the object can't be deleted")?;
            }
        }
        Ok(())
    }
}

/// Returns only messages that this run has not seen. A message that failed comes back when the queue no longer hides
/// it.
async fn messages(
    client: &aws_sdk_sqs::Client,
    url: &str,
    receive: Receive,
    seen: &mut BTreeSet<String>,
) -> Result<Vec<Kept>> {
    let request = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(MESSAGES_MAX)
        .visibility_timeout(receive.hidden_seconds())
        .message_attribute_names("All")
        .wait_time_seconds(receive.wait_seconds());
    let received = request.send().await.with_context(|| format!("receiving from {url}"))?;
    let mut all = Vec::new();
    for message in received.messages.unwrap_or_default() {
        let name = message.message_id.unwrap_or_default();
        if seen.insert(name.clone()) {
            let attributes = message.message_attributes.unwrap_or_default().into_iter();
            let attributes =
                attributes.filter_map(|(name, value)| Some((name, value.string_value?)));
            let body = message.body.unwrap_or_default();
            let letter = Letter::of_message(&body, &attributes.collect());
            let handle = message.receipt_handle.unwrap_or_default();
            all.push(Kept { name, handle, body, letter });
        }
    }
    Ok(all)
}

/// Reads one object. Objects are read one at a time, because a batch can have megabytes.
async fn object(
    client: &aws_sdk_s3::Client,
    bucket: &str,
    to: Option<To>,
    key: String,
) -> Result<Kept> {
    let reading = || format!("reading object {key}");
    let object = client.get_object().bucket(bucket).key(&key).send().await;
    let body = object.with_context(reading)?.body.collect().await.with_context(reading)?;
    let body = String::from_utf8_lossy(&body.into_bytes()).into_owned();
    let letter = match to {
        Some(to) => Letter::of_object(&body, to),
        None => Err(anyhow!("the next event brings what it holds: delete it")),
    };
    Ok(Kept { name: key.clone(), handle: key, body, letter })
}
