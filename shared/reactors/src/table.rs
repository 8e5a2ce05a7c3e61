//! The requests for a reactor's items.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure, Update};
use ringfence_aws::{Clock, Failure, GaveUp, Item, Meter, Retry, Table};
use ringfence_core::{BoundaryId, rfc3339};
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

/// How often a receipt is tried, each time with all attempts of a request.
const RECEIPT_ROUNDS_MAX: u32 = 10;

/// The lease of a run, or of an operator for one write. Each write of the reactor's item raises the number, under the
/// condition that nobody else has raised it. So a late or second send of a write changes nothing.
#[derive(Debug)]
pub(crate) struct Lease {
    number: Cell<u64>,
    /// Names who has it, so that a write whose answer was lost is known.
    owner: String,
    /// Held by each request that raises the number or relies on it.
    pub(crate) one: Mutex<()>,
}

impl Lease {
    fn new(number: u64, owner: &str) -> Self {
        Self { number: Cell::new(number), owner: owner.to_owned(), one: Mutex::default() }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }
}

impl ReactorTable {
    /// The items in `table`. The client's own retries must be off.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>, clock: Clock) -> Self {
        Self { table: Table::new(client, table, &clock), clock, alone: Arc::default() }
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

    /// Takes the lease up to a time. A reactor that has never run begins at `first`. `standing` is as it was read;
    /// returns it as it was before the lease was taken. If another run has the lease, a notification is noted on the
    /// item, and that run looks once more before it ends.
    pub(crate) async fn take(
        &self,
        reactor: &str,
        mut standing: ReactorStanding,
        first: Checkpoint,
        until_ms: u64,
    ) -> Result<Option<(Lease, ReactorStanding)>, ReactorError> {
        let owner = self.clock.uuid().to_string();
        loop {
            let (at, now_ms) = (standing.checkpoint.unwrap_or(first), self.clock.now_ms());
            let lease = Lease::new(standing.lease, &owner);
            let taken = self.step(
                reactor,
                &lease,
                ", #until = :until, #checkpoint = :at, #updatedAt = if_not_exists(#updatedAt, :since) REMOVE #notified",
                "attribute_not_exists(#until) OR #until < :now",
                vec![
                    (":until", number(until_ms)),
                    (":at", place(at)),
                    (":since", text(rfc3339(now_ms))),
                    (":now", number(now_ms)),
                ],
                "taking the lease",
            );
            let Err(found) = taken.await? else { return Ok(Some((lease, standing))) };
            if found.until_ms.is_none_or(|until_ms| until_ms < now_ms) {
                standing = found;
                continue;
            }
            let notify = self.change(
                reader_key(reactor),
                "SET #notified = :notified",
                "#until >= :now AND #owner = :owner",
                [
                    (":notified", AttributeValue::Bool(true)),
                    (":now", number(now_ms)),
                    (":owner", text(found.owner.unwrap_or_default())),
                ],
            );
            if held(self.send(&notify).await, "notifying")? {
                return Ok(None);
            }
            // The lease was given back meanwhile.
            standing = self.standing(reactor).await?;
        }
    }

    /// Writes the reactor's item for the holder of the lease, and raises the number. If the number is another one, or
    /// `also` does not hold, returns the item that was found.
    async fn step(
        &self,
        reactor: &str,
        lease: &Lease,
        change: &str,
        also: &str,
        values: Vec<(&str, AttributeValue)>,
        operation: &'static str,
    ) -> Result<Result<(), ReactorStanding>, ReactorError> {
        let _one = lease.one.lock().await;
        let (was, next) = (lease.number(), lease.number() + 1);
        let own = [(":next", number(next)), (":mine", text(&lease.owner))];
        let (is_there, was) = match was {
            0 => ("attribute_not_exists(#lease)", None),
            was => ("#lease = :was", Some((":was", number(was)))),
        };
        let update = self.change(
            reader_key(reactor),
            &format!("SET #lease = :next, #owner = :mine{change}"),
            &if also.is_empty() { is_there.to_owned() } else { format!("{is_there} AND ({also})") },
            values.into_iter().chain(own).chain(was),
        );
        let found = match self.send(&update).await {
            Ok(()) => None,
            Err(GaveUp { failure: Failure::Condition(found), unknown, .. }) => {
                let found = found.as_ref().map(ReactorStanding::of).transpose()?;
                let found = found.unwrap_or_default();
                // It is our own: the answer to an earlier send was lost.
                let is_own = found.lease == next && found.owner.as_ref() == Some(&lease.owner);
                (unknown.is_none() || !is_own).then_some(found)
            }
            Err(gave_up) => return Err(failed(operation)(gave_up)),
        };
        if let Some(found) = found {
            return Ok(Err(found));
        }
        lease.number.set(next);
        Ok(Ok(()))
    }

    /// Moves the checkpoint of the run with this lease.
    pub(crate) async fn advance(
        &self,
        reactor: &str,
        lease: &Lease,
        to: Checkpoint,
    ) -> Result<(), ReactorError> {
        let change = ", #checkpoint = :to, #updatedAt = :at REMOVE #trying";
        let values = vec![(":to", place(to)), (":at", text(rfc3339(self.clock.now_ms())))];
        let moved = self.step(reactor, lease, change, "", values, "moving the checkpoint").await?;
        moved.map_err(|_| overtaken(reactor))
    }

