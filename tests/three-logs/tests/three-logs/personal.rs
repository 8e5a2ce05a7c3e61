//! Personal data on each log, with keys in a table.

pub(crate) mod addresses;
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

use addresses::Claim;
use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::Meter;
use ringfence_core::kit::id;
use ringfence_core::{
    Context, Envelope, KEPT_OPEN_MS, LogKind, LogName, LogOf, NewEvent, OnLog, Outcome, Slice, Tag,
};
use ringfence_log::Log;
use ringfence_subjects::Purpose;
use serde_json::json;

use crate::costs::{Cost, ROWS, cost, metered};
use crate::stack::Stack;

/// An event from before its field was personal.
fn in_clear() -> NewEvent {
    let data = json!({ "guestId": "g1", "personId": "p1", "name": "Ada" });
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
    let open = |kept| LogOf::<S>::open(stack.table(log), kept).expect(S::NAME).0;
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

    stack.keys().forget("p1", 1, "asked for it").await.expect("a fence");
    stack.clock.set(stack.clock.now_ms() + KEPT_OPEN_MS + 1);
    // No key is made again, so the new events have no value.
    for on in [&warm, &cold] {
        on.handle(&greet, &envelope).await.expect("it is settled");
    }
    let after = stored(&stack, &stack.table(log).name).await;
    let count = |texts: &[String], text: &str| texts.iter().filter(|it| it.contains(text)).count();
    assert!(count(&after, "$forgotten") >= 2, "{after:?}");
    assert_eq!(count(&after, "Ada"), count(&texts, "Ada"), "{after:?}");
}

#[tokio::test]
async fn a_value_in_clear_from_before_stays_so_in_states_and_is_sealed_in_new_events() {
    check(dcb::guests::Greet { guest_id: id("g1") }, true).await;
    check(aggregates::guests::Greet { guest_id: id("g1") }, false).await;
    check(documents::guests::Greet { guest_id: id("g1") }, true).await;
}

/// The costs of three new guests, of whom the last two are one person.
async fn costs<S: Slice<Context: Context<Log: Log<S>>>>(
    know: impl Fn(&str, &str) -> S,
) -> [Option<Cost>; 3] {
    let (stack, envelope) = (Stack::start().await, Envelope::default());
    let (on, meter) = LogOf::<S>::open(stack.table(LogOf::<S>::KIND), 0).expect(S::NAME);
    let know = async |guest, person| {
        let known =
            async { drop(on.handle(&know(guest, person), &envelope).await.expect("known")) };
        metered(&meter, known).await
    };
    [know("g1", "p1").await, know("g2", "p2").await, know("g3", "p2").await]
}

#[tokio::test]
async fn a_command_pays_for_the_keys_of_new_persons_alone() {
    macro_rules! costs_on {
        ($log:ident) => {
            costs(|guest, person| $log::guests::Know {
                guest_id: id(guest),
                person_id: id(person),
                name: "Ada".to_owned().into(),
            })
            .await
        };
    }
    let measured = [costs_on!(dcb), costs_on!(aggregates), costs_on!(documents)];
    // A new account has no personal data. On the DCB log, this slice also looks for a snapshot.
    let plain = ROWS[0].1.into_iter().flatten().zip([1, 0, 0]);
    for (measured, (plain, looks)) in measured.into_iter().zip(plain) {
        let Cost { requests: (reads, writes), read, write } = plain;
        let (reads, read) = (reads + looks, read + f64::from(looks) / 2.0);
        // The first looks for the person and for the branch key, and puts both.
        let first = cost(reads + 2, writes + 2, read + 1.5, write + 2.0);
        let second = cost(reads + 1, writes + 1, read + 0.5, write + 1.0);
        assert_eq!(measured, [first, second, cost(reads, writes, read, write)]);
    }
}

/// The cost of a claim, and whether it is accepted.
async fn claim((on, meter): &(impl OnLog<Claim>, Meter), address: &str) -> (Option<Cost>, bool) {
    let claim = Claim { owner_id: id(address), email: address.to_owned().into() };
    let mut accepted = false;
    let claimed = async {
        let handled = on.handle(&claim, &Envelope::default()).await.expect("settled");
        accepted = matches!(handled.outcome, Outcome::Accepted(_));
    };
    (metered(meter, claimed).await, accepted)
}

#[tokio::test]
async fn an_address_is_claimed_once_by_functions_that_know_other_blind_keys() {
    let stack = Stack::start().await;
    let function = || LogOf::<Claim>::open(stack.table(LogKind::Dcb), 0).expect("a function");
    let (old, new) = (function(), function());
    let accepts = async |function: &_, address: &str| claim(function, address).await.1;
    let wait = |minutes: u64| stack.clock.set(stack.clock.now_ms() + 60_000 * minutes);
    assert!(accepts(&old, "a").await && !accepts(&old, "a").await);
    let one = claim(&old, "b").await;
    wait(40);
    assert!(!accepts(&old, "b").await, "it knows the first key for ten minutes");
    stack.vault().rotate(Purpose::Blind).await.expect("a second key");
    assert!(!accepts(&new, "a").await && accepts(&new, "c").await && !accepts(&old, "c").await);
    assert!(accepts(&old, "d").await && !accepts(&new, "d").await);
    wait(40);
    assert!(accepts(&new, "e").await && !accepts(&old, "e").await);
    assert!(accepts(&old, "f").await && !accepts(&new, "f").await);
    for address in ["a", "b", "c", "d"] {
        assert!(!accepts(&old, address).await && !accepts(&new, address).await, "{address}");
    }
    let tags = stored(&stack, "events").await;
    let under = |key: &str| tags.iter().filter(|text| text.contains(key)).count();
    assert_eq!((under("b1.") > 0, under("b2.") > 0), (true, true), "{tags:?}");
    // The person is new, and the boundary under the old key is read and checked.
    assert_eq!(one, (cost(3, 2, 1.5, 6.0), true));
    assert_eq!(claim(&new, "g").await, (cost(4, 2, 2.0, 8.0), true));
}
