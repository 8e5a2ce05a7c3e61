//! Does the work of dead letters.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use aws_config::SdkConfig;
use futures::TryStreamExt;
use ringfence_aws::{Clock, Item, Retry, Table};
use ringfence_core::{Catalog, Consistency, Envelope, LogKind, rfc3339};
use ringfence_document_log::{Direction, StreamName, TimelineEvent};
use ringfence_feed::{EntryError, Indexer, Partition};
use ringfence_log::{InTable, StackLogs};
use ringfence_services::queue::queue_command;
use ringfence_services::topic::{Topic, TopicEntry, TopicEntryError};
use serde_json::{Value, json};

use crate::dead_letter::{DeadLetter, History, Stored, Whose, Work};
use crate::kept::{DeadLetterBox, Kept};
use crate::remark;
use crate::tables;
use crate::topic::{send, topic};

/// What a person should know about events and commands that were sent again.
pub const SENT: &str = "Work that fails again comes back as a new dead letter, under a new name";

/// The most bytes of the reason for which a dead letter is deleted or an event is skipped.
pub const WHY_BYTES_MAX: usize = 1_024;

/// A dead letter that was read or tried again.
pub struct Tried {
    /// The name of its message or object.
    pub name: String,
    /// Its function.
    pub whose: Whose,
    /// Its past failures.
    pub history: History,
    /// Why it was kept.
    pub kept: Option<String>,
    /// The result.
    pub fate: Fate,
}

/// The result for a dead letter.
pub enum Fate {
    /// Its work is done, and it is deleted.
    Done,
    /// Its event is on the bus again, or its command in the queue, and it is deleted. The function has not handled it
    /// yet.
    Sent,
    /// It was only shown.
    Left,
    /// It stays, for this reason.
    Stays(String),
}

/// Describes a dead letter, and leaves it where it is.
pub fn look(dead_letter: Result<DeadLetter>, name: String) -> Tried {
    match dead_letter {
        Ok(DeadLetter { whose, history, cause, .. }) => {
            Tried { name, whose, history, kept: cause, fate: Fate::Left }
        }
        Err(error) => {
            let fate = Fate::Stays(format!("{error:#}"));
            Tried { name, whose: Whose::default(), history: History::default(), kept: None, fate }
        }
    }
}

/// Checks the reason for which a dead letter is deleted or an event is skipped.
pub fn ensure_why(why: &str) -> Result<()> {
    let is_well = !why.trim().is_empty() && why.len() <= WHY_BYTES_MAX;
    ensure!(is_well, "why: say in 1 to {WHY_BYTES_MAX} bytes why you do it");
    Ok(())
}

/// Where deleted dead letters are written, in the working directory.
const DELETED: &str = "deleted-dead-letters.jsonl";

/// Deletes a dead letter without doing its work. The body may be the only copy and have personal data, so it goes into a
/// file that only its owner reads, as a line of JSON with the reason, before the deletion. What can't be read stays.
pub async fn delete(store: &DeadLetterBox, kept: &Kept, why: &str) -> Result<()> {
    ensure_why(why)?;
    let Kept { name, handle, body, .. } = kept;
    let body = body.as_ref().context("it can't be read now, so it stays: try again later")?;
    let at = rfc3339(Clock::system().now_ms());
    let line = json!({ "at": at, "deadLetterToDelete": name, "why": why, "body": body });
    let path = std::path::absolute(DELETED)?;
    keep(&path, &format!("{line}\n"))
        .with_context(|| format!("it stays, because {} can't be written", path.display()))?;
    store.delete(handle).await?;
    remark!("the dead letter {name} is deleted; its reason and body are in {}", path.display());
    Ok(())
}

/// Adds a line to a file that only its owner may read, and waits until it is on the disk.
fn keep(path: &Path, line: &str) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).mode(0o600).open(path)?;
    // It may have been made by another program.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

