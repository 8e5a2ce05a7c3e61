//! Requests to the table that park lanes, free them, and note what a person asks for.
//!
//! A person may ask while a run has the lease, and means one event. So if a write of the run would remove a person's
//! request, it has the condition that nobody has asked since the run read the lane. A person's write has the condition
//! that the lane is as it was read, so a late one does not replace a newer one.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem,
};
use ringfence_aws::{Failure, GaveUp, Item, Reason, Retry};
use ringfence_core::BoundaryId;
use ringfence_feed::Checkpoint;

use crate::error::{ReactorError, failed};
use crate::item::{
    ParkedLane, Receipt, Unpark, number, parked_key, place, reader_key, skipped, skipped_key, text,
};
use crate::table::{Lease, ReactorTable, named, names, overtaken};

/// A lane is as it was read, apart from a person's request.
const IS_AS_READ: &str = "#from = :from AND #at = :failed";

fn as_read(lane: &ParkedLane) -> [(&'static str, AttributeValue); 2] {
    [(":from", place(lane.from)), (":failed", number(lane.at_ms))]
}

/// Nobody has asked since the lane was read.
fn is_asked(lane: &ParkedLane) -> (&'static str, Option<(&'static str, AttributeValue)>) {
    match &lane.asking {
        None => ("attribute_not_exists(#asked)", None),
        Some(asking) => ("#asked = :was", Some((":was", text(asking)))),
    }
}

impl ReactorTable {
    /// Which of the events at these places, each after its event, a person has skipped, and why. The read is eventually
    /// consistent, half a read unit for each place.
    ///
    /// # Errors
    /// A request that fails for good or too often.
    pub async fn skipped(
        &self,
        reactor: &str,
        places: &[Checkpoint],
    ) -> Result<BTreeMap<Checkpoint, String>, ReactorError> {
        let keys = places.iter().map(|place| skipped_key(reactor, *place)).collect();
        let items = self.table.get_all(Retry::default(), keys, false).await;
        let items = items.map_err(failed("reading skipped events"))?;
        Ok(items.iter().filter_map(skipped).collect())
    }

    /// Notes that a lane waits or is parked, if the run still has its lease. `was` is the lane as the run knows it. If
    /// a person has asked since, and means the event for which the lane waits now, that stays. Returns the lane as it
    /// is noted.
    pub(crate) async fn park(
        &self,
        reactor: &str,
        lease: &Lease,
        mut lane: ParkedLane,
        mut was: Option<ParkedLane>,
    ) -> Result<ParkedLane, ReactorError> {
        loop {
            let put = self.lane_put(reactor, &lane, was.as_ref());
            let refused = self.under_lease(reactor, lease, vec![put], "parking a lane").await?;
            let Some((_, found)) = refused else { return Ok(lane) };
            was = found.as_ref().map(ParkedLane::of).transpose()?;
            let is_meant =
                |found: &&ParkedLane| found.event == lane.event && lane.from < lane.place;
            if let Some(found) = was.as_ref().filter(is_meant) {
                (lane.asked, lane.asking) = (found.asked.clone(), found.asking.clone());
            }
        }
    }

    /// A parked lane has caught up.
    pub(crate) async fn unpark(
        &self,
        reactor: &str,
        lease: &Lease,
        lane: &ParkedLane,
    ) -> Result<(), ReactorError> {
        let delete = Delete::builder()
            .table_name(self.table.name())
            .set_key(Some(parked_key(reactor, &lane.lane)))
            // A person may have asked meanwhile, for an event that is done.
            .condition_expression(IS_AS_READ)
            .set_expression_attribute_names(Some(names(&[IS_AS_READ])))
            .set_expression_attribute_values(Some(named(as_read(lane))))
            .build()
            .expect("table and key are set");
        let delete = TransactWriteItem::builder().delete(delete).build();
        let operation = "ending the wait of a lane";
        match self.under_lease(reactor, lease, vec![delete], operation).await? {
            None | Some((_, None)) => Ok(()),
            Some(_) => Err(overtaken(reactor)),
        }
    }

    /// Skips the event that failed, in one transaction: the reason is kept, the receipt says that the event is done,
    /// and the lane goes on after it. `skipped` is the lane afterwards. Returns false if a person has asked for
    /// something else since the run has read the lane.
    pub(crate) async fn skip(
        &self,
        reactor: &str,
        lease: &Lease,
        lane: &ParkedLane,
        why: &str,
        (skipped, receipt): (&ParkedLane, Option<&Receipt>),
    ) -> Result<bool, ReactorError> {
        let note = lane.skipped_item(reactor, why, self.clock.now_ms());
        let note = Put::builder().table_name(self.table.name()).set_item(Some(note));
        let mut puts = vec![note.build().expect("table and item are set")];
        puts.extend(receipt.map(|receipt| self.receipt_put(reactor, &lane.lane, receipt)));
        let puts = puts.into_iter().map(|put| TransactWriteItem::builder().put(put).build());
        let change = self.lane_put(reactor, skipped, Some(lane));
        let actions = [change].into_iter().chain(puts).collect();
        match self.under_lease(reactor, lease, actions, "skipping an event").await? {
            None => Ok(true),
            Some((0, _)) => Ok(false),
            Some(_) => Err(overtaken(reactor)),
        }
    }

