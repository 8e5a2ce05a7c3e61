//! What functions send to the world: mails, in place of SES, and webhooks. Each is a file on this machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{kept::emptied, notices::Notices, outside::WEBHOOKS};

/// The folders of the mails and of the webhooks that functions send.
#[derive(Clone)]
pub struct Inbox {
    mails: PathBuf,
    webhooks: PathBuf,
    notices: Notices,
    count: Arc<AtomicUsize>,
}

impl Inbox {
    /// Saves everything in this folder, without the files of an earlier stack.
    ///
    /// # Errors
    /// The older files can't be deleted.
    pub fn new(folder: &Path, notices: Notices) -> anyhow::Result<Self> {
        let (mails, webhooks) = (folder.join("mails"), folder.join("webhooks"));
        let (mails, webhooks) = (emptied(mails)?, emptied(webhooks)?);
        Ok(Self { mails, webhooks, notices, count: Arc::default() })
    }

    /// The folder of the mails.
    #[must_use]
    pub fn mails(&self) -> &Path {
        &self.mails
    }

    /// The folder of the webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &Path {
        &self.webhooks
    }

    pub(crate) fn routes(&self, bytes_max: usize) -> Router {
        Router::new()
            .route("/v2/email/outbound-emails", post(mail))
            .route(WEBHOOKS, post(webhook))
            .layer(DefaultBodyLimit::max(bytes_max))
            .with_state(self.clone())
    }

    /// Writes a file into one of the folders. Returns its number and its path.
    fn keep(&self, folder: &Path, ending: &str, text: &[u8]) -> io::Result<(usize, PathBuf)> {
        fs::create_dir_all(folder)?;
        let n = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let path = folder.join(format!("{n:04}.{ending}"));
        fs::write(&path, text)?;
        Ok((n, path))
    }
}

/// SendEmail of SES's API v2, with a whole mail.
async fn mail(State(inbox): State<Inbox>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mail = request["Content"]["Raw"]["Data"].as_str().and_then(|it| STANDARD.decode(it).ok());
    let (status, code, answer) = match mail.map(|mail| inbox.keep(&inbox.mails, "eml", &mail)) {
        None => {
            let message = "this machine takes whole mails, in Content.Raw.Data";
            (StatusCode::BAD_REQUEST, "BadRequestException", json!({ "message": message }))
        }
        Some(Err(error)) => {
            let message = error.to_string();
            (StatusCode::INTERNAL_SERVER_ERROR, "InternalFailure", json!({ "message": message }))
        }
        Some(Ok((n, path))) => {
            inbox.notices.mail(path);
            return axum::Json(json!({ "MessageId": format!("local-{n}") })).into_response();
        }
    };
    (status, [("x-amzn-errortype", code)], axum::Json(answer)).into_response()
}

/// A webhook, which is kept with the headers that its receiver needs.
async fn webhook(State(inbox): State<Inbox>, headers: HeaderMap, body: Bytes) -> Response {
    let mut text = format!("POST {WEBHOOKS}\n").into_bytes();
    for (name, value) in &headers {
        let name = name.as_str();
        if name == "content-type" || name.starts_with("webhook-") {
            text.extend([name.as_bytes(), b": ", value.as_bytes(), b"\n"].concat());
        }
    }
    text.push(b'\n');
    text.extend_from_slice(&body);
    match inbox.keep(&inbox.webhooks, "http", &text) {
        Ok((_, path)) => {
            inbox.notices.webhook(path);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
