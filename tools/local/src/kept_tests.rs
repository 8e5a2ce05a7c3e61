use super::*;
use crate::{
    embedded::tests::{put, table},
    environment::tests::function,
    stack_clock::StackClock,
    template::QueueResource,
};

fn tables(properties: Value) -> [TableResource; 1] {
    [TableResource {
        id: "Events".to_owned(),
        name: "events".to_owned(),
        properties,
        instead_of: None,
    }]
}

fn model() -> Model {
    Model { queues: vec![QueueResource::named("dead".to_owned())], ..Model::default() }
}

fn open(folder: &Path) -> Result<Kept> {
    Kept::open(folder, &model(), &Notices::default())
}

/// The table with an index.
fn indexed() -> Value {
    let mut table = table();
    table["GlobalSecondaryIndexes"] = json!([{
        "IndexName": "backwards",
        "KeySchema": [
            { "AttributeName": "position", "KeyType": "HASH" },
            { "AttributeName": "id", "KeyType": "RANGE" },
        ],
        "Projection": { "ProjectionType": "KEYS_ONLY" },
    }]);
    table
}

#[tokio::test]
async fn data_outlive_the_stack_and_streams_go_on_where_they_were() {
    let folder = tempfile::tempdir().expect("a folder");
    let number = |record: &Value| {
        record["dynamodb"]["SequenceNumber"].as_str().expect("a number").to_owned()
    };
    let mut last = String::new();
    for (id, properties) in [("a", table()), ("b", indexed()), ("c", table())] {
        let dynamo = open(folder.path()).expect("data").database(&tables(properties)).await;
        let dynamo = dynamo.expect("a database");
        put(&dynamo, "events", id).await;
        let after = Some(Position::After(last.clone())).filter(|_| !last.is_empty());
        let mut stream = dynamo.stream_from("events", after.as_ref()).expect("a stream");
        let records = stream.read().expect("records");
        assert_eq!(records.len(), 1, "{id}: those before it were read: {records:?}");
        last = number(&records[0]);
        let mut again =
            dynamo.stream_from("events", Some(&Position::At(last.clone()))).expect("a stream");
        assert_eq!(again.read().expect("records").len(), 1, "{id}");
        let indexes = &dynamo.describe("events").expect("a table")["GlobalSecondaryIndexes"];
        assert_eq!(indexes.as_array().map_or(0, Vec::len), usize::from(id == "b"), "{indexes}");
        assert_eq!(
            dynamo.items("events").expect("items").len(),
            usize::from(id.as_bytes()[0] - 96)
        );
    }
}

#[tokio::test]
async fn a_table_that_a_parameter_names_is_compared_and_never_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = |name: &str, properties: Value| {
        let [own] = tables(properties);
        [TableResource { name: name.to_owned(), instead_of: Some(own.name.clone()), ..own }]
    };
    let kept = open(folder.path()).expect("data");
    let dynamo = kept.database(&tables(table())).await.expect("a database");
    dynamo.create_table(&indexed(), "theirs").expect("a table");
    drop(dynamo);
    // The stack's table stays beside it, and so does an index that the template does not have.
    let dynamo = kept.database(&named("theirs", table())).await.expect("a database");
    assert_eq!(dynamo.tables().expect("tables"), ["events", "theirs"]);
    assert!(dynamo.describe("theirs").expect("a table")["GlobalSecondaryIndexes"].is_array());
    drop(dynamo);
    for (name, properties, said) in [
        (
            "none",
            table(),
            "the table none, which EventsName names, is not there: a stack finds tables in data that",
        ),
        (
            "events",
            indexed(),
            "the table events lacks the index backwards: start without EventsName, and `ringfence",
        ),
    ] {
        let error = kept.database(&named(name, properties)).await.err().expect("it is refused");
        assert!(error.to_string().starts_with(said), "{error:#}");
    }
}

