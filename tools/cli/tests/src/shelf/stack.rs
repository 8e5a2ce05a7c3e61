//! The code that each build has: context, slices, view, functions and command line.

use std::process::ExitCode;

use ringfence_core::Snapshots;
use ringfence_core::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_views::View;
use serde::{Deserialize, Serialize};

use super::{Consumed, Gone, ItemAdded, added, label, only_read};

struct Shelf;

impl Context for Shelf {
    const NAME: &'static str = "shelf";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Shelf {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<ChangeItem>().slice::<ShowItem>().slice::<LabelItem>().view::<Items>();
        only_read(list);
    }
}

struct All;

impl Members for All {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.context::<Shelf>();
    }
}

/// The state of an item: a text of each event.
#[ringfence::value]
#[derive(Clone, Debug, Default)]
struct Known(Vec<String>);

impl State for Known {
    type Reads = Consumed;
    const SNAPSHOTS: Option<Snapshots<Self>> = Some(Snapshots::every(1));

    fn evolve(mut self, event: Consumed) -> Self {
        self.0.push(event.text());
        self
    }
}

#[derive(Clone, Debug, PartialEq, Command)]
enum ChangeItem {
    Add {
        #[tag(partition)]
        item_id: String,
        title: String,
        euros: u64,
    },
    Take {
        #[tag(partition)]
        item_id: String,
    },
}

#[derive(Writes)]
enum Changed {
    Added(ItemAdded),
    Gone(Gone),
}

impl Slice for ChangeItem {
    const NAME: &'static str = "change-item";
    type Context = Shelf;
    type State = Known;
    type Writes = Changed;
    type Rejection = Never;

    fn decide(&self, _: &Known, _: &CommandContext) -> Result<Vec<Changed>, Never> {
        Ok(vec![match self.clone() {
            Self::Add { item_id, title, euros } => Changed::Added(added(item_id, title, euros)),
            Self::Take { item_id } => Changed::Gone(Gone { item_id }),
        }])
    }
}

/// A decision that answers with its whole state.
#[derive(Clone, Debug, PartialEq, Command)]
struct ShowItem {
    #[tag(partition)]
    item_id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Shown {
    #[error("that is all")]
    Known { known: Vec<String> },
}

impl Slice for ShowItem {
    const NAME: &'static str = "show-item";
    type Context = Shelf;
    type State = Known;
    type Writes = ItemAdded;
    type Rejection = Shown;

    fn decide(&self, Known(known): &Known, _: &CommandContext) -> Result<Vec<ItemAdded>, Shown> {
        Err(Shown::Known { known: known.clone() })
    }
}

/// An automation: labels each item that was added.
#[derive(Clone, Debug, PartialEq, Command)]
struct LabelItem {
    #[tag(partition)]
    item_id: String,
    label: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemLabelled {
    #[tag(partition)]
    item_id: String,
    label: String,
}

#[derive(Reads)]
enum Labels {
    ItemLabelled { label: String },
}

#[derive(Default)]
struct Labelled(Vec<String>);

impl State for Labelled {
    type Reads = Labels;

    fn evolve(mut self, Labels::ItemLabelled { label }: Labels) -> Self {
        self.0.push(label);
        self
    }
}

impl Slice for LabelItem {
    const NAME: &'static str = "label-item";
    const REACTS_TO: &'static [Cause] = &[Cause::of::<ItemAdded>(Shelf::NAME)];
    type Context = Shelf;
    type State = Labelled;
    type Writes = ItemLabelled;
    type Rejection = Never;

    fn decide(&self, labels: &Labelled, _: &CommandContext) -> Result<Vec<ItemLabelled>, Never> {
        let Self { item_id, label } = self.clone();
        Ok(match labels.0.contains(&label) {
            true => vec![],
            false => vec![ItemLabelled { item_id, label }],
        })
    }

    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {
        let label = label(&ItemAdded::deserialize(&event.data)?)?;
        let item_id = event.tags.first().map(|tag| tag.value.clone()).unwrap_or_default();
        Ok(vec![Self { item_id, label }])
    }
}

/// The texts of each item.
struct Items;

impl View for Items {
    const NAME: &'static str = "items";
    type Reads = Consumed;
    type Row = Vec<String>;

    fn rows(event: &Consumed) -> Vec<String> {
        vec![event.item_id().to_owned()]
    }

    fn evolve(row: Option<Vec<String>>, _: &str, event: &Consumed) -> Option<Vec<String>> {
        let mut texts = row.unwrap_or_default();
        texts.push(event.text());
        Some(texts)
    }
}

pub(in super::super) fn run(function: Option<&str>) -> ExitCode {
    let ran = function.and_then(ringfence_services::program::function::<All>);
    ran.unwrap_or_else(ringfence_cli::run::<All, ringfence_console::ConsoleCommand>)
}
