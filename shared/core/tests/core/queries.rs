//! The query of a command is the one that was planned when the function started, derived or written by hand.

use futures::executor::block_on;
use ringfence_core::{
    Access, Decisions, Envelope, MemoryLog, Outcome, Plan, PlanError, Query, QueryItem, Slice,
    SliceError, Tag, TagSchema, handle, prelude::*,
};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Event)]
struct Opened {
    #[tag(partition)]
    account_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct Stocked {
    #[tag(partition)]
    product_id: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_by_type)]
struct Audited {
    #[tag(partition)]
    account_id: String,
}

fn catalog() -> Result<Catalog, CatalogError> {
    Catalog::new("bank", [Opened::SCHEMA, Stocked::SCHEMA, Audited::SCHEMA])
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("{events} events are there")]
    Taken { events: usize },
}

#[derive(Reads)]
enum Accounts {
    Opened,
}

#[derive(Reads)]
enum Audits {
    Audited,
}

#[derive(Reads)]
enum Both {
    Opened,
    Audited,
}

#[derive(Reads)]
enum Everything {
    Opened,
    Stocked,
}

/// A slice that makes `$writes` from the command, once, with the query `$query`.
macro_rules! slice {
    ($command:ident reads $reads:ident, writes $writes:expr $(, query $query:expr)?) => {
        impl Slice for $command {
            const NAME: &'static str = stringify!($command);
            type Context = Bank;
            type State = crate::shop::Count<$reads>;
            type Writes = Opened;
            type Rejection = Rejection;

            fn decide(
                &self,
                events: &Self::State,
                _: &CommandContext,
            ) -> Result<Vec<Opened>, Rejection> {
                match events.0 as usize {
                    0 => Ok($writes(self)),
                    events => Err(Rejection::Taken { events }),
                }
            }

            $(fn query(_: &[TagSchema], tags: Vec<Tag>, _: &Catalog) -> Query {
                Query { items: $query(tags) }
            })?
        }

    };
}

struct Bank;

impl Context for Bank {
    const NAME: &'static str = "bank";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        catalog()
    }
}

fn opened(account_id: &str) -> Opened {
    Opened { account_id: account_id.to_owned() }
}

/// A clause for each tag, with one type of events.
fn clause(tag: &Tag, event_type: &'static str) -> QueryItem {
    QueryItem { tags: vec![tag.clone()], types: vec![event_type.into()] }
}

/// Two accounts, both of which must be new.
#[derive(Clone, Debug, PartialEq, Command)]
struct OpenTwo {
    #[tag(key = "accountId", partition)]
    first: String,
    #[tag(key = "accountId", partition)]
    second: String,
}

slice!(OpenTwo reads Accounts, writes |it: &OpenTwo| vec![opened(&it.first), opened(&it.second)]);

fn run<S: Slice>(log: &MemoryLog, command: &S) -> Outcome {
    let (catalog, envelope) = (catalog().unwrap(), Envelope::default());
    ringfence_core::check::<S>(&catalog).unwrap();
    let decisions = Decisions::new(0);
    let handled = handle(log, &catalog, &decisions, command, &envelope);
    block_on(handled).unwrap().outcome
}

#[test]
fn each_value_of_two_fields_with_one_key_is_read() {
    let log = MemoryLog::new(catalog().unwrap());
    let two = |first: &str, second: &str| OpenTwo { first: first.into(), second: second.into() };
    let accepted = run(&log, &two("a", "b"));
    assert!(matches!(&accepted, Outcome::Accepted(events) if events.len() == 2), "{accepted:?}");
    for again in [two("a", "b"), two("c", "a"), two("b", "c"), two("a", "a")] {
        let rejected = run(&log, &again);
        assert!(matches!(rejected, Outcome::Rejected { .. }), "{again:?}: {rejected:?}");
    }
    assert_eq!(log.events().len(), 2);
}

