//! Stores of work that failed: a dead-letter queue or a bucket of failed batches.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, anyhow};
use aws_config::SdkConfig;
use aws_sdk_sqs::types::{
    Message, MessageSystemAttributeName as Told, QueueAttributeName as Attribute,
};
use futures::{StreamExt, stream};
use ringfence_aws::ms_of_rfc3339;
use serde_json::Value;

use crate::dead_letter::{DeadLetter, To, Work};
use crate::service::{Answer, S3, Service, encoded, texts};

/// Most messages of one call: the limit of SQS.
const MESSAGES_MAX: i32 = 10;

/// Requests at a time that show messages again.
const SHOWN_AT_ONCE: usize = 8;

/// The purpose for which messages are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// To do their work: meanwhile they are hidden from others, also from another redrive.
    Work,
    /// To show them: they stay visible.
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
pub struct Kept {
    /// The message's id or the object's key.
    pub name: String,
    /// The handle that deletes it.
    pub handle: String,
    /// Its body, unchanged; `None` if it can't be read now.
    pub body: Option<String>,
    /// The dead letter in it; an error if it can't be understood.
    pub dead_letter: Result<DeadLetter>,
    /// When it was kept, in milliseconds since 1970, if the store says it.
    pub at_ms: Option<u64>,
}

impl Kept {
    /// The id of the event that it sends to the bus again and the function that failed on it, with the number of its
    /// tries.
    pub fn repeats(&self) -> Option<((String, Option<String>), u64)> {
        let Ok(DeadLetter { whose, work: Work::Repeat(entry), history, .. }) = &self.dead_letter
        else {
            return None;
        };
        Some(((entry.id.clone(), whose.function.clone()), history.tries))
    }
}

/// A dead-letter queue, or a bucket of failed batches.
pub struct DeadLetterBox(Kind);

enum Kind {
    Queue {
        client: aws_sdk_sqs::Client,
        url: String,
        receive: Receive,
        /// The messages that were returned, each with its latest handle.
        seen: BTreeMap<String, String>,
    },
    Bucket {
        s3: Box<Service>,
        name: String,
        to: Option<To>,
        keys: VecDeque<String>,
        more: More,
    },
}

/// The rest of a bucket's listing.
enum More {
    /// From the first key on.
    All,
    /// From this token on.
    From(String),
    None,
}

impl DeadLetterBox {
    /// The queue at this URL.
    pub fn queue(config: &SdkConfig, url: &str, receive: Receive) -> Self {
        let client = aws_sdk_sqs::Client::new(config);
        Self(Kind::Queue { client, url: url.to_owned(), receive, seen: BTreeMap::new() })
    }

    /// The bucket. Its objects are in the order of their keys, which is the order of time. Without `to` nothing can be
    /// done with them.
    pub async fn bucket(config: &SdkConfig, name: &str, to: Option<To>) -> Result<Self> {
        let s3 = Box::new(Service::of(config, S3).await?);
        let (name, keys) = (name.to_owned(), VecDeque::new());
        Ok(Self(Kind::Bucket { s3, name, to, keys, more: More::All }))
    }

    /// Messages or objects that it has not returned yet; empty after the last one.
    pub async fn next(&mut self) -> Result<Vec<Kept>> {
        match &mut self.0 {
            Kind::Queue { client, url, receive, seen } => {
                messages(client, url, *receive, seen).await
            }
            Kind::Bucket { s3, name, to, keys, more } => {
                while let Some(key) = next_key(s3, name, keys, more).await? {
                    if let Some(kept) = object(s3, name, *to, key).await {
                        return Ok(vec![kept]);
                    }
                }
                Ok(Vec::new())
            }
        }
    }

    /// The message or object of this name; `None` if it does not exist or another consumer has received it. Other
    /// messages that it has hidden become visible again.
    pub async fn find(&mut self, wanted: &str) -> Result<Option<Kept>> {
        if let Kind::Bucket { keys, more, .. } = &mut self.0 {
            (*keys, *more) = ([wanted.to_owned()].into(), More::None);
        }
        let found = loop {
            let some = self.next().await?;
            let is_end = some.is_empty();
            let found = some.into_iter().find(|kept| kept.name == wanted);
            if is_end || found.is_some() {
                break found;
            }
        };
        if let Kind::Queue { seen, .. } = &self.0 {
            let others: Vec<_> = seen.keys().filter(|name| *name != wanted).cloned().collect();
            self.show(&others).await;
        }
        Ok(found)
    }

    /// Makes the messages of these names visible again. If that fails, they become visible when their time is over.
    pub async fn show(&self, names: &[String]) {
        let Kind::Queue { client, url, seen, receive: Receive::Work } = &self.0 else { return };
        let handles: Vec<String> =
            names.iter().filter_map(|name| seen.get(name).cloned()).collect();
        let show = async |handle| {
            let change = client.change_message_visibility().queue_url(url);
            let _ = change.receipt_handle(handle).visibility_timeout(0).send().await;
        };
        stream::iter(handles).map(show).buffer_unordered(SHOWN_AT_ONCE).collect::<()>().await;
    }

