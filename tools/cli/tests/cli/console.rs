use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use ringfence_core::{Metadata, SequencedEvent, kit::id};
use ringfence_programs::shop::{ProductAdded, ProductNameChanged};

use crate::world::{World, demand};

/// The command's console, and a browser with its cookie.
pub(crate) struct Console {
    process: Child,
    client: Client,
    origin: String,
    cookie: String,
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Console {
    pub(crate) async fn start(world: &World, more: &[&str]) -> Self {
        Self::start_with(world, more, |_| {}).await
    }

    /// Starts it with a changed environment.
    pub(crate) async fn start_with(
        world: &World,
        more: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = world.command(&[&["console"], more].concat());
        change(&mut command);
        Self::of(command).await
    }

    pub(crate) async fn of(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        let come = client.get(url.trim_end()).send().await.unwrap();
        assert_eq!(come.status(), 303);
        let cookie = come.headers()[SET_COOKIE].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let origin = come.headers()[LOCATION].to_str().unwrap().trim_end_matches('/').to_owned();
        Self { process, client, origin, cookie }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.origin));
        request.header(COOKIE, &self.cookie).send().await.unwrap()
    }

    /// The page at this path.
    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await;
        let status = answer.status();
        let page = answer.text().await.unwrap();
        assert_eq!(status, 200, "{path}: {page}");
        page
    }

    /// Posts a form with these fields, and returns the answer.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let request = self.client.post(format!("{}{path}", self.origin));
        let request = request.header(COOKIE, &self.cookie).header("origin", &self.origin);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let form = Url::parse_with_params(&self.origin, fields).unwrap();
        let form = form.query().unwrap_or_default().to_owned();
        request.body(form).send().await.unwrap()
    }

    /// The status and the error page of this path.
    pub(crate) async fn refused(&self, path: &str) -> (u16, String) {
        let answer = self.get(path).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }
}

/// The checkpoints of the events on a page, in order.
pub(crate) fn listed(page: &str) -> Vec<u64> {
    let links = page.split("href=\"/events/").skip(1);
    links.filter_map(|rest| rest.split('"').next()?.parse().ok()).collect()
}

/// The link with this text.
pub(crate) fn link(page: &str, text: &str) -> Option<String> {
    let (before, _) = page.split_once(&format!(">{text}</a>"))?;
    let (_, tag) = before.rsplit_once("<a ")?;
    let (_, rest) = tag.split_once("href=\"")?;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}

