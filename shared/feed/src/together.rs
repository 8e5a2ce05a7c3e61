//! Readers of the index, for people; and readers that move together, so that an event which concerns none of them costs
//! one write.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::operation::scan::builders::ScanInputBuilder;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use futures::future::try_join_all;
use ringfence_aws::{Failure, GaveUp, Item, Retry};
use ringfence_core::rfc3339;

use crate::checkpoint::Checkpoint;
use crate::checkpoints::{
    Checkpoints, ID, READER, READER_ID, UPDATED_AT, VIEW, checkpoint_of, key, text_of,
};
use crate::error::{FeedError, failed};
use crate::item::{CHECKPOINT, number, text};

/// Sort key of their item. Its partition key has no reader's name.
const TOGETHER_ID: &str = "TOGETHER";
const READERS: &str = "readers";

/// A named reader of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Its name.
    pub name: String,
    /// The checkpoint after the entries that it is done with.
    pub checkpoint: Checkpoint,
    /// When it reached the checkpoint: RFC 3339, UTC.
    pub updated_at: String,
}

/// The readers that move together. No event between the own checkpoint of one of them and this checkpoint concerns that
/// reader. Own checkpoints never go back, so what was true once stays true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Together {
    /// The checkpoint that all of them have reached, or passed by themselves.
    pub checkpoint: Checkpoint,
    /// Their names.
    pub readers: BTreeSet<String>,
    updated_at: String,
}

impl Together {
    /// The checkpoint of a reader, if it is one of them and they are beyond its own checkpoint.
    #[must_use]
    pub fn beyond(&self, reader: &str, own: Option<Checkpoint>) -> Option<Checkpoint> {
        let is_beyond = self.readers.contains(reader) && Some(self.checkpoint) > own;
        is_beyond.then_some(self.checkpoint)
    }

    fn of(item: Option<&Item>) -> Result<Self, FeedError> {
        let readers = item.and_then(|item| item.get(READERS)?.as_ss().ok());
        let (Some(item), Some(readers)) = (item, readers) else { return Ok(Self::default()) };
        let updated_at = text_of(item, UPDATED_AT);
        let readers = readers.iter().cloned().collect();
        Ok(Self { checkpoint: checkpoint_of(item)?, readers, updated_at })
    }

    /// The reader at the later of the two checkpoints.
    fn place(&self, reader: Reader) -> Reader {
        match self.beyond(&reader.name, Some(reader.checkpoint)) {
            None => reader,
            Some(checkpoint) => {
                Reader { checkpoint, updated_at: self.updated_at.clone(), ..reader }
            }
        }
    }
}

