//! A small context for the queue: a till takes two coins until it is emptied, so each answer depends on the order.

use ringfence_core::prelude::*;
use ringfence_core::{Event, id_type};
use ringfence_stack::{MemberList, Members, Visitor};
use serde::Serialize;

id_type!(TillId, "names a till");

/// The most coins in a till.
pub(crate) const COINS_MAX: usize = 2;

/// A coin is in a till.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CoinTaken {
    #[tag(partition)]
    till_id: TillId,
}

/// A till is empty again.
#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct TillEmptied {
    #[tag(partition)]
    till_id: TillId,
}

pub(crate) struct Tills;

impl Context for Tills {
    const NAME: &'static str = "tills";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [CoinTaken::SCHEMA, TillEmptied::SCHEMA])
    }
}

impl Members for Tills {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<TakeCoin>().slice::<EmptyTill>();
    }
}

/// Puts a coin into a till.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct TakeCoin {
    #[tag(partition)]
    pub(crate) till_id: TillId,
}

/// Empties a till.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct EmptyTill {
    #[tag(partition)]
    pub(crate) till_id: TillId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    CoinTaken,
    TillEmptied,
}

#[derive(Default)]
pub(crate) struct Till {
    coins: usize,
}

impl State for Till {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::CoinTaken => Self { coins: self.coins + 1 },
            Consumed::TillEmptied => Self { coins: 0 },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the till is full")]
    TillFull,
    #[error("the till is empty")]
    TillEmpty,
}

impl Slice for TakeCoin {
    const NAME: &'static str = "take-coin";
    type Context = Tills;
    type State = Till;
    type Writes = CoinTaken;
    type Rejection = Rejection;

    fn decide(&self, till: &Till, _: &CommandContext) -> Result<Vec<CoinTaken>, Rejection> {
        let Self { till_id } = self.clone();
        if till.coins < COINS_MAX {
            Ok(vec![CoinTaken { till_id }])
        } else {
            Err(Rejection::TillFull)
        }
    }
}

impl Slice for EmptyTill {
    const NAME: &'static str = "empty-till";
    type Context = Tills;
    type State = Till;
    type Writes = TillEmptied;
    type Rejection = Rejection;

    fn decide(&self, till: &Till, _: &CommandContext) -> Result<Vec<TillEmptied>, Rejection> {
        let Self { till_id } = self.clone();
        if till.coins > 0 { Ok(vec![TillEmptied { till_id }]) } else { Err(Rejection::TillEmpty) }
    }
}
