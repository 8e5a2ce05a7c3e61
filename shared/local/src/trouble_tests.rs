use super::*;
use crate::invoke::InvokeError;

fn unknown(function: &str) -> InvokeError {
    InvokeError::Unknown { function: function.to_owned() }
}

#[tokio::test]
async fn the_page_gets_routes_what_is_kept_and_troubles_before_and_after_it_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let buckets = Buckets::new(folder.path().to_owned(), vec!["lost".to_owned()]);
    buckets.put("lost", "a/b", b"batch").expect("written");
    let queues = Queues::new(["dead".to_owned()]);
    queues.send("http://services/0/dead", "letter".to_owned()).expect("a queue");
    let notices = Notices::default();
    let routes = vec![Route {
        method: "POST".to_owned(),
        path: "/ordering/place-order".to_owned(),
        function: "place-order".to_owned(),
    }];
    let (api, services) = ("http://api".to_owned(), "http://services".to_owned());
    let trouble = Trouble { notices: notices.clone(), queues, buckets, routes, api, services };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/trouble", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router(trouble)).await });
    let get = async |path: &str| reqwest::get(format!("{url}{path}")).await.expect("an answer");
    let json = async |path: &str| get(path).await.json::<Value>().await.expect("JSON");

    assert_eq!(json("/routes").await, json!(["POST http://api/ordering/place-order"]));
    let kept = json("/kept").await;
    assert_eq!(kept["queues"]["dead"][0]["Body"], "letter");
    assert_eq!(kept["buckets"]["lost"], json!(["http://services/lost/a/b"]));

    notices.trouble(&unknown("before"));
    let mut live = get("/notices").await;
    notices.trouble(&unknown("after"));
    let mut text = String::new();
    while !text.contains("after") {
        let chunk = live.chunk().await.expect("a chunk").expect("more");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.starts_with("data: \"there is no function before\""), "{text}");
}
