//! The part of S3 that failed batches and exports need: list, get, put and delete, path style.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use chrono::SecondsFormat;
use ringfence_core::chain;
use serde::Deserialize;

use crate::buckets::{BucketError, Buckets};

/// The most keys of one answer, as for S3.
const KEYS_MAX: usize = 1_000;

/// The routes of S3. They allow larger objects than anything here has.
pub fn router(buckets: Buckets) -> Router {
    Router::new()
        .route("/{bucket}", get(list))
        .route("/{bucket}/", get(list))
        .route("/{bucket}/{*key}", get(object).put(put).delete(delete))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::new(buckets))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ListObjects {
    list_type: Option<String>,
    #[serde(default)]
    prefix: String,
    max_keys: Option<usize>,
    /// The last key of the previous answer.
    #[serde(default)]
    continuation_token: String,
    /// Only keys after this one.
    #[serde(default)]
    start_after: String,
}

async fn list(
    State(buckets): State<Arc<Buckets>>,
    Path(bucket): Path<String>,
    Query(request): Query<ListObjects>,
) -> Response {
    if request.list_type.as_deref() != Some("2") {
        let message = "this machine has only ListObjectsV2 (list-type=2), GetObject, PutObject and DeleteObject";
        return error(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message);
    }
    let mut objects = match buckets.list(&bucket) {
        Ok(objects) => objects,
        Err(failed) => return refused(&failed),
    };
    let after = request.continuation_token.max(request.start_after);
    objects.retain(|o| o.key.starts_with(&request.prefix) && o.key > after);
    let max = request.max_keys.unwrap_or(KEYS_MAX).min(KEYS_MAX);
    let truncated = objects.len() > max;
    objects.truncate(max);
    let next = objects.last().filter(|_| truncated).map(|last| {
        format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&last.key))
    });
    let contents = objects.iter().map(|object| {
        format!(
            "<Contents><Key>{}</Key><Size>{}</Size><LastModified>{}</LastModified></Contents>",
            escaped(&object.key),
            object.bytes,
            object.modified.to_rfc3339_opts(SecondsFormat::Millis, true),
        )
    });
    xml(
        StatusCode::OK,
        &format!(
            "<ListBucketResult><Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount>\
             <MaxKeys>{max}</MaxKeys><IsTruncated>{truncated}</IsTruncated>{}{}</ListBucketResult>",
            escaped(&bucket),
            escaped(&request.prefix),
            objects.len(),
            next.unwrap_or_default(),
            contents.collect::<String>(),
        ),
    )
}

async fn object(
    State(buckets): State<Arc<Buckets>>,
    Path((bucket, key)): Path<(String, String)>,
) -> Response {
    match buckets.get(&bucket, &key) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(failed) => refused(&failed),
    }
}

async fn put(
    State(buckets): State<Arc<Buckets>>,
    Path((bucket, key)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    match buckets.put(&bucket, &key, &body) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(failed) => refused(&failed),
    }
}

async fn delete(
    State(buckets): State<Arc<Buckets>>,
    Path((bucket, key)): Path<(String, String)>,
) -> Response {
    match buckets.delete(&bucket, &key) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(failed) => refused(&failed),
    }
}

fn refused(failed: &BucketError) -> Response {
    let (status, code) = match failed {
        BucketError::NoBucket { .. } => (StatusCode::NOT_FOUND, "NoSuchBucket"),
        BucketError::NoKey { .. } => (StatusCode::NOT_FOUND, "NoSuchKey"),
        BucketError::Key { .. } => (StatusCode::BAD_REQUEST, "KeyTooLongError"),
        BucketError::Folder { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
    };
    error(status, code, &chain(failed))
}

fn error(status: StatusCode, code: &str, message: &str) -> Response {
    let message = escaped(message);
    xml(status, &format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>"))
}

fn xml(status: StatusCode, body: &str) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/xml")];
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{body}");
    (status, headers, body).into_response()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
