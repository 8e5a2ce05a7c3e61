//! Which generation of a view is served, which is being built, and which has rows to delete.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, ReturnValue, TransactWriteItem, Update,
};
use ringfence_aws::{Failure, GaveUp, Item, Retry};
use ringfence_feed::Checkpoint;

use crate::error::ViewError;
use crate::generation::Generation;
use crate::keys::key;
use crate::row::{ViewTable, failed};
use crate::view::Definition;

/// The generations of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The generation that is served, or will be: see `until`.
    pub live: Generation,
    /// The generation that is to take its place.
    pub building: Option<Generation>,
    /// The generation that was served or built before; its rows are being deleted.
    pub retiring: Option<Generation>,
    /// The checkpoint at the end of the index when the view was deployed; `None` once the first generation
    /// has reached it. Until then nothing is served.
    pub until: Option<Checkpoint>,
    /// The checkpoint that the live generation had reached when it took the place of another. Each of its rows is
    /// folded at least up to there.
    pub since: Checkpoint,
    /// How many rows of the live generation are parked.
    pub parked: u64,
    /// How many events are parked for the live generation.
    pub parked_events: u64,
}

const LIVE: &str = "live";
const BUILDING: &str = "building";
const RETIRING: &str = "retiring";
const UNTIL: &str = "until";
const SINCE: &str = "since";
/// Sort key of the item.
const REGISTRY: &str = "VIEW";
const OPERATION: &str = "changing a view's generations";

