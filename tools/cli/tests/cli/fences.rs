use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::json;

use crate::world::{EVENTS, World};

#[tokio::test(flavor = "multi_thread")]
async fn fences_are_verified_and_repaired() {
    let world = World::start().await;
    world.demand("p1", "o1").await;

    let run =
        |command, more: &[&str]| world.run(&[&[command, "--settle-seconds", "0"], more].concat());
    let right = (0, "1 events, 1 fences: all in order\n".to_owned());
    assert_eq!(run("verify", &[]), right);

    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: u64| AttributeValue::N(number.to_string());
    const PAIR: &str = "orderId:o1#productId:p1";
    let update = world.client.update_item().table_name(EVENTS).key("position", number(0));
    let update = update.key("id", text(&format!("fence#{PAIR}")));
    let update = update.update_expression("REMOVE #count");
    let update = update.expression_attribute_names("#count", "cnt#ProductDemandRecorded");
    update.send().await.unwrap();

    let differs = format!("{PAIR}: counts 0 ProductDemandRecorded, found 1\n");
    let wrong = format!("differs  {differs}1 events, 1 fences: not in order\n");
    assert_eq!(run("verify", &["--passes", "2"]), (1, wrong));
    let count = json!({
        "wrong": "count", "type": "ProductDemandRecorded", "counted": 0, "found": 1,
    });
    let expected = json!({
        "events": 1,
        "fences": 1,
        "inOrder": false,
        "broken": {},
        "ahead": {},
        "differences": [{ "boundary": PAIR, "wrong": [count] }],
        "unindexed": {},
        "gaps": {},
        "mended": [],
        "indexed": {},
    });
    assert_eq!(world.json(&["verify", "--settle-seconds", "0"]), (1, expected));

    let mended = format!("mended   {differs}{}", right.1);
    assert_eq!(run("repair", &[]), (0, mended));
    assert_eq!(run("repair", &[]), right);
    assert_eq!(run("verify", &[]), right);

    let put = world.client.put_item().table_name(EVENTS).item("id", text("productId:p1"));
    let put = put.item("position", number(3)).item("event", text("Forgotten"));
    put.send().await.unwrap();
    for command in ["verify", "repair"] {
        let (status, said) = run(command, &[]);
        assert_eq!((status, said.lines().count()), (1, 4), "{said}");
        // Another build may know the type.
        assert!(said.contains(", built 20"), "{said}");
        assert!(
            said.starts_with("gap      productId:p1: slot 2 is missing\nbroken   productId:p1/3: "),
            "{said}"
        );
        assert!(said.ends_with("1 events, 1 fences: not in order\n"), "{said}");
    }
    let (_, report) = world.json(&["verify", "--settle-seconds", "0"]);
    assert_eq!(report["gaps"], json!({ "productId:p1": 2 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_ends_with_status_2() {
    let world = World::start().await;
    let said = world.error_at("no endpoint", &["verify"]);
    let at_once =
        "error: describing table events: gave up after 1 attempts: the request was refused: ";
    assert!(said.starts_with(at_once), "{said}");
}
