use super::*;
use crate::invoke::InvokeError;

fn unknown(function: &str) -> InvokeError {
    InvokeError::Unknown { function: function.to_owned() }
}

#[tokio::test]
async fn the_page_gets_routes_and_troubles_before_and_after_it_opened() {
    let notices = Notices::default();
    let routes = vec![Route {
        method: "POST".to_owned(),
        path: "/ordering/place-order".to_owned(),
        function: "place-order".to_owned(),
    }];
    let trouble = Trouble { notices: notices.clone(), routes, api: "http://api".to_owned() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/trouble", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router(trouble)).await });
    let get = async |path: &str| reqwest::get(format!("{url}{path}")).await.expect("an answer");
    let json = async |path: &str| get(path).await.json::<Value>().await.expect("JSON");

    assert_eq!(json("/routes").await, json!(["POST http://api/ordering/place-order"]));

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
