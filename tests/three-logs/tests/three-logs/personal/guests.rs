//! Guests who are greeted by name, on a log.

use ringfence_core::{Personal, id_type, prelude::*};
use ringfence_document_log::{AccessStrategy, Document, Encoding, Snapshot};

id_type!(GuestId, "names a guest");
id_type!(PersonId, "names a person");

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GuestNamed {
    #[tag(partition)]
    guest_id: GuestId,
    #[subject]
    #[tag(skip)]
    person_id: PersonId,
    name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GuestGreeted {
    #[tag(partition)]
    guest_id: GuestId,
    #[subject]
    #[tag(skip)]
    person_id: PersonId,
    name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Know {
    #[tag(partition)]
    pub(crate) guest_id: GuestId,
    #[subject]
    #[tag(skip)]
    pub(crate) person_id: PersonId,
    pub(crate) name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Greet {
    #[tag(partition)]
    pub(crate) guest_id: GuestId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    GuestNamed { person_id: PersonId, name: Personal<String> },
    GuestGreeted { name: Personal<String> },
}

#[ringfence::value]
#[derive(Clone, Debug, Default)]
pub(crate) struct Guest {
    named: Option<Named>,
    greeted: Option<Personal<String>>,
}

#[ringfence::value]
#[derive(Clone, Debug)]
struct Named {
    person_id: PersonId,
    name: Personal<String>,
}

impl State for Guest {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(1));
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::GuestNamed { person_id, name } => {
                Self { named: Some(Named { person_id, name }), ..self }
            }
            Consumed::GuestGreeted { name } => Self { greeted: Some(name), ..self },
        }
    }
}

impl Document for Guest {
    const ACCESS: AccessStrategy<Self> = AccessStrategy::Snapshot(Snapshot::named("Guest"));
    const ENCODING: Encoding = Encoding::Raw;
}

pub(crate) struct Guests;

impl Context for Guests {
    const NAME: &'static str = "guests";
    type Log = super::OfLog;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::of_streams(Self::NAME, [GuestNamed::SCHEMA, GuestGreeted::SCHEMA])
    }
}

impl Slice for Know {
    const NAME: &'static str = "know";
    type Context = Guests;
    type State = Guest;
    type Writes = GuestNamed;
    type Rejection = Never;

    fn decide(&self, _: &Guest, _: &CommandContext) -> Result<Vec<GuestNamed>, Never> {
        let Self { guest_id, person_id, name } = self.clone();
        Ok(vec![GuestNamed { guest_id, person_id, name }])
    }
}

impl Slice for Greet {
    const NAME: &'static str = "greet";
    type Context = Guests;
    type State = Guest;
    type Writes = GuestGreeted;
    type Rejection = Never;

    fn decide(&self, guest: &Guest, _: &CommandContext) -> Result<Vec<GuestGreeted>, Never> {
        let greeted = |Named { person_id, name }: Named| GuestGreeted {
            guest_id: self.guest_id.clone(),
            person_id,
            name,
        };
        Ok(guest.named.clone().into_iter().map(greeted).collect())
    }
}
