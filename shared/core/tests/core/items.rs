//! Index items: tags with several values, tags read strongly, types read alone.

use std::collections::BTreeSet;

use futures::executor::block_on;
use ringfence_core::{
    Access, Append, Appended, Consistency, Decisions, Envelope, Event, EventLog, LogError,
    MemoryLog, Page, Plan, PlanError, Query, QueryItem, Reading, Scope, Seen, SequencedEvent, Tag,
    TagSchema, handle, prelude::*,
};

#[derive(Clone, Debug, PartialEq, Event)]
struct Moved {
    #[tag(partition)]
    parcel_id: String,
    #[tag(key = "depot", cross_partition, strong)]
    from: String,
    #[tag(key = "depot", cross_partition, strong)]
    to: String,
    #[tag(cross_partition)]
    driver_ids: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct Arrived {
    #[tag(partition, cross_partition, strong, key = "depot")]
    depot: String,
}

#[derive(Clone, Debug, PartialEq, Event)]
#[event(read_by_type)]
struct Numbered {
    #[tag(partition, key = "number")]
    number: u32,
}

#[derive(Clone, Debug, PartialEq, Event)]
struct Noted {}

fn catalog() -> Catalog {
    let schemas = [Moved::SCHEMA, Arrived::SCHEMA, Numbered::SCHEMA, Noted::SCHEMA];
    Catalog::new("parcels", schemas).unwrap()
}

fn moved(from: &str, to: &str, drivers: &[&str]) -> Moved {
    let driver_ids = drivers.iter().map(|driver| (*driver).to_owned()).collect();
    Moved { parcel_id: "p".to_owned(), from: from.to_owned(), to: to.to_owned(), driver_ids }
}

fn item(tags: &[(&'static str, &str)], types: &[&'static str]) -> QueryItem {
    let tags = tags.iter().map(|(key, value)| Tag::new(*key, *value)).collect();
    QueryItem { tags, types: types.iter().copied().map(Into::into).collect() }
}

fn plan(items: Vec<QueryItem>) -> Result<Plan, PlanError> {
    Plan::new(&Query { items }, &catalog())
}

#[test]
fn an_event_has_an_index_item_of_each_value_and_of_its_type() {
    let filed = |event: NewEvent| {
        let filing = catalog().filing(&event).unwrap();
        let ids = |all: &BTreeSet<ringfence_core::BoundaryId>| {
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        assert!(filing.indexed.is_empty(), "{:?}", filing.indexed);
        (ids(&filing.items), ids(&filing.fences))
    };
    let both = |boundaries: &str| (boundaries.to_owned(), boundaries.to_owned());
    assert_eq!(
        filed(moved("x", "y", &["d1", "d2", "d1"]).into()),
        both("depot:x depot:y driverId:d1 driverId:d2")
    );
    // A repeated value is one boundary; an empty value is not a boundary.
    assert_eq!(filed(moved("x", "x", &[""]).into()), both("depot:x"));
    // The tag of the partition is read by index items: they and the fence have the partition's name.
    assert_eq!(filed(Arrived { depot: "x".to_owned() }.into()), both("depot:x"));
    assert_eq!(filed(Numbered { number: 7 }.into()), both("$type:Numbered"));
}

#[test]
fn index_items_need_no_index() {
    assert!(catalog().indexes().is_empty());
    assert_eq!(catalog().scope("depot"), Some(Scope::IndexItems));
    assert_eq!(catalog().scope("driverId"), Some(Scope::IndexItems));
    assert_eq!(catalog().scope("parcelId"), Some(Scope::Partition));
}

#[test]
fn tags_and_types_are_read_by_their_index_items() {
    let check = |item, boundary: &str, access| {
        let plan = plan(vec![item]).unwrap();
        let reads: Vec<_> = plan.reads.iter().map(|r| (r.boundary.as_str(), &r.access)).collect();
        assert_eq!(reads, [(boundary, &access)]);
        assert!(access.is_of_table());
    };
    let depot = Access::TagItems(Tag::new("depot", "x"));
    check(item(&[("depot", "x")], &["Arrived", "Moved"]), "depot:x", depot);
    let driver = Access::TagItems(Tag::new("driverId", "d"));
    check(item(&[("driverId", "d")], &["Moved"]), "driverId:d", driver);
    check(item(&[], &["Numbered"]), "$type:Numbered", Access::TypeItems("Numbered".into()));
    let error = plan(vec![item(&[], &["Noted"])]).unwrap_err().to_string();
    assert!(error.contains("declare it #[event(read_by_type)]"), "{error}");
}

#[test]
fn the_first_of_several_cross_partition_tags_is_read_and_guards() {
    let (log, envelope) = (MemoryLog::new(catalog()), Envelope::default());
    append(&log, events![moved("x", "y", &["e"]), moved("y", "z", &["d"])], None).unwrap();
    let (depot, driver) = (("depot", "x"), ("driverId", "d"));
    for (tags, boundary, other) in [
        ([depot, driver], "depot:x", moved("x", "z", &["e"])),
        ([driver, depot], "driverId:d", moved("y", "z", &["d"])),
    ] {
        let plan = plan(vec![item(&tags, &["Moved"])]).unwrap();
        let reads: Vec<_> = plan.reads.iter().map(|read| read.boundary.as_str()).collect();
        assert_eq!(reads, [boundary]);
        let read = || log.read_with_seen(&plan, Consistency::Strong, &envelope);
        let (events, seen) = block_on(read()).unwrap();
        assert!(events.is_empty(), "no event has both tags: {events:?}");
        // An event with only the first tag is a conflict too.
        append(&log, events![other], None).unwrap();
        let error = append(&log, events![Noted {}], Some(&seen)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("conflict: {boundary} holds")), "{error}");
    }
}

#[test]
fn a_key_is_read_by_index_items_everywhere_or_nowhere() {
    #[derive(Event)]
    struct Left {
        #[tag(partition)]
        parcel_id: String,
        #[tag(key = "depot", cross_partition)]
        depot: String,
    }
    let left = Left { parcel_id: "p".to_owned(), depot: "x".to_owned() };
    assert_eq!(left.tags().len(), 2);
    let other = Catalog::new("others", [Left::SCHEMA]).unwrap();
    let error = Catalog::compose([catalog(), other]).unwrap_err();
    assert_eq!(
        error,
        CatalogError::ScopeDiffers {
            key: "depot".into(),
            event_type: "Left".into(),
            other: "Arrived".into()
        }
    );
    for way in ["#[tag(cross_partition, strong)] at each", "#[tag(key = \"…\")]"] {
        assert!(error.to_string().contains(way), "{error}");
    }
}

#[test]
fn an_event_has_one_value_of_its_partition() {
    #[derive(Event)]
    struct Swapped {
        #[tag(partition, key = "seat")]
        one: String,
        #[tag(key = "seat")]
        other: String,
    }
    let swapped = Swapped { one: "1".to_owned(), other: "2".to_owned() };
    assert_eq!(swapped.tags().len(), 2);
    // The macro refuses an optional one, but a list that is made by hand may have it.
    let mut optional = Swapped::SCHEMA;
    optional.tags = vec![TagSchema { required: false, ..optional.tags[0].clone() }].into();
    for schema in [Swapped::SCHEMA, optional] {
        let error = Catalog::new("seats", [schema]).unwrap_err();
        let (key, event_type) = ("seat".into(), "Swapped".into());
        assert_eq!(error, CatalogError::PartitionNotSingle { key, event_type });
    }
}

#[test]
fn a_command_reads_a_type_alone_when_no_tag_finds_it() {
    let query = |tags: Vec<Tag>, consumed: &[&'static str]| {
        Query::of_command(&[], tags, consumed.iter().copied(), &catalog()).items
    };
    let alone = item(&[], &["Numbered"]);
    assert_eq!(query(vec![], &["Numbered"]), std::slice::from_ref(&alone));
    let depot = [("depot", "x")];
    let expected = [item(&depot, &["Arrived"]), alone];
    assert_eq!(query(vec![Tag::new("depot", "x")], &["Arrived", "Numbered"]), expected);
    // A tag that finds it is cheaper than the one fence of all events of the type.
    let number = [("number", "7")];
    assert_eq!(query(vec![Tag::new("number", "7")], &["Numbered"]), [item(&number, &["Numbered"])]);
}

fn append(
    log: &MemoryLog,
    events: Vec<NewEvent>,
    seen: Option<&Seen>,
) -> Result<Appended, LogError> {
    let envelope = &Envelope::default();
    block_on(log.append(Append { events, seen, record: None, envelope }))
}

#[test]
fn the_condition_includes_events_of_index_items() {
    let (log, envelope) = (MemoryLog::new(catalog()), Envelope::default());
    let conflict = |read: QueryItem, then: Vec<NewEvent>| {
        let plan = plan(vec![read]).unwrap();
        let read = log.read_with_seen(&plan, Consistency::Eventual, &envelope);
        let (_, seen) = block_on(read).unwrap();
        append(&log, then, None).unwrap();
        match append(&log, events![Noted {}], Some(&seen)) {
            Ok(_) => None,
            Err(LogError::Conflict(conflict)) => Some(conflict.to_string()),
            Err(error) => panic!("{error}"),
        }
    };
    let to_x = || item(&[("depot", "x")], &["Moved"]);
    let found = conflict(to_x(), events![moved("y", "x", &[])]);
    assert_eq!(found.as_deref(), Some("depot:x holds 1 Moved, seen 0"));
    assert_eq!(conflict(to_x(), events![moved("y", "z", &[])]), None);
    let found = conflict(item(&[], &["Numbered"]), events![Numbered { number: 1 }]);
    assert_eq!(found.as_deref(), Some("$type:Numbered holds 1 Numbered, seen 0"));
    assert_eq!(conflict(item(&[], &["Numbered"]), events![moved("y", "x", &["d"])]), None);
}

struct Parcels;

impl Context for Parcels {
    const NAME: &'static str = "parcels";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Ok(catalog())
    }
}

/// Notes how often a depot was reached.
#[derive(Clone, Debug, PartialEq, Command)]
struct Count {
    #[tag(key = "depot", cross_partition)]
    depot: String,
}

#[derive(Reads)]
enum Arrivals {
    Arrived {},
}

impl Slice for Count {
    const NAME: &'static str = "count";
    type Context = Parcels;
    type State = crate::shop::Count<Arrivals>;
    type Writes = Noted;
    type Rejection = Never;