/// Goes through the dead letters of a store, and passes each result to `on_tried`. Without `does` it only shows them.
/// The dead letters that stay become visible again at the end. Returns about how many more messages wait behind those
/// that stay, in their groups; `None` if unknown.
pub async fn each(
    store: &mut DeadLetterBox,
    does: Option<&Does>,
    mut on_tried: impl FnMut(Tried),
) -> Result<Option<u64>> {
    let mut stay = Vec::new();
    let mut sent = BTreeMap::new();
    loop {
        let some = store.next().await?;
        if some.is_empty() {
            let kept = if stay.is_empty() { Some(0) } else { store.in_groups().await };
            store.show(&stay).await;
            return Ok(kept.map(|kept| kept.saturating_sub(stay.len() as u64)));
        }
        for kept in some {
            let repeat = kept.repeats();
            let is_back =
                |(it, tries): &(_, u64)| sent.get(it).is_some_and(|before| tries > before);
            let tried = match does {
                Some(_) if repeat.as_ref().is_some_and(is_back) => {
                    let again = look(kept.dead_letter, kept.name);
                    let why = "this run has sent it to the bus, and it has failed again".to_owned();
                    Tried { fate: Fate::Stays(why), ..again }
                }
                Some(does) => does.redrive(store, kept).await,
                None => look(kept.dead_letter, kept.name),
            };
            match (&tried.fate, repeat) {
                (Fate::Done, _) => {}
                (Fate::Sent, repeat) => sent.extend(repeat),
                _ => stay.push(tried.name.clone()),
            }
            on_tried(tried);
        }
    }
}

impl Fate {
    /// Why the dead letter stays.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Done | Self::Sent | Self::Left => None,
            Self::Stays(cause) => Some(cause),
        }
    }
}

/// Redrives dead letters. Fails if a needed table or bus is missing.
pub struct Does {
    catalog: Catalog,
    logs: StackLogs,
    topic: Option<Topic>,
    indexer: Option<Indexer>,
    /// The client and the URL of the command queue.
    commands: Option<(aws_sdk_sqs::Client, String)>,
}

impl Does {
    /// On these logs, with this bus and this command queue. Work that needs another one fails.
    pub fn new(
        config: &SdkConfig,
        catalog: &Catalog,
        logs: &StackLogs,
        bus: Option<&str>,
        index_table: Option<&str>,
        command_queue: Option<&str>,
    ) -> Result<Self> {
        let index_table = index_table.filter(|_| logs.tables.contains_key(&LogKind::Dcb));
        let indexer = index_table.map(|index| {
            let sources = logs.sources(&tables::sources(), catalog);
            Indexer::new(sources, logs.client.clone(), index)
        });
        let topic = bus.map(|bus| topic(config, bus));
        let commands = command_queue.map(|url| (aws_sdk_sqs::Client::new(config), url.to_owned()));
        let (catalog, logs) = (catalog.clone(), logs.clone());
        Ok(Self { catalog, logs, topic, indexer, commands })
    }

    /// Does the work of a dead letter and deletes the dead letter.
    pub async fn redrive(&self, store: &DeadLetterBox, kept: Kept) -> Tried {
        let Kept { name, handle, dead_letter, .. } = kept;
        let DeadLetter { whose, history, cause, work } = match dead_letter {
            Ok(dead_letter) => dead_letter,
            unreadable => return look(unreadable, name),
        };
        let is_sent = matches!(work, Work::Repeat(_) | Work::Queue(_));
        let fate = if is_sent { Fate::Sent } else { Fate::Done };
        let done = match self.work(work).await {
            Ok(()) => store.delete(&handle).await.context("the work is done"),
            failed => failed,
        };
        let fate = done.map_or_else(|error| Fate::Stays(format!("{error:#}")), |()| fate);
        Tried { name, whose, history, kept: cause, fate }
    }

    async fn work(&self, work: Work) -> Result<()> {
        let entries =
            |record: &Value| TopicEntry::of_record(record, &tables::sources(), &self.catalog);
        match work {
            Work::Publish(records) => {
                self.publish(records.iter().flat_map(entries).collect()).await
            }
            Work::PublishStored(Stored::Item { log, key }) => {
                let image = self.item(log, key).await?;
                self.publish(TopicEntry::of_image(image, &tables::sources(), &self.catalog)).await
            }
            Work::PublishStored(Stored::Span { stream, events }) => {
                self.publish(self.span(&stream, events).await?).await
            }
            Work::Repeat(entry) => self.publish(vec![Ok(entry)]).await,
            Work::Index(partitions) => self.index(partitions).await,
            Work::Queue(queued) => {
                let missing = "this work needs the queue of commands: give --command-queue, COMMAND_QUEUE_URL or --stack";
                let (client, url) = self.commands.as_ref().context(missing)?;
                let sent = queue_command(client, url, &queued).await;
                sent.map_err(anyhow::Error::from_boxed)
                    .context("putting the command into the queue")
            }
        }
    }

