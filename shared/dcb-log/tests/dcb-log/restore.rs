//! Events of a copy of the log are restored to their places.

use ringfence_aws::Item;
use ringfence_core::{
    Append, Appended, BoundaryId, CommandRecord, Envelope, EventLog, EventRef, FilingError,
    KEY_KEPT_SECONDS, LogError, Metadata, NewEvent, SequencedEvent, Tag, events,
};
use ringfence_dcb_log::Imported;

use crate::reads::{catalog, noted, plan, read};
use crate::stack::{NOW_MS, Stack, envelope};

#[tokio::test]
async fn an_event_of_a_copy_is_restored_to_its_place() {
    let (stack, copy) = (Stack::start(catalog()).await, Stack::start(catalog()).await);
    let log = stack.log();
    let mut events = Vec::new();
    for note in ["one", "two"] {
        let event = NewEvent::from(noted("b", "r", note));
        let Imported::Now(event) = log.import(note, event, &envelope()).await.expect("an import")
        else {
            panic!("it is there")
        };
        events.push(event);
    }
    let (first, second) = (events[0].clone(), events[1].clone());
    let restored = copy.log();
    restored.restorable(first.clone(), None).expect("it can");
    assert_eq!(restored.restore(first.clone(), None).await.expect("it is put"), first);
    // A later version and metadata stay, even if the catalog knows no later version.
    let second = SequencedEvent { version: 3, ..second };
    assert_eq!(restored.restore(second.clone(), None).await.expect("it is put"), second);
    let read = read(&copy, &plan(&copy, &[&[("readerId", "r")]])).await.expect("a read");
    assert_eq!(
        read.iter().map(SequencedEvent::id).collect::<Vec<_>>(),
        ["bookId:b/1", "bookId:b/2"]
    );
    // Its slot is taken.
    let again = restored.restore(first.clone(), None).await;
    assert!(matches!(again, Err(LogError::Conflict(_))), "{again:?}");
    // The fence of its reader has a later event, so it gets a later time.
    let other = SequencedEvent { partition: BoundaryId::tag("bookId", "c"), ..first.clone() };
    let tags = vec![Tag::new("bookId", "c"), Tag::new("readerId", "r")];
    let late =
        restored.restore(SequencedEvent { tags, ..other.clone() }, None).await.expect("it is put");
    assert_eq!((late.slot, late.at), (1, second.at + 1));
    for misplaced in [other, SequencedEvent { slot: 0, ..first }] {
        let refused = restored.restorable(misplaced, None);
        assert!(
            matches!(refused, Err(LogError::Filing(FilingError::Misplaced { .. }))),
            "{refused:?}"
        );
    }
    copy.check_fences().await;
}

/// The items of commands.
async fn records(stack: &Stack) -> Vec<Item> {
    let is_record = |item: &Item| item["id"].as_s().is_ok_and(|id| id.starts_with("command#"));
    stack.items().await.into_iter().filter(is_record).collect()
}

#[tokio::test]
async fn a_copy_of_events_has_the_items_of_their_commands() {
    let (stack, copy) = (Stack::start(catalog()).await, Stack::start(catalog()).await);
    let (log, envelope) = (stack.log(), envelope());
    let record = |key, n: u32| CommandRecord::new("note", key, &n);
    // The events of one command are in two partitions.
    let append = async |record: &CommandRecord, notes: Vec<NewEvent>| {
        let envelope = envelope.itemized(record);
        let append =
            Append { events: notes, seen: None, record: Some(record), envelope: &envelope };
        match log.append(append).await.expect("an append") {
            Appended::Committed(events) => events,
            Appended::Repeated(events) => panic!("{events:?}"),
        }
    };
    let notes = events![noted("b", "r", "1"), noted("c", "r", "2"), noted("b", "s", "3")];
    let events = append(&record("k", 1), notes).await;
    let restored = copy.log();
    let restore = async |event: SequencedEvent| {
        let record = CommandRecord::of_item(&event.metadata);
        restored.restore(event, record).await
    };
    for event in &events {
        assert_eq!(restore(event.clone()).await.expect("put").at, event.at);
    }
    assert_eq!(records(&copy).await, records(&stack).await);
    let recorded = async |record: CommandRecord| restored.recorded(&record, &envelope).await;
    let refs: Vec<EventRef> = events.iter().map(EventRef::from).collect();
    assert_eq!(recorded(record("k", 1)).await.expect("read"), Some(refs.clone()));
    let refused =
        async |record: CommandRecord| recorded(record).await.expect_err("it is another's");
    assert!(matches!(refused(record("k", 2)).await, LogError::KeyReused(_)));

    // An event without a hash may belong to a command with this key.
    let next = |slot, metadata: Metadata| SequencedEvent { slot, metadata, ..events[2].clone() };
    let of = |record: &CommandRecord| Envelope::default().itemized(record).metadata;
    let older = CommandRecord { sha256: String::new(), ..record("old", 1) };
    let mut metadata = of(&older);
    metadata.insert(CommandRecord::ITEM, ()).expect("not reserved");
    let at = events[2].at;
    let older_event = SequencedEvent { at: at + 1, ..next(3, metadata) };
    restore(older_event).await.expect("put");
    let reused = refused(record("old", 1)).await.to_string();
    assert!(reused.contains("has the event bookId:b/3, which does not say"), "{reused}");
    // Another command has this key. The restore does not take the key, and puts nothing.
    let other = SequencedEvent { at: at + 2, ..next(4, of(&record("k", 2))) };
    let reused = restore(other.clone()).await.expect_err("the key is taken");
    assert!(matches!(&reused, LogError::KeyReused(it) if it.key == "k"), "{reused:?}");
    // After the item has expired the key would be free, but then there is no item to restore.
    copy.clock.set(NOW_MS + (KEY_KEPT_SECONDS + 1) * 1_000);
    restore(other).await.expect("put");
    assert_eq!(records(&copy).await.len(), 2);

    // An event that is imported from a local copy gets the item as well.
    let imported = Stack::start(catalog()).await;
    let log = imported.log();
    for (n, event) in events.iter().enumerate() {
        imported.clock.set(event.at);
        let envelope = Envelope { metadata: event.metadata.clone(), ..envelope.clone() };
        let new = imported.catalog.current(event).expect("it is known").into();
        log.import(&n.to_string(), new, &envelope).await.expect("an import");
    }
    assert_eq!(records(&imported).await, records(&stack).await);
    copy.check_fences().await;
}