    fn decide(&self, _: &Self::State, _: &CommandContext) -> Result<Vec<Noted>, Never> {
        Ok(vec![])
    }
}

/// An older version lacks the type of an event in index items.
#[test]
fn a_decision_fails_at_an_index_item_of_its_context_with_an_unknown_type() {
    let old = Catalog::new("parcels", [Arrived::SCHEMA, Noted::SCHEMA]).unwrap();
    let count = |log: &MemoryLog, catalog: &Catalog| {
        let (decisions, envelope) = (Decisions::new(0), Envelope::default());
        let count = Count { depot: "x".to_owned() };
        let handled = block_on(handle(log, catalog, &decisions, &count, &envelope));
        handled.map(drop).map_err(|error| error.to_string())
    };
    let log = MemoryLog::new(catalog());
    append(&log, events![Arrived { depot: "x".to_owned() }, moved("y", "z", &[])], None).unwrap();
    assert_eq!(count(&log, &old), Ok(()));
    append(&log, events![moved("x", "y", &[])], None).unwrap();
    let unknown =
        "event parcelId:p/2 is of the type Moved, which the catalog of parcels does not have";
    assert_eq!(count(&log, &old), Err(unknown.to_owned()));
    assert_eq!(count(&log, &catalog()), Ok(()));
    // An event of another context does not concern it.
    let of = |mut event: SequencedEvent| {
        event.context = if event.event_type == "Moved" { "doors" } else { "parcels" }.to_owned();
        event
    };
    let shared = MemoryLog::of(catalog(), log.events().into_iter().map(of)).unwrap();
    assert_eq!(count(&shared, &old), Ok(()));
}

#[test]
fn an_index_item_is_an_action_and_has_bytes() {
    let log = MemoryLog::new(catalog());
    let numbered = |events: usize, bytes: usize| {
        let data = serde_json::json!({ "number": 1, "note": "x".repeat(bytes) });
        let event = NewEvent { data, ..Numbered { number: 1 }.into() };
        append(&log, vec![event; events], None).map(drop).map_err(|error| error.to_string())
    };
    // An event and its copy are two actions, the type's fence is one.
    assert_eq!(numbered(49, 1), Ok(()));
    let error = numbered(50, 1).unwrap_err();
    assert!(error.starts_with("the command's transaction: 101 actions, limit 100"), "{error}");
    assert_eq!(numbered(6, 300_000), Ok(()));
    let error = numbered(7, 300_000).unwrap_err();
    assert!(error.starts_with("the command's transaction: 420"), "{error}");
}

#[test]
fn a_page_is_cut_after_the_query_and_in_its_direction() {
    let log = MemoryLog::new(catalog());
    for events in [
        events![Noted {}, moved("x", "y", &[])],
        events![Numbered { number: 1 }, moved("y", "x", &[]), moved("z", "z", &[])],
    ] {
        append(&log, events, None).unwrap();
    }
    let all = log.events();
    let check = |items: Vec<QueryItem>, page: &Page, expected: &[usize]| {
        let reading = Reading::new(&Query { items }, &catalog()).unwrap();
        let found = log.query(&reading, page);
        let found = found.iter().map(|f| all.iter().position(|event| event == f).unwrap());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{page:?}");
    };
    let (after, limit) = (Some(all[1].place()), Some(2));
    let page = Page::default();
    check(vec![], &page, &[0, 1, 2, 3, 4]);
    check(vec![item(&[], &["Noted"])], &page, &[0]);
    check(vec![item(&[("depot", "x")], &[])], &page, &[1, 3]);
    let moved = || vec![item(&[], &["Moved"])];
    check(moved(), &Page { after: after.clone(), ..page.clone() }, &[3, 4]);
    check(moved(), &Page { limit, backwards: true, ..page.clone() }, &[4, 3]);
    check(vec![], &Page { after, limit, backwards: true }, &[0]);
    let nowhere = Query { items: vec![item(&[("colour", "red")], &[])] };
    assert!(matches!(Reading::new(&nowhere, &catalog()), Err(PlanError::NoRoute { .. })));
}