#[test]
fn a_clause_that_no_event_can_match_is_refused() {
    let tags = ["a", "b"].map(|value| Tag::new("accountId", value)).to_vec();
    let query = Query { items: vec![QueryItem { tags, types: vec!["Opened".into()] }] };
    let error = Plan::new(&query, &catalog().unwrap()).unwrap_err();
    assert_eq!(
        error,
        PlanError::SeveralValues { event_type: "Opened".into(), key: "accountId".into() }
    );
    let fix = "none can match; if events with either value are meant, write a clause for each";
    assert!(error.to_string().ends_with(fix), "{error}");
}

/// An account and a product, read by a query that is written by hand.
#[derive(Clone, Debug, PartialEq, Command)]
struct OpenWith {
    #[tag(partition)]
    account_id: String,
    product_id: String,
}

slice!(
    OpenWith reads Everything, writes |it: &OpenWith| vec![opened(&it.account_id)],
    query |tags: Vec<Tag>| vec![clause(&tags[0], "Opened"), clause(&tags[1], "Stocked")]
);

#[test]
fn a_slice_starts_if_its_own_query_can_be_planned() {
    let log = MemoryLog::new(catalog().unwrap());
    let open = OpenWith { account_id: "a".to_owned(), product_id: "p".to_owned() };
    assert!(matches!(run(&log, &open), Outcome::Accepted(_)));
    assert!(matches!(run(&log, &open), Outcome::Rejected { .. }));
}

/// Like [`OpenWith`], with a query that lacks a type.
#[derive(Clone, Debug, PartialEq, Command)]
struct Forgets {
    #[tag(partition)]
    account_id: String,
}

slice!(
    Forgets reads Both, writes |it: &Forgets| vec![opened(&it.account_id)],
    query |tags: Vec<Tag>| vec![clause(&tags[0], "Opened")]
);

/// Like [`OpenWith`], with a query for a type that the fold does not have.
#[derive(Clone, Debug, PartialEq, Command)]
struct AsksForMore {
    #[tag(partition)]
    account_id: String,
    product_id: String,
}

slice!(
    AsksForMore reads Accounts, writes |it: &AsksForMore| vec![opened(&it.account_id)],
    query |tags: Vec<Tag>| vec![clause(&tags[0], "Opened"), clause(&tags[1], "Stocked")]
);

/// Like [`OpenWith`], with a query that no event can match.
#[derive(Clone, Debug, PartialEq, Command)]
struct AsksForBoth {
    #[tag(key = "accountId", partition)]
    first: String,
    #[tag(key = "accountId", partition)]
    second: String,
}

slice!(
    AsksForBoth reads Accounts, writes |it: &AsksForBoth| vec![opened(&it.first)],
    query |tags: Vec<Tag>| vec![QueryItem { tags, types: vec!["Opened".into()] }]
);

#[test]
fn a_slice_with_a_wrong_query_does_not_start() {
    let catalog = catalog().unwrap();
    let error = SliceError::NotAsked { slice: "Forgets", event_type: "Audited".into() };
    assert_eq!(ringfence_core::check::<Forgets>(&catalog), Err(error));
    let error = SliceError::NotRead { slice: "AsksForMore", event_type: "Stocked".into() };
    assert_eq!(ringfence_core::check::<AsksForMore>(&catalog), Err(error));
    let source = PlanError::SeveralValues { event_type: "Opened".into(), key: "accountId".into() };
    let error = SliceError::Route { slice: "AsksForBoth", source };
    assert_eq!(ringfence_core::check::<AsksForBoth>(&catalog), Err(error));
}

/// Like [`OpenWith`], with the derived query: no event has both tags.
#[derive(Clone, Debug, PartialEq, Command)]
struct OpenBoth {
    #[tag(partition)]
    account_id: String,
    product_id: String,
}

slice!(OpenBoth reads Everything, writes |it: &OpenBoth| vec![opened(&it.account_id)]);

/// Reads the account, and a type without the account's tag.
#[derive(Clone, Debug, PartialEq, Command)]
struct OpenStocked {
    #[tag(partition)]
    account_id: String,
}

slice!(OpenStocked reads Everything, writes |it: &OpenStocked| vec![opened(&it.account_id)]);

