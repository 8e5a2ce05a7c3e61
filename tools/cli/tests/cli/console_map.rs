//! The console's map, and `ringfence map`.

use serde_json::Value;

use crate::console::{Console, link, with_flow};

#[tokio::test(flavor = "multi_thread")]
async fn the_map_leads_from_the_stack_to_a_context_to_a_slice_and_replays_a_flow() {
    let (world, _) = with_flow().await;
    let console = Console::start(&world, &[]).await;
    let page = console.page("/map").await;
    assert!(page.contains(r#"<a class="node context" href="/map/catalog""#), "{page}");
    assert!(page.contains(r#"href="/map/carts/check-out""#), "{page}");
    assert!(page.contains("No flag names the log, so the traffic is not known."), "{page}");
    let page = console.page("/map/catalog").await;
    assert!(page.contains(r#"href="/views/product-demand""#), "{page}");
    let page = console.page("/map/catalog/pack-parcel").await;
    assert!(page.contains(r#"href="/slices/catalog/pack-parcel""#), "{page}");
    assert!(page.contains("Its decision reads ") && page.contains("ParcelPacked"), "{page}");
    assert!(page.contains("class=\"node command now\""), "{page}");

    let page = console.page("/map?event=1").await;
    assert!(
        page.contains("data-replay") && page.contains("Step 1 of 2") && page.contains(" now\""),
        "{page}"
    );
    assert!(page.contains("/views/product-demand"), "the views of its events are there: {page}");
    let [first, second] = [1, 3].map(|event| page.find(&format!("href=\"/events/{event}\"><span")));
    assert!(first.is_some() && first < second, "{page}");
    let next = link(&page, "Next step").unwrap();
    assert_eq!(next, "/map?event=1&step=2");
    let next = console.page(&next).await;
    assert!(next.contains("Step 2 of 2") && link(&next, "Next step").is_none(), "{next}");
    assert_eq!(link(&next, "Previous step").as_deref(), Some("/map?event=1&step=1"));
    assert_eq!(link(&page, "The event").as_deref(), Some("/events/1"));
    let far = console.page("/map?event=1&further=true").await;
    assert!(
        far.contains("Step 1 of 2") && !far.contains("data-replay"),
        "each step costs much: {far}"
    );
    for (path, status, why) in [
        ("/map?event=first", 400, "event: write the checkpoint of an event, a number."),
        ("/map?event=1&step=last", 400, "step: write a number from 1."),
        ("/map?event=7", 404, "The index has no event at 7."),
        ("/map/%3Cb%3E", 404, "The stack has no context &lt;b&gt;."),
        ("/map/catalog/view:product-demand", 404, "No context has the slice"),
    ] {
        let (refused, page) = console.refused(path).await;
        assert!(refused == status && page.contains(why), "{path}: {refused} {page}");
    }

    let (status, map) = world.json(&["map", "--slice", "catalog/pack-parcel"]);
    assert_eq!(status, 0);
    let edge = |edge: &Value| edge["from"] == "catalog/pack-parcel" && edge["does"] == "writes";
    assert!(map["edges"].as_array().unwrap().iter().any(edge), "{map}");
    let (slices, map) = (console.page("/slices").await, world.json(&["map"]).1);
    for slice in ["catalog/pack-parcel", "carts/check-out"] {
        let node = map["nodes"].as_array().unwrap().iter().find(|node| node["id"] == slice);
        let kind = node.unwrap()["kind"].as_str().unwrap();
        let chip = format!("class=\"chip {kind}\" href=\"/slices/{slice}\"");
        assert!(slices.contains(&chip), "a slice has the colour of the map: {chip}: {slices}");
    }
}
