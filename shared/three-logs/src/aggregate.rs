//! On the aggregate log: an event store, a command for each command.

use ringfence::Context;
use ringfence_aggregate_log::{
    Aggregate, Command, CommandError, Decide, Decision, EventStore, GetEvents, Recorded,
};

use crate::account::{Account, AccountEvent, Act, Fact, Refusal, Transfer};

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
    type Store = Accounts;
    type Rejection = Refusal;

    fn aggregate_id(&self) -> String {
        self.from.to_string()
    }

    async fn handle<L: GetEvents>(
        &self,
        from: Aggregate<Accounts>,
        log: &L,
        _: &Context,
    ) -> Result<Decision<AccountEvent>, CommandError<Refusal>> {
        let to = Accounts::get_aggregate(log, &self.to.to_string(), None).await?;
        let (payer, payee) = (from.state.unwrap_or_default(), to.state.unwrap_or_default());
        let facts = self.decide(&payer, &payee).map_err(CommandError::Rejected)?;
        let (sent, received): (Vec<_>, Vec<_>) =
            facts.into_iter().partition(|fact| fact.account == self.from);
        let events = |facts: Vec<Fact>| facts.into_iter().map(|fact| fact.event);
        Ok(Decision::of(events(sent)).and(to.push(events(received))?))
    }
}
