//! Stores of work that failed: a dead-letter queue or a bucket of failed batches.

use std::collections::{BTreeSet, VecDeque};

use anyhow::{Context, Result};
use ringfence_dynamo::sdk_config;

use crate::letter::{Letter, To};

/// Most messages of one call: the limit of SQS.
const MESSAGES_MAX: i32 = 10;
/// Seconds for which a received message is hidden from others, the next redrive among them.
const HIDDEN_SECONDS: i32 = 30;
/// Seconds that a call waits for messages. A call that does not wait may miss some.
const WAIT_SECONDS: i32 = 2;

/// One message or object.
pub(crate) struct Kept {
    /// The message's id or the object's key.
    pub(crate) name: String,
    /// What deletes it.
    handle: String,
    /// The work that it asks for; an error if it can't be understood.
    pub(crate) letter: Result<Letter>,
}

pub(crate) enum Store {
    Queue { client: aws_sdk_sqs::Client, url: String, seen: BTreeSet<String> },
    Bucket { client: aws_sdk_s3::Client, name: String, to: To, keys: VecDeque<String> },
}

impl Store {
    pub(crate) async fn queue(url: &str) -> Self {
        let client = aws_sdk_sqs::Client::new(&sdk_config().await);
        Self::Queue { client, url: url.to_owned(), seen: BTreeSet::new() }
    }

    /// The bucket with the objects that it has now, in the order of their keys, which is the order of time.
    pub(crate) async fn bucket(name: &str, to: To) -> Result<Self> {
        let client = aws_sdk_s3::Client::new(&sdk_config().await);
        let mut pages = client.list_objects_v2().bucket(name).into_paginator().send();
        let mut keys = VecDeque::new();
        while let Some(page) = pages.next().await {
            let page = page.with_context(|| format!("listing bucket {name}"))?;
            keys.extend(page.contents.unwrap_or_default().into_iter().filter_map(|o| o.key));
        }
        Ok(Self::Bucket { client, name: name.to_owned(), to, keys })
    }

    /// Some that this command has not seen yet; empty when it has seen all.
    pub(crate) async fn next(&mut self) -> Result<Vec<Kept>> {
        match self {
            Self::Queue { client, url, seen } => messages(client, url, seen).await,
            Self::Bucket { client, name, to, keys } => match keys.pop_front() {
                Some(key) => Ok(vec![object(client, name, *to, key).await?]),
                None => Ok(Vec::new()),
            },
        }
    }

    pub(crate) async fn delete(&self, kept: &Kept) -> Result<()> {
        match self {
            Self::Queue { client, url, .. } => {
                let delete = client.delete_message().queue_url(url).receipt_handle(&kept.handle);
                delete
                    .send()
                    .await
                    .context("the work is done, but the message can't be deleted")?;
            }
            Self::Bucket { client, name, .. } => {
                let delete = client.delete_object().bucket(name).key(&kept.handle);
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
    seen: &mut BTreeSet<String>,
) -> Result<Vec<Kept>> {
    let receive = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(MESSAGES_MAX)
        .visibility_timeout(HIDDEN_SECONDS)
        .message_attribute_names("All")
        .wait_time_seconds(WAIT_SECONDS);
    let received = receive.send().await.with_context(|| format!("receiving from {url}"))?;
    let mut all = Vec::new();
    for message in received.messages.unwrap_or_default() {
        let name = message.message_id.unwrap_or_default();
        if seen.insert(name.clone()) {
            let attributes = message.message_attributes.unwrap_or_default().into_iter();
            let attributes =
                attributes.filter_map(|(name, value)| Some((name, value.string_value?)));
            let letter =
                Letter::of_message(&message.body.unwrap_or_default(), &attributes.collect());
            let handle = message.receipt_handle.unwrap_or_default();
            all.push(Kept { name, handle, letter });
        }
    }
    Ok(all)
}

/// Reads one object. Objects are read one at a time, because a batch can have megabytes.
async fn object(client: &aws_sdk_s3::Client, bucket: &str, to: To, key: String) -> Result<Kept> {
    let reading = || format!("reading object {key}");
    let object = client.get_object().bucket(bucket).key(&key).send().await;
    let body = object.with_context(reading)?.body.collect().await.with_context(reading)?;
    let letter = Letter::of_object(&String::from_utf8_lossy(&body.into_bytes()), to);
    Ok(Kept { name: key.clone(), handle: key, letter })
}
