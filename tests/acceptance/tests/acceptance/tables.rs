//! The shop on existing tables. Another stack wrote the table of the DCB log, Castore that of the aggregate log, and
//! Equinox that of the document log. The tables of the index and the views also exist, as after a restore.

use std::fs;
use std::process::Command;

use catalog::{Money, ProductAdded};
use reqwest::Client;
use ringfence_aws::Clock;
use ringfence_aws::wire::Wire;
use ringfence_core::kit::id;
use ringfence_core::{Append, Envelope, EventLog, events};
use ringfence_dcb_log::DcbLog;
use ringfence_harness::NodeProgram;
use ringfence_local::embedded::Embedded;
use ringfence_local::stack::{RunningStack, StackOptions};
use ringfence_local::template::{ACCOUNT, REGION};
use ringfence_local::workspace_root;
use ringfence_template::tables_of;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{BUILT, COMMAND_LINE, SHOP, template_of};

static CASTORE: NodeProgram = NodeProgram::new(
    "a stack on a table of Castore",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/compat/aggregate-log/tests/castore"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/castore"),
);

static EQUINOX: NodeProgram = NodeProgram::new(
    "a stack on a table of Equinox",
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/compat/document-log/tests/equinox"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/equinox"),
);

/// The existing table's name for this logical id.
fn name(id: &str) -> String {
    format!("their-{id}")
}

/// Makes the tables, and lets each original write into its table. Returns which of the originals can run here.
async fn write(dynamo: &Embedded) -> (bool, bool) {
    let (sources, catalog) = stack::stack().logs();
    for table in tables_of(&sources, &catalog, true) {
        dynamo.create_table(&table.layout.properties(), &name(table.id)).unwrap();
    }
    let client = Wire::default().client(dynamo.endpoint());
    let log = DcbLog::new(client, name("EventTable"), catalog, Clock::system());
    let added = ProductAdded {
        product_id: id("mug"),
        name: "Mug".to_owned(),
        description: String::new(),
        price: Money::new(1250, "EUR"),
    };
    let envelope = Envelope::default();
    let append = Append { events: events![added], seen: None, record: None, envelope: &envelope };
    log.append(append).await.unwrap();

    let endpoint = ("ENDPOINT", dynamo.endpoint());
    let table = name("AggregateTable");
    let castore = CASTORE.start(&[endpoint, ("TABLE", &table), ("LEGACY", "none")]).await;
    let has_castore = castore.is_some();
    if let Some(mut castore) = castore {
        let payload = json!({ "name": "Eve", "email": "eve@example.com", "points": 100 });
        let event = json!({ "aggregateId": "eve", "version": 1, "type": "CustomerRegistered", "payload": payload });
        castore.call("push", json!({ "store": "customers", "event": event })).await;
    }
    let table = name("DocumentTable");
    let equinox = EQUINOX.start(&[endpoint, ("TABLE", &table), ("CATEGORY", "carts")]).await;
    let has_equinox = equinox.is_some();
    if let Some(mut equinox) = equinox {
        let added = json!({ "type": "ItemAdded", "data": { "productId": "mug", "quantity": 2 } });
        equinox.call("transact", json!({ "id": "basket", "events": [added] })).await;
    }
    (has_castore, has_equinox)
}

/// Sends a command, which must be accepted. Returns its events.
async fn send(stack: &RunningStack, client: &Client, path: &str, command: Value) -> Value {
    let request = client.post(format!("{}{path}", stack.api())).body(command.to_string());
    let mut answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["accepted"], true, "{path}: {answer}");
    answer["events"].take()
}

/// Each stack ends with its runtime, before the next one continues with its data.
#[test]
fn a_stack_goes_on_with_tables_that_others_wrote() {
    let data = crate::folder();
    let kept = data.path().join("kept");
    fs::create_dir_all(&kept).unwrap();
    let (has_castore, has_equinox) = Runtime::new().unwrap().block_on(async {
        write(&Embedded::open(&kept.join("dynamodb.sqlite")).await.unwrap()).await
    });

    let mut template = template_of(SHOP);
    let stack = stack::stack();
    for table in tables_of(&stack.sources, &stack.catalog, true) {
        let (id, name) = (table.id, name(table.id));
        template.set(&format!("{id}Name={name}")).unwrap();
        if table.layout.stream.is_some() {
            let arn = format!("arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}/stream/theirs");
            template.set(&format!("{id}StreamArn={arn}")).unwrap();
        }
    }
    Runtime::new().unwrap().block_on(async {
        let programs = BUILT.get_or_init(crate::build).await.clone();
        let program = programs[COMMAND_LINE].clone();
        let (root, data) = (workspace_root(), data.path().to_owned());
        let keep = Some(kept);
        let (auth, limits) = (false, None);
        let options =
            StackOptions { root, template, data, port: 0, keep, programs, auth, limits };
        let stack = RunningStack::start(&options).await.unwrap();
        let own = |table: &&ringfence_local::template::TableResource| table.instead_of.is_none();
        assert!(stack.tables().iter().find(own).is_none(), "it makes none");
        let client = Client::builder().no_proxy().build().unwrap();
        let event = |kind: &str, partition: &str, slot: u64| {
            json!([{ "type": kind, "partition": partition, "slot": slot }])
        };

        let rename = json!({ "productId": "mug", "name": "Cup" });
        let renamed = send(&stack, &client, "/catalog/change-product-name", rename).await;
        // Ordering writes into the same partition when it learns of the product over the bus, before or after this.
        let slot = renamed[0]["slot"].as_u64().unwrap();
        assert!(slot == 2 || slot == 3, "{renamed}");
        assert_eq!(renamed, event("ProductNameChanged", "productId:mug", slot));
        if has_castore {
            let rename = json!({ "customerId": "eve", "name": "Eva" });
            let renamed = send(&stack, &client, "/customers/rename-customer", rename).await;
            assert_eq!(renamed, event("CustomerRenamed", "customers#eve", 2));
        }
        if has_equinox {
            let check_out = json!({ "cartId": "basket", "customerId": "eve" });
            let checked_out = send(&stack, &client, "/carts/check-out", check_out).await;
            assert_eq!(checked_out, event("CheckedOut", "carts-basket", 1));
        }

        // The events of the originals are in their streams, so they reach the index, and then the views.
        let row =
            format!("{}/catalog-products/mug?partition=productId:mug&slot={slot}", stack.api());
        let row: Value = client.get(row).send().await.unwrap().json().await.unwrap();
        assert_eq!(row["row"]["name"], "Cup", "{row}");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            let output = command.args(arguments).envs(stack.variables()).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        };
        let (status, checked) = run(&["tables", "check"]);
        assert_eq!(status, Some(0), "{checked}");
        let fits = "fits     AggregateTableName=their-AggregateTable AggregateTableStreamArn=arn:";
        assert!(checked.contains(fits) && checked.ends_with("6 tables: all in order\n"), "{checked}");
        let (status, repaired) = run(&["index", "repair"]);
        assert_eq!(status, Some(0), "{repaired}");
    });
}
