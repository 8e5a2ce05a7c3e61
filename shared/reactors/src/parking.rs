//! The requests that change which lanes are parked, and what a person asks for.
//!
//! A person asks beside the run that has the lease, and means one event. So a request of the run that would remove what a
//! person has asked for has the condition that nobody has asked since the run has read the lane.

use aws_sdk_dynamodb::types::{
    ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use ringfence::BoundaryId;
use ringfence_dynamo::{Failure, GaveUp, Item, Reason, Retry};

use crate::error::{ReactorError, failed};
use crate::item::{ParkedLane, Receipt, Unpark, number, parked_key, reader_key, text};
use crate::table::{ReactorTable, held, overtaken};

impl ReactorTable {
    /// Notes that a lane waits or is parked, if the run still has its lease. `asking` names what a person had asked for when
    /// the run read the lane. If a person has asked since, and means the event for which the lane waits now, that stays.
    /// Returns the lane as it is noted.
    pub(crate) async fn park(
        &self,
        reactor: &str,
        lease: u64,
        mut lane: ParkedLane,
        mut asking: Option<String>,
    ) -> Result<ParkedLane, ReactorError> {
        loop {
            let put = self.lane_put(reactor, &lane, asking.as_deref());
            let refused = self.under_lease(reactor, lease, vec![put], "parking a lane").await?;
            let Some((_, found)) = refused else { return Ok(lane) };
            let found = found.as_ref().map(ParkedLane::of).transpose()?;
            asking = found.as_ref().and_then(|found| found.asking.clone());
            let is_meant = |found: &ParkedLane| found.event == lane.event && lane.from < lane.place;
            if let Some(found) = found.filter(is_meant) {
                (lane.asked, lane.asking) = (found.asked, found.asking);
            }
        }
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
        let delete = TransactWriteItem::builder().delete(delete).build();
        let operation = "ending the wait of a lane";
        self.under_lease(reactor, lease, vec![delete], operation).await.map(drop)
    }

    /// Passes over the event that failed: the reason is kept, the receipt says that the event is done, and the lane goes on
    /// after it. All of it happens, or nothing. `skipped` is the lane afterwards. Returns false if a person has asked for
    /// something else since the run has read the lane.
    pub(crate) async fn skip(
        &self,
        reactor: &str,
        lease: u64,
        lane: &ParkedLane,
        why: &str,
        (skipped, receipt): (&ParkedLane, Option<&Receipt>),
    ) -> Result<bool, ReactorError> {
        let note = lane.skipped_item(reactor, why, self.clock.now_ms());
        let note = Put::builder().table_name(self.table.name()).set_item(Some(note));
        let mut puts = vec![note.build().expect("table and item are set")];
        puts.extend(receipt.map(|receipt| self.receipt_put(reactor, &lane.lane, receipt)));
        let puts = puts.into_iter().map(|put| TransactWriteItem::builder().put(put).build());
        let change = self.lane_put(reactor, skipped, lane.asking.as_deref());
        let actions = [change].into_iter().chain(puts).collect();
        match self.under_lease(reactor, lease, actions, "skipping an event").await? {
            None => Ok(true),
            Some((0, _)) => Ok(false),
            Some(_) => Err(overtaken(reactor)),
        }
    }

    /// A lane as it is now, if what a person has asked for is still this.
    fn lane_put(
        &self,
        reactor: &str,
        lane: &ParkedLane,
        asking: Option<&str>,
    ) -> TransactWriteItem {
        let put = Put::builder()
            .table_name(self.table.name())
            .set_item(Some(lane.to_item(reactor)))
            .expression_attribute_names("#asked", "asked")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match asking {
            None => put.condition_expression("attribute_not_exists(#asked)"),
            Some(asking) => put
                .condition_expression("#asked = :asked")
                .expression_attribute_values(":asked", text(asking)),
        };
        let put = put.build().expect("table and item are set");
        TransactWriteItem::builder().put(put).build()
    }

    /// Changes which lanes are parked. A run that was overtaken must not, because the new run goes by what it has read.
    /// Returns the first action whose condition does not hold, from 0, with the item that is there.
    async fn under_lease(
        &self,
        reactor: &str,
        lease: u64,
        actions: Vec<TransactWriteItem>,
        operation: &'static str,
    ) -> Result<Option<(usize, Option<Item>)>, ReactorError> {
        let check = ConditionCheck::builder()
            .table_name(self.table.name())
            .set_key(Some(reader_key(reactor)))
            .condition_expression("#lease = :lease")
            .expression_attribute_names("#lease", "lease")
            .expression_attribute_values(":lease", number(lease))
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

    /// Notes what a person wants of the event for which a lane waits, in place of what was asked for before. The reactor's
    /// next run does it: it is the one writer of its lanes.
    ///
    /// # Errors
    /// [`ReactorError::NotParked`], also if the lane waits for another event by now; a request that fails for good or too
    /// often.
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
        let update = self.change(
            parked_key(reactor, lane),
            "SET #ask = :ask, #why = :why, #asked = :asked",
            // A lane that goes on has its event no more.
            "#event = :event AND #from < #place",
            [
                (":ask", text(word)),
                (":why", text(why)),
                (":asked", text(self.clock.uuid().to_string())),
                (":event", text(event)),
            ],
        );
        let sent = held(self.send(&update, None).await, "asking for a lane")?;
        sent.map(drop).ok_or_else(|| ReactorError::NotParked {
            reactor: reactor.to_owned(),
            lane: lane.to_string(),
            event: event.to_owned(),
        })
    }
}
