//! Guests who are greeted by name, on a log.

use ringfence_core::{Personal, id_type, prelude::*};
use ringfence_document_log::{AccessStrategy, Document, Encoding, Snapshot};

id_type!(GuestId, "names a guest");

#[derive(Clone, Debug, PartialEq, Event)]
struct GuestNamed {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct GuestGreeted {
    #[tag(partition)]
    #[subject]
    guest_id: GuestId,
    name: Personal<String>,
}

#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Greet {
    #[tag(partition)]
    pub(crate) guest_id: GuestId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    GuestNamed { name: Personal<String> },
    GuestGreeted { name: Personal<String> },
}

#[ringfence::value]
#[derive(Clone, Debug, Default)]
pub(crate) struct Guest {
    name: Option<Personal<String>>,
    greeted: Option<Personal<String>>,
}

impl State for Guest {
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(0));
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::GuestNamed { name } => Self { name: Some(name), ..self },
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

impl Slice for Greet {
    const NAME: &'static str = "greet";
    type Context = Guests;
    type State = Guest;
    type Writes = GuestGreeted;
    type Rejection = Never;

    fn decide(&self, guest: &Guest, _: &CommandContext) -> Result<Vec<GuestGreeted>, Never> {
        let greeted = |name: &Personal<_>| GuestGreeted {
            guest_id: self.guest_id.clone(),
            name: name.clone(),
        };
        Ok(guest.name.iter().map(greeted).collect())
    }
}
