//! What the page of an event shows beside its flow: effects, rows and deadlines, each with its state.

use ringfence_core::{events, kit::id};
use ringfence_programs::shop::{OrderId, OrderPlaced, ParcelPacked, ProductDemandRevoked};

use crate::console::{Console, metadata};
use crate::lanes::run;
use crate::world::World;

const HOUR_MS: u64 = 3_600_000;

/// Asserts what the axis of an event has and has not, in order, and the read units of the page.
async fn shows(console: &Console, event: u32, texts: &[&str], not: &[&str], units: &str) {
    let page = console.page(&format!("/events/{event}")).await;
    let (_, flow) = page.split_once("<ol class=\"flow\">").unwrap();
    let (flow, _) = flow.split_once("</ol>").unwrap();
    let mut from = 0;
    for text in texts {
        let at = flow[from..].find(text).unwrap_or_else(|| panic!("{event}: {text}: {flow}"));
        from += at + text.len();
    }
    assert!(not.iter().all(|text| !flow.contains(text)), "{event}: {not:?}: {flow}");
    assert!(page.contains(&format!(" and {units} read units")), "{event}: {units}: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_shows_its_effects_and_rows_with_their_states() {
    let world = World::start().await;
    for (product, order) in [("lamp", "o1"), ("lamp", "o2"), ("desk", "o1")] {
        world.indexed_demand(product, order).await;
    }
    let (product_id, order_id) = (id("lamp"), id("o1"));
    let revoked = world.append(events![ProductDemandRevoked { product_id, order_id }]).await;
    world.index(&[&revoked[0].partition]).await;
    let console = Console::start(&world, &[]).await;
    let effect = "</a> <code>ProductId(&quot;lamp&quot;)</code> ";
    let waits = format!("{effect}waits: the reactor is not there yet");
    shows(&console, 1, &["<code>lamp</code> is not served yet", &waits], &[], "6").await;
    // The reactor plans nothing for this event.
    shows(&console, 4, &["is not served yet"], &["ask-supplier"], "2.5").await;

    run(&world, true).await;
    world.json(&["replay", "view", "product-demand"]);
    let row = "<code>lamp</code> shows it, as of checkpoint 4";
    let failed = format!("{effect}<strong class=\"bad\">failed</strong>: lamp is sold out");
    shows(&console, 1, &[row, &failed], &[], "7.5").await;
    let behind =
        format!("{effect}waits in its lane behind <a href=\"/events/productId%3Alamp/1\">");
    shows(&console, 2, &[row, &behind], &[], "7.5").await;

    world.run(&[
        "parked",
        "skip-lane",
        "ask-supplier",
        "productId:desk/1",
        "--why",
        "<it is here>",
    ]);
    world.run(&["parked", "retry-lane", "ask-supplier", "productId:lamp/1"]);
    run(&world, false).await;
    shows(&console, 3, &["was skipped by a person: &lt;it is here&gt;"], &[], "7.5").await;
    shows(&console, 2, &[row, &format!("{effect}is done")], &[], "7.5").await;

    // The view is behind, and the reactor is sent beyond an event without handling it.
    world.indexed_demand("lamp", "o3").await;
    world.run(&["replay", "reactor", "ask-supplier", "--from", "end"]);
    let row = "<code>lamp</code> <strong>does not show it yet</strong>, as of checkpoint 4";
    let never = format!("{effect}has no receipt: the reactor began later");
    shows(&console, 5, &[row, &never], &[], "8").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_are_on_the_axis_when_they_are_set_cleared_and_due() {
    let mut world = World::start().await;
    let placed = |flow: &str| {
        let order = flow.trim_end_matches(" again");
        events![OrderPlaced { order_id: id::<OrderId>(order) }]
    };
    let packed = |order: &str| {
        let order_id: OrderId = id(order);
        events![ParcelPacked { order_id, parcel_id: id("p"), seal_ids: vec![] }]
    };
    // Each order was placed some hours ago, and has a parcel so much later in a flow.
    for (order, ago, parcel) in [
        ("early", 3, Some((0, "early"))),
        ("late", 5, Some((2 * HOUR_MS, "late"))),
        ("never", 4, None),
        ("new", 0, None),
        ("other", 3, Some((HOUR_MS, "another"))),
        ("twice", 4, None),
        ("twice again", 4, None),
    ] {
        let placed = (ago * HOUR_MS, order, placed(order));
        let packed = parcel.map(|(later, flow)| (ago * HOUR_MS - later, flow, packed(order)));
        for (ago_ms, flow, events) in [Some(placed), packed].into_iter().flatten() {
            world.at(ago_ms);
            let mut metadata = metadata(flow, flow);
            metadata.insert("correlationId", flow).unwrap();
            let event = world.append_with(events, metadata).await.remove(0);
            world.index(&[&event.partition]).await;
        }
    }
    world.json(&["replay", "view", "pack-parcel"]);
    let console = Console::start(&world, &[]).await;
    let (sets, clears) = ("sets a deadline for <a", "clears the deadline of <a");
    shows(&console, 1, &[sets, ", 1 h later", clears], &["was due"], "6.5").await;
    let late = [sets, ">+1 h<", "was due", ">+2 h<", clears];
    shows(&console, 3, &late, &["has no deadline"], "6.5").await;
    let due = |when: &'static str| [sets, ">+1 h<", when, "</time>"];
    let never = [&due("was due <time")[..], &[", and is <strong class=\"bad\">late<"]].concat();
    shows(&console, 5, &never, &[clears], "8.5").await;
    shows(&console, 6, &due(" is due <time"), &[">late<"], "8.5").await;
    shows(&console, 7, &[sets, "has no deadline any more"], &["was due"], "8.5").await;
    let moved = [sets, ", 1 h later", "is moved by <a", "of another flow", "was due <time"];
    shows(&console, 9, &moved, &["any more"], "9").await;
    let again = [sets, "was due <time", ">late<"];
    shows(&console, 10, &again, &[", 1 h later", "of another flow"], "9").await;
}
