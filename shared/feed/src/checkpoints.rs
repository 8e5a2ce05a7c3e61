//! The checkpoints of named readers, in the table of the views.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use ringfence_aws::{Clock, Failure, GaveUp, Item, Meter, Retry, Table};
use ringfence_core::rfc3339;

use crate::checkpoint::Checkpoint;
use crate::error::{FeedError, failed};
use crate::item::{CHECKPOINT, number, text};

/// Partition key of the table of views.
pub(crate) const VIEW: &str = "view";
/// Sort key of the table of views.
pub(crate) const ID: &str = "id";
pub(crate) const READER: &str = "$ReaderCheckpoint-";
pub(crate) const READER_ID: &str = "CHECKPOINT";
pub(crate) const UPDATED_AT: &str = "updatedAt";

/// The part of the next entry that a reader has done.
const PART: &str = "part";

/// How far a reader has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The checkpoint after the entries that it is done with; `None` before the first.
    pub checkpoint: Option<Checkpoint>,
    /// The part of the next entry that it has done, in a form that only the reader knows; `None` if it has not begun.
    pub part: Option<String>,
}

impl<C: Into<Option<Checkpoint>>> From<C> for Reached {
    fn from(checkpoint: C) -> Self {
        Self { checkpoint: checkpoint.into(), part: None }
    }
}

/// The result of a move.
enum Moved {
    There,
    /// The reader was not where it was to be moved from.
    Elsewhere {
        found: Option<Checkpoint>,
        /// Whether it is known that the move had no effect. If the answer to an earlier send was lost, it may have had
        /// one.
        is_known: bool,
    },
}

/// The checkpoints of named readers, in the table of the views. That table has no stream, so moving a reader causes no
/// further work.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    pub(crate) table: Table,
    pub(crate) clock: Clock,
}

