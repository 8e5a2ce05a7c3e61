//! The console's page of a slice.

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use serde_json::json;
use tokio::net::TcpListener;

use crate::console::Console;
use crate::world::World;

const PAGE: &str = "/slices/catalog/pack-parcel";
const FIELDS: [(&str, &str); 3] =
    [("f.orderId", "o1"), ("f.parcelId", "p1"), ("f.sealIds", "s1\ns2")];

/// Serves an API that answers commands of the page's slice. Returns its URL.
async fn serve(answer: MethodRouter) -> String {
    let router = Router::new().route("/catalog/pack-parcel", answer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    api
}

/// The page after its command was sent to this API.
async fn sent(api: &str) -> String {
    let world = World::start().await;
    let logs = ["--write", "--api", api, "--logs", "/no/such/folder"];
    let console = Console::start(&world, &logs).await;
    let answer = console.post(PAGE, &FIELDS).await;
    assert_eq!(answer.status(), 200);
    let page = answer.text().await.unwrap();
    assert!(page.contains(r#"name="f.orderId" value="o1""#), "the form stays filled: {page}");
    assert!(
        page.contains("<p>Packs a parcel, once, with seals that no other parcel has.</p>"),
        "{page}"
    );
    page
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_although_its_line_in_the_log_can_t_be_read() {
    let event = json!({ "type": "ParcelPacked", "partition": "orderId+parcelId:o1/p1", "slot": 1 });
    let answer = json!({ "accepted": true, "events": [event] }).to_string();
    let page = sent(&serve(post(async move || answer)).await).await;
    assert!(page.contains("<h2>Accepted</h2>"), "{page}");
    let link = r#"<a href="/events/orderId%2BparcelId%3Ao1%2Fp1/1">ParcelPacked</a>"#;
    assert!(page.contains(link), "{page}");
    assert!(page.contains("can&#39;t be read") || page.contains("can't be read"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_no_function_gave_has_no_line_to_wait_for() {
    let answer = post(async || (StatusCode::FORBIDDEN, r#"{"message":"Forbidden"}"#));
    let page = sent(&serve(answer).await).await;
    assert!(page.contains("<h2>Answer 403</h2>"), "{page}");
    assert!(page.contains("No function has given this answer"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_an_answer_may_have_taken_effect() {
    let page = sent("http://127.0.0.1:1").await;
    assert!(page.contains("<h2>No answer</h2>"), "{page}");
    assert!(page.contains("may have taken effect"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_no_caller_gives_is_explained_and_not_sent() {
    let world = World::start().await;
    let console = Console::start(&world, &["--write", "--api", "http://127.0.0.1:1"]).await;
    let page = console.page("/slices/carts/check-out").await;
    assert!(page.contains(">Explain</button>") && !page.contains(">Send</button>"), "{page}");
    let sent = console.post("/slices/carts/check-out", &[("f.cartId", "c1")]).await;
    let page = sent.text().await.unwrap();
    assert!(page.contains("<h2>Not carried out</h2>"), "{page}");
    assert!(page.contains("the slice has no route"), "{page}");
}
