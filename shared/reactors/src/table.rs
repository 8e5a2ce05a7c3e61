//! The requests for a reactor's items.

use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, Put, ReturnValue, ReturnValuesOnConditionCheckFailure, Update,
};
use ringfence::{BoundaryId, rfc3339};
use ringfence_dynamo::{Clock, Failure, GaveUp, Item, Meter, Retry, Table};
use ringfence_feed::Checkpoint;
use tokio::sync::Mutex;

use crate::error::{ReactorError, failed};
use crate::item::{
    ID, PARKED, ParkedLane, REACTOR, ReactorStanding, Receipt, VIEW, lane_key, number, place,
    reader_key, text,
};

/// The items of reactors, in the table of the views.
#[derive(Clone, Debug)]
pub struct ReactorTable {
    pub(crate) table: Table,
    pub(crate) clock: Clock,
    /// Held by a careful run while it handles an event. The runs of a process share it.
    pub(crate) alone: Arc<Mutex<()>>,
}

/// A lease that was asked for.
pub(crate) enum Lease {
    Taken(ReactorStanding),
    /// Another run has it, and knows now that the bell has rung.
    Held,
}

impl ReactorTable {
    /// The items in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { table: Table::new(client, table), clock, alone: Arc::default() }
    }

    /// What these requests cost so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.table.meter()
    }

    /// How far a reactor is. A strong read.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn standing(&self, reactor: &str) -> Result<ReactorStanding, ReactorError> {
        let get = || self.table.get(reader_key(reactor), true);
        let item = Retry::default().run(get).await.map_err(failed("reading a reactor"))?;
        item.as_ref().map_or_else(|| Ok(ReactorStanding::default()), ReactorStanding::of)
    }

    /// The lanes of a reactor that wait or are parked, by their names. A strong read of these items alone.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn parked(&self, reactor: &str) -> Result<Vec<ParkedLane>, ReactorError> {
        let (mut lanes, mut start) = (Vec::new(), None);
        loop {
            let query = || {
                self.table.query(|query| {
                    query
                        .consistent_read(true)
                        .key_condition_expression("#view = :view AND begins_with(#id, :parked)")
                        .expression_attribute_names("#view", VIEW)
                        .expression_attribute_names("#id", ID)
                        .expression_attribute_values(":view", text(format!("{REACTOR}{reactor}")))
                        .expression_attribute_values(":parked", text(PARKED))
                        .set_exclusive_start_key(start.clone())
                })
            };
            let page = Retry::default().run(query).await.map_err(failed("listing parked lanes"))?;
            for item in page.items() {
                lanes.push(ParkedLane::of(item)?);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(lanes);
            }
        }
    }

    /// Asks for the lease up to a time. If another run has it, the item notes that the bell has rung. That run then looks
    /// once more before it ends.
    pub(crate) async fn take(&self, reactor: &str, until_ms: u64) -> Result<Lease, ReactorError> {
        let owner = self.clock.uuid().to_string();
        loop {
            let now = number(self.clock.now_ms());
            let take = self.change(
                reader_key(reactor),
                "SET #lease = if_not_exists(#lease, :zero) + :one, #until = :until, #owner = :owner REMOVE #rung",
                "attribute_not_exists(#until) OR #until < :now OR #owner = :owner",
                [
                    (":zero", number(0)),
                    (":one", number(1)),
                    (":until", number(until_ms)),
                    (":owner", text(&owner)),
                    (":now", now.clone()),
                ],
            );
            let taken = self.send(&take, Some(ReturnValue::AllNew)).await;
            match held(taken, "taking the lease")? {
                Some(item) => return Ok(Lease::Taken(ReactorStanding::of(&item)?)),
                None => {
                    let ring = self.change(
                        reader_key(reactor),
                        "SET #rung = :rung",
                        "#until >= :now",
                        [(":rung", AttributeValue::Bool(true)), (":now", now)],
                    );
                    if held(self.send(&ring, None).await, "ringing")?.is_some() {
                        return Ok(Lease::Held);
                    }
                    // It was given back meanwhile.
                }
            }
        }
    }

    /// Moves the checkpoint of the run with this lease.
    pub(crate) async fn advance(
        &self,
        reactor: &str,
        lease: u64,
        to: Checkpoint,
    ) -> Result<(), ReactorError> {
        let update = self.change(
            reader_key(reactor),
            "SET #checkpoint = :to, #updatedAt = :at REMOVE #trying",
            "#lease = :lease",
            [
                (":to", place(to)),
                (":at", text(rfc3339(self.clock.now_ms()))),
                (":lease", number(lease)),
            ],
        );
        let sent = held(self.send(&update, None).await, "moving the checkpoint")?;
        sent.map(drop).ok_or_else(|| overtaken(reactor))
    }

    /// Notes which event the run with this lease handles next, by the place after it.
    pub(crate) async fn note_trying(
        &self,
        reactor: &str,
        lease: u64,
        event: Checkpoint,
    ) -> Result<(), ReactorError> {
        let update = self.change(
            reader_key(reactor),
            "SET #trying = :event",
            "#lease = :lease",
            [(":event", place(event)), (":lease", number(lease))],
        );
        let sent = held(self.send(&update, None).await, "noting what is handled next")?;
        sent.map(drop).ok_or_else(|| overtaken(reactor))
    }

    /// Gives the lease back; false if the bell has rung since it was taken, and then the run keeps it.
    pub(crate) async fn release(&self, reactor: &str, lease: u64) -> Result<bool, ReactorError> {
        let mine = [(":lease", number(lease))];
        let give = self.change(
            reader_key(reactor),
            "REMOVE #until, #owner, #trying",
            "#lease = :lease AND attribute_not_exists(#rung)",
            mine.clone(),
        );
        if held(self.send(&give, None).await, "giving the lease back")?.is_some() {
            return Ok(true);
        }
        let hear = self.change(reader_key(reactor), "REMOVE #rung", "#lease = :lease", mine);
        let heard = held(self.send(&hear, None).await, "hearing the bell")?;
        heard.map(|_| false).ok_or_else(|| overtaken(reactor))
    }

    /// The receipts of lanes. Strong reads.
    pub(crate) async fn receipts(
        &self,
        reactor: &str,
        lanes: &[BoundaryId],
    ) -> Result<Vec<Receipt>, ReactorError> {
        let keys: Vec<Item> = lanes.iter().map(|lane| lane_key(reactor, lane)).collect();
        let read = self.table.get_all(Retry::default(), keys.clone(), true);
        let items = read.await.map_err(failed("reading receipts"))?;
        let mut found = HashMap::new();
        for item in &items {
            found.insert(Receipt::id_of(item), Receipt::of(item)?);
        }
        Ok(keys
            .iter()
            .map(|key| found.get(&Receipt::id_of(key)).cloned().unwrap_or_default())
            .collect())
    }

    /// Writes the receipt that follows another one, which must be there as it was read.
    pub(crate) async fn write(
        &self,
        reactor: &str,
        lane: &BoundaryId,
        receipt: &Receipt,
    ) -> Result<(), ReactorError> {
        let put = self.receipt_put(reactor, lane, receipt);
        match Retry::default().run(|| self.table.put(put.clone())).await {
            Ok(()) => Ok(()),
            Err(GaveUp { failure: Failure::Condition(found), unknown, .. }) => {
                let found = found.as_ref().map(Receipt::of).transpose()?;
                // It is our own: the answer to an earlier send was lost.
                match unknown.is_some() && found.as_ref() == Some(receipt) {
                    true => Ok(()),
                    false => Err(overtaken(reactor)),
                }
            }
            Err(gave_up) => Err(failed("writing a receipt")(gave_up)),
        }
    }

    /// The put of a receipt after the one before it.
    pub(crate) fn receipt_put(&self, reactor: &str, lane: &BoundaryId, receipt: &Receipt) -> Put {
        let put = Put::builder()
            .table_name(self.table.name())
            .set_item(Some(receipt.to_item(lane_key(reactor, lane))))
            .expression_attribute_names("#v", "v")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match receipt.version - 1 {
            0 => put.condition_expression("attribute_not_exists(#v)"),
            was => put
                .condition_expression("#v = :was")
                .expression_attribute_values(":was", number(was)),
        };
        put.build().expect("table and item are set")
    }

    /// Sends a reactor back, for an operator. What is done stays done, because the receipts say so. With `again` they
    /// count for nothing, and each effect gets a key of its own. A run that is under way stops.
    ///
    /// # Errors
    /// [`ReactorError::HasParked`]; a request that fails for good or too often.
    pub async fn send_back(
        &self,
        reactor: &str,
        to: Checkpoint,
        again: bool,
    ) -> Result<(), ReactorError> {
        if !self.parked(reactor).await?.is_empty() {
            return Err(ReactorError::HasParked { reactor: reactor.to_owned() });
        }
        let from = self.standing(reactor).await?.checkpoint.unwrap_or_default();
        let update = self.change(
            reader_key(reactor),
            "SET #checkpoint = :to, #updatedAt = :at, #replayed = :from, #again = if_not_exists(#again, :zero) + :again, \
             #lease = if_not_exists(#lease, :zero) + :one REMOVE #until, #owner, #trying",
            "",
            [
                (":to", place(to)),
                (":from", place(from)),
                (":at", text(rfc3339(self.clock.now_ms()))),
                (":zero", number(0)),
                (":one", number(1)),
                (":again", number(u8::from(again))),
            ],
        );
        let send = || self.table.update(update.clone(), None);
        Retry::default().run(send).await.map(drop).map_err(failed("sending a reactor back"))
    }

    pub(crate) async fn send(
        &self,
        update: &Update,
        answer: Option<ReturnValue>,
    ) -> Result<Option<Item>, GaveUp> {
        Retry::default().run(|| self.table.update(update.clone(), answer.clone())).await
    }

    /// An update. The names in the expressions, which begin with `#`, are those of the attributes.
    pub(crate) fn change<const N: usize>(
        &self,
        key: Item,
        expression: &str,
        condition: &str,
        values: [(&str, AttributeValue); N],
    ) -> Update {
        let is_of_name = |c: char| c.is_ascii_alphanumeric();
        let parts = [expression, condition].into_iter().flat_map(|text| text.split('#').skip(1));
        let names = parts.map(|part| part.split(|c| !is_of_name(c)).next().unwrap_or_default());
        let names = names.map(|name| (format!("#{name}"), name.to_owned())).collect();
        let values = values.map(|(name, value)| (name.to_owned(), value));
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(key))
            .update_expression(expression)
            .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values.into()))
            .build()
            .expect("table, key and expression are set")
    }
}

pub(crate) fn overtaken(reactor: &str) -> ReactorError {
    ReactorError::Overtaken { reactor: reactor.to_owned() }
}

/// What an update has answered; `None` if its condition does not hold.
pub(crate) fn held(
    sent: Result<Option<Item>, GaveUp>,
    operation: &'static str,
) -> Result<Option<Item>, ReactorError> {
    match sent {
        Ok(item) => Ok(Some(item.unwrap_or_default())),
        Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(None),
        Err(gave_up) => Err(failed(operation)(gave_up)),
    }
}
