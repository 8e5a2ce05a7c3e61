//! query-views: serves rows of the views over HTTP and by direct invoke.
//!
//! `GET /<view>/<id>` is one row, `GET /<view>` a page of rows. With the `partition` and `slot` of
//! an event, as a command's answer names them, the answer shows that event or says how far the view has
//! come.

mod answer;
mod ask;
mod caller;

use std::time::Duration;

use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::Clock;
use ringfence_feed::Index;
use ringfence_lambda::{Call, Issuers, Service, Variables, VaultNames, vault as vault_of};
use serde_json::Value;

use crate::read::ViewReader;
use crate::view::Definition;

pub use answer::{Answered, answer, failed, found, within};
pub use ask::{Ask, Asked, WAIT_DEFAULT_MS, WAIT_MAX_MS, token};

/// The function. It serves the views of the stack.
pub struct QueryViews {
    reader: ViewReader,
    issuers: Issuers,
    clock: Clock,
}

impl Service for QueryViews {
    const NAME: &'static str = "query-views";
    // The read after a wait is in it.
    const ANSWER_TIME: Duration = Duration::from_secs(1);
    const TIME_DEFAULT: Duration = Duration::from_millis(WAIT_MAX_MS);
    type Of = Vec<Definition>;
    /// The names of the index's table and of the views' table, the issuers of tokens that have aliases, and the vault.
    type Config = (String, String, Issuers, Option<VaultNames>);

    fn config(views: &Self::Of, variables: &mut Variables) -> Self::Config {
        let (index, table) = (variables.required("INDEX_TABLE"), variables.required("VIEW_TABLE"));
        let issuers = variables.optional("JWT_ISSUERS", Issuers::default());
        (index, table, issuers, variables.vault(views.iter().any(Definition::is_personal)))
    }

    async fn open(
        views: Vec<Definition>,
        (index, table, issuers, vault): Self::Config,
    ) -> Result<Self, Error> {
        let (client, clock) = (ringfence_aws::client_from_env()?, Clock::system());
        ringfence_aws::open(&client, &clock).await;
        let vault = vault_of(vault, &client, &clock).await?;
        let index = Index::new(client.clone(), index, []);
        let reader = ViewReader::new(client, index, table, &views);
        Ok(Self { reader: reader.with_vault(vault.map(|vault| vault as _)), issuers, clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let began = self.clock.begin();
        let Call { payload, request_id, time, .. } = &call;
        let answered = answer(&self.reader, &self.issuers, payload, request_id, *time).await;
        answered.line(&call, self.clock.now_ms(), began.lasted_ms(&self.clock)).write();
        Ok(answered.answer)
    }
}
