//! Stored folds, as released and after a change. One snapshot has all findings.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fmt::Write as _;

use ringfence_core::prelude::*;
use ringfence_dcb_log::Dcb;
use ringfence_document_log::{AccessStrategy, Document, Documents, Snapshot};
use ringfence_schemas::{Comparison, Lock, LockedFold, Readers, changed_folds, check, present};
use ringfence_stack::{MemberList, Members, Stack, Visitor, catalog};
use ringfence_views::View;

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemAdded {
    #[tag(partition)]
    item_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct ItemTaken {
    #[tag(partition)]
    item_id: String,
}

#[derive(Clone, Copy, Reads)]
enum Read {
    ItemAdded,
    ItemTaken,
}

/// A shelf on a log, whose state, view and due are the same fold with the same version.
macro_rules! shelf {
    ($name:ident: $log:ty, $version:literal, $(#[$attribute:meta])* $member:ident: $type:ty,
     |$known:ident, $read:ident| $fold:expr) => {
        mod $name {
            use super::*;

            #[ringfence::value]
            #[derive(Clone, Debug, Default)]
            pub(super) struct Known {
                items: u32,
                $(#[$attribute])*
                $member: $type,
            }

            impl State for Known {
                type Reads = Read;
                const SNAPSHOTS: Option<Snapshots<Self>> =
                    Some(Snapshots::every(100).version($version));

                fn evolve(mut self, $read: Read) -> Self {
                    let $known = &mut self;
                    $fold;
                    self
                }
            }

            impl Document for Known {
                const ACCESS: AccessStrategy<Self> =
                    AccessStrategy::Snapshot(Snapshot::named("Known").version($version));
            }

            pub(super) struct Shelf;

            impl Context for Shelf {
                const NAME: &'static str = "shelf";
                type Log = $log;

                fn catalog() -> Result<Catalog, CatalogError> {
                    catalog::<Self>()
                }
            }

            impl Members for Shelf {
                fn list(list: &mut MemberList<impl Visitor>) {
                    list.slice::<AddItem>().due::<AddItem>().view::<Items>().event::<ItemTaken>();
                }
            }

            pub(super) struct All;

            impl Members for All {
                fn list(list: &mut MemberList<impl Visitor>) {
                    list.context::<Shelf>();
                }
            }

            #[derive(Clone, Debug, PartialEq, Command)]
            struct AddItem {
                #[tag(partition)]
                item_id: String,
            }

            impl Slice for AddItem {
                const NAME: &'static str = "add-item";
                type Context = Shelf;
                type State = Known;
                type Writes = ItemAdded;
                type Rejection = Never;

                fn decide(&self, _: &Known, _: &CommandContext) -> Result<Vec<ItemAdded>, Never> {
                    Ok(vec![ItemAdded { item_id: self.item_id.clone() }])
                }

                fn cases() -> Vec<Case<Self>> {
                    let item_id = || "a".to_owned();
                    let added = || ItemAdded { item_id: item_id() };
                    let add = || AddItem { item_id: item_id() };
                    vec![
                        given([]).when(add()).then([added()]),
                        given(events![added(), added(), ItemTaken { item_id: item_id() }])
                            .when(add())
                            .then([added()]),
                    ]
                }
            }

            struct Items;

            impl View for Items {
                const NAME: &'static str = "items";
                const VERSION: u32 = $version;
                const STREAMS: &'static [&'static str] = &[Shelf::NAME];
                type Reads = Read;
                type Row = Known;

                fn rows(_: &Read) -> Vec<String> {
                    vec!["all".to_owned()]
                }

                fn evolve(row: Option<Known>, _: &str, event: &Read) -> Option<Known> {
                    Some(row.unwrap_or_default().evolve(*event))
                }
            }

            impl Due for AddItem {
                const VERSION: u32 = $version;
                type Reads = Read;
                type Row = Known;

                fn rows(_: &Read) -> Vec<String> {
                    vec!["all".to_owned()]
                }

                fn evolve(row: Option<Known>, _: &str, event: &Read) -> Option<Known> {
                    Some(row.unwrap_or_default().evolve(*event))
                }

                fn due_ms(_: &Known) -> Option<u64> {
                    None
                }

                fn command(_: &str, _: &Known) -> Result<Self, Box<dyn Error + Send + Sync>> {
                    Err("nothing is due".into())
                }
            }
        }
    };
}

shelf! { before: Dcb, 0, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items += 1,
    Read::ItemTaken => known.items -= 1,
} }

// The same, with a counter that earlier snapshots do not have.
shelf! { counted: Dcb, 0, #[serde(default)] taken: u32, |known, read| match read {
    Read::ItemAdded => known.items += 1,
    Read::ItemTaken => (known.items, known.taken) = (known.items - 1, known.taken + 1),
} }

