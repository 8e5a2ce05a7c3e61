//! The rules of accounts as data, which knows no log.

use ringfence::kit::id;
use ringfence_three_logs::account::{AccountEvent, Act, Action, Fact, Refusal, Transfer};

/// Facts, a command, and what follows.
pub(crate) struct Case<C> {
    pub(crate) name: &'static str,
    pub(crate) given: Vec<Fact>,
    pub(crate) when: C,
    pub(crate) then: Result<Vec<Fact>, Refusal>,
}

pub(crate) fn opened(account: &str) -> Fact {
    Fact { account: id(account), event: AccountEvent::AccountOpened }
}

pub(crate) fn deposited(account: &str, amount: u32) -> Fact {
    Fact { account: id(account), event: AccountEvent::MoneyDeposited { amount } }
}

fn withdrawn(account: &str, amount: u32) -> Fact {
    Fact { account: id(account), event: AccountEvent::MoneyWithdrawn { amount } }
}

pub(crate) fn act(account: &str, action: Action) -> Act {
    Act { account_id: id(account), action }
}

pub(crate) fn transfer(from: &str, to: &str, amount: u32) -> Transfer {
    Transfer { from: id(from), to: id(to), amount }
}

/// What concerns one account.
pub(crate) fn of_one() -> Vec<Case<Act>> {
    let case = |name, given: &[Fact], action, then| Case {
        name,
        given: given.to_vec(),
        when: act("ada", action),
        then,
    };
    let rich = [opened("ada"), deposited("ada", 100)];
    let spent = [opened("ada"), deposited("ada", 100), withdrawn("ada", 60)];
    let too_little = |balance| Err(Refusal::TooLittle { balance });
    vec![
        case("an account is opened", &[], Action::Open, Ok(vec![opened("ada")])),
        case("once", &rich, Action::Open, Ok(vec![])),
        case("before any deposit", &[], Action::Deposit(1), Err(Refusal::NoAccount)),
        case("money comes", &rich, Action::Deposit(5), Ok(vec![deposited("ada", 5)])),
        case("nothing comes", &rich, Action::Deposit(0), Ok(vec![])),
        case("all of it goes", &rich, Action::Withdraw(100), Ok(vec![withdrawn("ada", 100)])),
        case("and no more", &rich, Action::Withdraw(101), too_little(100)),
        case("what is left goes", &spent, Action::Withdraw(40), Ok(vec![withdrawn("ada", 40)])),
        case("what is gone does not", &spent, Action::Withdraw(41), too_little(40)),
    ]
}

/// What concerns two.
pub(crate) fn of_two() -> Vec<Case<Transfer>> {
    let case = |name, given: &[Fact], when, then| Case { name, given: given.to_vec(), when, then };
    let both = [opened("ada"), deposited("ada", 100), opened("bob")];
    let sent = Ok(vec![withdrawn("ada", 70), deposited("bob", 70)]);
    let too_little = Err(Refusal::TooLittle { balance: 100 });
    let missing = || Err(Refusal::NoAccount);
    vec![
        case("money goes over", &both, transfer("ada", "bob", 70), sent),
        case("as much as there is", &both, transfer("ada", "bob", 101), too_little),
        case("from an account", &both, transfer("eve", "bob", 1), missing()),
        case("to an account", &both, transfer("ada", "eve", 1), missing()),
        case("to another", &both, transfer("ada", "ada", 1), Err(Refusal::SameAccount)),
        case("nothing goes over", &both, transfer("ada", "bob", 0), Ok(vec![])),
    ]
}
