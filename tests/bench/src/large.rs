//! `cargo bench-all large 10000000`: a rebuild of so many events, each with a row of its own. The store has one event and
//! one entry of the index, and makes all others of them; it keeps no row.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use ordering::views::orders::Orders;
use ringfence_aws::Clock;
use ringfence_core::Catalogs;
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{EPOCH_ENTRIES_MAX, Index, Indexer};
use ringfence_views::{Definition, Projector, Step};
use serde_json::{Value, json};

use crate::commands::NOW_MS;
use crate::measure::{runtime, thread_time};
use crate::reactions::{append_all, index, log, order};
use crate::store::{EVENTS, INDEX, Store, VIEWS};

/// Entries of a page.
const PAGE: u64 = 1_000;
/// Pages of an answer, about 1 MB.
const PAGES: u64 = 6;
/// The order of the event that is there.
const ORDER: &str = "order-000000";

/// Clones count together.
#[derive(Clone)]
struct Large {
    store: Store,
    events: u64,
    entry: String,
    event: String,
    bodies: Arc<AtomicU64>,
    rows: Arc<AtomicU64>,
}

impl fmt::Debug for Large {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Large")
    }
}

impl Large {
    fn page(&self, epoch: u64, i: u64) -> String {
        let first = epoch * EPOCH_ENTRIES_MAX + i;
        let entry = |n| self.entry.replace(ORDER, &format!("order-{n:09}"));
        let entries: Vec<_> = (first..first + PAGE).map(entry).collect();
        let (n, sealed) = (i + PAGE, i + PAGE == EPOCH_ENTRIES_MAX);
        format!(
            r#"{{"p":{{"S":"$AppendsEpoch-0_{epoch}"}},"i":{{"N":"{i}"}},"n":{{"N":"{n}"}},"s":{{"N":"{first}"}},"sealed":{{"BOOL":{sealed}}},"e":{{"L":[{}]}}}}"#,
            entries.join(",")
        )
    }

    /// Pages from an offset on, or the last one up to it.
    fn pages(&self, request: &Value) -> String {
        let of = |name: &str, kind: &str| request["ExpressionAttributeValues"][name][kind].as_str();
        let epoch = of(":p", "S").and_then(|p| p.rsplit('_').next()?.parse().ok()).unwrap_or(0);
        let i: u64 = of(":i", "N").and_then(|i| i.parse().ok()).unwrap_or(0);
        let end = self.events.saturating_sub(epoch * EPOCH_ENTRIES_MAX).min(EPOCH_ENTRIES_MAX);
        let begins: Vec<u64> = match request["ScanIndexForward"] == false {
            true if end == 0 => Vec::new(),
            true => vec![i.min(end - 1) / PAGE * PAGE],
            false => {
                let most = request["Limit"].as_u64().unwrap_or(PAGES).min(PAGES);
                let begins = (0..most).map(|n| i.next_multiple_of(PAGE) + n * PAGE);
                begins.filter(|begin| *begin < end).collect()
            }
        };
        let pages: Vec<_> = begins.into_iter().map(|i| self.page(epoch, i)).collect();
        format!(r#"{{"Items":[{}],"Count":{}}}"#, pages.join(","), pages.len())
    }

    fn events(&self, keys: &[Value]) -> String {
        self.bodies.fetch_add(keys.len() as u64, Ordering::Relaxed);
        let event = |key: &Value| {
            let id = key["id"]["S"].as_str().unwrap_or_default().trim_start_matches("orderId:");
            self.event.replace(ORDER, id)
        };
        let events: Vec<_> = keys.iter().map(event).collect();
        format!(r#"{{"Responses":{{"{EVENTS}":[{}]}},"UnprocessedKeys":{{}}}}"#, events.join(","))
    }

    fn answer(&self, operation: &str, body: &[u8]) -> SdkBody {
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        match (operation, request["RequestItems"][EVENTS]["Keys"].as_array()) {
            ("Query", _) if request["TableName"] == INDEX => self.pages(&request).into(),
            ("BatchGetItem", Some(keys)) => self.events(keys).into(),
            ("PutItem", _) if request["TableName"] == VIEWS => {
                self.rows.fetch_add(1, Ordering::Relaxed);
                "{}".into()
            }
            _ => self.store.answer(operation, body),
        }
    }
}

impl HttpConnector for Large {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = self.answer(operation, request.body().bytes().unwrap_or_default());
        let status = StatusCode::try_from(200).expect("200 is a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, body)))
    }
}

/// The most memory that the process had, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split(' ').rev().nth(1));
    peak.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or_default() / 1_024
}

/// Rebuilds a view of a row for each event, and says what that took.
pub(crate) fn rebuild(events: u64) {
    let (store, runtime) = (Store::new(), runtime());
    let item = |table: &str, is_it: fn(&Value) -> bool| {
        let answer = store.answer("Scan", json!({ "TableName": table }).to_string().as_bytes());
        let answer: Value = serde_json::from_slice(answer.bytes().expect("it is in memory"))
            .expect("an answer is JSON");
        let items = answer["Items"].as_array().expect("items");
        items.iter().find(|item| is_it(item)).expect("it is there").clone()
    };
    runtime.block_on(async {
        let partitions = append_all(&log(&store), vec![order(0)]).await;
        let indexer = Indexer::new([log(&store).into()], store.client(), INDEX);
        index(&indexer, &partitions).await;
    });
    let entry = item(INDEX, |item| item.get("e").is_some())["e"]["L"][0].to_string();
    let event = item(EVENTS, |item| item["id"]["S"] == "orderId:order-000000").to_string();
    let events = events.next_multiple_of(PAGE);
    let large = Large {
        store: store.clone(),
        events,
        entry,
        event,
        bodies: Arc::default(),
        rows: Arc::default(),
    };
    let connector = SharedHttpConnector::new(large.clone());
    let http = http_client_fn(move |_, _| connector.clone());
    let client = store.client_at("http://store.invalid", http);
    let log = DcbLog::new(client.clone(), EVENTS, stack::stack().catalog, Clock::fixed(NOW_MS));
    let index = Index::new(client.clone(), INDEX, [log.into()]);
    let projector = Projector::new(client, index, VIEWS, Catalogs::default(), Clock::fixed(NOW_MS));
    let (begun, cpu) = (Instant::now(), thread_time());
    let told = |step| {
        if let Step::Built(_, at) = step
            && i64::from(at) % 1_000_000 == 0
        {
            println!("at {at}: {:.0} s, {} MB", begun.elapsed().as_secs_f64(), peak_mb());
        }
    };
    let view = Definition::of::<Orders>();
    runtime.block_on(projector.rebuild(&view, &told)).expect("it is rebuilt");
    let [bodies, rows] = [&large.bodies, &large.rows].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{events} events, {rows} rows: {:.0} s of a processor, {:.0} s in all, {} MB, each event read {:.1} times",
        (thread_time() - cpu).as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        peak_mb(),
        bodies as f64 / events as f64
    );
}
