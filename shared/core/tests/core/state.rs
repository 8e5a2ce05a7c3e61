//! States that slices compose.

use ringfence_core::prelude::*;

use crate::decide::Faulty;
use crate::shop::{booked, catalog, cleaned, closed};

#[derive(Clone, Copy, Debug, PartialEq, Reads)]
enum Use {
    Booked,
    Cleaned,
}

#[derive(Clone, Copy, Debug, PartialEq, Reads)]
enum Care {
    Cleaned,
    Closed,
}

#[derive(Debug, Default, PartialEq)]
struct Uses(Vec<Use>);

impl State for Uses {
    type Reads = Use;

    fn evolve(mut self, event: Use) -> Self {
        self.0.push(event);
        self
    }
}

#[derive(Debug, Default, PartialEq)]
struct Cares(Vec<Care>);

impl State for Cares {
    type Reads = Care;

    fn evolve(mut self, event: Care) -> Self {
        self.0.push(event);
        self
    }
}

#[test]
fn a_tuple_of_states_reads_all_their_events_and_each_folds_its_own() {
    type Both = (Uses, Cares);
    assert_eq!(<Both as State>::Reads::TYPES, ["Booked", "Cleaned", "Closed"]);
    let given = events![booked("r1", "g1"), cleaned("r1", 1), closed("r1")];
    let events = Faulty::new(given).log.events();
    let catalog = catalog().unwrap();
    let read = events
        .iter()
        .map(|event| <Both as State>::Reads::decode(&catalog.current(event).unwrap()).unwrap());
    let (uses, cares) = read.fold(Both::default(), State::evolve);
    assert_eq!(uses.0, [Use::Booked, Use::Cleaned]);
    assert_eq!(cares.0, [Care::Cleaned, Care::Closed]);
}