    /// Notes the event that the run with this lease handles next, by the place after it.
    pub(crate) async fn note_trying(
        &self,
        reactor: &str,
        lease: &Lease,
        event: Checkpoint,
    ) -> Result<(), ReactorError> {
        let values = vec![(":event", place(event))];
        let operation = "noting what is handled next";
        let noted = self.step(reactor, lease, ", #trying = :event", "", values, operation).await?;
        noted.map_err(|_| overtaken(reactor))
    }

    /// Gives the lease back. Returns false if a notification came since it was taken; then the run keeps it.
    pub(crate) async fn release(&self, reactor: &str, lease: &Lease) -> Result<bool, ReactorError> {
        let (give, quiet) = (" REMOVE #until, #trying", "attribute_not_exists(#notified)");
        let given = self.step(reactor, lease, give, quiet, vec![], "giving the lease back").await?;
        if given.is_ok() {
            return Ok(true);
        }
        let heard =
            self.step(reactor, lease, " REMOVE #notified", "", vec![], "taking the notification");
        heard.await?.map(|()| false).map_err(|_| overtaken(reactor))
    }

    /// The receipts of lanes, each named once. Strong reads.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn receipts(
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
        let (mut sent_before, mut rounds) = (false, 0);
        loop {
            rounds += 1;
            let gave_up = match Retry::default().run(|| self.table.put(put.clone())).await {
                Ok(()) => return Ok(()),
                Err(gave_up) => gave_up,
            };
            sent_before |= gave_up.unknown.is_some();
            match gave_up.failure {
                Failure::Condition(found) => {
                    let found = found.as_ref().map(Receipt::of).transpose()?;
                    // It is our own: the answer to an earlier send was lost.
                    return match sent_before && found.as_ref() == Some(receipt) {
                        true => Ok(()),
                        false => Err(overtaken(reactor)),
                    };
                }
                // All receipts share a key. A run that ended here would leave its effect in doubt.
                Failure::Throttled { .. } if rounds < RECEIPT_ROUNDS_MAX => {
                    Retry::default().pause(rounds).await;
                }
                _ => return Err(failed("writing a receipt")(gave_up)),
            }
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

    /// Sends a reactor back, for an operator. Effects with receipts are not repeated. With `again` receipts do not
    /// count, and each effect gets a new key. A run that is under way stops.
    ///
    /// # Errors
    /// [`ReactorError::HasParked`]; a request that fails for good or too often.
    pub async fn send_back(
        &self,
        reactor: &str,
        to: Checkpoint,
        again: bool,
    ) -> Result<(), ReactorError> {
        let name = self.clock.uuid().to_string();
        loop {
            let standing = self.standing(reactor).await?;
            if !self.parked(reactor).await?.is_empty() {
                return Err(ReactorError::HasParked { reactor: reactor.to_owned() });
            }
            let lease = Lease::new(standing.lease, &name);
            let sent = self.step(
                reactor,
                &lease,
                ", #checkpoint = :to, #updatedAt = :at, #again = :again, #sentBack = :mine \
                 REMOVE #until, #trying",
                "",
                vec![
                    (":to", place(to)),
                    (":at", text(rfc3339(self.clock.now_ms()))),
                    (":again", number(standing.again + u32::from(again))),
                ],
                "sending a reactor back",
            );
            match sent.await? {
                // The answer was lost, and a run has gone on from there.
                Err(found) if found.sent_back.as_ref() == Some(&name) => return Ok(()),
                // A run has written since.
                Err(_) => {}
                Ok(()) => return Ok(()),
            }
        }
    }

    pub(crate) async fn send(&self, update: &Update) -> Result<(), GaveUp> {
        Retry::default().run(|| self.table.update(update.clone(), None)).await.map(drop)
    }

    /// An update under a condition. If it does not hold, the answer has the item.
    pub(crate) fn change<'v>(
        &self,
        key: Item,
        expression: &str,
        condition: &str,
        values: impl IntoIterator<Item = (&'v str, AttributeValue)>,
    ) -> Update {
        Update::builder()
            .table_name(self.table.name())
            .set_key(Some(key))
            .update_expression(expression)
            .condition_expression(condition)
            .set_expression_attribute_names(Some(names(&[expression, condition])))
            .set_expression_attribute_values(Some(named(values)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("table, key and expression are set")
    }
}

/// The names in expressions: each is an attribute after a `#`.
pub(crate) fn names(expressions: &[&str]) -> HashMap<String, String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric();
    let parts = expressions.iter().flat_map(|text| text.split('#').skip(1));
    let names = parts.map(|part| part.split(|c| !is_of_name(c)).next().unwrap_or_default());
    names.map(|name| (format!("#{name}"), name.to_owned())).collect()
}

pub(crate) fn named<'v>(values: impl IntoIterator<Item = (&'v str, AttributeValue)>) -> Item {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(crate) fn overtaken(reactor: &str) -> ReactorError {
    ReactorError::Overtaken { reactor: reactor.to_owned() }
}

/// Whether an update was carried out; false if its condition does not hold.
fn held(sent: Result<(), GaveUp>, operation: &'static str) -> Result<bool, ReactorError> {
    match sent {
        Ok(()) => Ok(true),
        Err(GaveUp { failure: Failure::Condition(_), .. }) => Ok(false),
        Err(gave_up) => Err(failed(operation)(gave_up)),
    }
}
