//! Queued commands, on the tables and the queues of the template: their order, their answers, and failures.

mod machine;
mod world;

use std::time::Duration;

use ringfence_aws::wire::Fault;
use ringfence_lambda::{MESSAGE_BYTES_MAX, message};
use ringfence_services::queue::{COMMAND_BYTES_MAX, TRIES_MAX};
use serde_json::{Value, json};
use tokio::time::Instant;

use machine::{COMMANDS, LOST, Local};
use world::{
    CANCEL, Caller, HOUR, PLACE, SYNC, TIME_MS, World, caller, cancel, place, sync, with_token,
};

#[tokio::test(start_paused = true)]
async fn commands_of_a_group_are_carried_out_in_order_at_their_cost() {
    let world = World::with_lamp().await;
    world.dynamo.wire.forget();
    let before = world.function.meter().snapshot();
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    // Queueing costs one write of the answer's item.
    let taken = world.function.meter().snapshot().since(&before);
    assert_eq!((taken.reads, taken.writes, taken.total().write), (0, 1, 1.0));
    world.give(CANCEL, "c", &cancel("o-1")).await;
    world.give(CANCEL, "unknown", &cancel("o-2")).await;
    // Within five minutes SQS drops the repeat, and afterwards its answer is known.
    world.give(CANCEL, "c", &cancel("o-1")).await;
    assert_eq!(world.queues.messages()[COMMANDS].len(), 3);
    let before = world.function.meter().snapshot();
    assert_eq!(world.deliver(false).await, 3);
    // Carrying it out costs one strong read and one write of the item, besides the slice's cost.
    let run = world.function.meter().snapshot().since(&before);
    assert_eq!((run.reads, run.writes), (3, 3));
    assert_eq!((run.total().read, run.total().write), (3.0, 3.0));
    let answer = world.answer("p").await;
    let events = json!([{ "type": "OrderPlaced", "partition": "orderId:o-1", "slot": 1 }]);
    assert_eq!(answer["answer"], json!({ "accepted": true, "events": events }));
    assert_eq!((&answer["state"], &answer["slice"]), (&json!("accepted"), &json!(PLACE)));
    assert_eq!(world.answer("c").await["answer"]["events"][0]["slot"], 2);
    let rejected = world.answer("unknown").await;
    assert_eq!(
        (&rejected["state"], &rejected["answer"]["code"]),
        (&json!("rejected"), &json!("OrderNotFound"))
    );
    assert_eq!(rejected["answer"]["type"], "urn:ringfence:problem:rejected");
    assert_eq!(world.deliver(false).await, 0);
    // When SQS has forgotten its id, a repeat is answered at once, and nothing is in the queue.
    world.wait(600).await;
    let (status, repeat) = world.give_as(&caller("p"), PLACE, &place("o-1", "lamp")).await;
    assert_eq!((status, &repeat), (200, &answer));
    assert!(world.queues.messages()[COMMANDS].is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_answer_holds_back_its_group_and_no_other_and_is_tried_again() {
    let world = World::with_lamp().await;
    for (slice, id, command) in [
        (PLACE, "p1", place("o-1", "lamp")),
        (CANCEL, "c1", cancel("o-1")),
        (PLACE, "p2", place("o-2", "lamp")),
    ] {
        world.give(slice, id, &command).await;
    }
    world.busy.refuse("orderId:o-1");
    assert_eq!(world.deliver(false).await, 3);
    assert_eq!(world.states(&["p1", "c1", "p2"]).await, ["pending", "pending", "accepted"]);
    let waits = world.answer("p1").await;
    assert_eq!((&waits["tries"], &waits["problem"]["status"]), (&json!(1), &json!(503)));
    assert_eq!(world.deliver(false).await, 0, "the group waits");
    // A repeat of a tried command adds no message, also when SQS has forgotten its id.
    world.wait(600).await;
    world.give(PLACE, "p1", &place("o-1", "lamp")).await;
    world.busy.clear();
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.states(&["p1", "c1"]).await, ["accepted", "accepted"]);
    assert_eq!(world.answer("c1").await["answer"]["events"][0]["slot"], 2);
    // Nor does a group wait for a slow one.
    world.give(CANCEL, "c", &cancel("o-1")).await;
    world.give(CANCEL, "c2", &cancel("o-2")).await;
    world.busy.hang("orderId:o-1");
    world.deliver(false).await;
    assert_eq!(world.states(&["c", "c2"]).await, ["pending", "accepted"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_without_an_answer_becomes_a_dead_letter_and_its_group_goes_on() {
    let world = World::with_lamp().await;
    world.give(PLACE, "p1", &place("o-1", "lamp")).await;
    world.give(CANCEL, "c1", &cancel("o-1")).await;
    world.give(PLACE, "p2", &place("o-2", "lamp")).await;
    world.busy.refuse("Query");
    for n in 1..=TRIES_MAX {
        assert_eq!(world.states(&["p1", "p2"]).await, ["pending", "pending"], "{n}");
        // After the last try the process crashes before it deletes the messages.
        assert_eq!(world.deliver(n == TRIES_MAX).await, 3, "{n}");
        world.wait(600).await;
    }
    assert_eq!(world.deliver(false).await, 3, "they are in the queue, and are not tried again");
    assert_eq!(world.states(&["p1", "c1", "p2"]).await, ["failed", "pending", "failed"]);
    let mut dead_letters = world.dead_letters();
    dead_letters.sort_by_key(|of| of["queued"]["commandId"].to_string());
    let [dead_letter, _] = &dead_letters[..] else { panic!("{dead_letters:?}") };
    assert_eq!(
        (&dead_letter["tries"], &dead_letter["queued"]["slice"]),
        (&json!(TRIES_MAX), &json!(PLACE))
    );
    assert!(dead_letter["cause"].as_str().unwrap().starts_with("throttled: "), "{dead_letter}");
    assert!(dead_letter["firstFailed"].is_string());
    world.busy.clear();
    world.wait(600).await;
    while world.deliver(false).await > 0 {}
    assert_eq!(world.answer("c1").await["answer"]["code"], "OrderNotFound");

    // A redrive puts it into the queue again, with all its tries.
    let again = dead_letter["queued"].clone();
    Local(world.queues.clone()).put(COMMANDS, again, "orderId:o-1", "redrive");
    world.busy.refuse("Query");
    world.deliver(false).await;
    assert_eq!(world.dead_letters().len(), 2, "it is not given up at once");
    assert_eq!(world.answer("p1").await["tries"], 1);
    world.busy.clear();
    world.wait(600).await;
    world.deliver(false).await;
    assert_eq!(world.states(&["p1"]).await, ["accepted"]);

    // So does a repeat of its request. It keeps its id.
    let (status, _) = world.give_as(&caller("p2"), PLACE, &place("o-3", "lamp")).await;
    assert_eq!((status, world.queues.messages()[COMMANDS].len()), (422, 0));
    world.give(PLACE, "p2", &place("o-2", "lamp")).await;
    assert_eq!(world.answer("p2").await.get("tries"), None);
    world.deliver(false).await;
    assert_eq!(world.states(&["p2"]).await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_ends_its_process_is_given_up_and_a_repeat_is_carried_out() {
    let world = World::with_lamp().await;
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    world.give(CANCEL, "c", &cancel("o-1")).await;
    world.give(CANCEL, "q", &cancel("o-2")).await;
    world.busy.refuse("Query");
    world.deliver(false).await;
    world.busy.clear();
    world.busy.hang("Query");
    let mut receives = 1;
    while world.states(&["p"]).await == ["pending"] {
        world.wait(600).await;
        assert_eq!(world.deliver(false).await, 3);
        receives += 1;
    }
    // The first sixteen note nothing before they begin.
    assert_eq!(receives, 16 + TRIES_MAX);
    let failed = world.answer("p").await;
    let title = json!("The command had no answer");
    assert_eq!((&failed["tries"], &failed["problem"]["title"]), (&json!(TRIES_MAX), &title));
    let [dead_letter] = &world.dead_letters()[..] else { panic!("{:?}", world.dead_letters()) };
    assert!(
        dead_letter["cause"].as_str().unwrap().starts_with("internal: the try ended"),
        "{dead_letter}"
    );
    // The command behind it and the one of another group were received as often, but are not given up.
    world.busy.clear();
    world.wait(600).await;
    world.deliver(false).await;
    for of in ["c", "q"] {
        assert_eq!(world.answer(of).await["answer"]["code"], "OrderNotFound", "{of}");
    }
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    world.deliver(false).await;
    assert_eq!(world.answer("p").await["answer"]["events"][0]["slot"], 1);

    // If SQS gives up a message by itself, nobody notes it. A day later it is known all the same.
    world.give(CANCEL, "sqs", &cancel("o-1")).await;
    world.busy.refuse("Query");
    world.deliver(false).await;
    world.wait(600).await;
    for message in world.queues.receive(COMMANDS, 10, None).unwrap() {
        world.queues.delete(COMMANDS, &message.receipt_handle).unwrap();
    }
    world.busy.clear();
    for (hours, state, messages) in [(23, "pending", 0), (1, "failed", 1)] {
        world.wait(hours * HOUR).await;
        assert_eq!(world.states(&["sqs"]).await, [state]);
        world.give(CANCEL, "sqs", &cancel("o-1")).await;
        assert_eq!(world.queues.messages()[COMMANDS].len(), messages);
    }
    world.deliver(false).await;
    assert_eq!(world.states(&["sqs"]).await, ["accepted"]);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_arrives_late_changes_no_answer() {
    let world = World::with_lamp().await;
    let orders = [("yes", "o-1", "lamp", "accepted"), ("no", "o-2", "desk", "rejected")];
    for (id, order, product, state) in orders {
        world.give(PLACE, id, &place(order, product)).await;
        world.busy.refuse("Query");
        // The note of the first try is sent again, and the first request arrives hours later.
        let late = Fault::Stray(Duration::from_secs(5 * HOUR));
        world.dynamo.wire.inject("PutItem", 0, late);
        world.deliver(false).await;
        assert_eq!(world.answer(id).await["tries"], 1);
        world.busy.clear();
        world.wait(600).await;
        world.deliver(false).await;
        assert_eq!(world.states(&[id]).await, [state]);
    }
    // A rejection that was not stored arrives late as well. By then the command is accepted.
    world.give(PLACE, "other", &place("o-3", "chair")).await;
    world.dynamo.wire.inject("PutItem", 0, Fault::Stray(Duration::from_secs(5 * HOUR)));
    world.busy.refuse("\"answer\":{\"S\"");
    world.deliver(false).await;
    world.busy.clear();
    world.give(SYNC, "s2", &sync("chair")).await;
    world.deliver(false).await;
    world.wait(600).await;
    world.deliver(false).await;
    let states = ["accepted", "rejected", "accepted"];
    for hours in [0, 6] {
        world.wait(hours * HOUR).await;
        assert_eq!(world.states(&["yes", "no", "other"]).await, states, "{hours}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_begins_only_with_two_seconds_left() {
    // The slow part is the command before it, or the read of its own answer.
    for slow in ["orderId:o-1", "$Command-p2"] {
        for (left_ms, states) in [(2_000, ["accepted"; 2]), (1_999, ["accepted", "pending"])] {
            let world = World::with_lamp().await;
            world.give(PLACE, "p1", &place("o-1", "lamp")).await;
            world.give(CANCEL, "p2", &cancel("o-1")).await;
            world.busy.take(slow, TIME_MS - left_ms);
            assert_eq!(world.deliver(false).await, 2);
            assert_eq!(world.states(&["p1", "p2"]).await, states, "{slow}");
            // It is delivered again at once.
            world.deliver(false).await;
            assert_eq!(world.states(&["p2"]).await, ["accepted"]);
            assert_eq!(world.answer("p2").await.get("tries"), None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_answered_in_time_and_learns_that_the_command_may_be_in_the_queue() {
    let world = World::with_lamp().await;
    world.busy.hang("$Command-");
    for (id, is_late) in [("late", true), (LOST, false)] {
        let (order, begun) = (format!("o-{id}"), Instant::now());
        let (status, problem) = world.give_as(&caller(id), PLACE, &place(&order, "lamp")).await;
        assert_eq!((status, &problem["title"]), (504, &json!("The queue did not answer")));
        let detail = format!(
            "the command may be in the queue; repeat it with the Idempotency-Key {id}, and it takes effect once"
        );
        assert_eq!(problem["detail"], detail);
        if is_late {
            let (status, _) = world.ask("GET", json!({ "id": id }), &Caller::default(), "").await;
            let time = Duration::from_millis(2 * TIME_MS);
            assert_eq!((status, begun.elapsed()), (503, time));
            world.busy.clear();
            world.give(PLACE, id, &place(&order, "lamp")).await;
        }
        world.deliver(false).await;
        assert_eq!(world.states(&[id]).await, ["accepted"]);
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_off_a_command_takes_effect_once_and_its_answer_stays() {
    let world = World::with_lamp().await;
    world.give(PLACE, "p", &place("o-1", "lamp")).await;
    world.give(PLACE, "no", &place("o-2", "desk")).await;
    // It takes effect, and its answer is not stored.
    world.busy.refuse("\"answer\":{\"S\"");
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.states(&["p", "no"]).await, ["pending", "pending"]);
    // No note has the number of tries, so the pauses follow from the number of receives.
    for (seconds, messages) in [(2, 2), (10, 2), (10, 0)] {
        world.wait(seconds).await;
        assert_eq!(world.deliver(false).await, messages);
    }
    world.busy.clear();
    world.wait(600).await;
    // Its answer is stored, and the message is not deleted.
    assert_eq!(world.deliver(true).await, 2);
    assert_eq!(world.states(&["p", "no"]).await, ["accepted", "rejected"]);
    let accepted = world.answer("p").await;
    assert_eq!(accepted["answer"]["repeated"], true);
    assert_eq!(accepted["answer"]["events"][0]["slot"], 1);
    // By now the order of the desk would be accepted. But its caller may know that it was rejected.
    world.give(SYNC, "s2", &sync("desk")).await;
    world.deliver(false).await;
    world.wait(600).await;
    world.requests_to_logs();
    assert_eq!(world.deliver(false).await, 2);
    assert_eq!(world.requests_to_logs(), 0);
    assert_eq!(world.answer("no").await["answer"]["code"], "ProductsNotAvailable");
    assert_eq!(world.answer("p").await, accepted);
    assert!(world.queues.messages()[COMMANDS].is_empty() && world.dead_letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_bad_request_is_refused_before_the_queue_and_only_the_caller_sees_the_answer() {
    let world = World::start();
    let ada = with_token("k", "ada", "ordering/write");
    let (status, given) = world.give_as(&ada, CANCEL, &cancel("o-1")).await;
    assert_eq!((status, &given["commandId"]), (202, &json!("k")));
    let mut large = place("o-1", "");
    large["productIds"] = (0..30_000).map(|n| format!("p-{n:05}")).collect();
    let refused = [
        (&ada, CANCEL, cancel("o-2"), 422, "key-reused"),
        (&ada, PLACE, place("o-1", "lamp"), 422, "key-reused"),
        (&with_token("k", "eve", "ordering/write"), CANCEL, cancel("o-1"), 422, "key-reused"),
        (&with_token("l", "eve", "ordering/read"), CANCEL, cancel("o-1"), 403, "scope-missing"),
        (&caller("l"), CANCEL, json!({}), 400, "malformed"),
        (&caller("l/m"), CANCEL, cancel("o-1"), 400, "malformed"),
        (&caller("l"), "ordering/no-slice", cancel("o-1"), 404, "slice-not-found"),
        (&caller("l"), world::LAPSE, world::lapse(), 404, "slice-not-found"),
        (&caller("l"), PLACE, large, 413, "too-large"),
    ];
    for (caller, slice, command, expected, kind) in refused {
        let (status, problem) = world.give_as(caller, slice, &command).await;
        assert_eq!(status, expected, "{problem}");
        assert_eq!(problem["type"], format!("urn:ringfence:problem:{kind}"));
    }
    assert_eq!(world.queues.messages()[COMMANDS].len(), 1);
    world.put_own(world::LAPSE, "own", &world::lapse());
    world.deliver(false).await;
    assert_eq!(world.states(&["own"]).await, ["accepted"]);
    let id = || json!({ "id": "k" });
    for (caller, expected) in [
        (&ada, 200),
        // An API without an authorizer lets everybody see everything.
        (&Caller::default(), 200),
        (&with_token("", "eve", "ordering/write"), 404),
        (&with_token("", "ada", "ordering/read"), 403),
    ] {
        let (status, answer) = world.ask("GET", id(), caller, "").await;
        assert_eq!(status, expected, "{answer}");
    }
    world.busy.refuse("$Command-");
    let (status, problem) = world.ask("GET", id(), &ada, "").await;
    let detail = "the state of the command can't be read now; ask again";
    assert_eq!((status, &problem["detail"]), (503, &json!(detail)));
    world.busy.clear();
    for unknown in ["other".to_owned(), "k".repeat(3_000)] {
        let (status, problem) = world.ask("GET", json!({ "id": unknown }), &ada, "").await;
        assert_eq!((status, &problem["title"]), (404, &json!("There is no such command")));
    }
    // The path of an id with reserved characters, and the part of it that API Gateway passes on.
    let (parameters, key) = (json!({ "context": "ordering", "slice": "cancel-order" }), ".?b%");
    let given = world.request("POST", parameters, &caller(key), &cancel("o-9").to_string()).await;
    assert_eq!(given["headers"]["location"], "/commands/%252E%253Fb%2525");
    let (_, known) = world.ask("GET", json!({ "id": "%2E%3Fb%25" }), &Caller::default(), "").await;
    assert_eq!(known["commandId"], key);
    // The events name the caller.
    let log = world.dynamo.client.scan().table_name("EventTable").send().await.unwrap();
    assert_eq!(log.count(), 0, "the order does not exist");

    // A message that is not a command of this stack becomes a dead letter at once.
    Local(world.queues.clone()).put(COMMANDS, json!({ "x": 1 }), "g", "1");
    world.deliver(false).await;
    let [dead_letter] = &world.dead_letters()[..] else { panic!("{:?}", world.dead_letters()) };
    assert!(dead_letter["cause"].as_str().unwrap().contains("is not a command of this stack"));
    assert_eq!(dead_letter["body"], "{\"x\":1}");
    // So does a record that can't be read, alone.
    let of_g = json!({ "MessageGroupId": "g" });
    let record =
        |id: &str, body: Value| json!({ "messageId": id, "attributes": of_g, "body": body });
    let [unread, other] = [record("m-1", json!({ "x": 1 })), record("m-2", "{}".into())];
    let answer = world.call(json!({ "Records": [unread, other] })).await;
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    let [_, dead_letter, _] = &world.dead_letters()[..] else {
        panic!("{:?}", world.dead_letters())
    };
    assert_eq!(dead_letter["body"], unread.to_string());

    // The dead letter of the largest command fits into a message. Its slice does not exist, and the cause names it.
    let slice = format!("a/{}", "\u{ffff}\"".repeat(1_000));
    let queued =
        |text: &str| json!({ "slice": slice, "commandId": "i", "group": "g", "command": text });
    let left = COMMAND_BYTES_MAX - message(&queued("")).len();
    Local(world.queues.clone()).put(COMMANDS, queued(&"x".repeat(left)), "g", "i");
    for _ in 0..TRIES_MAX {
        world.deliver(false).await;
        world.wait(600).await;
    }
    let [.., dead_letter] = &world.dead_letters()[..] else { panic!("no dead letter") };
    let bytes = message(dead_letter).len();
    assert!((COMMAND_BYTES_MAX..=MESSAGE_BYTES_MAX).contains(&bytes), "{bytes}");
}
