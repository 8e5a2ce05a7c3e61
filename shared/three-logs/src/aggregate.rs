//! On the aggregate log: an event store, a command for each command.

use ringfence::Context;
use ringfence_aggregate_log::{AggregateLog, Command, CommandError, Decide, EventStore, Recorded};

use crate::account::{Account, AccountEvent, Act, Refusal, Transfer};

/// The accounts.
pub struct Accounts;

impl EventStore for Accounts {
    const ID: &'static str = "ACCOUNTS";
    type Event = AccountEvent;
    type Aggregate = Account;

    fn reduce(account: Option<Account>, event: &Recorded<AccountEvent>) -> Account {
        account.unwrap_or_default().evolve(&event.event)
    }
}

impl Decide for Act {
    const NAME: &'static str = "act";
    type Store = Accounts;
    type Rejection = Refusal;

    fn aggregate_id(&self) -> String {
        self.account_id.to_string()
    }

    fn decide(&self, account: Option<&Account>, _: &Context) -> Result<Vec<AccountEvent>, Refusal> {
        self.action.decide(&account.copied().unwrap_or_default())
    }
}

impl Command for Transfer {
    const NAME: &'static str = "transfer";
    type Rejection = Refusal;

    async fn handle<L: AggregateLog>(
        &self,
        log: &L,
        _: &Context,
    ) -> Result<(), CommandError<Refusal>> {
        let from = Accounts::get_aggregate(log, &self.from.to_string(), None).await?;
        let to = Accounts::get_aggregate(log, &self.to.to_string(), None).await?;
        let (payer, payee) = (from.state.unwrap_or_default(), to.state.unwrap_or_default());
        let facts = self.decide(&payer, &payee).map_err(CommandError::Rejected)?;
        let mut group = Vec::new();
        for fact in facts {
            let account = if fact.account == self.from { &from } else { &to };
            group.push(account.push([fact.event])?);
        }
        if !group.is_empty() {
            log.push_event_group(group).await?;
        }
        Ok(())
    }
}
