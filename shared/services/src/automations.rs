//! react-in-order: carries out the commands of automations that have an order.
//!
//! These are slices that react to events lane by lane. One function feeds all of them from the index, as a reactor is
//! fed ([`Lanes`]). It carries out their commands itself, each under the key of its reaction, as the slice's own
//! function does. So an effect happens once, without a receipt, even if an event comes by the bus too.

mod automation;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_core::LogKind;
use ringfence_feed::Index;
use ringfence_lambda::{Call, Service, Variables, VaultNames, vault as vault_of};
use ringfence_log::StackLogs;
use ringfence_reactors::{ANSWER_TIME, Lanes, ReactorTable};
use serde_json::Value;

pub use automation::{Automation, Ordered, OrderedSlice};

/// The function react-in-order. It serves the ordered automations of the stack.
pub struct ReactInOrder(Vec<Lanes<Automation>>);

/// The names of the tables of the logs, of the index and of the views.
pub struct Tables {
    logs: BTreeMap<LogKind, String>,
    index: String,
    views: String,
    vault: Option<VaultNames>,
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
            vault: variables.vault(ordered.is_personal),
        }
    }

    async fn open(ordered: Ordered, tables: Tables) -> Result<Self, Error> {
        let Tables { logs, index, views, vault } = tables;
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        ringfence_aws::open(&client, &clock).await;
        let table = ReactorTable::new(client.clone(), &views, clock.clone());
        let vault = vault_of(vault, &client, &clock).await?;
        let logs = StackLogs { client: client.clone(), clock, tables: logs, vault };
        let index = Index::new(client, &index, logs.bodies(&ordered.sources));
        Ok(Self(lanes(&ordered, &logs, &index, &table)?))
    }

    /// An automation that fails does not stop the others.
    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let ran = join_all(self.0.iter().map(|lanes| lanes.answer(call.time))).await;
        ran.into_iter().find(Result::is_err).unwrap_or(Ok(Value::Null))
    }
}

/// The ordered automations, each with its lanes.
///
/// # Errors
/// As [`StackLogs::open`].
pub fn lanes(
    ordered: &Ordered,
    logs: &StackLogs,
    index: &Index,
    table: &ReactorTable,
) -> Result<Vec<Lanes<Automation>>, Error> {
    let lanes = ordered.slices.iter().map(|slice| {
        let handler = Automation::open(slice, logs)?;
        Ok(Lanes { handler, index: index.clone(), table: table.clone() })
    });
    lanes.collect()
}