    /// Sends every entry that could be made, and fails if one could not be made or sent.
    async fn publish(&self, all: Vec<Result<TopicEntry, TopicEntryError>>) -> Result<()> {
        let missing = "this work needs the bus: give --bus, EVENT_BUS or --stack";
        let topic = self.topic.as_ref().context(missing)?;
        let (mut entries, mut failed) = (Vec::new(), None);
        for entry in all {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let refused = send(topic, &entries, None).await?;
        if let Some(cause) = refused.into_values().next() {
            bail!(cause);
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn index(&self, partitions: BTreeSet<Partition>) -> Result<()> {
        let missing = "this work needs the index: give --table and --index-table, or --stack";
        let indexer = self.indexer.as_ref().context(missing)?;
        for (partition, outcome) in indexer.index(partitions, Retry::default()).await {
            outcome.with_context(|| format!("partition {partition}"))?;
        }
        Ok(())
    }

    /// The image of the event with this key.
    async fn item(&self, log: LogKind, key: Value) -> Result<Item> {
        let InTable { client, name, .. } =
            tables::table(&self.logs, log).context("the event has to be read from its log")?;
        let item: serde_dynamo::Item = serde_json::from_value(key.clone())?;
        let item = Item::from(item);
        let table = Table::new(client, name, &Clock::system());
        let found = Retry::default().run(|| table.get(item.clone(), true)).await;
        let found = found.context("reading the event")?;
        let table = table.name();
        found.with_context(|| format!("{table} has no event {key}"))
    }

    /// The bus entries for events of a document.
    async fn span(
        &self,
        stream: &StreamName,
        events: Range<u64>,
    ) -> Result<Vec<Result<TopicEntry, TopicEntryError>>> {
        let log = tables::documents(&self.logs)
            .context("the events have to be read from their document")?;
        let (forward, strong) = (Direction::Forward, Consistency::Strong);
        let envelope = Envelope::default();
        let events = log.read(stream, events, forward, strong, &envelope);
        let events: Vec<_> = events.try_collect().await?;
        let entry = |event: &TimelineEvent| {
            let fed = event.fed(stream).map_err(|error| EntryError(error.into()))?;
            TopicEntry::of_event(fed)
        };
        Ok(events.iter().map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringfence_aws::wire::Wire;
    use serde_json::json;

    use super::*;
    use crate::tables::{LogTables, StreamTables};

    #[tokio::test]
    async fn a_dead_letter_that_cannot_be_read_is_not_deleted() {
        let latest = aws_config::BehaviorVersion::latest();
        let config = SdkConfig::builder().behavior_version(latest).build();
        let store =
            DeadLetterBox::queue(&config, "http://localhost:1/q", crate::kept::Receive::Look);
        let dead_letter = Err(anyhow::anyhow!("throttled"));
        let (name, handle) = ("a".to_owned(), "a".to_owned());
        let kept = Kept { name, handle, body: None, dead_letter, at_ms: None };
        let refused = delete(&store, &kept, "a test").await.expect_err("it stays");
        assert_eq!(refused.to_string(), "it can't be read now, so it stays: try again later");
    }

    /// An eventually consistent read may miss an event for a moment.
    #[tokio::test]
    async fn events_that_were_too_large_for_a_message_are_read_strongly() {
        let item = json!({ "id": { "S": "a:1" }, "position": { "N": "1" } });
        let stored = item.clone();
        let answers = move |operation: &str, body: &[u8]| {
            let request: Value = serde_json::from_slice(body).unwrap();
            let answer = match (operation, request["ConsistentRead"] == true) {
                ("GetItem", true) => json!({ "Item": stored }),
                ("Query", true) => json!({ "Items": [], "Count": 0 }),
                other => panic!("{other:?}"),
            };
            (200, answer.to_string().into_bytes())
        };
        let document_table = Some("documents".to_owned());
        let streams = StreamTables { aggregate_table: None, document_table };
        let tables = LogTables { table: Some("events".to_owned()), streams };
        let wire = Wire::default();
        let client = wire.client_of(Arc::new(answers));
        let config = SdkConfig::builder().build();
        let catalog = Catalog::compose([]).unwrap();
        let logs = tables.logs(client, Clock::fixed(0));
        let does = Does::new(&config, &catalog, &logs, None, None, None).unwrap();
        let found = does.item(LogKind::Dcb, item.clone()).await.unwrap();
        assert_eq!(json!(serde_dynamo::Item::from(found)), item);
        let stream = StreamName::new("carts", "c1").unwrap();
        let _ = does.span(&stream, 0..1).await;
        let asked: Vec<_> = wire.take().into_iter().map(|asked| asked.operation).collect();
        assert_eq!(asked[..2], ["GetItem", "Query"]);
    }
}