// The state has the same shape and another meaning.
shelf! { at_most_one: Dcb, 0, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items = 1,
    Read::ItemTaken => known.items = 0,
} }

shelf! { panicking: Dcb, 0, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items += 1,
    Read::ItemTaken => panic!("{} were there", known.items),
} }

shelf! { raised: Dcb, 1, #[serde(default)] taken: u32, |known, read| match read {
    Read::ItemAdded => known.items += 1,
    Read::ItemTaken => (known.items, known.taken) = (known.items - 1, known.taken + 1),
} }

// Two sets are never in the same order.
shelf! { unordered: Dcb, 2, all: HashSet<u32>, |known, read| match read {
    Read::ItemAdded => known.all = (0..100).collect(),
    Read::ItemTaken => known.items += 1,
} }

shelf! { document: Documents<Known>, 0, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items += 1,
    Read::ItemTaken => known.items -= 1,
} }

shelf! { document_at_most_one: Documents<Known>, 0, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items = 1,
    Read::ItemTaken => known.items = 0,
} }

shelf! { document_raised: Documents<Known>, 1, #[serde(skip)] _unused: u8, |known, read| match read {
    Read::ItemAdded => known.items = 1,
    Read::ItemTaken => known.items = 0,
} }

fn gates<M: Members>(released: &Lock) -> Comparison {
    let stack = Stack::of::<M>().expect("it does not contradict itself");
    check(&stack, &Readers::of::<M>(), "shelf", released, &present::<M>()["shelf"])
}

/// The lock with all that may be added, after which nothing is left to add.
fn update<M: Members>(released: &Lock) -> Lock {
    let Comparison { grown, findings } = gates::<M>(released);
    assert!(findings.iter().all(|it| it.is_written), "{findings:#?}");
    assert_eq!(gates::<M>(&grown), Comparison { grown: grown.clone(), findings: Vec::new() });
    grown
}

/// Notes the findings about a stack of which nothing may be added, however often somebody tries.
fn refused<M: Members>(book: &mut String, change: &str, released: &Lock) {
    let Comparison { grown, findings } = gates::<M>(released);
    assert_eq!(&grown, released, "{change}");
    assert!(!findings.is_empty() && findings.iter().all(|it| !it.is_written), "{findings:#?}");
    writeln!(book, "# {change}").expect("a text");
    findings.iter().for_each(|it| writeln!(book, "{it}").expect("a text"));
    book.push('\n');
}

#[test]
fn a_fold_that_has_changed_needs_another_version() {
    let mut book = String::new();
    let released = update::<before::All>(&Lock::default());
    refused::<counted::All>(&mut book, "A state gets a counter", &released);
    refused::<at_most_one::All>(&mut book, "A fold has another meaning", &released);
    refused::<panicking::All>(&mut book, "A fold panics", &released);
    refused::<unordered::All>(&mut book, "A fold is never the same", &released);

    // `changed_folds` compares another build with this build's lock, too.
    let stack = Stack::of::<counted::All>().expect("it does not contradict itself");
    let readers = Readers::of::<counted::All>();
    let found = changed_folds(&stack, &readers, "shelf", &released);
    assert_eq!(found, gates::<counted::All>(&released).findings);

    let raised = update::<raised::All>(&released);
    assert_ne!(raised, released);
    refused::<counted::All>(&mut book, "A version is lowered", &raised);

    // As if it had passed over the events of a type.
    let without = |folds: &mut BTreeMap<String, LockedFold>| {
        folds.values_mut().for_each(|fold| assert!(fold.types.remove("ItemTaken")));
    };
    let mut fewer = released.clone();
    without(&mut fewer.views);
    without(&mut fewer.dues);
    refused::<before::All>(&mut book, "A fold reads another type", &fewer);
    // No fold passed over events of a new type.
    fewer.events.remove("ItemTaken");
    assert_eq!(update::<before::All>(&fewer), released);
    // The types that a kept state reads are part of its version.
    let mut fewer = released.clone();
    without(&mut fewer.states);
    assert_eq!(update::<before::All>(&fewer), released);

    let document = update::<document::All>(&Lock::default());
    refused::<document_at_most_one::All>(&mut book, "The fold of documents", &document);
    update::<document_raised::All>(&document);
    insta::assert_snapshot!(book);
}

#[test]
fn histories_stay_and_few_are_kept() {
    let released = update::<before::All>(&Lock::default());
    // One case shows all steps of the other.
    let json = serde_json::to_value(&released.histories).expect("JSON");
    assert_eq!(json["sequences"], serde_json::json!(["1 1 2 1"]));
    assert_eq!(json["events"].as_array().map(Vec::len), Some(2));
    // A later case shows no new step.
    let later = present::<before::All>().remove("shelf").expect("a lock");
    assert_eq!(later.histories, released.histories);
}
