//! The search of the console, its types, and what a page of a busy index costs.

use reqwest::header::LOCATION;

use crate::console::{Console, link, listed, metadata, with_demands, with_flow};
use crate::data::met;
use crate::world::{World, demand};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_busy_index_reads_few_bodies_and_says_what_more_would_cost() {
    let world = World::start().await;
    let in_flow = async |command: &str, cause: &str| {
        let mut metadata = metadata(command, cause);
        metadata.insert("correlationId", "busy").unwrap();
        world.append_with(demand("p1", "o1"), metadata).await;
    };
    in_flow("c1", "c1").await;
    for n in 0..9 {
        if n == 4 {
            in_flow("c2", "productId:p1/1").await;
        }
        world.append((0..45).flat_map(|n| demand("p1", &format!("o{n}"))).collect()).await;
    }
    world.index(&[&ringfence_core::BoundaryId::stored("productId:p1")]).await;
    let console = Console::start(&world, &[]).await;
    for (path, units) in [
        ("/events/1", "15.5"),
        ("/search?q=nowhere", "12.5"),
        ("/types/ProductDemandRecorded", "11"),
        ("/events?tag=orderId%3Anowhere", "15.5"),
    ] {
        let page = console.page(path).await;
        assert!(page.contains(&format!(" and {units} read units")), "{path}: {page}");
    }
    let page = console.page("/events/1").await;
    let caused = console.page("/events/182").await;
    let (_, flow) = caused.split_once("<ol class=\"flow\">").unwrap();
    assert_eq!(listed(flow.split("</ol>").next().unwrap()), [1, 182], "a cause is read: {flow}");
    let further = link(&page, "Look further").unwrap();
    assert_eq!(further, "/events/1?further=true");
    assert!(!console.page(&further).await.contains("Look further"));
    let page = console.page("/search?q=busy").await;
    assert!(page.contains("Not found in the newest 25 events"), "{page}");
    let further = console.get(&link(&page, "Look in 10000").unwrap()).await;
    assert_eq!(further.headers()[LOCATION], "/events/182");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_takes_every_id_and_name_and_says_where_it_looked() {
    let (world, _) = with_flow().await;
    let console = Console::start(&world, &[]).await;
    for (q, page) in [
        ("productId%3Ap1", "/boundary?id=productId%3Ap1"),
        ("orderId%3Ao%2F1", "/boundary?id=orderId%3Ao%252F1"),
        ("productId%3Ap1%2F1", "/events/productId%3Ap1/1"),
        ("3", "/events/3"),
        ("r%2F1", "/events/3"),
        ("c1", "/events/3"),
        ("ProductDemandRecorded", "/types/ProductDemandRecorded"),
        ("+pack-parcel+", "/slices/catalog/pack-parcel"),
        ("catalog%2Fpack-parcel", "/slices/catalog/pack-parcel"),
    ] {
        let found = console.get(&format!("/search?q={q}")).await;
        let to = found.headers().get(LOCATION);
        assert_eq!(to.and_then(|to| to.to_str().ok()), Some(page), "{q}");
    }
    let beyond = console.page("/search?q=4").await;
    assert!(beyond.contains("Nothing has the name or the id <code>4</code>"), "{beyond}");
    let page = console.page("/search?q=PRODUCTA").await;
    assert_eq!(link(&page, "ProductAdded").as_deref(), Some("/types/ProductAdded"), "{page}");
    let page = console.page("/search?q=%3Cb%3E%E2%80%AE").await;
    assert!(page.contains(r"<code>&lt;b&gt;\u202e</code>"), "{page}");
    assert!(page.contains("in the newest 3 events of the index, which are all."), "{page}");
    assert!(console.page("/search?q=").await.contains("The search takes a partition"));
    let (status, page) = console.refused(&format!("/search?q={}", "a".repeat(3_000))).await;
    assert!(status == 400 && page.contains("q: an id or a name has at most 2048 bytes"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_has_a_page_with_its_fields_users_and_newest_events() {
    let world = with_demands(3).await;
    let console = Console::start(&world, &[]).await;
    let all = console.page("/types").await;
    let url = link(&all, "<span class=\"hidden\">event </span>ProductDemandRecorded").unwrap();
    assert_eq!(url, "/types/ProductDemandRecorded");
    let page = console.page(&url).await;
    for text in
        ["<dt>Partition</dt><dd><code>productId</code>", "newest 3 events", "and 2.5 read units"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    let (_, newest) = page.split_once("Newest events").unwrap();
    assert_eq!(listed(newest), [3, 2, 1]);
    let event = world.append(vec![met("ada")]).await.remove(0);
    world.index(&[&event.partition]).await;
    let page = console.page("/types/CustomerMet").await;
    assert!(page.contains("<td>string, personal of customerId</td>"), "{page}");
    assert!(page.contains("&quot;name&quot;: &quot;sealed, of ada&quot; }"), "{page}");
    let page = console.page("/events/4").await;
    assert!(page.contains("sealed, of ada") && !page.contains("$sealed"), "{page}");
    let page = console.page("/types/ParcelPacked").await;
    assert!(page.contains("<code>orderId</code></th><td>string, 1 to"), "{page}");
    let decider = page.split("Decisions that read it</dt>").nth(1).unwrap();
    assert!(decider.split("</dd>").next().unwrap().contains("pack-parcel</a> by <code>"), "{page}");
    let (_, none) = page.split_once("Newest events").unwrap();
    assert!(none.contains("None. Of the index, the newest 4 events were looked at."), "{page}");
    let (status, page) = console.refused("/types/Nothing").await;
    assert_eq!((status, link(&page, "All types").as_deref()), (404, Some("/types")), "{page}");
}
