//! Personal data on each log, with keys in a table.

#[path = "personal"]
mod dcb {
    pub(crate) use ringfence_dcb_log::Dcb as OfLog;
    #[path = "guests.rs"]
    pub(crate) mod guests;
}
#[path = "personal"]
mod aggregates {
    pub(crate) use ringfence_aggregate_log::Aggregates as OfLog;
    #[path = "guests.rs"]
    pub(crate) mod guests;
}
#[path = "personal"]
mod documents {
    use ringfence_document_log::Documents;

    #[path = "guests.rs"]
    pub(crate) mod guests;
    pub(crate) type OfLog = Documents<guests::Guest>;
}

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_core::{
    Context, Envelope, HandleError, KEPT_OPEN_MS, LogError, LogName, LogOf, NewEvent, OnLog,
    Outcome, Slice, Tag, VaultError,
};
use ringfence_log::{InTable, Log};
use serde_json::json;

use crate::stack::Stack;

/// An event from before its field was personal.
fn in_clear() -> NewEvent {
    let data = json!({ "guestId": "g1", "name": "Ada" });
    NewEvent { event_type: "GuestNamed".into(), tags: vec![Tag::new("guestId", "g1")], data }
}

/// All texts of a table, of which none is compressed.
async fn stored(stack: &Stack, table: &str) -> Vec<String> {
    fn texts(value: AttributeValue) -> Vec<String> {
        match value {
            AttributeValue::B(bytes) => vec![String::from_utf8_lossy(bytes.as_ref()).into_owned()],
            AttributeValue::M(fields) => {
                let texts = |(name, value)| std::iter::once(name).chain(texts(value));
                fields.into_iter().flat_map(texts).collect()
            }
            AttributeValue::L(values) => values.into_iter().flat_map(texts).collect(),
            other => vec![format!("{other:?}")],
        }
    }
    let items = stack.client.scan().table_name(table).send().await.expect("the items").items;
    items.expect("items").into_iter().flat_map(|item| texts(AttributeValue::M(item))).collect()
}

async fn check<S: Slice<Context: Context<Log: Log<S>>>>(greet: S, has_states: bool) {
    let (stack, envelope, log) = (Stack::start().await, Envelope::default(), LogOf::<S>::KIND);
    let open = |kept| {
        let table = InTable { vault: Some(stack.vault()), ..stack.table(log) };
        LogOf::<S>::open(table, kept).expect(S::NAME).0
    };
    let (warm, cold) = (open(1), open(0));
    warm.add(vec![in_clear()], &envelope).await.expect("it is stored");
    for on in [&warm, &warm, &open(0), &cold] {
        let handled = on.handle(&greet, &envelope).await.expect("it is settled");
        assert!(matches!(&handled.outcome, Outcome::Accepted(events) if events.len() == 1));
    }
    let texts = stored(&stack, &stack.table(log).name).await;
    let count = |text: &str| texts.iter().map(|it| it.matches(text).count()).sum::<usize>();
    assert_eq!(count("Ada"), if has_states { 2 } else { 1 }, "the event, the state: {texts:?}");
    // Four greetings, and the last of them in the state.
    assert_eq!(count("$sealed"), if has_states { 5 } else { 4 }, "{texts:?}");
    assert_eq!(count("$personal") + count("plain"), 0, "{texts:?}");

    stack.keys().forget("g1", 1, "asked for it").await.expect("a fence");
    stack.clock.set(stack.clock.now_ms() + KEPT_OPEN_MS + 1);
    for on in [&warm, &cold] {
        let refused = on.handle(&greet, &envelope).await.expect_err("no key is made again");
        let HandleError::Log(LogError::Vault(VaultError::Forgotten(subject))) = refused else {
            panic!("{refused}");
        };
        assert_eq!(subject, "g1");
    }
}

#[tokio::test]
async fn a_value_in_clear_from_before_stays_so_in_states_and_is_sealed_in_new_events() {
    use ringfence_core::kit::id;
    check(dcb::guests::Greet { guest_id: id("g1") }, true).await;
    check(aggregates::guests::Greet { guest_id: id("g1") }, false).await;
    check(documents::guests::Greet { guest_id: id("g1") }, true).await;
}
