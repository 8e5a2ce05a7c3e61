//! The console's pages of views.

use std::time::Duration;

use reqwest::header::LOCATION;
use ringfence_core::{NewEvent, events, kit::id};
use ringfence_programs::shop::{ProductAdded, ProductNameChanged};
use tokio::time::sleep;

use crate::console::{Console, link};
use crate::world::{VIEWS, World};

fn added(product: &str, description: &str) -> Vec<NewEvent> {
    let (product_id, name) = (id(product), "<b>Lamp</b>".to_owned());
    events![ProductAdded { product_id, name, description: description.to_owned() }]
}

fn renamed(product: &str, name: &str) -> Vec<NewEvent> {
    events![ProductNameChanged { product_id: id(product), name: name.to_owned() }]
}

/// Appends and indexes these events, each by itself.
async fn with(appends: impl IntoIterator<Item = Vec<NewEvent>>) -> World {
    let world = World::start().await;
    for events in appends {
        append(&world, events).await;
    }
    world
}

async fn append(world: &World, events: Vec<NewEvent>) {
    let event = world.append(events).await.remove(0);
    world.index(&[&event.partition]).await;
}

impl Console {
    /// The last page of a job. Until then, the page reloads itself.
    pub(crate) async fn ended(&self, job: &str) -> String {
        loop {
            let answer = self.get(job).await;
            assert_eq!(answer.status(), 200, "{job}");
            let goes = answer.headers().contains_key("refresh");
            let page = answer.text().await.unwrap();
            if !goes {
                return page;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a form that starts a job, and returns the job's last page.
    pub(crate) async fn carried_out(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let answer = self.post(path, fields).await;
        assert_eq!(answer.status(), 303, "{path}: {}", answer.text().await.unwrap());
        self.ended(answer.headers()[LOCATION].to_str().unwrap()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_listed_with_generation_and_lag() {
    let world = with([added("p1", "")]).await;
    let console = Console::start(&world, &[]).await;
    let page = console.page("/views").await;
    assert!(page.contains("No projector has run it yet."), "{page}");
    world.json(&["replay", "view", "catalog-products"]);
    for (lag, at) in [("up to date", 1), ("1 behind", 2)] {
        let page = console.page("/views").await;
        let (_, row) = page.split_once("/views/catalog%2Dproducts").unwrap();
        let row = row.split("</tr>").next().unwrap();
        assert!(row.contains("<td>2</td>") && row.contains(lag), "{row}");
        assert!(page.contains(&format!("The index ends at checkpoint {at}.")), "{page}");
        let (_, cost) = page.split_once("to DynamoDB and ").unwrap();
        assert_eq!(cost.split(' ').next(), Some("3.5"), "half a unit a read: {page}");
        append(&world, added("p2", "")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_listed_by_prefix_page_by_page_and_shown_whole() {
    let large = "x".repeat(40_000);
    let many = (0..30).map(|n| added(&format!("p{n:02}"), ""));
    let world = with(many.chain([added("q-1", &large)])).await;
    world.json(&["replay", "view", "catalog-products"]);
    let console = Console::start(&world, &[]).await;
    let count = |page: &str| page.matches("/row?id=").count();
    let first = console.page("/views/catalog-products?prefix=p").await;
    assert_eq!(count(&first), 25, "{first}");
    assert!(!first.contains("<b>Lamp") && first.contains("&lt;b&gt;Lamp&lt;/b&gt;"), "{first}");
    assert!(first.contains("/events?before=3"), "each row says as of when it is");
    let next = console.page(&link(&first, "Next").unwrap()).await;
    assert_eq!((count(&next), link(&next, "Next")), (5, None), "{next}");
    assert!(next.contains("p29") && link(&next, "First").is_some(), "{next}");

    let page = console.page("/views/catalog-products?prefix=q").await;
    assert!(page.len() < 10_000, "a long row is cut");
    let row = console.page(&link(&page, "q-1").unwrap()).await;
    assert!(row.contains("These are the first 16384 of"), "{row}");
    let whole = console.get(&link(&row, "The whole row").unwrap()).await;
    assert_eq!(whole.headers()["content-type"], "application/json");
    let whole: serde_json::Value = whole.json().await.unwrap();
    assert_eq!(whole["description"], *large);
    for (path, status, why) in [
        ("/views/catalog-products/row?id=z", 404, "has no row"),
        ("/views/catalog-products/row?id=", 400, "id: write the id of a row."),
        (
            &format!("/views/catalog-products/row?id={}", "x".repeat(1_025)),
            400,
            "id: must have 1 to 1024 bytes",
        ),
        ("/views/catalog-products?prefix=p&after=q-1", 400, "after: is not a token of this list"),
        (
            "/views/catalog-products?prefix=p&after=WyJ4Il0",
            400,
            "after: is not a token of this list",
        ),
        ("/views/nothing", 404, "The stack has no view"),
        ("/jobs/0", 404, "has no such job"),
    ] {
        let (found, page) = console.refused(path).await;
        assert!(found == status && page.contains(why), "{path}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_is_started_by_a_form_and_tells_its_end() {
    let long = "x".repeat(300_000);
    let mut unread = renamed("p3", "Lamp");
    unread[0].data["name"] = 1.into();
    let world = with([added("p1", &long), added("p2", ""), renamed("p1", &long), unread]).await;
    let console = Console::start(&world, &["--write"]).await;
    let rebuild = "/views/catalog-products/rebuild";
    for (from_start, generation) in [("", 2), ("yes", 3)] {
        let page = console.carried_out(rebuild, &[("from-start", from_start)]).await;
        let served = format!("catalog-products: generation {generation} is served.");
        assert!(page.contains(&served) && page.contains("2 rows and events are parked."), "{page}");
        assert_eq!(link(&page, "Back").unwrap(), "/views/catalog%2Dproducts");
    }
    let page = console.page("/views/catalog-products").await;
    assert!(page.contains("Parked: event ") && page.contains("limit 399360"), "{page}");
    assert!(page.contains(">productId:p3/1</a>: the event can't be read: "), "{page}");
    let overview = console.page("/").await;
    assert!(overview.contains("2 rows and events are parked in the view "), "{overview}");
    let event = console.get(&link(&page, "productId:p1/2").unwrap()).await;
    assert_eq!(event.headers()[LOCATION], "/events/3");
    assert_eq!(console.post("/views/nothing/rebuild", &[]).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_only_reads_offers_no_rebuild_and_starts_none() {
    let world = with([added("p1", "")]).await;
    let console = Console::start(&world, &[]).await;
    assert!(!console.page("/views/catalog-products").await.contains("Rebuild</button>"));
    let refused = console.post("/views/catalog-products/rebuild", &[]).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(console.refused("/jobs/0").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_table_of_the_views_their_pages_name_the_flag() {
    let world = World::start().await;
    let console = Console::start_with(&world, &[], |command| {
        command.env_remove("VIEW_TABLE");
    });
    let console = console.await;
    for path in ["/views", "/"] {
        let page = console.page(path).await;
        assert!(page.contains("--view-table, VIEW_TABLE or --stack"), "{path}: {page}");
    }
    assert_eq!(console.refused("/views/catalog-products").await.0, 404);
    drop(console);
    let console = Console::start_with(&world, &["--view-table", VIEWS], |command| {
        command.env_remove("VIEW_TABLE");
    });
    assert!(console.await.page("/views").await.contains("catalog-products"));
}
