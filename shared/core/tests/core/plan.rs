//! Routes: the read of each clause, and errors when a function starts.

use ringfence_core::{
    Access, BOUNDARY_BYTES_MAX, BoundaryId, Catalog, CatalogError, Event as _, EventSchema,
    NewEvent, Plan, PlanError, Query, QueryItem, Reading, Slice, SliceError, Tag, TagSchema,
    prelude::*,
};

use crate::shop::{Book, Booked, Priced, Rated, booked, catalog, closed};

fn item(tags: &[(&'static str, &str)], types: &[&'static str]) -> QueryItem {
    let tags = tags.iter().map(|(key, value)| Tag::new(*key, *value)).collect();
    QueryItem { tags, types: types.iter().copied().map(Into::into).collect() }
}

fn plan(items: &[QueryItem]) -> Result<Plan, PlanError> {
    Plan::new(&Query { items: items.to_vec() }, &catalog().unwrap())
}

/// Checks that `items` have one read, of `boundary` by `access`.
#[track_caller]
fn check(items: &[QueryItem], boundary: &str, access: Access) {
    let plan = plan(items).unwrap();
    let reads: Vec<_> = plan.reads.iter().map(|r| (r.boundary.as_str(), &r.access)).collect();
    assert_eq!(reads, [(boundary, &access)]);
}

#[test]
fn each_kind_of_clause_has_its_route() {
    let room = ("roomId", "r1");
    let guest = Tag::new("guestId", "g1");
    check(&[item(&[room], &["Booked", "Cleaned"])], "roomId:r1", Access::Partition);
    let by_guest = item(&[("guestId", "g1")], &["Booked"]);
    check(&[by_guest], "guestId:g1", Access::TagIndex(guest.clone()));
    // A part of the type's tags: the partition is read and filtered by the other tag.
    check(&[item(&[("shiftId", "3"), room], &["Cleaned"])], "roomId:r1", Access::Partition);
    check(&[item(&[("guestId", "g1"), room], &["Booked"])], "roomId:r1", Access::Partition);
    let pair = [room, ("reviewId", "v#1")];
    let [first, second] = pair.map(|(key, value)| Tag::new(key, value));
    let composite = || Access::CompositeIndex(vec![second.clone(), first.clone()]);
    check(&[item(&pair, &["Rated"])], "reviewId:v%231#roomId:r1", composite());
    // Both orders give one read.
    let both = [item(&pair, &["Rated"]), item(&[pair[1], pair[0]], &["Rated"])];
    check(&both, "reviewId:v%231#roomId:r1", composite());
    let night = [room, ("night", "a|b")];
    check(&[item(&night, &["Priced"])], "roomId+night:r1|a%7Cb", Access::Partition);
}

#[test]
fn clauses_on_one_boundary_share_a_read() {
    let items = [item(&[("roomId", "r1")], &["Booked"]), item(&[("roomId", "r1")], &["Cleaned"])];
    let plan = plan(&items).unwrap();
    assert_eq!(plan.reads.len(), 1);
    assert_eq!(plan.reads[0].types.len(), 2);
}

#[test]
fn a_repeated_tag_in_a_clause_counts_once() {
    let room = ("roomId", "r1");
    let guest = ("guestId", "g1");
    // Rated is read as a composite of two tags, and this is only one.
    check(&[item(&[room, room], &["Rated", "Booked"])], "roomId:r1", Access::Partition);
    let twice = [item(&[room, room], &["Rated"]), item(&[guest, room, guest], &["Booked"])];
    let once = [item(&[room], &["Rated"]), item(&[guest, room], &["Booked"])];
    let [twice, once] = [twice, once].map(|items| Query { items: items.to_vec() });
    let catalog = catalog().unwrap();
    assert_eq!(Plan::new(&twice, &catalog), Plan::new(&once, &catalog));
    assert_eq!(Reading::new(&twice, &catalog), Reading::new(&once, &catalog));
}

#[test]
fn a_partition_is_read_as_fenced_if_all_read_types_are_fenced() {
    let fenced = |items: &[QueryItem]| {
        let reads = plan(items).unwrap().reads;
        reads.iter().map(|read| (read.boundary.to_string(), read.fenced)).collect::<Vec<_>>()
    };
    let of_room = |types: &[&'static str]| item(&[("roomId", "r1")], types);
    let room = |fenced| vec![("roomId:r1".to_owned(), fenced)];
    assert_eq!(fenced(&[of_room(&["Closed"])]), room(true));
    assert_eq!(fenced(&[of_room(&["Cleaned"])]), room(false));
    assert_eq!(fenced(&[of_room(&["Cleaned", "Closed"])]), room(false));
    assert_eq!(fenced(&[of_room(&["Closed"]), of_room(&["Cleaned"])]), room(false));
    // For a clause with further tags the partition is read.
    let shift = item(&[("roomId", "r1"), ("shiftId", "3")], &["Cleaned"]);
    assert_eq!(fenced(&[of_room(&["Closed"]), shift]), room(false));
    let guest = item(&[("guestId", "g1")], &["Booked"]);
    assert_eq!(fenced(&[guest]), [("guestId:g1".to_owned(), false)]);
}

#[test]
fn a_type_with_only_partition_tags_is_read_as_its_partition() {
    #[derive(Event)]
    #[event(read_as_composite)]
    struct Seated {
        #[tag(partition)]
        room_id: String,
        #[tag(partition)]
        guest_id: String,
    }
    let catalog = Catalog::new("seats", [Seated::SCHEMA]).unwrap();
    let seated = Seated { room_id: "r1".to_owned(), guest_id: "g1".to_owned() }.into();
    let filing = catalog.filing(&seated).unwrap();
    assert_eq!(filing.partition.as_str(), "roomId+guestId:r1/g1");
    assert!(filing.fences.is_empty() && filing.composite.is_none(), "{filing:?}");
    assert!(catalog.indexes().is_empty());
    let items = vec![item(&[("guestId", "g1"), ("roomId", "r1")], &["Seated"])];
    let reads = Plan::new(&Query { items }, &catalog).unwrap().reads;
    let reads: Vec<_> = reads.iter().map(|read| (read.boundary.clone(), &read.access)).collect();
    assert_eq!(reads, [(filing.partition, &Access::Partition)]);
}

#[test]
fn a_clause_without_a_read_is_refused() {
    let refused = |items: &[QueryItem]| plan(items).unwrap_err().to_string();
    // The read of another clause need not contain the events of a clause with several tags.
    let pair = item(&[("helperId", "h1"), ("shiftId", "3")], &["Cleaned"]);
    let error = refused(&[item(&[("roomId", "r1")], &["Cleaned"]), pair]);
    assert!(error.starts_with("no read returns Cleaned by helperId and shiftId"), "{error}");
    assert_eq!(
        refused(&[item(&[("helperId", "h1")], &["Cleaned"])]),
        "no read returns Cleaned by helperId: partition it by one of these tags, declare one \
         #[tag(cross_partition)], or declare the type #[event(read_as_composite)]"
    );
    assert_eq!(
        refused(&[item(&[], &["Opened"])]),
        "Opened is read by its type alone: declare it #[event(read_by_type)], which makes one \
         fence of all its events, or give the command a tag that the event carries"
    );
    assert_eq!(
        refused(&[item(&[("roomId", "")], &["Booked"])]),
        "tag roomId is empty; it names no boundary"
    );
    assert_eq!(
        refused(&[item(&[("roomId", "r1")], &[])]),
        "a clause of a decision names the event types that it reads"
    );
    let long = "x".repeat(BOUNDARY_BYTES_MAX - "roomId:".len());
    assert!(plan(&[item(&[("roomId", &long)], &["Booked"])]).is_ok());
    assert_eq!(
        refused(&[item(&[("roomId", &format!("{long}x"))], &["Booked"])]),
        "tag roomId makes a boundary of 2037 bytes, limit 2036"
    );
    // An event with such a tag can't be filed, even if its partition's value is short.
    let mut booked = NewEvent::from(booked("r1", "g1"));
    booked.tags[1] = Tag::new("guestId", long);
    assert_eq!(
        catalog().unwrap().filing(&booked).unwrap_err().to_string(),
        "tag guestId makes a boundary of 2037 bytes, limit 2036"
    );
    // The name of a stream has no key, so the error has the tag's key, and the id is not repeated.
    let schema = EventSchema { tags: Booked::SCHEMA.tags[..1].to_vec().into(), ..Booked::SCHEMA };
    let rooms = Catalog::of_streams("rooms", [schema]).unwrap();
    let tags = vec![Tag::new("roomId", "x:#".repeat(1_000))];
    let error = rooms.filing(&NewEvent { tags, ..booked }).unwrap_err().to_string();
    assert_eq!(error, "tag roomId makes a boundary of 3006 bytes, limit 2036");
}

#[test]
fn a_secondary_tag_matches_only_events_that_it_partitions() {
    // The list `helperIds` makes a clause for each helper. Cleaned is found by its room.
    let items =
        [item(&[("roomId", "r1")], &["Cleaned"]), item(&[("helperId", "h1")], &["Cleaned"])];
    let plan = plan(&items).unwrap();
    let reads: Vec<_> = plan.reads.iter().map(|read| read.boundary.as_str()).collect();
    assert_eq!(reads, ["roomId:r1"]);
}

#[test]
fn an_event_is_filed_where_it_can_be_read() {
    let filed = |event: NewEvent| {
        let filing = catalog().unwrap().filing(&event).unwrap();
        let fences: Vec<_> = filing.fences.iter().map(ToString::to_string).collect();
        (filing.partition.to_string(), fences.join(" "))
    };
    let filing = |partition: &str, fences: &str| (partition.to_owned(), fences.to_owned());
    assert_eq!(filed(booked("r1", "g1").into()), filing("roomId:r1", "guestId:g1"));
    let rated = |review: &str| Rated { room_id: id("r1"), review_id: review.to_owned() };
    assert_eq!(filed(rated("v1").into()), filing("roomId:r1", "reviewId:v1#roomId:r1"));
    // A control character beyond ASCII.
    assert_eq!(filed(rated("\u{9b}").into()), filing("roomId:r1", "reviewId:%C2%9B#roomId:r1"));
    assert_eq!(filed(rated("").into()), filing("roomId:r1", ""));
    let priced = Priced { room_id: id("r1"), night: "n/1".to_owned() };
    assert_eq!(filed(priced.into()), filing("roomId+night:r1|n%2F1", ""));
    // Only the types that are declared `fenced` are counted by partition.
    assert_eq!(filed(closed("r1").into()), filing("roomId:r1", "roomId:r1"));
}

#[test]
fn an_empty_partition_value_is_refused() {
    let priced = Priced { room_id: id("r1"), night: String::new() };
    let error = catalog().unwrap().filing(&priced.into()).unwrap_err();
    assert_eq!(error.to_string(), "Priced needs a value for its partition tag night");
}

#[test]
fn a_key_has_one_scope_in_a_stack() {
    let partition = TagSchema {
        key: "guestId".into(),
        partition: true,
        cross_partition: false,
        strong: false,
        many: false,
        required: true,
        computed: false,
        blind: false,
    };
    let (name, tags) = ("Greeted".into(), vec![partition].into());
    let greeted = ringfence_core::EventSchema { name, tags, ..Booked::SCHEMA };
    let lobby = Catalog::new("lobby", [greeted]).unwrap();
    let error = Catalog::compose([catalog().unwrap(), lobby]).unwrap_err();
    assert_eq!(
        error,
        CatalogError::ScopeDiffers {
            key: "guestId".into(),
            event_type: "Greeted".into(),
            other: "Booked".into()
        }
    );
    // A context that reads another context's events also has them in its catalog.
    assert!(Catalog::compose([catalog().unwrap(), catalog().unwrap()]).is_ok());
}

#[test]
fn a_type_has_one_schema_in_a_stack() {
    let changed = || ringfence_core::EventSchema { fenced: true, ..Booked::SCHEMA };
    let rooms = |schemas: Vec<ringfence_core::EventSchema>| Catalog::new("rooms", schemas);
    let twice =
        |first, second| CatalogError::DuplicateType { name: "Booked".into(), first, second };
    // In another context, or differently in the same one.
    let lobby = Catalog::new("lobby", [Booked::SCHEMA]).unwrap();
    let composed = |other: Catalog| Catalog::compose([catalog().unwrap(), other]).map(drop);
    assert_eq!(composed(lobby), Err(twice("rooms".into(), "lobby".into())));
    let of_one = Err(twice("rooms".into(), "rooms".into()));
    assert_eq!(composed(rooms(vec![changed()]).unwrap()), of_one);
    assert_eq!(rooms(vec![Booked::SCHEMA, changed()]).map(drop), of_one);
    assert_eq!(rooms(vec![Booked::SCHEMA, Booked::SCHEMA]).map(drop), of_one);
}

#[test]
fn types_of_one_fence_declare_the_same_copies() {
    let of = |name: &'static str, fenced, copies| {
        let name = name.into();
        ringfence_core::EventSchema { name, fenced, copies, ..Booked::SCHEMA }
    };
    let rooms = |schemas| Catalog::new("rooms", schemas).map(drop);
    let (event_type, other) = ("B".into(), "A".into());
    let error = CatalogError::CopiesDiffer { event_type, other, copies: [0, 16] };
    assert_eq!(rooms([of("A", true, 16), of("B", true, 0)]), Err(error));
    assert_eq!(rooms([of("A", true, 16), of("B", true, 16)]), Ok(()));
    assert_eq!(rooms([of("A", true, 16), of("B", false, 0)]), Ok(()));
    let mut elsewhere = of("B", true, 0);
    elsewhere
        .tags
        .to_mut()
        .iter_mut()
        .filter(|tag| tag.partition)
        .for_each(|tag| tag.key = "room".into());
    assert_eq!(rooms([of("A", true, 16), elsewhere]), Ok(()));

    // The same fence counts events of other partitions that have its tag.
    let by = |name, partition: &str, copies| {
        let mut schema = of(name, true, copies);
        for tag in schema.tags.to_mut() {
            (tag.partition, tag.cross_partition) = (*tag.key == *partition, true);
        }
        schema
    };
    let (event_type, other) = ("B".into(), "A".into());
    let error = CatalogError::CopiesDiffer { event_type, other, copies: [0, 16] };
    assert_eq!(rooms([by("A", "roomId", 16), by("B", "guestId", 0)]), Err(error));

    let alone = |copies| Catalog::new("rooms", [of("A", true, copies)]).map(drop);
    let error = |copies| Err(CatalogError::Copies { event_type: "A".into(), copies });
    assert_eq!([1, 2, 64, 65].map(alone), [error(1), Ok(()), Ok(()), error(65)]);
}

#[test]
fn a_slice_that_disagrees_with_its_catalog_does_not_start() {
    assert_eq!(ringfence_core::check::<Book>(&catalog().unwrap()), Ok(()));
    let mut changed = Booked::SCHEMA;
    changed.tags.to_mut().iter_mut().for_each(|tag| tag.cross_partition = false);
    let narrow = Catalog::new("rooms", [changed]).unwrap();
    let error = ringfence_core::check::<Book>(&narrow).unwrap_err();
    assert_eq!(error, SliceError::Undeclared { slice: "book", event_type: "Booked".into() });
}

#[test]
fn boundaries_of_a_command_follow_from_its_tags() {
    let query = book_query();
    let clauses: Vec<_> = query.items.iter().map(|item| item.tags.clone()).collect();
    let expected = [("guestId", "g1"), ("roomId", "r1")].map(|(k, v)| vec![Tag::new(k, v)]);
    assert_eq!(clauses, expected);
}

fn book_query() -> Query {
    let book = crate::shop::book("r1", "g1");
    Book::query(book.shape(), book.tags(), &catalog().unwrap())
}

#[test]
fn names_are_escaped_only_in_ids() {
    assert_eq!(BoundaryId::tag("night", "a:b#c").as_str(), "night:a%3Ab%23c");
}
