//! A stack with its console.

use std::time::Duration;

use courses::CourseCapacityChanged;
use ringfence_aws::{Clock, wire::Wire};
use ringfence_core::{
    Append, Appended, BoundaryId, Envelope, EventLog, Metadata, NewEvent, Tag, kit::id,
};
use ringfence_dcb_log::DcbLog;
use ringfence_feed::{Checkpoint, Index};
use ringfence_local::stack::RunningStack;
use ringfence_local::{Console, workspace_root};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest wait for the index.
const INDEXED_MAX: Duration = Duration::from_secs(600);
/// Events of one append.
const TOGETHER: usize = 99;
/// Text that a page must not take for markup, and that would hide or turn a part of it, or make it too wide.
pub(crate) const HOSTILE: &str = "\"'><img src=x onerror=document.title='taken'><script>0</script></textarea>&lt;\u{1b}[31m\u{7}\u{202e}turned\u{2066}\u{1f600}\
    Donaudampfschifffahrtselektrizitaetenhauptbetriebswerkbauunterbeamtengesellschaft";

pub(crate) struct Site {
    folder: &'static str,
    stack: RunningStack,
    console: String,
    http: reqwest::Client,
    _data: TempDir,
}

impl Site {
    /// Starts the stack in this folder of the repository.
    pub(crate) async fn start(folder: &'static str, console: Console) -> Self {
        let data = crate::folder();
        let mut stack = crate::start(folder, data.path(), None).await;
        let console = stack.serve_console(console).await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { folder, stack, console, http, _data: data }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.console)
    }

    /// The URL of the HTTP API, whose root leads to the console.
    pub(crate) fn api(&self) -> &str {
        self.stack.api()
    }

    /// Gives a command over HTTP, which must be accepted.
    pub(crate) async fn send(&self, slice: &str, command: Value) {
        let url = format!("{}/{slice}", self.stack.api());
        let answer = self.http.post(url).body(command.to_string()).send().await.unwrap();
        let status = answer.status();
        assert_eq!(status, 200, "{slice}: {}", answer.text().await.unwrap());
    }

    /// Gives the command of a slice's sample, which must be accepted.
    pub(crate) async fn send_sample(&self, context: &str, slice: &str) {
        let events = workspace_root().join(self.folder).join("events");
        let sample = events.join(slice).join("direct.json");
        let mut sample: Value = serde_json::from_slice(&std::fs::read(sample).unwrap()).unwrap();
        let command =
            if sample.get("command").is_some() { sample["command"].take() } else { sample };
        self.send(&format!("{context}/{slice}"), command).await;
    }

    pub(crate) async fn define_course(&self, course: &str) {
        self.send("courses/define-course", json!({ "courseId": course, "capacity": 3 })).await;
    }

    pub(crate) async fn add_product(&self, product: &str, name: &str) {
        let price = json!({ "amount": 1, "currency": "EUR" });
        let command =
            json!({ "productId": product, "name": name, "description": "", "price": price });
        self.send("catalog/add-product", command).await;
    }

    fn table(&self, id: &str) -> &str {
        &self.stack.tables().iter().find(|table| table.id == id).unwrap().name
    }

    /// How many events of a type a course has.
    pub(crate) async fn count(&self, event_type: &str, course: &str) -> usize {
        let items = self.stack.items("EventTable").unwrap();
        let is_one = |item: &&Value| {
            item["id"]["S"] == format!("courseId:{course}") && item["event"]["S"] == event_type
        };
        items.iter().filter(is_one).count()
    }

    /// Stores a batch with an event, like Lambda when the function has given it up.
    pub(crate) fn keep_failed_batch(&self, function: &str) {
        let mut items = self.stack.items("EventTable").unwrap();
        items.retain(|item| item["event"].is_object());
        let record = json!({
            "eventID": "1", "eventName": "INSERT", "awsRegion": "eu-central-1",
            "dynamodb": { "NewImage": items.remove(0), "SizeBytes": 1 },
        });
        let object = json!({ "payload": json!({ "Records": [record] }).to_string() });
        let bucket = self.bucket(function);
        self.stack.buckets().put(&bucket, "aws/batch", object.to_string().as_bytes()).unwrap();
    }

    /// How many batches are in the function's bucket.
    pub(crate) fn failed_batches(&self, function: &str) -> usize {
        self.stack.buckets().list(&self.bucket(function)).unwrap().len()
    }

    fn bucket(&self, function: &str) -> String {
        let mut names = self.stack.buckets().names().iter();
        names.find(|name| name.contains(function)).unwrap().clone()
    }

    /// Writes hostile text into everything that people and other programs can put in. Returns the pages that show it.
    pub(crate) async fn take_hostile_text(&self) -> Vec<String> {
        let mut metadata = Metadata::default();
        for key in
            ["principal", "correlationId", "causationId", "by", "slice", "commandId", HOSTILE]
        {
            metadata.insert(key, HOSTILE).unwrap();
        }
        let envelope = Envelope { metadata, ..Envelope::default() };
        // The first one is well-formed, so its reactions have its metadata. The others make reactions fail.
        let price = json!({ "amount": 1, "currency": "EUR" });
        for (event_type, key, id, data) in [
            (
                "ProductAdded",
                "productId",
                "h",
                json!({ "productId": "h", "name": HOSTILE, "description": HOSTILE, "price": price }),
            ),
            (
                "ProductAdded",
                "productId",
                HOSTILE,
                json!({ "productId": "h", "name": HOSTILE, "price": HOSTILE }),
            ),
            (
                "OrderPlaced",
                "orderId",
                HOSTILE,
                json!({ "orderId": HOSTILE, "productIds": [HOSTILE], HOSTILE: 1 }),
            ),
        ] {
            let event =
                NewEvent { event_type: event_type.into(), tags: vec![Tag::new(key, id)], data };
            self.append(vec![event], &envelope).await;
        }
        let dead_letter = json!({ "partition": HOSTILE, "cause": HOSTILE }).to_string();
        let url = self.stack.queue_url("ringfence-local-IndexEventsDeadLetters");
        let message = json!({ "QueueUrl": url, "MessageBody": dead_letter }).to_string();
        let send =
            self.http.post(self.stack.services()).header("x-amz-target", "AmazonSQS.SendMessage");
        assert_eq!(send.body(message).send().await.unwrap().status(), 200);
        let bucket = self.bucket("PublishEvents");
        self.stack.buckets().put(&bucket, "aws/batch", HOSTILE.as_bytes()).unwrap();

        let hostile = encoded(HOSTILE);
        let partition = |key| encoded(BoundaryId::tag(key, HOSTILE).as_str());
        let (product, order) = (partition("productId"), partition("orderId"));
        vec![
            format!("/events/{product}/1"),
            format!("/boundary?id={product}"),
            format!("/lanes/notify-partner/skip?lane={order}&event={order}%2F1"),
            format!("/search?q={hostile}"),
            format!("/events?context=ordering&tag=orderId%3A{hostile}"),
            format!("/slices/ordering/place-order?f.orderId={hostile}&f.productIds={hostile}"),
            format!("/views/{hostile}"),
        ]
    }

    async fn append(&self, events: Vec<NewEvent>, envelope: &Envelope) {
        let (client, catalog) =
            (Wire::default().client(self.stack.dynamo()), stack::stack().catalog);
        let log = DcbLog::new(client, self.table("EventTable"), catalog, Clock::system());
        let appended = log.append(Append { events, seen: None, record: None, envelope }).await;
        assert!(matches!(appended.unwrap(), Appended::Committed(_)));
    }

    /// Appends so many events, and waits until they are in the index.
    pub(crate) async fn fill(&self, count: usize) {
        let client = Wire::default().client(self.stack.dynamo());
        let index = Index::new(client, self.table("IndexTable"), []);
        let before = index.end().await.unwrap();
        let envelope = Envelope::default();
        // The events of one append belong to one course, so the index writes one progress for all of them.
        for first in (0..count).step_by(TOGETHER) {
            let course_id = id(&format!("course-{first}"));
            let changed: NewEvent = CourseCapacityChanged { course_id, new_capacity: 1 }.into();
            self.append(vec![changed; TOGETHER.min(count - first)], &envelope).await;
        }
        let indexed = async {
            let count = u64::try_from(count).unwrap();
            while index.count(before, end(&index).await).await.unwrap() < count {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::time::timeout(INDEXED_MAX, indexed).await.expect("all are in the index");
    }
}

/// Text as a part of a URL.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn end(index: &Index) -> Checkpoint {
    index.end().await.unwrap()
}
