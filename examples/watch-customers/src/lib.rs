//! watch-customers: notes each new customer in its log, from the stream of a table that other programs write.
//!
//! The table has Castore's layout, and its programs may be Castore's own. `template.yaml` in this folder deploys the
//! function. It needs only the stream, which takes two readers. A record may come twice.

use std::time::Duration;

use customers::{CustomerId, Customers};
use lambda_runtime::{Diagnostic, Error};
use ringfence::function::{Call, Service, Variables, chain, delivered, records, sequence_number};
use ringfence::prelude::*;
use ringfence::stack::{Images, MemberList, Members, Stack, Visitor};
use serde_json::Value;

/// The contexts whose events the table has.
struct Watched;

impl Members for Watched {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Customers>();
    }
}

/// The parts of the events that are read.
#[derive(Reads)]
enum New {
    CustomerRegistered {
        #[stream]
        customer_id: CustomerId,
    },
}

/// The function.
pub struct WatchCustomers(Images<CustomerId>);

impl Service for WatchCustomers {
    const NAME: &'static str = "watch-customers";
    const ANSWER_TIME: Duration = Duration::from_secs(1);
    const TIME_DEFAULT: Duration = Duration::from_secs(8);
    type Of = ();
    type Config = ();

    fn config((): &(), _: &mut Variables) {}

    async fn open((): (), (): ()) -> Result<Self, Error> {
        let images = Stack::of::<Watched>()?.images();
        Ok(Self(images.of::<Customers, _>(|New::CustomerRegistered { customer_id }| customer_id)))
    }

    /// Ends at the first record that can't be read. Lambda delivers it again, and keeps it after the last try.
    async fn answer(&self, mut call: Call) -> Result<Value, Diagnostic> {
        for record in records(&mut call.payload)? {
            for read in self.0.read(&record) {
                match read {
                    Ok((event, customer)) => {
                        tracing::info!(%customer, event = event.id(), "a new customer");
                    }
                    Err(error) => {
                        tracing::error!(error = chain(&error), "a record can't be read");
                        return Ok(delivered([sequence_number(&record)]));
                    }
                }
            }
        }
        Ok(delivered([]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_sample_is_read_and_a_record_that_cant_be_read_is_delivered_again() {
        let function = WatchCustomers::open((), ()).await.expect("no context contradicts another");
        let mut sample: Value = serde_json::from_str(include_str!("../event.json")).expect("JSON");
        let read = function.0.read(&sample["Records"][0]);
        assert_eq!(read[0].as_ref().expect("an event").1.to_string(), "customer-1");
        let call = |payload: &Value| {
            let (request_id, function) = (String::new(), String::new());
            Call { payload: payload.clone(), request_id, function, time: Duration::ZERO }
        };
        assert_eq!(function.answer(call(&sample)).await.expect("an answer"), delivered([]));
        sample["Records"][0]["dynamodb"]["NewImage"]["aggregateId"]["S"] = "orders#1".into();
        let number = sequence_number(&sample["Records"][0]);
        assert_eq!(function.answer(call(&sample)).await.expect("an answer"), delivered([number]));
    }
}