impl Checkpoints {
    /// The checkpoints in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let clock = Clock::system();
        Self { table: Table::new(client, table, &clock), clock }
    }

    /// What these requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// The reader's own checkpoint; `None` before its first. A strong read.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn load(&self, reader: &str) -> Result<Option<Checkpoint>, FeedError> {
        Ok(self.reached(reader).await?.checkpoint)
    }

    /// How far a reader has come by itself, within an entry too. A strong read.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn reached(&self, reader: &str) -> Result<Reached, FeedError> {
        reached(self.item(key(reader)).await?.as_ref())
    }

    pub(crate) async fn item(&self, key: Item) -> Result<Option<Item>, FeedError> {
        let get = || self.table.get(key.clone(), true);
        Retry::default().run(get).await.map_err(failed("reading a checkpoint"))
    }

    /// Moves a reader that is at `from`.
    ///
    /// # Errors
    /// [`FeedError::Moved`] if it is elsewhere; a request that fails for good or too often.
    pub async fn advance(
        &self,
        reader: &str,
        from: impl Into<Reached>,
        to: Checkpoint,
    ) -> Result<(), FeedError> {
        let from = from.into();
        match self.send(self.update(reader, &from, &to.into()), to).await? {
            Moved::There => Ok(()),
            Moved::Elsewhere { found, .. } => {
                let reader = reader.to_owned();
                Err(FeedError::Moved { reader, expected: from.checkpoint, found })
            }
        }
    }

    /// Moves a reader to `to`, wherever it is, for an operator. A move forward skips events; after a move
    /// back, the reader reads events again.
    ///
    /// # Errors
    /// [`FeedError::Moved`] if the reader has moved on meanwhile, and may never have been at `to`; a request that fails
    /// for good or too often.
    pub async fn set(&self, reader: &str, to: Checkpoint) -> Result<(), FeedError> {
        loop {
            let item = self.item(key(reader)).await?;
            let from = reached(item.as_ref())?;
            let mut update = self.update(reader, &from, &to.into());
            // A reader that comes back to the same place does so at another time.
            if let Some(since) = item.as_ref().and_then(|item| item.get(UPDATED_AT)) {
                let values = update.expression_attribute_values.get_or_insert_default();
                values.insert(":since".to_owned(), since.clone());
                update.condition_expression.get_or_insert_default().push_str(" AND #at = :since");
            }
            match self.send(update, to).await? {
                Moved::There => return Ok(()),
                Moved::Elsewhere { is_known: true, .. } => {}
                Moved::Elsewhere { found, .. } => {
                    let (reader, expected) = (reader.to_owned(), from.checkpoint);
                    return Err(FeedError::Moved { reader, expected, found });
                }
            }
        }
    }

    async fn send(&self, update: Update, to: Checkpoint) -> Result<Moved, FeedError> {
        match Retry::default().run(|| self.table.update(update.clone(), None)).await {
            Ok(_) => Ok(Moved::There),
            Err(GaveUp { failure: Failure::Condition(item), unknown, .. }) => {
                let found = item.as_ref().map(checkpoint_of).transpose()?;
                // The move is our own: the answer to an earlier send was lost.
                if unknown.is_some() && found == Some(to) {
                    return Ok(Moved::There);
                }
                Ok(Moved::Elsewhere { found, is_known: unknown.is_none() })
            }
            Err(gave_up) => Err(failed("moving a checkpoint")(gave_up)),
        }
    }

    /// The action that moves a reader from `from`, for a transaction with the reader's own writes. If its condition
    /// fails, the reason has the reader's item.
    #[must_use]
    pub fn action(&self, reader: &str, from: &Reached, to: &Reached) -> TransactWriteItem {
        TransactWriteItem::builder().update(self.update(reader, from, to)).build()
    }

    /// The key of a reader's item, to read it together with what the reader has written.
    #[must_use]
    pub fn key(reader: &str) -> Item {
        key(reader)
    }

    /// The checkpoint of a reader's item.
    ///
    /// # Errors
    /// The item is not as this crate writes it.
    pub fn decode(item: &Item) -> Result<Checkpoint, FeedError> {
        checkpoint_of(item)
    }

    fn update(&self, reader: &str, from: &Reached, to: &Reached) -> Update {
        let (part, value) = match &to.part {
            None => (" REMOVE #part", None),
            Some(part) => (", #part = :part", Some((":part".to_owned(), text(part)))),
        };
        let values = [
            (":to".to_owned(), number(to.checkpoint.unwrap_or_default())),
            (":at".to_owned(), text(rfc3339(self.clock.now_ms()))),
        ];
        let mut values: Item = values.into_iter().chain(value).collect();
        let mut is = |name: &str, value: Option<AttributeValue>| match value {
            None => format!("attribute_not_exists(#{name})"),
            Some(value) => {
                values.insert(format!(":{name}Was"), value);
                format!("#{name} = :{name}Was")
            }
        };
        let at = is("checkpoint", from.checkpoint.map(number));
        let within = is("part", from.part.as_ref().map(text));
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(key(reader)))
            .update_expression(format!("SET #checkpoint = :to, #at = :at{part}"))
            .condition_expression(format!("{at} AND {within}"))
            .expression_attribute_names("#checkpoint", CHECKPOINT)
            .expression_attribute_names("#at", UPDATED_AT)
            .expression_attribute_names("#part", PART)
            .set_expression_attribute_values(Some(values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("table, key and expression are set")
    }
}

pub(crate) fn key(reader: &str) -> Item {
    let view = text(format!("{READER}{reader}"));
    Item::from([(VIEW.to_owned(), view), (ID.to_owned(), text(READER_ID))])
}

fn reached(item: Option<&Item>) -> Result<Reached, FeedError> {
    let Some(item) = item else { return Ok(Reached::default()) };
    let part = item.get(PART).and_then(|part| part.as_s().ok()).cloned();
    Ok(Reached { checkpoint: Some(checkpoint_of(item)?), part })
}

pub(crate) fn text_of(item: &Item, name: &str) -> String {
    item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
}

pub(crate) fn checkpoint_of(item: &Item) -> Result<Checkpoint, FeedError> {
    let checkpoint = item.get(CHECKPOINT).and_then(|value| value.as_n().ok()?.parse().ok());
    let malformed = || FeedError::Malformed { item: text_of(item, VIEW), problem: CHECKPOINT };
    checkpoint.ok_or_else(malformed)
}