#[test]
fn a_slice_that_reads_a_type_without_a_tag_of_its_command_does_not_start() {
    let catalog = catalog().unwrap();
    let lacks = |slice, event_type: &'static str, key: &str| {
        Err(SliceError::Lacks { slice, event_type: event_type.into(), keys: key.to_owned() })
    };
    let error = ringfence_core::check::<OpenBoth>(&catalog);
    assert_eq!(error, lacks("OpenBoth", "Opened", "productId"));
    assert_eq!(
        ringfence_core::check::<OpenStocked>(&catalog),
        lacks("OpenStocked", "Stocked", "accountId")
    );
    let said = error.unwrap_err().to_string();
    for part in ["Opened, because it has no productId", "#[tag(skip)]", "a list", "own `query`"] {
        assert!(said.contains(part), "{said}");
    }
}

/// Reads the events of a type for all accounts.
#[derive(Clone, Debug, PartialEq, Command)]
struct AuditAll {}

slice!(AuditAll reads Audits, writes |_: &AuditAll| vec![]);

/// Reads the events of an account, or of all accounts if it names none.
#[derive(Clone, Debug, PartialEq, Command)]
struct Audit {
    account_id: Option<String>,
}

slice!(Audit reads Audits, writes |_: &Audit| vec![]);

/// Reads an account, which it must name, although the field is optional.
#[derive(Clone, Debug, PartialEq, Command)]
struct Reopen {
    account_id: Option<String>,
}

slice!(Reopen reads Accounts, writes |_: &Reopen| vec![]);

#[test]
fn a_command_without_a_value_is_planned_unless_it_is_refused() {
    fn accesses<S: Slice>() -> Vec<Access> {
        let catalog = catalog().unwrap();
        assert_eq!(ringfence_core::check::<S>(&catalog), Ok(()));
        let plans = ringfence_core::plans::<S>(&catalog).unwrap();
        plans.into_iter().flat_map(|plan| plan.reads).map(|read| read.access).collect()
    }
    assert_eq!(accesses::<AuditAll>(), [Access::TypeItems("Audited".into())]);
    assert_eq!(accesses::<Audit>(), [Access::Partition, Access::TypeItems("Audited".into())]);
    assert_eq!(accesses::<Reopen>(), [Access::Partition]);
}

/// Has more optional tags than there are sets of them to try.
#[derive(Clone, Debug, PartialEq, Command)]
struct AuditSome {
    #[tag(key = "accountId")]
    a: Option<String>,
    #[tag(key = "accountId")]
    b: Option<String>,
    #[tag(key = "accountId")]
    c: Option<String>,
    #[tag(key = "accountId")]
    d: Option<String>,
    #[tag(key = "accountId")]
    e: Option<String>,
    #[tag(key = "accountId")]
    f: Option<String>,
    #[tag(key = "accountId")]
    g: Option<String>,
}

slice!(AuditSome reads Audits, writes |_: &AuditSome| vec![]);

#[test]
fn many_optional_tags_are_planned_with_all_with_all_but_one_and_with_none() {
    let plans = ringfence_core::plans::<AuditSome>(&catalog().unwrap()).unwrap();
    let mut reads: Vec<_> = plans.iter().map(|plan| plan.reads.len()).collect();
    reads.sort_unstable();
    assert_eq!(reads, [1, 6, 6, 6, 6, 6, 6, 6, 7]);
}

/// Has a query for a type that the fold does not have, if the command has no value.
#[derive(Clone, Debug, PartialEq, Command)]
struct AsksForMoreWithout {
    account_id: Option<String>,
}

slice!(
    AsksForMoreWithout reads Accounts, writes |_: &AsksForMoreWithout| vec![],
    query |tags: Vec<Tag>| match tags.first() {
        Some(tag) => vec![clause(tag, "Opened")],
        None => vec![QueryItem { tags, types: vec!["Audited".into()] }],
    }
);

#[test]
fn a_slice_whose_query_is_wrong_without_a_value_does_not_start() {
    let slice = "AsksForMoreWithout";
    let error = SliceError::NotRead { slice, event_type: "Audited".into() };
    assert_eq!(ringfence_core::check::<AsksForMoreWithout>(&catalog().unwrap()), Err(error));
}
