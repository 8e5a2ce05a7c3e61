//! The console's page of health.

use std::fs;

use ringfence_aws::Clock;
use serde_json::json;

use crate::console::{Console, link};
use crate::world::{BUCKET, QUEUE, World};

const REDRIVE: &str = "/health/queues/Automations/redrive";

/// The flags that name the queue and the bucket.
fn flags(world: &World) -> [String; 4] {
    [
        "--queue".to_owned(),
        format!("Automations={}", world.queue_url()),
        "--bucket".to_owned(),
        format!("PublishEvents={BUCKET}"),
    ]
}

async fn console(world: &World, more: &[&str]) -> Console {
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

/// The names of the dead letters in the queue.
fn names(world: &World) -> Vec<String> {
    world.queues.messages()[QUEUE].iter().map(|message| message.message_id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_the_views_are_shown_and_all_readers_if_asked_for() {
    let world = World::start().await;
    for order in ["o1", "o2"] {
        world.indexed_demand("p1", order).await;
    }
    world.json(&["replay", "view", "product-demand"]);
    world.run(&["replay", "reactor", "ask-supplier", "--from", "end"]);
    world.run(&["checkpoint", "set", "audit", "1"]);
    let console = console(&world, &[]).await;
    let page = console.page("/health").await;
    assert!(page.contains("product-demand#2") && page.contains("up to date"), "{page}");
    assert!(page.contains(">ask-supplier<") && !page.contains("audit"), "{page}");
    let all = console.page(&link(&page, "Look for all readers").unwrap()).await;
    let (_, audit) = all.split_once(">audit<").unwrap();
    assert!(audit.split("</tr>").next().unwrap().contains("1 behind"), "{all}");
    let standing = |page: &str| {
        let (_, line) = page.split_once("<p class=\"standing\" role=\"status\">").unwrap();
        line.split("</p>").next().unwrap().to_owned()
    };
    let well = "<strong>All is well: </strong>every reader is at the end of the index, no row and no event is parked, no lane is parked, no deadline is late, no dead letter is kept.";
    assert_eq!(standing(&page), well);
    world.queues.send(QUEUE, "a dead letter".to_owned()).unwrap();
    world.indexed_demand("p1", "o3").await;
    let wrong = "2 readers are behind, 1 dead letter or failed batch is kept.";
    assert_eq!(
        standing(&console.page("/health").await),
        format!("<strong class=\"bad\">{wrong}</strong>")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_shown_with_their_causes_and_a_look_hides_them_from_nobody() {
    let world = with_dead_letters(&["o1"]).await;
    let long = format!("<script>{}", "x".repeat(10_000));
    world.queues.send(QUEUE, long.clone()).unwrap();
    world.buckets.put(BUCKET, "aws/a", b"{}").unwrap();
    let console = console(&world, &[]).await;
    for _ in 0..2 {
        let page = console.page("/health").await;
        assert!(page.contains("&lt;i&gt;the bus&lt;/i&gt; refuses it"), "{page}");
        assert!(page.contains("It stays: the message is not JSON"), "{page}");
        assert!(page.contains("It stays: the object has no payload"), "{page}");
        assert!(!page.contains("It does not say why"), "each says it: {page}");
        assert!(page.len() < 10_000 && !page.contains("<script>x"), "{page}");
        assert!(!page.contains("Redrive"), "it only reads: {page}");
        let whole = console.get(&link(&page, &names(&world)[1]).unwrap()).await;
        assert_eq!(whole.headers()["content-type"], "text/plain; charset=utf-8");
        assert_eq!(whole.text().await.unwrap(), long);
    }
    assert_eq!(console.post(REDRIVE, &[]).await.status(), 403);
    assert_eq!(names(&world).len(), 2);
    for (path, status, why) in [
        ("/health/queues/Automations/dead-letter?name=x", 404, "The dead letter x is not there"),
        ("/health/queues/Automations/dead-letter", 400, "name: write the name of a dead letter."),
        ("/health/queues/PublishEvents/dead-letter?name=x", 404, "No flag names queues"),
        ("/health/buckets/PublishEvents/dead-letter?name=x", 404, "The dead letter x is not there"),
        ("/health?within=soon", 400, "within: "),
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
    let page = console(&world, &[]).await.page("/health").await;
    assert_eq!(page.matches("It may keep more.").count(), 2, "{page}");
    assert!(page.contains("aws/09") && !page.contains("aws/10"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_dead_letter_is_redriven_and_then_all() {
    let mut world = with_dead_letters(&["o1", "o2", "o3"]).await;
    world.queues.send(QUEUE, "hello".to_owned()).unwrap();
    let console = console(&world, &["--write"]).await;
    assert!(console.page("/health").await.contains("Redrive all of Automations"));
    let second = names(&world)[1].clone();
    let page = console.carried_out(REDRIVE, &[("name", &second)]).await;
    assert!(page.contains("1 done, 0 left.") && page.contains(&second), "{page}");
    assert_eq!((names(&world).len(), world.on_the_bus().len()), (3, 1));
    let page = console.carried_out(REDRIVE, &[("name", &second)]).await;
    assert!(page.contains("It failed: ") && page.contains("is not there"), "{page}");

    let page = console.carried_out(REDRIVE, &[]).await;
    assert!(page.contains("2 done, 1 left.") && page.contains("It stays: "), "{page}");
    assert_eq!((names(&world).len(), world.on_the_bus().len()), (1, 2));
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
    let page = console.page("/health").await;
    assert!(page.contains("the next event brings what it holds: delete it"), "{page}");
    let refused = console.post("/health/buckets/ProjectViews/redrive", &[]).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("need no redrive: delete them."));
    let page = console.carried_out("/health/buckets/PublishEvents/redrive", &[]).await;
    assert!(page.contains("1 done, 0 left."), "{page}");
    assert_eq!(world.on_the_bus().len(), 1);
    assert!(world.buckets.list(BUCKET).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_names_queues_and_buckets_and_a_queue_that_fails_hides_nothing_else() {
    let world = World::start().await;
    let stack = Console::start(&world, &["--stack", "ringfence-local"]).await;
    let page = stack.page("/health").await;
    for place in ["Queue Automations", "Bucket of PublishEvents"] {
        let (_, rest) = page.split_once(place).expect(place);
        assert!(rest.contains("It keeps nothing."), "{page}");
    }
    let page = console(&world, &["--queue", "Other=http://127.0.0.1:1/0/other"]).await;
    let page = page.page("/health").await;
    assert!(page.contains("Queue Other</h3>") && page.contains("Queue Automations</h3>"), "{page}");
    assert!(page.contains("some dead letters can't be read"), "{page}");
    let nowhere = Console::start(&world, &[]).await.page("/health").await;
    assert!(nowhere.contains("Name queues and buckets with --queue NAME=URL"), "{nowhere}");
    assert!(nowhere.contains("name the log group with --log-group"), "{nowhere}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_conflicts_of_a_time_are_shown() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let now = Clock::system().now_ms();
    let line = |ago_ms: u64, outcome: &str, conflicts: &[&str]| {
        json!({
            "timestamp": ringfence_core::rfc3339(now - ago_ms), "slice": "pack-parcel", "outcome": outcome,
            "attempts": conflicts.len() + 1, "conflicts": conflicts, "duration_ms": 5, "requests": 4,
            "read_units": 1.5, "write_units": 8.0, "principal": "jwt:main:ada",
            "by": (outcome == "rejected").then_some("pack-parcel"),
        })
    };
    let lines = [
        line(7_200_000, "accepted", &["sealId:old"]),
        line(60_000, "rejected", &[]),
        line(60_000, "malformed", &[]),
        line(1_000, "accepted", &["sealId:s1", "sealId:s1"]),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.path().join("pack-parcel.log"), text).unwrap();
    let console = console(&world, &["--logs", folder.path().to_str().unwrap()]).await;
    let page = console.page("/health").await;
    let numbers: Vec<_> = page.split("<td class=\"number\">").skip(1).collect();
    let numbers = numbers.iter().map(|rest| rest.split('<').next().unwrap());
    let of_slice = ["3", "1", "1", "1", "0", "0", "2", "2", "1.50", "8.00", "5"];
    assert!(numbers.collect::<Vec<_>>().windows(11).any(|some| some == of_slice), "{page}");
    assert!(page.contains("<td class=\"number heat-9\">2</td>"), "{page}");
    let of_ada = "<th scope=\"row\">jwt:main:ada</th><td class=\"number\">3</td>";
    assert!(page.contains(of_ada), "{page}");
    assert_eq!(link(&page, "sealId:s1").unwrap(), "/boundary?id=sealId%3As1");
    assert!(!page.contains("sealId:old"), "{page}");
    assert_eq!(link(&page, "pack-parcel").unwrap(), "/slices/catalog/pack-parcel");
    let day = console.page(&link(&page, "Last 24h").unwrap()).await;
    assert!(day.contains("sealId:old") && day.contains("sealId:s1"), "{day}");
}
