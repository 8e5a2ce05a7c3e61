//! react-in-order: carries out the commands of automations that have an order.
//!
//! These are slices that react to events lane by lane. One function feeds all of them from the index, as a reactor is
//! fed ([`Lanes`]). It carries out their commands itself, each under the key of its reaction, as the slice's own
//! function does. So an effect happens once, without a receipt, even if an event comes by the bus too.

mod automation;

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use futures::future::join_all;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_feed::Index;
use ringfence_lambda::{Call, Service, Variables};
use ringfence_reactors::{ANSWER_TIME, Lanes, ReactorTable};
use serde_json::Value;

pub use automation::{Automation, Ordered, OrderedSlice};

/// The function react-in-order. It serves the ordered automations of the stack.
pub struct ReactInOrder(Vec<Lanes<Automation>>);

/// The names of the tables of the logs, of the index and of the views.
pub struct Tables {
    /// The table of each log, by the variable that names it.
    logs: Vec<(&'static str, String)>,
    index: String,
    views: String,
}

impl Service for ReactInOrder {
    const NAME: &'static str = "react-in-order";
    const ANSWER_TIME: Duration = ANSWER_TIME;
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = Ordered;
    type Config = Tables;

    fn config(ordered: &Ordered, variables: &mut Variables) -> Tables {
        Tables {
            logs: variables.tables(&ordered.sources),
            index: variables.required("INDEX_TABLE"),
            views: variables.required("VIEW_TABLE"),
        }
    }

    async fn open(ordered: Ordered, tables: Tables) -> Result<Self, Error> {
        let client = ringfence_aws::client_from_env()?;
        ringfence_aws::open(&client).await;
        let index = Index::new(client.clone(), &tables.index, ordered.sources.clone());
        let table = ReactorTable::new(client.clone(), &tables.views, Clock::system());
        Ok(Self(lanes(&ordered, &client, &tables.logs, &index, &table)?))
    }

    /// An automation that fails does not stop the others.
    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let ran = join_all(self.0.iter().map(|lanes| lanes.answer(call.time))).await;
        ran.into_iter().find(Result::is_err).unwrap_or(Ok(Value::Null))
    }
}

/// The ordered automations, each with its lanes. The tables of the logs are named by their variables, such as
/// `EVENT_TABLE`.
///
/// # Errors
/// A slice can't be on its log.
pub fn lanes(
    ordered: &Ordered,
    client: &Client,
    logs: &[(&str, String)],
    index: &Index,
    table: &ReactorTable,
) -> Result<Vec<Lanes<Automation>>, Error> {
    let lanes = ordered.slices.iter().map(|slice| {
        let handler = Automation::open(slice, client, logs)?;
        Ok(Lanes { handler, index: index.clone(), table: table.clone() })
    });
    lanes.collect()
}