    /// About how many messages it keeps in groups, hidden or not. Only a FIFO queue has groups. `None` if SQS does not
    /// say it. While a message is hidden, SQS returns no later one of its group.
    pub async fn in_groups(&self) -> Option<u64> {
        let Kind::Queue { client, url, .. } = &self.0 else { return Some(0) };
        let asked = client.get_queue_attributes().queue_url(url).attribute_names(Attribute::All);
        let found = asked.send().await.ok()?.attributes.unwrap_or_default();
        if found.get(&Attribute::FifoQueue).is_none_or(|is_fifo| is_fifo != "true") {
            return Some(0);
        }
        let count = |name| found.get(&name)?.parse::<u64>().ok();
        let hidden = count(Attribute::ApproximateNumberOfMessagesNotVisible)?;
        Some(count(Attribute::ApproximateNumberOfMessages)? + hidden)
    }

    /// Deletes the message or object of this handle.
    pub async fn delete(&self, handle: &str) -> Result<()> {
        match &self.0 {
            Kind::Queue { client, url, .. } => {
                let delete = client.delete_message().queue_url(url).receipt_handle(handle);
                delete.send().await.context("the message can't be deleted")?;
            }
            Kind::Bucket { s3, name, .. } => {
                let deleted = s3.call("DELETE", &path(name, handle), &[], "").await;
                let deleted = deleted.and_then(Answer::accepted);
                deleted.context("the object can't be deleted")?;
            }
        }
        Ok(())
    }
}

/// The path of an object in S3's path style.
fn path(bucket: &str, key: &str) -> String {
    format!("/{}/{}", encoded(bucket), encoded(key))
}

/// The next key of a bucket, if there is one.
async fn next_key(
    s3: &Service,
    name: &str,
    keys: &mut VecDeque<String>,
    more: &mut More,
) -> Result<Option<String>> {
    while keys.is_empty() {
        let from = match std::mem::replace(more, More::None) {
            More::None => break,
            More::All => String::new(),
            More::From(token) => {
                format!("&continuation-token={}", encoded(&token).replace('/', "%2F"))
            }
        };
        let list = format!("/{}?list-type=2{from}", encoded(name));
        let page = s3.call("GET", &list, &[], "").await.and_then(Answer::accepted);
        let page = page.with_context(|| format!("listing bucket {name}"))?;
        keys.extend(texts(&page, "Key")?);
        *more = texts(&page, "NextContinuationToken")?.pop().map_or(More::None, More::From);
    }
    Ok(keys.pop_front())
}

/// Returns messages that this run has not seen, or an empty list if the queue has no others. A message that failed
/// comes back when the queue no longer hides it. Then it is hidden again, and the search continues.
async fn messages(
    client: &aws_sdk_sqs::Client,
    url: &str,
    receive: Receive,
    seen: &mut BTreeMap<String, String>,
) -> Result<Vec<Kept>> {
    let mut again = 0;
    loop {
        let received = receive_messages(client, url, receive).await?;
        let count = received.len();
        let is_new = |kept: &Kept| seen.insert(kept.name.clone(), kept.handle.clone()).is_none();
        let new: Vec<_> = received.into_iter().filter(is_new).collect();
        again += count - new.len();
        // Messages for a look stay visible, so the next call would only return them again.
        if count == 0 || !new.is_empty() || receive == Receive::Look || again > seen.len() {
            return Ok(new);
        }
    }
}

async fn receive_messages(
    client: &aws_sdk_sqs::Client,
    url: &str,
    receive: Receive,
) -> Result<Vec<Kept>> {
    let request = client
        .receive_message()
        .queue_url(url)
        .max_number_of_messages(MESSAGES_MAX)
        .visibility_timeout(receive.hidden_seconds())
        .message_attribute_names("All")
        .message_system_attribute_names(Told::SentTimestamp)
        .wait_time_seconds(receive.wait_seconds());
    let received = request.send().await.with_context(|| format!("receiving from {url}"))?;
    let kept = |message: Message| {
        let sent = message.attributes.as_ref().and_then(|all| all.get(&Told::SentTimestamp));
        let at_ms = sent.and_then(|ms| ms.parse().ok());
        let attributes = message.message_attributes.unwrap_or_default().into_iter();
        let attributes = attributes.filter_map(|(name, value)| Some((name, value.string_value?)));
        let body = message.body.unwrap_or_default();
        let dead_letter = DeadLetter::of_message(&body, &attributes.collect());
        let body = Some(body);
        let handle = message.receipt_handle.unwrap_or_default();
        Kept { name: message.message_id.unwrap_or_default(), handle, body, dead_letter, at_ms }
    };
    Ok(received.messages.unwrap_or_default().into_iter().map(kept).collect())
}

/// Reads one object; `None` if it no longer exists. Objects are read one at a time, because a batch can have megabytes.
async fn object(s3: &Service, bucket: &str, to: Option<To>, key: String) -> Option<Kept> {
    let text = match s3.call("GET", &path(bucket, &key), &[], "").await {
        Ok(gone)
            if gone.status == 404
                && texts(&gone.text, "Code").is_ok_and(|codes| codes == ["NoSuchKey"]) =>
        {
            return None;
        }
        answer => answer.and_then(Answer::accepted),
    };
    let (body, dead_letter) = match (text, to) {
        (Err(error), _) => (None, Err(error.context("the object can't be read"))),
        (Ok(body), Some(to)) => {
            let dead_letter = DeadLetter::of_object(&body, to);
            (Some(body), dead_letter)
        }
        (Ok(body), None) => {
            (Some(body), Err(anyhow!("the next event brings what it holds: delete it")))
        }
    };
    let record: Option<Value> = serde_json::from_str(body.as_deref().unwrap_or_default()).ok();
    let at_ms = record.and_then(|record| ms_of_rfc3339(record["timestamp"].as_str()?));
    Some(Kept { name: key.clone(), handle: key, body, dead_letter, at_ms })
}
