//! export-projects: copies the events of each project from the index into a bucket, once a minute.
//!
//! A program that copies a project can then read the project's folder alone, and not the events of the whole stack. The
//! object `cursor.json` says how far the index was read. It is written after the segments, so a run that breaks off loses
//! nothing, and the next one writes the same segments again.

use std::time::Duration;

use futures::StreamExt;
use lambda_runtime::{Diagnostic, Error};
use ringfence_dynamo::{Clock, Trust, sdk_config};
use ringfence_feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence_function::{Call, Service, Variables, chain};
use ringfence_http::{Http, HttpError, Signer, endpoint};
use ringfence_stack::Function;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::exchange::{Segment, segments};

/// How many events are read before their segments are written.
const ROUND_ENTRIES: usize = 5_000;
/// Where it is said how far the index was read.
const CURSOR: &str = "cursor.json";
/// The time for a request to the bucket and its whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// The longest answer, in bytes: the cursor, or an error.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much of an error's text is repeated, in characters.
const REFUSAL_CHARS_MAX: usize = 300;

/// The function.
pub struct ExportProjects {
    index: Index,
    bucket: Bucket,
    clock: Clock,
}

/// How far the index was read.
#[derive(Serialize, Deserialize)]
struct Cursor {
    behind: Checkpoint,
}

/// Why events were not exported.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("reading the index")]
    Index(#[source] FeedError),
    #[error("{method} {key}")]
    Http {
        method: &'static str,
        key: String,
        #[source]
        source: HttpError,
    },
    #[error("{method} {key}: {status} {text}")]
    Refused { method: &'static str, key: String, status: u16, text: String },
    #[error("{CURSOR} is damaged: delete it, and all is exported again")]
    Cursor(#[source] serde_json::Error),
}

impl Service for ExportProjects {
    const NAME: &'static str = "export-projects";
    const ANSWER_TIME: Duration = Duration::from_secs(5);
    const TIME_DEFAULT: Duration = Duration::from_secs(50);
    type Of = ();
    /// The names of the index's table and of the bucket.
    type Config = (String, String);

    fn config(variables: &mut Variables) -> (String, String) {
        (variables.required("INDEX_TABLE"), variables.required("EXPORT_BUCKET"))
    }

    async fn open((): (), (index, bucket): (String, String)) -> Result<Self, Error> {
        let client = ringfence_dynamo::client_from_env()?;
        ringfence_dynamo::open(&client).await;
        let bucket = Bucket::open(bucket).await?;
        Ok(Self { index: Index::new(client, index), bucket, clock: Clock::system() })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let (started_ms, time_ms) = (self.clock.now_ms(), call.time.as_millis());
        let end_ms = started_ms.saturating_add(u64::try_from(time_ms).unwrap_or(u64::MAX));
        match self.export(end_ms).await {
            Ok((lines, segments)) => {
                let function_request_id = call.request_id;
                let duration_ms = self.clock.now_ms().saturating_sub(started_ms);
                println!(
                    "{}",
                    json!({
                        "message": "exported", "lines": lines, "segments": segments,
                        "duration_ms": duration_ms, "function_request_id": function_request_id,
                    })
                );
                Ok(json!({ "lines": lines, "segments": segments }))
            }
            Err(error) => {
                let (error_type, error_message) = ("not-exported".to_owned(), chain(&error));
                Err(Diagnostic { error_type, error_message })
            }
        }
    }
}

impl Function for ExportProjects {}

impl ExportProjects {
    /// Exports what is new, until nothing is left or the time is over. Says how many lines and segments there were.
    async fn export(&self, end_ms: u64) -> Result<(usize, usize), ExportError> {
        let (mut lines, mut written) = (0, 0);
        let mut behind = self.bucket.cursor().await?;
        loop {
            let entries = read(&self.index, behind).await.map_err(ExportError::Index)?;
            let Some(last) = entries.last().map(|entry| entry.checkpoint) else {
                return Ok((lines, written));
            };
            let is_whole = entries.len() == ROUND_ENTRIES;
            for (project, Segment { name, text }) in segments(entries) {
                self.bucket.put(&format!("{project}/{name}"), text.as_bytes()).await?;
                (lines, written) = (lines + text.lines().count(), written + 1);
            }
            behind = last;
            let cursor = json!(Cursor { behind }).to_string();
            self.bucket.put(CURSOR, cursor.as_bytes()).await?;
            if !is_whole || self.clock.now_ms() >= end_ms {
                return Ok((lines, written));
            }
        }
    }
}

/// The next events of all contexts.
///
/// # Errors
/// The index can't be read.
pub async fn read(index: &Index, behind: Checkpoint) -> Result<Vec<Entry>, FeedError> {
    let mut entries = index.read(behind, Until::Present).take(ROUND_ENTRIES);
    let mut read = Vec::new();
    while let Some(entry) = entries.next().await {
        read.push(entry?);
    }
    Ok(read)
}

/// The bucket.
struct Bucket {
    http: Http,
    url: String,
}

impl Bucket {
    async fn open(name: String) -> Result<Self, Error> {
        let config = sdk_config()?;
        let signer = Signer::of(&config, "s3").await?;
        let http = Http::new(Trust::of_amazon().proxied(), Some(signer), ANSWER_BYTES_MAX);
        Ok(Self { http, url: format!("{}/{name}", endpoint(&config, "s3", "S3")?) })
    }

    /// How far the index was read; the start if it never was.
    async fn cursor(&self) -> Result<Checkpoint, ExportError> {
        match self.send("GET", CURSOR, b"").await? {
            (404, _) => Ok(Checkpoint::START),
            (_, body) => {
                let cursor: Cursor = serde_json::from_slice(&body).map_err(ExportError::Cursor)?;
                Ok(cursor.behind)
            }
        }
    }

    async fn put(&self, key: &str, body: &[u8]) -> Result<(), ExportError> {
        self.send("PUT", key, body).await.map(drop)
    }

    /// Returns the status and the body of an answer. The status says that the request succeeded, or that the object is
    /// missing.
    async fn send(
        &self,
        method: &'static str,
        key: &str,
        body: &[u8],
    ) -> Result<(u16, Vec<u8>), ExportError> {
        let url = format!("{}/{key}", self.url);
        let reply = self.http.send_within(ANSWER_TIME, method, &url, &[], body).await;
        let key = key.to_owned();
        let reply =
            reply.map_err(|source| ExportError::Http { method, key: key.clone(), source })?;
        let status = reply.status;
        if (200..300).contains(&status) || (method == "GET" && status == 404) {
            return Ok((status, reply.body));
        }
        let text = String::from_utf8_lossy(&reply.body).chars().take(REFUSAL_CHARS_MAX).collect();
        Err(ExportError::Refused { method, key, status, text })
    }
}
