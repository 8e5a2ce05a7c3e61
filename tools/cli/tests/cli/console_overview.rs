//! The console's overview, and its page of dead letters.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ringfence_aws::Clock;
use ringfence_core::rfc3339;
use ringfence_local::queues::MessageOrder;
use serde_json::{Value, json};

use crate::console::{Console, link};
use crate::world::{BUCKET, COMMANDS, QUEUE, World};

const REDRIVE: &str = "/dead-letters/queues/Automations/redrive";
const DELETE: &str = "/dead-letters/queues/Automations/delete";

/// The flags that name the queue and the bucket.
fn flags(world: &World) -> [String; 4] {
    [
        "--queue".to_owned(),
        format!("Automations={}", world.queue_url()),
        "--bucket".to_owned(),
        format!("PublishEvents={BUCKET}"),
    ]
}

pub(crate) async fn console(world: &World, more: &[&str]) -> Console {
    let flags = flags(world);
    let flags: Vec<_> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Console::start(world, &flags).await
}

/// Puts dead letters into the queue: each is an event of an order, or text that is not a dead letter.
async fn with_dead_letters(orders: &[&str]) -> World {
    let world = World::start().await;
    for order in orders {
        world.demand("p1", order).await;
    }
    for record in world.records() {
        let dead_letter = json!({ "cause": "<i>the bus</i> refuses it", "record": record });
        world.queues.send(QUEUE, dead_letter.to_string()).unwrap();
    }
    world
}

/// Where a command is in its queue.
fn in_group() -> MessageOrder {
    MessageOrder { group: Some("roomId:r1".to_owned()), deduplication: Some("c-1".to_owned()) }
}

/// The line of a command so long ago.
pub(crate) fn line(ago_ms: u64, outcome: &str, conflicts: &[&str]) -> String {
    let line = json!({
        "timestamp": rfc3339(Clock::system().now_ms() - ago_ms), "slice": "pack-parcel", "outcome": outcome,
        "attempts": conflicts.len() + 1, "conflicts": conflicts, "duration_ms": 5, "requests": 4,
        "read_units": 1.5, "write_units": 8.0, "principal": "jwt:main:ada", "correlation_id": "walk-1",
        "by": (outcome == "rejected").then_some("pack-parcel"), "events": { "ParcelPacked": 2 },
    });
    format!("{line}\n")
}

/// The dead letter of an automation.
fn failed(function: &str) -> Value {
    let detail = json!({ "id": "productId:p1/1", "data": {} });
    let event = json!({ "source": "catalog", "detail-type": "ProductAdded", "detail": detail });
    let arn = format!("arn:aws:lambda:eu-west-1:1:function:{function}:$LATEST");
    let context = json!({ "functionArn": arn, "condition": "RetriesExhausted" });
    json!({ "requestContext": context, "requestPayload": event })
}

/// The names of the dead letters in the queue.
fn names(world: &World) -> Vec<String> {
    world.queues.messages()[QUEUE].iter().map(|message| message.message_id.clone()).collect()
}

