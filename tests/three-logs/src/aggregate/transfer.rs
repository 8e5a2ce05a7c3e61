//! Transfer: moves money from one account to another.

use ringfence::prelude::*;
use ringfence_aggregate_log::{AggregateError, AggregateSlice, GetEvents, Others, To};

use super::facts::history;
use super::{AccountEvent, Accounts};
use crate::account::{Account, AccountId, Refusal};

/// Moves money from one account to another.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct Transfer {
    /// Who pays.
    pub from: AccountId,
    /// Who is paid.
    pub to: AccountId,
    /// In cents; 0 changes nothing.
    pub amount: u32,
}

/// Both accounts.
pub struct State {
    from: Account,
    to: Account,
}

impl Slice for Transfer {
    const NAME: &'static str = "transfer";
    type Context = Accounts;
    type State = State;
    type Writes = To<AccountEvent>;
    type Rejection = Refusal;

    fn decide(
        &self,
        accounts: &State,
        _: &CommandContext,
    ) -> Result<Vec<To<AccountEvent>>, Refusal> {
        let Self { from, to, amount } = self.clone();
        if from == to {
            return Err(Refusal::SameAccount);
        }
        accounts.from.check_covers(amount)?;
        accounts.to.balance()?;
        if amount == 0 {
            return Ok(vec![]);
        }
        let withdrawn = AccountEvent::Withdrawn { amount };
        let deposited = AccountEvent::Deposited { amount };
        Ok(vec![withdrawn.into(), To::other(to, deposited)])
    }

    fn cases() -> Vec<Case<Self>> {
        let transfer = |from, to, amount| Transfer { from: id(from), to: id(to), amount };
        let both = || given([]).and_of("ada", history(&[100])).and_of("bob", history(&[]));
        let withdrawn = AccountEvent::Withdrawn { amount: 70 };
        let deposited = AccountEvent::Deposited { amount: 70 };
        let moved = [withdrawn.into(), To::other("bob", deposited)];
        let too_little = |balance| Refusal::TooLittle { balance };
        vec![
            both().when(transfer("ada", "bob", 70)).then(moved),
            both().when(transfer("ada", "bob", 101)).then_rejected(too_little(100)),
            both().when(transfer("eve", "bob", 1)).then_rejected(Refusal::NoAccount),
            both().when(transfer("ada", "eve", 1)).then_rejected(Refusal::NoAccount),
            both().when(transfer("ada", "ada", 1)).then_rejected(Refusal::SameAccount),
            both().when(transfer("ada", "bob", 0)).then_nothing(),
        ]
    }
}

impl AggregateSlice for Transfer {
    fn aggregate_id(&self) -> String {
        self.from.to_string()
    }

    async fn load<L: GetEvents>(
        &self,
        from: Account,
        others: &Others<'_, L, Accounts>,
    ) -> Result<State, AggregateError> {
        Ok(State { from, to: others.get(&self.to).await? })
    }
}
