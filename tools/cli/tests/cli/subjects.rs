//! `subjects`.

use std::{process::Command, sync::Arc};

use aws_sdk_dynamodb::types::AttributeValue;
use ringfence_aws::{Clock, Item};
use ringfence_core::{
    Append, Appended, BoundaryId, Context, Envelope, EventLog, NewEvent, SequencedEvent, Vaulted,
    kit::id,
};
use ringfence_dcb_log::DcbLog;
use ringfence_programs::shop::{CustomerMet, Packed};
use ringfence_services::personal_data::{PersonalData, SubjectForgotten};
use ringfence_subjects::{KeyTable, KeyVault, Wrap, table_layout};
use serde_json::{Value, json};

use crate::world::{EVENTS, World, log};

const KEYS: &str = "keys";

/// A stack with a table of keys.
struct Hotel(World);

/// The event of a customer with this name, as JSON.
fn met(customer: &str, name: impl Into<Value>) -> NewEvent {
    let event = CustomerMet { customer_id: id(customer), name: String::new().into() };
    let data = json!({ "customerId": customer, "name": name.into() });
    NewEvent { data, ..event.into() }
}

/// A personal value.
fn of(subject: &str, value: &str) -> Value {
    json!({ "$personal": value, "of": subject })
}

impl Hotel {
    async fn start() -> Self {
        let world = World::start().await;
        world.dynamo.create_table(&table_layout().properties(), KEYS).unwrap();
        let hotel = Self(world);
        std::fs::write(hotel.key_file(), [1; 32]).unwrap();
        hotel
    }

    fn key_file(&self) -> String {
        self.0.folder.path().join("key").display().to_string()
    }

    /// Runs `subjects` with these words. Returns the status, the JSON and the error.
    fn command(&self, words: &str) -> Command {
        let words: Vec<_> = ["subjects"].into_iter().chain(words.split(' ')).collect();
        let mut command = self.0.command(&words);
        command.env("KEY_TABLE", KEYS).env("STACK_NAME", "hotel");
        command.env("PERSONAL_KEY", format!("file:{}", self.key_file()));
        command
    }

    fn subjects(&self, words: &str) -> (i32, Value, String) {
        let output = self.command(words).output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        let status = output.status.code().unwrap();
        assert!(status != 2, "{words:?}: {error}");
        (status, serde_json::from_str(&out).unwrap_or(out.into()), error)
    }

    /// Appends what a customer says, by a function that has just started.
    async fn met(&self, customer: &str, name: impl Into<Value>) {
        let Self(world) = self;
        let keys = KeyTable::new(world.client.clone(), KEYS, Clock::system());
        let wrap = Wrap::file(self.key_file().as_ref()).unwrap();
        let vault = Arc::new(KeyVault::new("hotel", keys, wrap, Clock::system()));
        let log = Vaulted::new::<Packed>(log(&world.client, Clock::system()), vault);
        let (events, envelope) = (vec![met(customer, name)], Envelope::default());
        let append = Append { events, seen: None, record: None, envelope: &envelope };
        let Appended::Committed(events) = log.append(append).await.unwrap() else { panic!() };
        self.index(&events).await;
    }

    async fn index(&self, events: &[SequencedEvent]) {
        let partitions: Vec<_> = events.iter().map(|event| &event.partition).collect();
        self.0.index(&partitions).await;
    }

    /// Indexes the events that `ada` was forgotten, and returns their number.
    async fn forgotten(&self) -> usize {
        let partition = BoundaryId::tag("subject", "ada");
        self.0.index(&[&partition]).await;
        let is_one =
            |item: &&Value| item["id"]["S"] == partition.as_str() && item["event"].is_object();
        self.0.dynamo.items(EVENTS).unwrap().iter().filter(is_one).count()
    }

    async fn item(&self, subject: &str) -> Item {
        let key = AttributeValue::S(format!("subject#{subject}"));
        let get = self.0.client.get_item().table_name(KEYS).key("p", key).consistent_read(true);
        get.send().await.unwrap().item.unwrap()
    }

    async fn put(&self, item: Item) {
        self.0.client.put_item().table_name(KEYS).set_item(Some(item)).send().await.unwrap();
    }

