//! An event type in three versions, a renamed type, and a slice that notes the events that it reads. The tests of
//! each log include this file. They define the log, and the catalog of its types.

use ringfence_core::{CatalogError, EventSchema, NewEvent, prelude::*};

use super::{Log, catalog_of};

/// The types of the first program.
pub(crate) mod first {
    use ringfence_core::prelude::*;

    #[derive(Event)]
    pub(crate) struct ItemAdded {
        #[tag(partition)]
        pub(crate) item_id: String,
        pub(crate) name: String,
        pub(crate) price: u64,
    }

    #[derive(Event)]
    pub(crate) struct ItemDropped {
        #[tag(partition)]
        pub(crate) item_id: String,
    }
}

/// The item in the second program.
pub(crate) mod second {
    use ringfence_core::prelude::*;

    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = super::name_is_title)]
    pub(crate) struct ItemAdded {
        #[tag(partition)]
        pub(crate) item_id: String,
        pub(crate) title: String,
        pub(crate) price: u64,
    }
}

/// The item in a program that reads the present version, and still writes the second.
pub(crate) mod careful {
    use ringfence_core::prelude::*;

    #[derive(Event)]
    #[event(version = 3)]
    #[upcast(1 = super::name_is_title, 2 = super::price_in_cents)]
    #[write(2 = cents_in_price)]
    pub(crate) struct ItemAdded {
        #[tag(partition)]
        pub(crate) item_id: String,
        pub(crate) title: String,
        pub(crate) cents: u64,
    }

    fn cents_in_price(mut data: Fields) -> Result<Fields, FieldError> {
        data.convert("cents", |cents: u64| Ok(cents / 100))?;
        data.rename("cents", "price")?;
        Ok(data)
    }
}

/// The item in its present version.
#[derive(Event)]
#[event(version = 3)]
#[upcast(1 = name_is_title, 2 = price_in_cents)]
pub(crate) struct ItemAdded {
    #[tag(partition)]
    pub(crate) item_id: String,
    pub(crate) title: String,
    pub(crate) cents: u64,
}

fn name_is_title(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("name", "title")?;
    Ok(data)
}

fn price_in_cents(mut data: Fields) -> Result<Fields, FieldError> {
    data.convert("price", |euros: u64| Ok(euros * 100))?;
    data.rename("price", "cents")?;
    Ok(data)
}

/// The older name of [`ItemRemoved`].
#[derive(Event)]
#[event(retired, stored_as = "ItemDropped")]
pub(crate) struct Dropped {
    #[tag(partition)]
    pub(crate) item_id: String,
}

#[derive(Event)]
pub(crate) struct ItemRemoved {
    #[tag(partition)]
    pub(crate) item_id: String,
}

#[derive(Event)]
pub(crate) struct Noted {
    #[tag(partition)]
    pub(crate) item_id: String,
    pub(crate) known: Vec<String>,
}

/// The program that reads the third version before any program writes it.
pub(crate) const CAREFUL: u32 = 9;

/// The types of the program of this number.
pub(crate) fn schemas(program: u32) -> Vec<EventSchema> {
    let present = |item| vec![item, Dropped::SCHEMA, ItemRemoved::SCHEMA, Noted::SCHEMA];
    match program {
        1 => vec![first::ItemAdded::SCHEMA, first::ItemDropped::SCHEMA, Noted::SCHEMA],
        2 => vec![second::ItemAdded::SCHEMA, first::ItemDropped::SCHEMA, Noted::SCHEMA],
        CAREFUL => present(careful::ItemAdded::SCHEMA),
        _ => present(ItemAdded::SCHEMA),
    }
}

/// The events of each program about the item, with the program's number.
pub(crate) fn history(item: &str) -> Vec<(u32, NewEvent)> {
    let item_id = || item.to_owned();
    vec![
        (1, first::ItemAdded { item_id: item_id(), name: "mug".to_owned(), price: 4 }.into()),
        (1, first::ItemDropped { item_id: item_id() }.into()),
        (CAREFUL, ItemAdded { item_id: item_id(), title: "cup".to_owned(), cents: 300 }.into()),
        (3, newest(item)),
    ]
}

/// An event that only the third program can read.
pub(crate) fn newest(item: &str) -> NewEvent {
    ItemAdded { item_id: item.to_owned(), title: "jug".to_owned(), cents: 700 }.into()
}

/// The state of a present reader after the history.
pub(crate) const KNOWN: [&str; 4] = ["mug for 400", "gone", "cup for 300", "jug for 700"];

/// Notes its state of an item.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Note {
    #[tag(partition)]
    pub(crate) item_id: String,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    ItemAdded {
        title: String,
        cents: u64,
    },
    #[reads(also = "ItemDropped")]
    ItemRemoved,
}

#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known(pub(crate) Vec<String>);

impl State for Known {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        self.0.push(match event {
            Consumed::ItemAdded { title, cents } => format!("{title} for {cents}"),
            Consumed::ItemRemoved => "gone".to_owned(),
        });
        self
    }
}

pub(crate) struct Shelf;

impl Context for Shelf {
    const NAME: &'static str = "shelf";
    type Log = Log;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog_of(schemas(3))
    }
}

impl Slice for Note {
    const NAME: &'static str = "note";
    type Context = Shelf;
    type State = Known;
    type Writes = Noted;
    type Rejection = Never;

    fn decide(&self, Known(known): &Known, _: &CommandContext) -> Result<Vec<Noted>, Never> {
        Ok(vec![Noted { item_id: self.item_id.clone(), known: known.clone() }])
    }
}