/// The icon of a page.
fn link_of_icon(page: &str) -> String {
    let (_, rest) = page.split_once("rel=\"icon\" href=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

pub(crate) async fn with_demands(count: usize) -> World {
    let world = World::start().await;
    for n in 1..=count {
        world.indexed_demand(&format!("p{}", n % 2), &format!("o{n}")).await;
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_pages_back_from_the_newest_event_to_the_first() {
    let world = with_demands(7).await;
    let console = Console::start(&world, &[]).await;
    let mut path = "/events?limit=3".to_owned();
    for (expected, live) in [(&[7, 6, 5][..], true), (&[4, 3, 2], false), (&[1], false)] {
        let page = console.page(&path).await;
        assert_eq!(listed(&page), expected, "{path}");
        assert_eq!(page.contains("data-live"), live, "{path}");
        assert!(page.contains("read units."), "{path} says what it cost");
        assert!(!page.contains("appear by themselves"), "only the script knows it: {path}");
        path = link(&page, "Further back").unwrap_or_default();
    }
    assert_eq!(path, "", "the last page has no other after it");
    let page = console.page("/events").await;
    let boundary = link(&page, "productId:p1").unwrap();
    assert_eq!(
        boundary, "/boundary?id=productId%3Ap1",
        "the partition is read, and not searched for"
    );
    assert_eq!(link(&console.page("/events/1").await, "productId:p1").unwrap(), boundary);
    let look = console.page(&boundary).await;
    assert!(look.contains("productId:p1/1") && !look.contains("productId:p0/"), "{look}");
    let search = link(&look, "Search the index for all events with this tag").unwrap();
    assert_eq!(link(&console.page(&search).await, "the boundary").unwrap(), boundary);
    let (status, page) = console.refused("/boundary?id=colour%3Ared").await;
    let search = link(&page, "Search the index for it").unwrap();
    assert_eq!((status, &*search), (400, "/events?tag=colour%3Ared"));
    for (wrong, why) in [
        ("limit=0", "limit: write a number from 1 to 10000."),
        ("limit=10001", "limit: write"),
        ("before=x", "before: a checkpoint must be an integer."),
        ("before=8", "before: checkpoint 8 is after the end of the index, 7."),
        ("tag=orderId", "tag: write key:value"),
        ("since=noon", "since: write a time"),
    ] {
        let (status, page) = console.refused(&format!("/events?{wrong}")).await;
        assert_eq!(status, 400, "{wrong}");
        assert!(page.contains(why), "{wrong}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_events_ends_at_a_megabyte_and_the_next_one_goes_on() {
    let world = World::start().await;
    // A row holds 240 of these characters, each as the four bytes `&lt;`.
    let renamed = || ProductNameChanged { product_id: id("p1"), name: "<".repeat(240) }.into();
    for _ in 0..9 {
        world.append((0..100).map(|_| renamed()).collect()).await;
    }
    world.index(&[&ringfence_core::BoundaryId::stored("productId:p1")]).await;
    let console = Console::start(&world, &[]).await;
    let page = console.page("/events?limit=10000").await;
    let first = listed(&page);
    assert!(first.len() < 900 && page.len() < 1_200_000, "{} {}", first.len(), page.len());
    let rest = listed(&console.page(&link(&page, "Further back").unwrap()).await);
    assert_eq!((first.len() + rest.len(), rest[0] + 1), (900, first[first.len() - 1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_filters_by_context_type_tag_partition_and_time() {
    let world = with_demands(4).await;
    let console = Console::start(&world, &[]).await;
    for (filter, expected) in [
        ("context=catalog", &[4, 3, 2, 1][..]),
        ("context=ordering", &[]),
        ("type=ProductDemandRecorded", &[4, 3, 2, 1]),
        ("type=ProductAdded", &[]),
        ("tag=orderId%3Ao3", &[3]),
        ("partition=productId%3Ap0", &[4, 2]),
        ("partition=productId%3Ap0&tag=orderId%3Ao2&type=", &[2]),
        ("since=2020-01-01T00%3A00", &[4, 3, 2, 1]),
        ("since=2020-01-01&until=2020-01-02T00%3A00%3A00Z", &[]),
    ] {
        let page = console.page(&format!("/events?{filter}")).await;
        let mut found = listed(&page);
        found.dedup();
        assert_eq!(found, expected, "{filter}");
        assert!(page.contains(&format!("{} of 4 events", expected.len())), "{filter}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_sends_the_rows_of_new_events_that_the_filter_wants() {
    let world = with_demands(2).await;
    let console = Console::start(&world, &[]).await;
    let page = console.page("/events?partition=productId%3Ap1").await;
    let (_, live) = page.split_once("data-live=\"").unwrap();
    let live = live.split('"').next().unwrap().replace("&amp;", "&");
    let mut stream = console.get(&live).await;
    world.indexed_demand("p0", "o3").await;
    world.indexed_demand("p1", "o4").await;
    let mut text = String::new();
    while !text.contains("</tr>") {
        let chunk = stream.chunk().await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.contains("id: 4\n") && text.contains("o4"), "{text}");
    assert!(!text.contains("o3"), "{text}");

    let again = console.client.get(format!("{}{live}", console.origin));
    let again = again.header(COOKIE, &console.cookie).header("last-event-id", "3");
    let mut stream = again.send().await.unwrap();
    let chunk = stream.chunk().await.unwrap().unwrap();
    let chunk = String::from_utf8_lossy(&chunk);
    assert!(chunk.contains("id: 4\n"), "what came after a lost connection is sent: {chunk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_html_is_text_and_a_large_one_is_cut() {
    let world = World::start().await;
    let script = "<script>alert(1)</script>\"'&\r\n\u{202e}\u{9b}\u{2028}";
    let large = "x".repeat(40_000);
    for (product, description) in [("a", script), ("b", &large)] {
        let (product_id, name) = (id(product), script.to_owned());
        let event = ProductAdded { product_id, name, description: description.to_owned() };
        let added = world.append(ringfence_core::events![event]).await.remove(0);
        world.index(&[&added.partition]).await;
    }
    let console = Console::start(&world, &[]).await;
    for (path, shows_script) in [("/events", true), ("/events/1", true), ("/events/2", false)] {
        let page = console.page(path).await;
        assert!(!page.contains("<script>alert"), "{path}: {page}");
        let shown = page.contains("&lt;script&gt;alert(1)&lt;/script&gt;");
        assert_eq!(shown, shows_script, "{path}: {page}");
        assert_eq!(page.contains(r"\u202e\u009b\u2028"), shows_script, "{path}: {page}");
        assert!(!page.contains(['\u{202e}', '\u{9b}', '\u{2028}']), "{path}: {page}");
        assert!(page.len() < 30_000, "{path} has {} bytes", page.len());
    }
    let mut stream = console.get("/events/live?after=0").await;
    let row = stream.chunk().await.unwrap().unwrap();
    let row = String::from_utf8_lossy(&row);
    assert!(row.contains(r"\u202e") && !row.contains('\u{202e}'), "{row}");
    let whole = console.get("/events/1/payload").await.text().await.unwrap();
    assert!(!whole.contains('\u{202e}'), "{whole}");
    let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole["name"], script, "and yet it is the same JSON");
    let page = console.page("/events/2").await;
    assert!(page.contains("These are the first 16384 of"), "{page}");
    let whole = console.get(&link(&page, "The whole payload").unwrap()).await;
    assert_eq!(whole.headers()["content-type"], "application/json");
    let whole: serde_json::Value = whole.json().await.unwrap();
    assert_eq!(whole["description"], *large);
}

pub(crate) fn metadata(command: &str, cause: &str) -> Metadata {
    let mut metadata = Metadata::default();
    for (key, value) in [("commandId", command), ("correlationId", "c1"), ("causationId", cause)] {
        metadata.insert(key, value).unwrap();
    }
    metadata
}

/// A command from outside, and the command that its event led to, with another event between them.
pub(crate) async fn with_flow() -> (World, SequencedEvent) {
    let world = World::start().await;
    let root = world.append_with(demand("p1", "o1"), metadata("c1", "c1")).await.remove(0);
    world.index(&[&root.partition]).await;
    world.indexed_demand("p2", "o2").await;
    let mut caused = metadata("r/1", &root.id());
    let who = [
        ("slice", "order-product"),
        ("by", "order-product"),
        ("principal", "jwt:main:ada\u{202e}"),
    ];
    for (key, value) in who {
        caused.insert(key, value).unwrap();
    }
    let event = world.append_with(demand("p3", "o1"), caused).await.remove(0);
    world.index(&[&event.partition]).await;
    (world, event)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flow_of_an_event_is_on_one_axis_from_any_of_its_events() {
    let (world, _) = with_flow().await;
    // The map says that this type can't be in the flow, so the event is not read.
    let (product_id, [name, description]) = (id("p1"), ["", ""].map(str::to_owned));
    let other = ringfence_core::events![ProductAdded { product_id, name, description }];
    let other = world.append(other).await.remove(0);
    world.index(&[&other.partition]).await;
    let console = Console::start(&world, &[]).await;
    for (here, units) in [(1, "8.5"), (3, "8.5")] {
        let page = console.page(&format!("/events/{here}")).await;
        let (_, flow) = page.split_once("<ol class=\"flow\">").unwrap();
        let flow = flow.split("Metadata").next().unwrap();
        assert_eq!(listed(flow), [1, 3], "{flow}");
        let places = [">c1</code>", "/events/1\"", ">r/1</code>", "/events/3\""];
        let places = places.map(|text| flow.find(text).expect(text));
        assert!(places.is_sorted(), "{places:?}: {flow}");
        assert!(flow.contains(&format!("/events/{here}\" aria-current")), "{flow}");
        let lines = flow.split("</ol>").next().unwrap().matches("<time class=\"after\"").count();
        assert!(lines >= 4 && lines == flow.matches("<svg ").count(), "{flow}");
        assert!(flow.contains(" after its cause") && flow.contains(">+0 ms</time>"), "{flow}");
        assert!(page.contains(&format!("{units} read units")), "{page}");
        assert_eq!(link(&page, "Replay it on the map").unwrap(), format!("/map?event={here}"));
    }
    let (old, new) = (console.page("/events/1").await, console.page("/events/3").await);
    let not = "not recorded: an older version wrote the event, or it was imported.";
    assert!(old.contains(not) && old.contains("catalog, slice not recorded"), "{old}");
    assert!(!new.contains(not) && new.contains(" by order-product"), "{new}");
    assert!(
        new.contains(r" for jwt:main:ada\u202e<")
            && new.contains(r"<code>jwt:main:ada\u202e</code>"),
        "{new}"
    );
    let (status, page) = console.refused("/events/3?further=1").await;
    assert!(status == 400 && page.contains("further: write true, or leave it out."), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_found_by_its_id() {
    let (world, event) = with_flow().await;
    let console = Console::start(&world, &[]).await;
    let partition = event.partition.as_str().replace(':', "%3A");
    let found = console.get(&format!("/events/{partition}/1")).await;
    assert_eq!(found.headers()[LOCATION], "/events/3");
    for nothing in ["productId%3Ap1/2", "x/1", "4", "x", "x/y", "%FF/1", "%FF"] {
        let (status, page) = console.refused(&format!("/events/{nothing}")).await;
        assert!(status == 404 && page.contains("<h1>Not Found</h1>"), "{nothing}: {page}");
    }
    let icon = link_of_icon(&console.page("/events").await);
    assert_eq!(console.get(&icon).await.headers()["content-type"], "image/svg+xml");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_changes_nothing_without_write_and_a_taken_port_is_named() {
    let world = World::start().await;
    for (flags, expected) in [(&[][..], "start it with --write"), (&["--write"], "")] {
        let console = Console::start(&world, flags).await;
        let post = console.client.post(format!("{}/events", console.origin));
        let post = post.header(COOKIE, &console.cookie).header("origin", &console.origin);
        let answer = post.send().await.unwrap();
        let may_write = !flags.is_empty();
        assert_eq!(answer.status(), if may_write { 405 } else { 403 });
        assert!(answer.text().await.unwrap().contains(expected));
        let port = console.origin.rsplit(':').next().unwrap().to_owned();
        let mut second = world.command(&["console", "--port", &port]);
        let mut second = second.stderr(Stdio::piped()).spawn().unwrap();
        let mut error = String::new();
        second.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(second.wait().unwrap().code(), Some(2));
        assert!(error.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{error}");
    }
}