    /// Six minutes pass since the fence of a person was put.
    async fn wait(&self, subject: &str) {
        let mut item = self.item(subject).await;
        let put_at: u64 = item["putAt"].as_n().unwrap().parse().unwrap();
        item.insert("putAt".to_owned(), AttributeValue::N((put_at - 360_000).to_string()));
        self.put(item).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_forgotten_and_a_run_goes_on_where_another_stopped() {
    let hotel = Hotel::start().await;
    hotel.met("ada", of("ada", "Ada")).await;
    hotel.met("bob", of("bob", "Bob")).await;
    let with_key = hotel.item("ada").await;
    let name = || {
        let (status, shown, said) = hotel.subjects("show ada");
        assert_eq!(status, 0, "{said}");
        assert_eq!(shown["data"]["customerId"], "ada", "{shown}");
        assert!(said.contains("1 of "), "{said}");
        shown["data"]["name"].clone()
    };
    assert_eq!(name(), "Ada");

    let forget_with = |flag: &str| {
        let (status, forgotten, _) =
            hotel.subjects(&format!("forget ada --why asked --json{flag}"));
        let is = |key: &str| forgotten[key].as_bool().unwrap();
        (status, is("isShown"), is("hadKey"))
    };
    let forget = || forget_with("");
    // The log has the event, and the fence is missing.
    assert_eq!(forget(), (1, false, true));
    hotel.put(with_key.clone()).await;
    assert_eq!(name(), "Ada");
    assert_eq!(forget(), (1, false, true));
    assert_eq!((name(), hotel.forgotten().await), (Value::Null, 1));
    // The fence is there, and functions may still have the key.
    assert_eq!(forget(), (1, false, true));
    hotel.wait("ada").await;
    assert_eq!(forget(), (0, true, true));
    assert_eq!(hotel.forgotten().await, 1);

    // A restore brings the key back.
    hotel.put(with_key).await;
    let listed = || hotel.subjects("list --json").1[0]["state"].as_str().unwrap().to_owned();
    assert_eq!(
        (name(), listed()),
        ("Ada".into(), "readable: run `ringfence subjects verify --reapply`".into())
    );
    let (status, verified, _) = hotel.subjects("verify --json");
    assert_eq!((status, &verified["unfenced"]), (1, &json!(["ada"])));
    let (status, verified, _) = hotel.subjects("verify --reapply --json");
    assert_eq!(
        (status, &verified["isInOrder"], &verified["unfenced"]),
        (0, &json!(true), &json!(["ada"]))
    );
    assert_eq!((name(), listed()), (Value::Null, "forgotten".into()));

    // Who is known again can be forgotten again.
    hotel.wait("ada").await;
    assert_eq!(hotel.subjects("allow ada").0, 0);
    assert_eq!(listed(), "forgotten, and may be known again");
    hotel.met("ada", of("ada", "Ada")).await;
    assert_eq!(listed(), "forgotten, and known again");
    let refused = hotel.command("forget ada --why asked").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("add --again"), "{said}");
    assert_eq!(forget_with(" --again"), (1, false, true));
    hotel.wait("ada").await;
    assert_eq!(forget(), (0, true, true));
    assert_eq!((hotel.forgotten().await, listed()), (2, "forgotten".into()));

    let rotated = |of: &str| {
        let (status, rotated, _) = hotel.subjects(&format!("rotate {of} --json"));
        (status, rotated["number"].clone(), rotated["isNew"].clone())
    };
    assert_eq!(rotated("branch"), (0, json!(1), json!(false)), "it is too new");
    assert_eq!(rotated("blind"), (0, Value::Null, Value::Null), "no command has needed one");

    // An event of the slice has no value, so one of the index is tried.
    let (subject_id, why) = ("bob".to_owned(), "decided".to_owned());
    let events = vec![SubjectForgotten { subject_id, why }.into()];
    let catalog = PersonalData::catalog().unwrap();
    let log = DcbLog::new(hotel.0.client.clone(), EVENTS, catalog, Clock::system());
    let append = Append { events, seen: None, record: None, envelope: &Envelope::default() };
    log.append(append).await.unwrap();
    assert_eq!(hotel.subjects("forget bob --why asked").0, 1);
    hotel.wait("bob").await;
    let (status, forgotten, _) = hotel.subjects("forget bob --why asked --json");
    assert_eq!((status, &forgotten["why"]), (0, &json!("decided")));

    // Of somebody unknown there is no value to try.
    let forget = || hotel.subjects("forget zoe --why asked");
    forget();
    hotel.wait("zoe").await;
    let (status, forgotten, _) = forget();
    let text = forgotten.as_str().unwrap();
    assert!(status == 1 && text.contains("no event has a sealed value to try it"), "{text}");
    assert!(text.contains("the table had no key of zoe"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn personal_data_in_clear_and_lost_keys_are_named() {
    let hotel = Hotel::start().await;
    hotel.met("ada", of("ada", "Ada")).await;
    let (status, verified, _) = hotel.subjects("verify --json");
    let expected = json!({
        "events": 1, "unreadable": 0, "readUnits": 4.5, "forgotten": 0, "unfenced": [],
        "isReapplied": false, "lost": [], "inClear": [], "isInOrder": true,
    });
    assert_eq!((status, verified), (0, expected));

    let event = hotel.0.append(vec![met("bob", "Bob")]).await;
    hotel.index(&event).await;
    let key = AttributeValue::S("subject#ada".to_owned());
    hotel.0.client.delete_item().table_name(KEYS).key("p", key).send().await.unwrap();
    let (status, verified, _) = hotel.subjects("verify --json");
    assert_eq!((status, &verified["lost"]), (1, &json!(["ada"])));
    let in_clear = &verified["inClear"][0];
    assert_eq!((&in_clear["type"], &in_clear["isNewest"]), (&json!("CustomerMet"), &json!(true)));
    assert_eq!(in_clear["last"], "customerId:bob/1");
    let (_, text, _) = hotel.subjects("verify");
    for line in [
        "lost     ada: has values whose key is missing",
        "in clear CustomerMet of catalog, version 1: 1 events have personal data in clear, the last is customerId:bob/1",
    ] {
        assert!(text.as_str().unwrap().contains(line), "{text}");
    }
    // An access request gets what is in clear too.
    let (status, shown, _) = hotel.subjects("show bob");
    assert_eq!((status, &shown["data"]["name"]), (0, &json!("Bob")));
    // It gets nothing about others, even from an event about the same person.
    hotel.met("carl", of("bob", "Bob")).await;
    for (customer, name) in [("carl", Value::Null), ("bob", "Bob".into())] {
        let (_, shown, _) = hotel.subjects(&format!("show {customer} --from 2"));
        assert_eq!((&shown["data"]["customerId"], &shown["data"]["name"]), (&json!("carl"), &name));
    }
}