    /// A put of a lane as it is now, if the lane and a person's request are as they were.
    fn lane_put(
        &self,
        reactor: &str,
        lane: &ParkedLane,
        was: Option<&ParkedLane>,
    ) -> TransactWriteItem {
        let (condition, values) = match was {
            None => ("attribute_not_exists(#at)".to_owned(), None),
            Some(was) => {
                let (is_asked, asking) = is_asked(was);
                let values = as_read(was).into_iter().chain(asking);
                (format!("{IS_AS_READ} AND {is_asked}"), Some(named(values)))
            }
        };
        let put = Put::builder()
            .table_name(self.table.name())
            .set_item(Some(lane.to_item(reactor)))
            .set_expression_attribute_names(Some(names(&[&condition])))
            .set_expression_attribute_values(values)
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = put.build().expect("table and item are set");
        TransactWriteItem::builder().put(put).build()
    }

    /// Changes which lanes are parked. A run that was overtaken must not do so, because the new run relies on what it
    /// has read. Returns the first action whose condition does not hold, from 0, with the item that is there.
    async fn under_lease(
        &self,
        reactor: &str,
        lease: &Lease,
        actions: Vec<TransactWriteItem>,
        operation: &'static str,
    ) -> Result<Option<(usize, Option<Item>)>, ReactorError> {
        // Two at once would refuse each other, because both have the reactor's item.
        let _one = lease.one.lock().await;
        let check = ConditionCheck::builder()
            .table_name(self.table.name())
            .set_key(Some(reader_key(reactor)))
            .condition_expression("#lease = :lease")
            .expression_attribute_names("#lease", "lease")
            .expression_attribute_values(":lease", number(lease.number()))
            .build()
            .expect("table, key and condition are set");
        let check = TransactWriteItem::builder().condition_check(check).build();
        let actions: Vec<_> = [check].into_iter().chain(actions).collect();
        let token = self.clock.uuid().to_string();
        let gave_up =
            match Retry::default().run(|| self.table.transact(actions.clone(), &token)).await {
                Ok(()) => return Ok(None),
                Err(gave_up) => gave_up,
            };
        if let GaveUp { failure: Failure::Cancelled(reasons), .. } = &gave_up {
            let refused = reasons.iter().enumerate().find_map(|(n, reason)| match reason {
                Reason::Condition(found) => Some((n, found.clone())),
                _ => None,
            });
            if let Some((n, found)) = refused {
                let n = n.checked_sub(1).ok_or_else(|| overtaken(reactor))?;
                return Ok(Some((n, found)));
            }
        }
        Err(failed(operation)(gave_up))
    }

    /// Notes a person's request about the event for which a lane waits, in place of an earlier request. The reactor's
    /// next run carries it out, because only runs change lanes.
    ///
    /// # Errors
    /// [`ReactorError::NotParked`], also if the lane waits for another event by now; [`ReactorError::AskedSince`]; a
    /// request that fails for good or too often.
    pub async fn ask(
        &self,
        reactor: &str,
        lane: &BoundaryId,
        event: &str,
        ask: &Unpark,
    ) -> Result<(), ReactorError> {
        let (word, why) = match ask {
            Unpark::Retry => ("retry", ""),
            Unpark::Skip(why) => ("skip", &**why),
        };
        let (key, own) = (parked_key(reactor, lane), self.clock.uuid().to_string());
        let of = || (reactor.to_owned(), lane.to_string(), event.to_owned());
        loop {
            let get = || self.table.get(key.clone(), true);
            let found = Retry::default().run(get).await.map_err(failed("reading a lane"))?;
            let waits = found.as_ref().map(ParkedLane::of).transpose()?;
            // A lane that goes on no longer waits for its event.
            let waits = waits.filter(|waits| waits.event == event && waits.from < waits.place);
            let waits = waits.ok_or_else(|| {
                let (reactor, lane, event) = of();
                ReactorError::NotParked { reactor, lane, event }
            })?;
            let (is_asked, asking) = is_asked(&waits);
            let asked = [(":ask", text(word)), (":why", text(why)), (":asked", text(own.clone()))];
            let update = self.change(
                key.clone(),
                "SET #ask = :ask, #why = :why, #asked = :asked",
                &format!("{IS_AS_READ} AND {is_asked}"),
                asked.into_iter().chain(as_read(&waits)).chain(asking),
            );
            let Err(gave_up) = self.send(&update).await else { return Ok(()) };
            let GaveUp { failure: Failure::Condition(found), unknown, .. } = gave_up else {
                return Err(failed("asking for a lane")(gave_up));
            };
            let found = found.as_ref().map(ParkedLane::of).transpose()?;
            if found.is_some_and(|found| found.asking.as_ref() == Some(&own)) {
                return Ok(());
            }
            if unknown.is_some() {
                let (reactor, lane, event) = of();
                return Err(ReactorError::AskedSince { reactor, lane, event });
            }
        }
    }
}
