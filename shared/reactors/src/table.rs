//! The requests for a reactor's items.

use std::collections::HashMap;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValue, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use ringfence::{BoundaryId, rfc3339};
use ringfence_dynamo::{Clock, Failure, GaveUp, Item, Meter, Reason, Retry, Table};
use ringfence_feed::Checkpoint;

use crate::error::{ReactorError, failed};
use crate::item::{
    ID, PARKED, ParkedLane, REACTOR, ReactorStanding, Receipt, Unpark, VIEW, lane_key, number,
    parked_key, place, reader_key, text,
};

/// The items of reactors, in the table of the views.
#[derive(Clone, Debug)]
pub struct ReactorTable {
    table: Table,
    pub(crate) clock: Clock,
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
        Self { table: Table::new(client, table), clock }
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
            "SET #checkpoint = :to, #updatedAt = :at",
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

    /// Gives the lease back; false if the bell has rung since it was taken, and then the run keeps it.
    pub(crate) async fn release(&self, reactor: &str, lease: u64) -> Result<bool, ReactorError> {
        let mine = [(":lease", number(lease))];
        let give = self.change(
            reader_key(reactor),
            "REMOVE #until, #owner",
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
        let was = receipt.version - 1;
        let put = Put::builder()
            .table_name(self.table.name())
            .set_item(Some(receipt.to_item(lane_key(reactor, lane))))
            .expression_attribute_names("#v", "v")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match was {
            0 => put.condition_expression("attribute_not_exists(#v)"),
            was => put
                .condition_expression("#v = :was")
                .expression_attribute_values(":was", number(was)),
        };
        let put = put.build().expect("table and item are set");
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

    /// Notes that a lane waits or is parked, if the run still has its lease.
    pub(crate) async fn park(
        &self,
        reactor: &str,
        lease: u64,
        lane: &ParkedLane,
    ) -> Result<(), ReactorError> {
        let put =
            Put::builder().table_name(self.table.name()).set_item(Some(lane.to_item(reactor)));
        let put = put.build().expect("table and item are set");
        let action = TransactWriteItem::builder().put(put).build();
        self.under_lease(reactor, lease, action, "parking a lane").await
    }

    /// A parked lane has caught up.
    pub(crate) async fn unpark(
        &self,
        reactor: &str,
        lease: u64,
        lane: &BoundaryId,
    ) -> Result<(), ReactorError> {
        let delete = Delete::builder()
            .table_name(self.table.name())
            .set_key(Some(parked_key(reactor, lane)))
            .build()
            .expect("table and key are set");
        let action = TransactWriteItem::builder().delete(delete).build();
        self.under_lease(reactor, lease, action, "ending the wait of a lane").await
    }

    /// Keeps what a person has passed over, and why.
    pub(crate) async fn note_skipped(
        &self,
        reactor: &str,
        lease: u64,
        lane: &ParkedLane,
        why: &str,
    ) -> Result<(), ReactorError> {
        let note = lane.skipped_item(reactor, why, self.clock.now_ms());
        let put = Put::builder().table_name(self.table.name()).set_item(Some(note));
        let action = TransactWriteItem::builder().put(put.build().expect("table and item are set"));
        self.under_lease(reactor, lease, action.build(), "noting what is skipped").await
    }

    /// Changes which lanes are parked. A run that was overtaken must not, because the new run goes by what it has read.
    async fn under_lease(
        &self,
        reactor: &str,
        lease: u64,
        action: TransactWriteItem,
        operation: &'static str,
    ) -> Result<(), ReactorError> {
        let check = ConditionCheck::builder()
            .table_name(self.table.name())
            .set_key(Some(reader_key(reactor)))
            .condition_expression("#lease = :lease")
            .expression_attribute_names("#lease", "lease")
            .expression_attribute_values(":lease", number(lease))
            .build()
            .expect("table, key and condition are set");
        let check = TransactWriteItem::builder().condition_check(check).build();
        let token = self.clock.uuid().to_string();
        let send = || self.table.transact(vec![check.clone(), action.clone()], &token);
        match Retry::default().run(send).await {
            Ok(()) => Ok(()),
            Err(GaveUp { failure: Failure::Cancelled(reasons), .. })
                if matches!(reasons.first(), Some(Reason::Condition(_))) =>
            {
                Err(overtaken(reactor))
            }
            Err(gave_up) => Err(failed(operation)(gave_up)),
        }
    }

    /// Notes what a person wants of a parked lane. The reactor's next run does it: it is the one writer of its lanes.
    ///
    /// # Errors
    /// [`ReactorError::NotParked`]; a request that fails for good or too often.
    pub async fn ask(
        &self,
        reactor: &str,
        lane: &BoundaryId,
        ask: &Unpark,
    ) -> Result<(), ReactorError> {
        let (word, why) = match ask {
            Unpark::Retry => ("retry", ""),
            Unpark::Skip(why) => ("skip", &**why),
        };
        let update = self.change(
            parked_key(reactor, lane),
            "SET #ask = :ask, #why = :why",
            "attribute_exists(#place)",
            [(":ask", text(word)), (":why", text(why))],
        );
        let sent = held(self.send(&update, None).await, "asking for a lane")?;
        let lane = lane.to_string();
        sent.map(drop).ok_or_else(|| ReactorError::NotParked { reactor: reactor.to_owned(), lane })
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
             #lease = if_not_exists(#lease, :zero) + :one REMOVE #until, #owner",
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

    async fn send(
        &self,
        update: &Update,
        answer: Option<ReturnValue>,
    ) -> Result<Option<Item>, GaveUp> {
        Retry::default().run(|| self.table.update(update.clone(), answer.clone())).await
    }

    /// An update. The names in the expressions, which begin with `#`, are those of the attributes.
    fn change<const N: usize>(
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

fn overtaken(reactor: &str) -> ReactorError {
    ReactorError::Overtaken { reactor: reactor.to_owned() }
}

/// What an update has answered; `None` if its condition does not hold.
fn held(
    sent: Result<Option<Item>, GaveUp>,
    operation: &'static str,
) -> Result<Option<Item>, ReactorError> {
    match sent {
        Ok(item) => Ok(Some(item.unwrap_or_default())),
        Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(None),
        Err(gave_up) => Err(failed(operation)(gave_up)),
    }
}