#[tokio::test]
async fn queues_and_the_clock_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let queues =
        |kept| crate::queues::Queues::of(&[QueueResource::named("dead".to_owned())], Some(kept));
    let kept = open(folder.path()).expect("data");
    let attributes = BTreeMap::from([("cause".to_owned(), "a limit".to_owned())]);
    queues(kept).send_with("dead", "lost".to_owned(), attributes.clone()).expect("a queue");
    let kept = open(folder.path()).expect("data");
    let again = queues(kept.clone());
    let messages = again.messages().remove("dead").expect("a queue");
    assert_eq!((&*messages[0].body, &messages[0].attributes), ("lost", &attributes));
    let received = again.receive("dead", 1, None).expect("a queue");
    assert!(again.delete("dead", &received[0].receipt_handle).expect("a queue"));
    assert!(kept.queues()["dead"].is_empty());
    StackClock::of(Some(kept)).pass(5).expect("within a hundred years");
    StackClock::of(Some(open(folder.path()).expect("data"))).pass(6).expect("the same");
    let kept = open(folder.path()).expect("data");
    assert_eq!(kept.passed_ms(), 11);
    let mut starts = Vec::new();
    for at_ms in 0..=STARTS_MAX as u64 {
        starts = kept.start(at_ms);
    }
    assert_eq!((starts.len(), starts[0]), (STARTS_MAX, 0));
    assert_eq!(starts[1], 2);
    let older = read(br#"{ "format": 1, "positions": {}, "queues": {} }"#).expect("older data");
    assert_eq!(older.starts, [0]);
    assert_eq!(open(folder.path()).expect("data").start(200)[STARTS_MAX - 2..], [100, 200]);
}

#[tokio::test]
async fn data_of_another_template_or_a_newer_format_are_refused_with_the_ways_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = open(folder.path()).expect("data");
    kept.database(&tables(table())).await.expect("a database");
    let refused = |error: anyhow::Error, said: &str| {
        let error = format!("{error:#}");
        let out = format!("or delete {} and begin with empty tables", folder.path().display());
        assert!(error.contains(said) && error.ends_with(&out), "{error}");
    };
    let mut other_key = table();
    other_key["AttributeDefinitions"][1]["AttributeType"] = json!("N");
    let mut other_stream = table();
    other_stream["StreamSpecification"]["StreamViewType"] = json!("KEYS_ONLY");
    for (tables, said) in [
        (&tables(other_key)[..], "the table events is kept with the key [[\"id\","),
        (&tables(other_stream)[..], "the table events is kept with the stream \"NEW_IMAGE\""),
        (&[], "the table events is kept, and the template has none of this name"),
    ] {
        refused(kept.database(tables).await.err().expect("it is refused"), said);
    }
    kept.keep_queues(BTreeMap::from([(
        "other".to_owned(),
        vec![Message {
            message_id: "1".into(),
            body: "b".into(),
            attributes: BTreeMap::new(),
            group: None,
        }],
    )]));
    refused(
        open(folder.path()).err().expect("it is refused"),
        "messages of the queue other are kept",
    );
    for (text, said) in [
        (r#"{"format":2}"#, "it has the format 2, and this program knows 1"),
        ("{", "it is not JSON"),
        (
            r#"{"format":1,"positions":{},"queues":{},"more":1}"#,
            "it is not what this program writes",
        ),
    ] {
        fs::write(file(folder.path()), text).expect("a file");
        refused(open(folder.path()).err().expect("it is refused"), said);
        assert_eq!(fs::read_to_string(file(folder.path())).expect("a file"), text, "it stays");
    }
}

#[test]
fn data_without_their_key_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let personal = function("one", &[("KEY", &format!("file:{}", key.display()))]);
    let model = Model { functions: vec![personal], ..model() };
    let open_personal = || Kept::open(folder.path(), &model, &Notices::default());
    open_personal().expect("a new key");
    open_personal().expect("the same key");
    fs::remove_file(&key).expect("a key");
    let error = open_personal().err().expect("it is refused").to_string();
    assert!(error.contains("key, is gone: restore it, or delete "), "{error}");
}
