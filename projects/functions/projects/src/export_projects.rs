//! export-projects: copies the events of each project from the index into a bucket, once a minute.
//!
//! A program that copies a project then needs only the project's folder, and not the events of the whole stack. The
//! object `cursor.json` says how far the index was read. It is written after the segments, so a run that breaks off
//! loses nothing, and the next one writes the same segments again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use lambda_runtime::{Diagnostic, Error};
use ringfence::aws::http::{Http, HttpError, Signer, endpoint};
use ringfence::aws::{Began, Clock, Trust, sdk_config};
use ringfence::feed::{Checkpoint, Entry, FeedError, Index, Until};
use ringfence::function::{Call, Level, LogLine, Service, Variables, chain};
use ringfence::log::{LogKind, SOURCE, StackLogs};
use ringfence::stack::Function;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ProjectId;
use crate::exchange::{Segment, Segments};

/// The segments are written after this many entries of the index, even if no entry is of a project.
const ROUND_ENTRIES: usize = 5_000;
/// How many bytes of lines are held before their segments are written. The last line may add to them.
const ROUND_BYTES: usize = 8 * 1_024 * 1_024;
/// The object that says how far the index was read.
const CURSOR: &str = "cursor.json";
/// The time for a request to the bucket and its whole answer.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// The longest answer, in bytes: the cursor, or an error.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The longest part of an error that is repeated, in characters.
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
    /// The names of the tables of the log and of the index, and of the bucket.
    type Config = (BTreeMap<LogKind, String>, String, String);

    fn config((): &(), variables: &mut Variables) -> Self::Config {
        let log = variables.tables(&[SOURCE].into());
        (log, variables.required("INDEX_TABLE"), variables.required("EXPORT_BUCKET"))
    }

    async fn open((): (), (log, index, bucket): Self::Config) -> Result<Self, Error> {
        let client = ringfence::aws::client_from_env()?;
        let clock = Clock::system();
        ringfence::aws::open(&client, &clock).await;
        let bucket = Bucket::open(bucket).await?;
        let logs =
            StackLogs { client: client.clone(), clock: clock.clone(), tables: log, vault: None };
        let index = Index::new(client, index, logs.bodies(&[SOURCE].into()));
        Ok(Self { index, bucket, clock })
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let began = self.clock.begin();
        match self.export(began, call.time).await {
            Ok((lines, segments)) => {
                let json = json!({
                    "lines": lines,
                    "segments": segments,
                    "duration_ms": began.lasted_ms(&self.clock),
                    "function_request_id": call.request_id,
                });
                LogLine::new(self.clock.now_ms(), Level::INFO, "exported", json).write();
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
    /// Exports new entries, until no entry is left or the time is over. Returns how many lines and segments there were.
    async fn export(&self, began: Began, time: Duration) -> Result<(usize, usize), ExportError> {
        let (mut lines, mut written) = (0, 0);
        let behind = self.bucket.cursor().await?;
        let mut entries = self.index.read(behind, Until::Present).fuse();
        while let Some(round) = Round::read(&mut entries).await.map_err(ExportError::Index)? {
            for (project, Segment { name, text }) in round.segments {
                self.bucket.put(&format!("{project}/{name}"), text.as_bytes()).await?;
                (lines, written) = (lines + text.lines().count(), written + 1);
            }
            let cursor = json!(Cursor { behind: round.behind }).to_string();
            self.bucket.put(CURSOR, cursor.as_bytes()).await?;
            if Duration::from_millis(began.lasted_ms(&self.clock)) >= time {
                break;
            }
        }
        Ok((lines, written))
    }
}

/// The segments that are written at once.
#[derive(Debug, PartialEq)]
pub struct Round {
    /// The lines of each project.
    pub segments: BTreeMap<ProjectId, Segment>,
    /// The checkpoint after the last entry that was read.
    pub behind: Checkpoint,
}

impl Round {
    /// Reads the next entries, of all contexts. `None` if there are no more.
    ///
    /// # Errors
    /// The index can't be read.
    pub async fn read(
        entries: &mut (impl Stream<Item = Result<Entry, FeedError>> + Unpin),
    ) -> Result<Option<Self>, FeedError> {
        let (mut segments, mut read, mut behind) = (Segments::default(), 0, None);
        while read < ROUND_ENTRIES
            && segments.bytes() < ROUND_BYTES
            && let Some(entry) = entries.try_next().await?
        {
            (read, behind) = (read + 1, Some(entry.checkpoint));
            segments.add(entry);
        }
        Ok(behind.map(|behind| Self { segments: segments.close(), behind }))
    }
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