/// The part of the page that says whether all is well.
fn banner(page: &str) -> &str {
    let (_, banner) = page.split_once("<section class=\"banner").expect("a banner");
    banner.split("</section>").next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_page_says_what_is_not_well_and_what_to_do_for_20_units_at_most() {
    let world = World::start().await;
    for order in ["o1", "o2"] {
        world.indexed_demand("p1", order).await;
    }
    let views = world.error(&["replay", "view", "of nobody"]);
    let (_, views) = views.trim_end().split_once("the views are ").unwrap();
    for view in views.split(", ") {
        world.json(&["replay", "view", view]);
    }
    world.run(&["replay", "reactor", "ask-supplier", "--from", "end"]);
    let folder = tempfile::tempdir().unwrap();
    let logs = ["--logs", folder.path().to_str().unwrap()];
    let well = console(&world, &logs).await.page("/").await;
    assert!(banner(&well).contains("All is well</h2>"), "{well}");
    assert!(!banner(&well).contains("Not known"), "{well}");
    assert!(well.contains("No command in this time.</p><p class=\"note\">As of "), "{well}");
    let (_, cost) = well.split_once("to DynamoDB and ").unwrap();
    assert_eq!(cost.split_once(" read units").unwrap().0, "9.5", "{well}");

    world.queues.send(QUEUE, "<b>a dead letter".to_owned()).unwrap();
    world.queues.send(QUEUE, failed("shop-PackParcel-1").to_string()).unwrap();
    // The first failure is too old for a fault, and the last command is not.
    let met = line(900, "accepted", &["sealId:s1"]).repeat(20);
    let lines = [line(1_800_000, "internal", &[]), line(1_000, "internal", &[]), met].concat();
    fs::write(folder.path().join("pack-parcel.log"), lines).unwrap();
    let at = rfc3339(Clock::system().now_ms());
    let why = "a table is away. ".repeat(40);
    let stopped = json!({ "timestamp": at, "failed_function": "index-events", "cause": why });
    fs::write(folder.path().join("index-events.log"), stopped.to_string()).unwrap();
    world.queues.put(COMMANDS, "{}".to_owned(), [].into(), in_group()).unwrap();
    let wrong = console(&world, &logs).await;
    let page = wrong.page("/").await;
    let shown = banner(&page);
    for part in [
        "5 things are not well</h2>",
        "<strong>1 dead letter of Automations</strong>",
        "A person has to decide.</p><p class=\"cause\">the message is not JSON",
        "<strong>1 dead letter of pack-parcel</strong>",
        "<p class=\"cause\">RetriesExhausted</p>",
        "href=\"/dead-letters\">Delete with a reason</a>",
        "<strong>1 command of pack-parcel failed</strong>, since <time",
        "<p class=\"cause\">internal</p>",
        "href=\"/commands#failures\">See what failed, and mend the cause</a>",
        "<strong>20 of 21 commands of pack-parcel met conflicts</strong>, since <time",
        "<strong>1 run of index-events failed</strong>, since <time",
        "<p class=\"cause\">a table is away. ",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains(&why) && !shown.contains("Not known"), "{shown}");
    assert!(page.contains("/commands\">Commands queued</a><strong>1</strong>"), "{page}");
    let dot = wrong.page("/verdict").await;
    assert_eq!(
        dot,
        "<span class=\"dot wrong\" aria-hidden=\"true\"></span><span>5 things are not well</span>"
    );
    for tile in [
        "tile wrong\"><a href=\"/commands\">Commands</a><strong>22<",
        "tile\"><a href=\"/views\">Views</a><strong>2<",
        "tile\"><a href=\"/lanes\">Reactors</a><strong>2<",
        "tile wrong\"><a href=\"/dead-letters\">Dead letters</a><strong>2<",
    ] {
        assert!(page.contains(tile), "{tile}: {page}");
    }
    let map = wrong.page("/map").await;
    assert_eq!(map.matches("class=\"node command wrong\"").count(), 1, "{map}");
    assert!(map.contains("class=\"node context wrong\""), "{map}");
    let rates = map.matches("<title>44 in the last hour</title>").count();
    assert_eq!(rates, 2, "of both lines, to the event and to its deadline: {map}");
    assert!(wrong.page("/events").await.contains("data-verdict=\"/verdict\">Is all well?</a>"));
    let again = wrong.page("/").await;
    assert!(!again.contains("to DynamoDB"), "the verdict is kept for a while: {again}");

    let (code, status) = world.json(&["status", logs[0], logs[1]]);
    assert_eq!(code, 1);
    let found = status["findings"].as_array().unwrap().iter();
    let found: Vec<_> = found.map(|it| (it["what"].as_str(), it["names"][0].as_str())).collect();
    let functions = [("function", "index-events"), ("slice", "pack-parcel")];
    let all = functions.into_iter().chain([("conflicts", "pack-parcel")]);
    assert_eq!(found, all.map(|(what, name)| (Some(what), Some(name))).collect::<Vec<_>>());
    assert_eq!(status["findings"][0]["cause"], why);
    let (_, lines) = world.run(&["status", logs[0], logs[1]]);
    assert!(lines.starts_with("1 run of index-events failed: a table"), "{lines}");
    assert!(
        lines.lines().next().unwrap().contains("… (since ") && !lines.contains(&why),
        "{lines}"
    );
    let counts = &status["counts"];
    assert_eq!((&counts["views"], &counts["reactors"]), (&json!(2), &json!(2)), "{status}");
    assert_eq!(status["unknown"].as_array().unwrap().len(), 1, "no flag names a queue: {status}");
    let nowhere = ["--view-table", "none", "--command-queue", "http://127.0.0.1:1/0/none"];
    let (_, unread) = world.json(&[&["status"], &nowhere[..]].concat());
    assert_eq!(unread["counts"]["views"], json!(null), "{unread}");
    assert_eq!(unread["counts"]["reactors"], json!(null), "{unread}");
    let names = unread["findings"].as_array().unwrap().iter().map(|it| it["names"][0].as_str());
    let unreadable = ["views", "reactors", "deadlines", "queue of commands"];
    assert_eq!(names.collect::<Vec<_>>(), unreadable.map(Some), "{unread}");
}

/// An event that is late for its readers is more than five minutes old.
#[tokio::test(flavor = "multi_thread")]
async fn readers_are_late_with_an_old_event_that_they_have_not_read() {
    let mut world = World::start().await;
    world.at(600_000);
    world.indexed_demand("p1", "o1").await;
    let read_all = |world: &World| {
        for view in ["catalog-products", "product-demand", "pack-parcel"] {
            world.json(&["replay", "view", view]);
        }
        world.run(&["replay", "reactor", "ask-supplier", "--from", "end"]);
    };
    read_all(&world);
    world.at(0);
    world.indexed_demand("p2", "o2").await;
    let (status, well) = world.json(&["status"]);
    assert_eq!((status, &well["findings"]), (0, &json!([])), "they have read the old event");
    read_all(&world);
    world.at(600_000);
    world.indexed_demand("p3", "o3").await;
    let (_, late) = world.json(&["status"]);
    let texts = late["findings"].as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap());
    let behind = [
        "The views catalog-products and product-demand are 1 event behind",
        "The deadlines of pack-parcel are 1 event behind",
        "ask-supplier is 1 event behind",
    ];
    assert!(texts.eq(behind), "{late}");
    let page = console(&world, &[]).await.page("/").await;
    let deadlines = "tile wrong\"><a href=\"/deadlines\">Deadlines due</a><strong>0</strong>";
    let note = "<span class=\"note\">slices behind: 1</span>";
    assert!(page.contains(&format!("{deadlines}{note}")), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_shown_with_their_causes_and_a_look_hides_them_from_nobody() {
    let world = with_dead_letters(&["o1"]).await;
    let long = format!("<script>{}", "x".repeat(10_000));
    world.queues.send(QUEUE, long.clone()).unwrap();
    for function in ["shop-PackParcel-1", "shop-Other-1"] {
        world.queues.send(QUEUE, failed(function).to_string()).unwrap();
    }
    world.buckets.put(BUCKET, "aws/a", b"{}").unwrap();
    let console = console(&world, &[]).await;
    for _ in 0..2 {
        let page = console.page("/dead-letters").await;
        assert!(page.contains("&lt;i&gt;the bus&lt;/i&gt; refuses it"), "{page}");
        assert!(page.contains("<h3>the message is not JSON"), "{page}");
        assert!(page.contains("<h3>the object has no payload"), "{page}");
        assert_eq!(page.matches("<h3>RetriesExhausted").count(), 2, "one a function: {page}");
        assert!(page.contains("href=\"/slices/catalog/pack-parcel\""), "{page}");
        assert!(
            page.contains("A redrive sends the events of a stream record to the bus."),
            "{page}"
        );
        assert!(!page.contains("It does not say why"), "each says it: {page}");
        assert!(page.len() < 10_000 && !page.contains("<script>x"), "{page}");
        assert!(
            !page.contains("<form method=\"post\"") && !page.contains("Delete"),
            "it only reads: {page}"
        );
        let whole = console.get(&link(&page, &names(&world)[1]).unwrap()).await;
        assert_eq!(whole.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(whole.text().await.unwrap(), long);
    }
    for path in [REDRIVE, DELETE] {
        assert_eq!(console.post(path, &[]).await.status(), 403);
    }
    assert_eq!(names(&world).len(), 4);
    for (path, status, why) in [
        (
            "/dead-letters/queues/Automations/dead-letter?name=x",
            404,
            "The dead letter x is not there",
        ),
        (
            "/dead-letters/queues/Automations/dead-letter",
            400,
            "name: write the name of a dead letter.",
        ),
        ("/dead-letters/queues/PublishEvents/dead-letter?name=x", 404, "No flag names queues"),
        (
            "/dead-letters/buckets/PublishEvents/dead-letter?name=x",
            404,
            "The dead letter x is not there",
        ),
        ("/commands?within=soon", 400, "within: "),
    ] {
        let (found, page) = console.refused(path).await;
        assert!(found == status && page.contains(why), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_may_keep_more_than_is_shown_says_so() {
    let world = World::start().await;
    for n in 0..11 {
        world.queues.send(QUEUE, format!("dead letter {n}")).unwrap();
        world.buckets.put(BUCKET, &format!("aws/{n:02}"), b"{}").unwrap();
    }
    let page = console(&world, &[]).await.page("/dead-letters").await;
    assert_eq!(page.matches("It may keep more.").count(), 2, "{page}");
    assert!(page.contains("aws/09") && !page.contains("aws/10"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dead_letter_is_redriven_and_then_all() {
    let mut world = with_dead_letters(&["o1", "o2", "o3"]).await;
    world.queues.send(QUEUE, "hello".to_owned()).unwrap();
    let console = console(&world, &["--write"]).await;
    let page = console.page("/dead-letters").await;
    assert!(page.contains("Redrive all of Automations"), "{page}");
    let cause = "&lt;i&gt;the bus&lt;/i&gt; refuses it";
    assert_eq!(
        page.matches(&format!("<h3>{cause}</h3>")).count(),
        1,
        "a cause is said once: {page}"
    );
    assert!(page.contains("<p class=\"note\">3 dead letters, "), "{page}");
    let second = names(&world)[1].clone();
    let page = console.carried_out(REDRIVE, &[("name", &second)]).await;
    assert!(page.contains("1 done, 0 left.") && page.contains(&second), "{page}");
    assert_eq!((names(&world).len(), world.on_the_bus().len()), (3, 1));
    let page = console.carried_out(REDRIVE, &[("name", &second)]).await;
    assert!(page.contains("0 done, 0 left.") && page.contains("is not there"), "{page}");

    let page = console.carried_out(REDRIVE, &[("all", "yes")]).await;
    assert!(page.contains("2 done, 1 left.") && page.contains("It stays: "), "{page}");
    assert_eq!((names(&world).len(), world.on_the_bus().len()), (1, 2));

    let last = names(&world)[0].clone();
    let page = console.carried_out(REDRIVE, &[("name", &last)]).await;
    assert!(page.contains("0 done, 1 left."), "it is not hidden: {page}");
    assert!(page.contains("Delete the chosen dead letters of "), "red can end: {page}");
    let (long, many) = ("x".repeat(1_025), [("name", "x"); 11]);
    for (path, fields, error) in [
        (DELETE, &[("name", &*last)][..], "why: say in 1 to 1024 bytes"),
        (DELETE, &[("name", &last), ("why", &long)], "why: say in 1 to 1024 bytes"),
        (DELETE, &[("why", "a test")], "name: choose 1 to 10 dead letters"),
        (REDRIVE, &many, "name: choose 1 to 10 dead letters"),
    ] {
        let refused = console.post(path, fields).await;
        assert_eq!(refused.status(), 400);
        assert!(refused.text().await.unwrap().contains(error), "{error}");
    }
    assert_eq!(names(&world).len(), 1);
    let page = console.carried_out(DELETE, &[("name", &last), ("why", "a <b>test")]).await;
    assert!(page.contains("1 deleted: a &lt;b&gt;test") && page.contains(&last), "{page}");
    assert!(names(&world).is_empty());
    let file = world.folder.path().join("deleted-dead-letters.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let deleted: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let kept = ["deadLetterToDelete", "why", "body"].map(|name| deleted[name].as_str().unwrap());
    assert_eq!(kept, [&*last, "a <b>test", "hello"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_batches_go_to_the_destination_of_their_function() {
    let mut world = World::start().await;
    world.demand("p1", "o1").await;
    let payload = json!({ "Records": world.records() }).to_string();
    let object = json!({ "payload": payload }).to_string();
    world.buckets.put(BUCKET, "aws/a", object.as_bytes()).unwrap();
    let views = format!("ProjectViews={BUCKET}");
    let console = console(&world, &["--write", "--bucket", &views]).await;
    let page = console.page("/dead-letters").await;
    assert!(page.contains("the next event brings what it holds: delete it"), "{page}");
    let refused = console.post("/dead-letters/buckets/ProjectViews/redrive", &[]).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("need no redrive: delete them."));
    let all = [("all", "yes")];
    let page = console.carried_out("/dead-letters/buckets/PublishEvents/redrive", &all).await;
    assert!(page.contains("1 done, 0 left."), "{page}");
    assert_eq!(world.on_the_bus().len(), 1);
    assert!(world.buckets.list(BUCKET).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_names_queues_and_buckets_and_a_queue_that_fails_hides_nothing_else() {
    let world = World::start().await;
    let stack = Console::start(&world, &["--stack", "ringfence-local"]).await;
    let page = stack.page("/dead-letters").await;
    let (_, empty) = page.split_once("Nothing is kept in: ").expect("one line for all");
    for place in ["Queue Automations", "Bucket of PublishEvents"] {
        assert!(empty.contains(place), "{page}");
    }
    let page = console(&world, &["--queue", "Other=http://127.0.0.1:1/0/other"]).await;
    let (page, overview) = (page.page("/dead-letters").await, page.page("/").await);
    assert!(page.contains("Queue Other</h2>") && page.contains("Queue Automations"), "{page}");
    assert!(
        banner(&overview).contains("<strong>The dead letters of Other can't be read<"),
        "{overview}"
    );
    assert!(overview.contains("Dead letters</a><strong>?</strong>"), "{overview}");
    let nowhere = Console::start(&world, &[]).await;
    let page = nowhere.page("/dead-letters").await;
    assert!(page.contains("Name queues and buckets with --queue NAME=URL"), "{page}");
    for path in ["/", "/commands"] {
        let page = nowhere.page(path).await;
        assert!(page.contains("name the log group with --log-group"), "{page}");
    }
    assert!(banner(&nowhere.page("/").await).contains("Not known: dead letters, whose stores"));
}
