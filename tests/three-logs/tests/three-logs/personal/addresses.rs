//! An address belongs to one guest. It is found by a blind tag, which only the DCB log has.

use ringfence_core::{Personal, id_type, prelude::*};
use ringfence_dcb_log::Dcb;

id_type!(OwnerId, "names the owner of an address");

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct AddressClaimed {
    #[tag(partition)]
    #[subject]
    owner_id: OwnerId,
    #[tag(cross_partition, blind, key = "email")]
    email: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Claim {
    #[tag(skip)]
    #[subject]
    pub(crate) owner_id: OwnerId,
    #[tag(cross_partition, blind, key = "email")]
    pub(crate) email: Personal<String>,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    AddressClaimed,
}

#[derive(Default)]
pub(crate) struct Taken(bool);

impl State for Taken {
    type Reads = Consumed;

    fn evolve(self, Consumed::AddressClaimed: Consumed) -> Self {
        Self(true)
    }
}

#[derive(Debug, PartialEq, serde::Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Refused {
    #[error("the address is taken")]
    Taken,
}

pub(crate) struct Addresses;

impl Context for Addresses {
    const NAME: &'static str = "addresses";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [AddressClaimed::SCHEMA])
    }
}

impl Slice for Claim {
    const NAME: &'static str = "claim";
    type Context = Addresses;
    type State = Taken;
    type Writes = AddressClaimed;
    type Rejection = Refused;

    fn decide(&self, taken: &Taken, _: &CommandContext) -> Result<Vec<AddressClaimed>, Refused> {
        let Self { owner_id, email } = self.clone();
        if taken.0 { Err(Refused::Taken) } else { Ok(vec![AddressClaimed { owner_id, email }]) }
    }
}
