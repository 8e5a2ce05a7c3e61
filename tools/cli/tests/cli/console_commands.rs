//! The page of commands, and the overview's curves with their marks of deployments.

use std::fs;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use tokio::net::TcpListener;

use crate::console::{Console, link};
use crate::console_overview::{console, line};
use crate::world::{EVENTS, INDEX, World};

/// A CloudFormation that tells the outputs of a stack, and refuses its events.
async fn refuses_events() -> String {
    let output = "<O><OutputKey>EventTableName</OutputKey><OutputValue>events</OutputValue></O>";
    let answer = post(async move |form: String| match form.contains("DescribeStacks&") {
        true => (StatusCode::OK, output),
        false => (StatusCode::FORBIDDEN, "<E><Message>you may not look</Message></E>"),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", answer)).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_and_conflicts_of_a_time_are_shown() {
    let world = World::start().await;
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        line(7_200_000, "accepted", &["sealId:old"]),
        line(61_000, "rejected", &[]),
        line(60_000, "malformed", &[]),
        line(1_000, "accepted", &["sealId:s1", "sealId:s1"]),
    ];
    fs::write(folder.path().join("pack-parcel.log"), lines.concat()).unwrap();
    let logs = ["--logs", folder.path().to_str().unwrap()];
    let console = console(&world, &logs).await;
    let page = console.page("/commands").await;
    let numbers: Vec<_> = page.split("<td class=\"number\">").skip(1).collect();
    let numbers = numbers.iter().map(|rest| rest.split('<').next().unwrap());
    let of_slice = ["3", "1", "1", "1", "0", "0", "2", "2", "1.50", "8.00", "5"];
    assert!(numbers.collect::<Vec<_>>().windows(11).any(|some| some == of_slice), "{page}");
    assert!(page.contains("<td class=\"number heat-9\">2</td>"), "{page}");
    let of_ada = "<th scope=\"row\">jwt:main:ada</th><td class=\"number\">3</td>";
    assert!(page.contains(of_ada), "{page}");
    assert_eq!(link(&page, "sealId:s1").unwrap(), "/boundary?id=sealId%3As1");
    assert!(!page.contains("sealId:old"), "{page}");
    assert!(page.contains("href=\"/slices/catalog/pack-parcel\""), "{page}");
    let day = console.page(&link(&page, "Last 24h").unwrap()).await;
    assert!(day.contains("sealId:old") && day.contains("sealId:s1"), "{day}");
    let overview = console.page("/?within=15m").await;
    for part in [
        "Numbers of Events by context",
        "These commands took 4.5 read and 24 write units, $0.000016 at list prices",
        "href=\"/search?q=walk%2D1&amp;further=true\">walk-1</a><span class=\"note\"> commands: 3, events: 6, rejected</span>",
    ] {
        assert!(overview.contains(part), "{part}: {overview}");
    }
    assert!(!overview.contains("deployed"), "the stack is not named: {overview}");
    let stack = ["--stack", "ringfence-local", "--index-table", INDEX, "--table", EVENTS];
    let flags = [&stack[..], &logs].concat();
    let deployed = Console::start(&world, &flags).await;
    let page = deployed.page("/?within=15m").await;
    for part in [
        "Z: the stack was created</title></line></svg>",
        "<li class=\"mark\">deployed</li>",
        "<td colspan=\"2\">deployed: the stack was created</td>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let url = refuses_events().await;
    let refused = Console::start_with(&world, &flags, |command| {
        command.env("AWS_ENDPOINT_URL_CLOUDFORMATION", url);
    });
    let page = refused.await.page("/?within=15m").await;
    assert!(page.contains("The deployments are not known: "), "{page}");
    assert!(page.contains(": 403: you may not look.</p>"), "{page}");
    assert!(page.contains("Numbers of Events by context"), "the curves are there: {page}");
    let (status, page) = console.refused("/?within=soon").await;
    assert!(status == 400 && page.contains("15m, 1h, 24h, 7d"), "{page}");
}