impl Checkpoints {
    /// A reader with the time of its checkpoint, which it has reached by itself or together with others; `None` before
    /// its first own checkpoint. Two strong reads.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn reader(&self, reader: &str) -> Result<Option<Reader>, FeedError> {
        let Some(item) = self.item(key(reader), true).await? else { return Ok(None) };
        Ok(Some(self.together().await?.place(reader_of(&item)?)))
    }

    /// Every reader, in no order, for people. It reads (and pays for) the whole table.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn readers(&self) -> Result<Vec<Reader>, FeedError> {
        let (mut readers, mut together) = (Vec::new(), Together::default());
        let mut start = None;
        loop {
            let scan =
                || self.table.scan(|scan| of_readers(scan).set_exclusive_start_key(start.clone()));
            let page = Retry::default().run(scan).await.map_err(failed("reading checkpoints"))?;
            for item in page.items() {
                match &*text_of(item, ID) {
                    TOGETHER_ID => together = Together::of(Some(item))?,
                    _ => readers.push(reader_of(item)?),
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(readers.into_iter().map(|reader| together.place(reader)).collect());
            }
        }
    }

    /// The readers that move together. A strong read.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn together(&self) -> Result<Together, FeedError> {
        Together::of(self.item(together_key(), true).await?.as_ref())
    }

    /// How far these readers are, by themselves or together with others, for people. It may be a moment ago. Costs half
    /// a read unit, and half a unit for each reader that has not reached `end` together with others.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn reached(
        &self,
        readers: &[String],
        end: Checkpoint,
    ) -> Result<Vec<Checkpoint>, FeedError> {
        let together = Together::of(self.item(together_key(), false).await?.as_ref())?;
        let reached = async |reader: &String| {
            if together.checkpoint >= end && together.readers.contains(reader) {
                return Ok(together.checkpoint);
            }
            let own = self.item(key(reader), false).await?;
            let own = own.as_ref().map(checkpoint_of).transpose()?;
            Ok(together.beyond(reader, own).or(own).unwrap_or_default())
        };
        try_join_all(readers.iter().map(reached)).await
    }

    /// Moves the readers that move together. No event up to `to` may concern one of them beyond its own checkpoint.
    /// False if they were moved meanwhile, or one of them has joined or left.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn advance_together(
        &self,
        from: &Together,
        to: Checkpoint,
    ) -> Result<bool, FeedError> {
        let update = self
            .to(to, "SET #checkpoint = :to, #at = :at")
            .condition_expression("#checkpoint = :from AND #readers = :readers")
            .expression_attribute_values(":from", number(from.checkpoint))
            .expression_attribute_values(":readers", set(&from.readers))
            .build()
            .expect("table, key and expression are set");
        match Retry::default().run(|| self.table.update(update.clone(), None)).await {
            Ok(_) => Ok(true),
            Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(false),
            Err(gave_up) => Err(failed("moving checkpoints together")(gave_up)),
        }
    }

    /// The action by which readers join those that were found, at a checkpoint that each of them has reached by itself:
    /// the one that was found, or any if there were no readers.
    #[must_use]
    pub fn join(
        &self,
        found: &Together,
        at: Checkpoint,
        readers: &BTreeSet<String>,
    ) -> TransactWriteItem {
        let join = self
            .to(at, "SET #checkpoint = :to, #at = :at ADD #readers :readers")
            .condition_expression(match found.readers.is_empty() {
                true => "attribute_not_exists(#readers)",
                false => "attribute_exists(#readers) AND #checkpoint = :to",
            })
            .expression_attribute_values(":readers", set(readers))
            .build()
            .expect("table, key and expression are set");
        TransactWriteItem::builder().update(join).build()
    }

    /// The action by which a reader leaves the others, if it is one of them. From then on its own checkpoint counts.
    #[must_use]
    pub fn leave(&self, reader: &str) -> TransactWriteItem {
        let leave = self
            .update_together("DELETE #readers :reader")
            .expression_attribute_values(":reader", set(&[reader.to_owned()].into()))
            .build()
            .expect("table, key and expression are set");
        TransactWriteItem::builder().update(leave).build()
    }

    /// [`Checkpoints::leave`], and the action that moves the reader's own checkpoint to where it was with the others.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn leave_here(&self, reader: &str) -> Result<Vec<TransactWriteItem>, FeedError> {
        let (together, own) = (self.together().await?, self.load(reader).await?);
        let here = together.beyond(reader, own);
        let here = here.map(|here| self.action(reader, own, here));
        Ok([self.leave(reader)].into_iter().chain(here).collect())
    }

    fn to(&self, to: Checkpoint, expression: &str) -> UpdateBuilder {
        self.update_together(expression)
            .expression_attribute_names("#checkpoint", CHECKPOINT)
            .expression_attribute_names("#at", UPDATED_AT)
            .expression_attribute_values(":to", number(to))
            .expression_attribute_values(":at", text(rfc3339(self.clock.now_ms())))
    }

    fn update_together(&self, expression: &str) -> UpdateBuilder {
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(together_key()))
            .update_expression(expression)
            .expression_attribute_names("#readers", READERS)
    }
}

fn together_key() -> Item {
    Item::from([(VIEW.to_owned(), text(READER)), (ID.to_owned(), text(TOGETHER_ID))])
}

fn reader_of(item: &Item) -> Result<Reader, FeedError> {
    let view = text_of(item, VIEW);
    let name = view.strip_prefix(READER).unwrap_or(&view).to_owned();
    let updated_at = text_of(item, UPDATED_AT);
    Ok(Reader { name, checkpoint: checkpoint_of(item)?, updated_at })
}

fn of_readers(scan: ScanInputBuilder) -> ScanInputBuilder {
    scan.filter_expression("#id IN (:id, :together) AND begins_with(#view, :reader)")
        .expression_attribute_names("#id", ID)
        .expression_attribute_names("#view", VIEW)
        .expression_attribute_values(":id", text(READER_ID))
        .expression_attribute_values(":together", text(TOGETHER_ID))
        .expression_attribute_values(":reader", text(READER))
}

fn set(readers: &BTreeSet<String>) -> AttributeValue {
    AttributeValue::Ss(readers.iter().cloned().collect())
}
