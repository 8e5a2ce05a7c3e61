//! A slice that no caller gives has no scopes.

use ringfence::prelude::*;
use ringfence::{LogKind, LogName, route_scopes};

#[derive(Clone, Event)]
struct Lapsed {
    #[tag(partition)]
    visit_id: String,
}

#[derive(Command)]
struct LapseVisit {
    #[tag(partition)]
    visit_id: String,
}

#[derive(Reads)]
enum Consumed {
    Lapsed,
}

#[derive(Default)]
struct Visit;

impl State for Visit {
    type Reads = Consumed;

    fn evolve(self, _: Consumed) -> Self {
        self
    }
}

struct Log;

impl LogName for Log {
    const KIND: LogKind = LogKind::Dcb;
}

struct Clinic;

impl Context for Clinic {
    const NAME: &'static str = "clinic";
    type Log = Log;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [Lapsed::SCHEMA])
    }
}

impl Slice for LapseVisit {
    const NAME: &'static str = "lapse-visit";
    const CALLERS: Callers = Callers::Nobody;
    const SCOPES: &'static [&'static str] = &["clinic/write"];
    type Context = Clinic;
    type State = Visit;
    type Writes = Lapsed;
    type Rejection = Never;

    fn decide(&self, _: &Visit, _: &CommandContext) -> Result<Vec<Lapsed>, Never> {
        Ok(vec![])
    }
}

const ROUTE: Option<&[&str]> = route_scopes::<LapseVisit>();

fn main() {}