fn partition(view: &str) -> String {
    format!("$View-{view}")
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// The attribute that counts the parked rows of a generation.
fn parked(generation: Generation) -> String {
    format!("parked#{}", generation.number)
}

/// The attribute that counts the events that are parked for a generation.
fn parked_events(generation: Generation) -> String {
    format!("parkedEvents#{}", generation.number)
}

/// The attribute with the shards of a generation that has several. It stays when the generation has gone: rows of it
/// may still arrive, and the next rebuild deletes them.
fn shards(generation: u64) -> String {
    format!("shards#{generation}")
}

fn malformed(view: &str) -> ViewError {
    ViewError::Item { view: partition(view), id: REGISTRY.to_owned() }
}

/// A number of the item.
fn whole(view: &str, item: &Item, name: &str) -> Result<Option<u64>, ViewError> {
    let number = |value: &AttributeValue| value.as_n().ok()?.parse().ok();
    item.get(name).map(|value| number(value).ok_or_else(|| malformed(view))).transpose()
}

/// The generation of this number.
fn generation(view: &str, item: &Item, number: u64) -> Result<Generation, ViewError> {
    let shards = whole(view, item, &shards(number))?.unwrap_or(1);
    let shards = u32::try_from(shards).ok().and_then(NonZeroU32::new);
    Ok(Generation { number, shards: shards.ok_or_else(|| malformed(view))?.get() })
}

fn decode(view: &str, item: &Item) -> Result<Registered, ViewError> {
    let number = |name: &str| whole(view, item, name);
    let generation =
        |name: &str| number(name)?.map(|number| generation(view, item, number)).transpose();
    let live = generation(LIVE)?.ok_or_else(|| malformed(view))?;
    let checkpoint = |name: &str| {
        let checkpoint = number(name)?.map(|number| Checkpoint::try_from(number.cast_signed()));
        checkpoint.transpose().map_err(|_| malformed(view))
    };
    Ok(Registered {
        live,
        building: generation(BUILDING)?,
        retiring: generation(RETIRING)?,
        until: checkpoint(UNTIL)?,
        since: checkpoint(SINCE)?.unwrap_or_default(),
        parked: number(&parked(live))?.unwrap_or_default(),
        parked_events: number(&parked_events(live))?.unwrap_or_default(),
    })
}

impl ViewTable {
    /// The generations of a view; `None` if it was never run.
    pub(crate) async fn registered(
        &self,
        view: &str,
        strong: bool,
    ) -> Result<Option<Registered>, ViewError> {
        let item = self.item(key(&partition(view), REGISTRY), strong).await?;
        item.map(|item| decode(view, &item)).transpose()
    }

    /// The generations before one.
    pub(crate) async fn earlier(
        &self,
        view: &str,
        live: Generation,
    ) -> Result<Vec<Generation>, ViewError> {
        let item = self.item(key(&partition(view), REGISTRY), true).await?.unwrap_or_default();
        (1..live.number).map(|number| generation(view, &item, number)).collect()
    }

    /// How many events are parked for a generation.
    pub(crate) async fn parked_events(
        &self,
        view: &str,
        generation: Generation,
    ) -> Result<u64, ViewError> {
        let item = self.item(key(&partition(view), REGISTRY), true).await?;
        let count =
            item.and_then(|item| item.get(&parked_events(generation))?.as_n().ok()?.parse().ok());
        Ok(count.unwrap_or_default())
    }

    /// Begins the first generation, which is served from the checkpoint `until` on, unless it is begun already.
    pub(crate) async fn begin_first(
        &self,
        view: &Definition,
        until: Checkpoint,
    ) -> Result<Option<Registered>, ViewError> {
        let (view, first) = (view.name, Generation::first(view));
        let update = beginning(self, view, LIVE, first, ", #until = :until")
            .condition_expression("attribute_not_exists(#begun)")
            .expression_attribute_names("#until", UNTIL)
            .expression_attribute_values(":until", number(until));
        self.change(update).await?.map(|item| decode(view, &item)).transpose()
    }

    /// Serves the live generation.
    pub(crate) async fn serve(&self, view: &str, live: Generation) -> Result<(), ViewError> {
        let update = update(self, view, "REMOVE #until")
            .condition_expression("#live = :live")
            .expression_attribute_names("#live", LIVE)
            .expression_attribute_names("#until", UNTIL)
            .expression_attribute_values(":live", number(live.number));
        // If another generation has taken its place meanwhile, that one is served.
        self.change(update).await.map(drop)
    }

    /// The action that changes the count of a generation's parked rows.
    pub(crate) fn count_parked(
        &self,
        view: &str,
        generation: Generation,
        change: i64,
    ) -> TransactWriteItem {
        self.count(view, parked(generation), change)
    }

    /// The action that changes the count of the events that are parked for a generation.
    pub(crate) fn count_parked_events(
        &self,
        view: &str,
        generation: Generation,
        change: i64,
    ) -> TransactWriteItem {
        self.count(view, parked_events(generation), change)
    }

    fn count(&self, view: &str, counter: String, change: i64) -> TransactWriteItem {
        let update = update(self, view, "ADD #parked :change")
            .expression_attribute_names("#parked", counter)
            .expression_attribute_values(":change", number(change));
        let update = update.build().expect("table, key and expression are set");
        TransactWriteItem::builder().update(update).build()
    }

    /// The action that begins the generation after the live one, unless one is begun already.
    pub(crate) fn begin(
        &self,
        view: &str,
        live: Generation,
        next: Generation,
    ) -> TransactWriteItem {
        let update = beginning(self, view, BUILDING, next, "")
            .condition_expression("#live = :live AND attribute_not_exists(#begun)")
            .expression_attribute_names("#live", LIVE)
            .expression_attribute_values(":live", number(live.number));
        let update = update.build().expect("table, key and expression are set");
        TransactWriteItem::builder().update(update).build()
    }

    /// The action that checks that a generation may move together with others: it is served, no other one is being
    /// built, and nothing of it is parked.
    pub(crate) fn is_current(&self, view: &str, live: Generation) -> TransactWriteItem {
        let none = |count| format!("(attribute_not_exists({count}) OR {count} = :zero)");
        let condition = format!(
            "#live = :live AND attribute_not_exists(#building) AND attribute_not_exists(#until) AND {} AND {}",
            none("#parked"),
            none("#events"),
        );
        let check = ConditionCheck::builder()
            .table_name(self.0.name())
            .set_key(Some(key(&partition(view), REGISTRY)))
            .condition_expression(condition)
            .expression_attribute_names("#live", LIVE)
            .expression_attribute_names("#building", BUILDING)
            .expression_attribute_names("#until", UNTIL)
            .expression_attribute_names("#parked", parked(live))
            .expression_attribute_names("#events", parked_events(live))
            .expression_attribute_values(":live", number(live.number))
            .expression_attribute_values(":zero", number(0));
        let check = check.build().expect("table, key and condition are set");
        TransactWriteItem::builder().condition_check(check).build()
    }

    /// The action that serves `next` in place of `live`, whose rows can then go. `next` has reached the checkpoint
    /// `since`.
    pub(crate) fn flip(
        &self,
        view: &str,
        (live, next): (Generation, Generation),
        since: Checkpoint,
    ) -> TransactWriteItem {
        let serve =
            "SET #live = :next, #retiring = :live, #since = :since REMOVE #building, #until";
        let update = update(self, view, serve)
            .condition_expression(
                "#live = :live AND #building = :next AND attribute_not_exists(#retiring)",
            )
            .expression_attribute_names("#until", UNTIL)
            .expression_attribute_names("#since", SINCE)
            .expression_attribute_names("#live", LIVE)
            .expression_attribute_names("#building", BUILDING)
            .expression_attribute_names("#retiring", RETIRING)
            .expression_attribute_values(":since", number(since))
            .expression_attribute_values(":live", number(live.number))
            .expression_attribute_values(":next", number(next.number));
        let update = update.build().expect("table, key and expression are set");
        TransactWriteItem::builder().update(update).build()
    }

    /// The action that gives up the generation `half`, whose rows can then go, and begins the next one.
    pub(crate) fn begin_after(
        &self,
        view: &str,
        half: Generation,
        next: Generation,
    ) -> TransactWriteItem {
        let update = beginning(self, view, BUILDING, next, ", #retiring = :half")
            .condition_expression("#begun = :half AND attribute_not_exists(#retiring)")
            .expression_attribute_names("#retiring", RETIRING)
            .expression_attribute_values(":half", number(half.number));
        let update = update.build().expect("table, key and expression are set");
        TransactWriteItem::builder().update(update).build()
    }

    /// Notes that the rows of a generation are deleted.
    pub(crate) async fn retired(&self, view: &str, old: Generation) -> Result<(), ViewError> {
        let update = update(self, view, "REMOVE #retiring, #parked, #events")
            .condition_expression("#retiring = :old")
            .expression_attribute_names("#parked", parked(old))
            .expression_attribute_names("#events", parked_events(old))
            .expression_attribute_names("#retiring", RETIRING)
            .expression_attribute_values(":old", number(old.number));
        // If the condition does not hold, another rebuild has noted it.
        self.change(update).await.map(drop)
    }

    /// The item after the update; `None` if the condition does not hold. Each of these updates can
    /// be sent twice.
    async fn change(&self, update: UpdateBuilder) -> Result<Option<Item>, ViewError> {
        let update = update.build().expect("table, key and expression are set");
        let send = || self.0.update(update.clone(), Some(ReturnValue::AllNew));
        match Retry::default().run(send).await {
            Ok(item) => Ok(Some(item.unwrap_or_default())),
            Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(None),
            Err(gave_up) => Err(failed(OPERATION)(gave_up)),
        }
    }
}

/// The update that begins a generation, which it puts into an attribute: `#begun`.
fn beginning(
    table: &ViewTable,
    view: &str,
    attribute: &str,
    begun: Generation,
    more: &str,
) -> UpdateBuilder {
    let (spread, is_spread) = (", #shards = :shards", begun.shards > 1);
    let spread = if is_spread { spread } else { "" };
    let update = update(table, view, &format!("SET #begun = :begun{spread}{more}"))
        .expression_attribute_names("#begun", attribute)
        .expression_attribute_values(":begun", number(begun.number));
    if !is_spread {
        return update;
    }
    update
        .expression_attribute_names("#shards", shards(begun.number))
        .expression_attribute_values(":shards", number(begun.shards))
}

fn update(table: &ViewTable, view: &str, expression: &str) -> UpdateBuilder {
    let key = key(&partition(view), REGISTRY);
    Update::builder().table_name(table.0.name()).set_key(Some(key)).update_expression(expression)
}
