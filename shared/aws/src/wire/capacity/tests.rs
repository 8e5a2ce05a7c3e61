use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

use super::*;

/// Ranges that consume ten write units and thirty read units a second.
const LIMITS: Limits = Limits { ranges: 2, write: 10.0, read: 30.0 };
/// The item that is there.
const THERE_BYTES: usize = 5_000;

/// An engine with one table, in which each write costs a unit and each condition fails. It counts the writes.
fn engine(writes: Arc<AtomicU64>) -> Backend {
    Arc::new(move |operation: &str, body: &[u8]| {
        let request = json(body);
        let consumed = |units: f64| {
            let units = json!({ "CapacityUnits": units });
            let indexes = json!({ "by_tag": units });
            json!({ "TableName": "t", "Table": units, "GlobalSecondaryIndexes": indexes })
        };
        let count = |many: usize| writes.fetch_add(many as u64, Ordering::Relaxed);
        let failed = json!({ "__type": "x#ConditionalCheckFailedException" });
        let answer = match operation {
            "DescribeTable" => json!({ "Table": {
                "TableArn": "arn:table/t",
                "KeySchema": [{ "AttributeName": "id" }, { "AttributeName": "n" }],
                "GlobalSecondaryIndexes": [
                    { "IndexName": "by_tag", "KeySchema": [{ "AttributeName": "tag" }] },
                ],
            } }),
            "GetItem" => json!({ "Item": { "id": { "S": "x".repeat(THERE_BYTES - 2) } } }),
            "Query" => json!({ "ConsumedCapacity": consumed(31.0) }),
            "PutItem" if request["ConditionExpression"].is_string() => {
                return (400, failed.to_string().into_bytes());
            }
            "TransactWriteItems" if request["TransactItems"][0].get("ConditionCheck").is_some() => {
                let reasons = json!([{ "Code": "ConditionalCheckFailed" }, { "Code": "None" }]);
                return (400, json!({ "CancellationReasons": reasons }).to_string().into_bytes());
            }
            "PutItem" => {
                count(1);
                json!({ "ConsumedCapacity": consumed(1.0) })
            }
            "BatchWriteItem" => {
                let many = request["RequestItems"]["t"].as_array().map_or(0, Vec::len);
                count(many);
                json!({ "ConsumedCapacity": [consumed(many as f64)] })
            }
            other => panic!("{other}"),
        };
        (200, answer.to_string().into_bytes())
    })
}

fn item(id: &str) -> Value {
    json!({ "id": { "S": id }, "n": { "N": "1" } })
}

fn put(id: &str) -> Value {
    json!({ "TableName": "t", "Item": item(id) })
}

struct World {
    capacity: Capacity,
    writes: Arc<AtomicU64>,
    /// Keys of two ranges.
    keys: [String; 2],
}

impl World {
    /// A world whose buckets are full.
    async fn new() -> Self {
        let writes = Arc::<AtomicU64>::default();
        let capacity = Capacity::new(engine(writes.clone()), LIMITS);
        let key = |range| {
            let mut keys = (0..).map(|n| format!("k{n}"));
            keys.find(|key| capacity.range(key) == range).expect("a key of the range")
        };
        let keys = [key(0), key(1)];
        sleep(Duration::from_secs(9)).await;
        Self { capacity, writes, keys }
    }

    fn call(&self, operation: &str, request: &Value) -> (u16, Value) {
        let (status, answer) = self.capacity.call(operation, request.to_string().as_bytes());
        (status, json(&answer))
    }

    fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Puts into the range until it refuses. Returns the answer.
    fn exhaust(&self, key: &str) -> Value {
        let mut answers = (0..100).map(|_| self.call("PutItem", &put(key)));
        answers.find(|(status, _)| *status == 400).expect("a range has limits").1
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_consumes_its_units_a_second_and_the_other_ranges_do_not_notice() {
    let world = World::new().await;
    let [hot, cold] = &world.keys;
    for units in [11, 10] {
        let before = world.writes();
        let refused = world.exhaust(hot);
        let reason =
            json!({ "reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:table/t" });
        assert_eq!(refused["throttlingReasons"], json!([reason]));
        assert!(refused["__type"].as_str().unwrap().ends_with("#ThrottlingException"));
        // The last unit overdraws the bucket. A refused write is not carried out.
        assert_eq!(world.writes() - before, units);
        assert_eq!(world.call("PutItem", &put(cold)).0, 200);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.capacity.refused(), 2);
    assert_eq!(world.capacity.consumed("t"), Units { read: 0.0, write: 23.0 });
    // Reads have buckets of their own.
    let query = json!({
        "TableName": "t",
        "KeyConditionExpression": "#id=:id AND n >= :n",
        "ExpressionAttributeNames": { "#id": "id" },
        "ExpressionAttributeValues": { ":id": { "S": hot }, ":n": { "N": "1" } },
    });
    world.exhaust(hot);
    assert_eq!([200, 400], [0, 1].map(|_| world.call("Query", &query).0));
    sleep(Duration::from_millis(50)).await;
    assert_eq!(world.call("Query", &query).0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_failed_condition_costs_as_much_as_the_item_that_is_there() {
    let world = World::new().await;
    let [key, other] = &world.keys;
    let mut conditioned = put(key);
    conditioned["ConditionExpression"] = "attribute_not_exists(id)".into();
    assert_eq!(
        world.call("PutItem", &conditioned).1["__type"],
        "x#ConditionalCheckFailedException"
    );
    assert_eq!(world.capacity.consumed("t"), Units { read: 0.0, write: 5.0 });
    // In a transaction twice as much, and the other actions cost what they would have cost.
    let check = json!({ "ConditionCheck": { "TableName": "t", "Key": item(key) } });
    let transaction = json!({ "TransactItems": [check, { "Put": put(other) }] });
    assert_eq!(world.call("TransactWriteItems", &transaction).0, 400);
    assert_eq!(world.capacity.consumed("t"), Units { read: 0.0, write: 17.0 });
    let refused = world.exhaust(key);
    assert_eq!((world.writes(), refused.is_object()), (0, true), "15 of 10 units are used");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_cancelled_and_a_batch_is_carried_out_in_part() {
    let world = World::new().await;
    let [hot, cold] = &world.keys;
    world.exhaust(hot);
    let before = (world.writes(), world.capacity.consumed("t"));
    let both = json!({ "TransactItems": [{ "Put": put(cold) }, { "Put": put(hot) }] });
    let (_, cancelled) = world.call("TransactWriteItems", &both);
    let codes = [0, 1].map(|n| cancelled["CancellationReasons"][n]["Code"].clone());
    assert_eq!(codes, ["None", "ThrottlingError"]);
    assert_eq!((world.writes(), world.capacity.consumed("t")), before);

    let write = |key: &str| json!({ "PutRequest": { "Item": item(key) } });
    let batch = |keys: [&str; 2]| json!({ "RequestItems": { "t": keys.map(write) } });
    let (status, answer) = world.call("BatchWriteItem", &batch([hot, cold]));
    assert_eq!((status, world.writes() - before.0), (200, 1));
    assert_eq!(answer["UnprocessedItems"], json!({ "t": [write(hot)] }));
    let (_, refused) = world.call("BatchWriteItem", &batch([hot, hot]));
    assert!(refused["__type"].as_str().unwrap().ends_with("#ThrottlingException"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_write_waits_for_the_indexes_of_its_table() {
    let world = World::new().await;
    let mut last = Value::Null;
    // Of the table these are many keys, of the index one.
    for n in 0..12 {
        let mut put = put(&format!("k{n}"));
        put["Item"]["tag"] = json!({ "S": "tag" });
        last = world.call("PutItem", &put).1;
    }
    let reason = json!({ "reason": "IndexWriteKeyRangeThroughputExceeded", "resource": "arn:table/t/index/by_tag" });
    assert_eq!(last["throttlingReasons"], json!([reason]));
    assert_eq!(world.capacity.consumed("t/by_tag"), Units { read: 0.0, write: 11.0 });
}
