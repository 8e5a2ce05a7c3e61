//! The checkpoints of named readers, in the table of the views.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
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
        self.item(key(reader), true).await?.as_ref().map(checkpoint_of).transpose()
    }

    pub(crate) async fn item(&self, key: Item, strong: bool) -> Result<Option<Item>, FeedError> {
        let get = || self.table.get(key.clone(), strong);
        Retry::default().run(get).await.map_err(failed("reading a checkpoint"))
    }

    /// Moves a reader that is at `from`.
    ///
    /// # Errors
    /// [`FeedError::Moved`] if it is elsewhere; a request that fails for good or too often.
    pub async fn advance(
        &self,
        reader: &str,
        from: impl Into<Option<Checkpoint>>,
        to: Checkpoint,
    ) -> Result<(), FeedError> {
        let from = from.into();
        match self.send(self.update(reader, from, to), to).await? {
            Moved::There => Ok(()),
            Moved::Elsewhere { found, .. } => {
                let reader = reader.to_owned();
                Err(FeedError::Moved { reader, expected: from, found })
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
            let item = self.item(key(reader), true).await?;
            let from = item.as_ref().map(checkpoint_of).transpose()?;
            let mut update = self.update(reader, from, to);
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
                    let reader = reader.to_owned();
                    return Err(FeedError::Moved { reader, expected: from, found });
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
    pub fn action(
        &self,
        reader: &str,
        from: Option<Checkpoint>,
        to: Checkpoint,
    ) -> TransactWriteItem {
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

    fn update(&self, reader: &str, from: Option<Checkpoint>, to: Checkpoint) -> Update {
        let values = [
            (":to".to_owned(), number(to)),
            (":at".to_owned(), text(rfc3339(self.clock.now_ms()))),
        ];
        let was = from.map(|from| (":was".to_owned(), number(from)));
        let condition = match from {
            None => "attribute_not_exists(#checkpoint)",
            Some(_) => "#checkpoint = :was",
        };
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(key(reader)))
            .update_expression("SET #checkpoint = :to, #at = :at")
            .condition_expression(condition)
            .expression_attribute_names("#checkpoint", CHECKPOINT)
            .expression_attribute_names("#at", UPDATED_AT)
            .set_expression_attribute_values(Some(values.into_iter().chain(was).collect()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("table, key and expression are set")
    }
}

pub(crate) fn key(reader: &str) -> Item {
    let view = text(format!("{READER}{reader}"));
    Item::from([(VIEW.to_owned(), view), (ID.to_owned(), text(READER_ID))])
}

pub(crate) fn text_of(item: &Item, name: &str) -> String {
    item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default()
}

pub(crate) fn checkpoint_of(item: &Item) -> Result<Checkpoint, FeedError> {
    let checkpoint = item.get(CHECKPOINT).and_then(|value| value.as_n().ok()?.parse().ok());
    let malformed = || FeedError::Malformed { item: text_of(item, VIEW), problem: CHECKPOINT };
    checkpoint.ok_or_else(malformed)
}
