//! Mails, in place of SES: each is a file that mail programs can open.

use std::{
    fs, io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    body::Bytes,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::notices::Notices;

/// The folder of the mails that functions send.
#[derive(Clone)]
pub struct Mails {
    folder: PathBuf,
    notices: Notices,
    count: Arc<AtomicUsize>,
}

impl Mails {
    /// Saves mails in this folder, which is created for the first one.
    #[must_use]
    pub fn new(folder: PathBuf, notices: Notices) -> Self {
        Self { folder, notices, count: Arc::default() }
    }

    fn keep(&self, mail: &[u8]) -> io::Result<String> {
        fs::create_dir_all(&self.folder)?;
        let n = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let path = self.folder.join(format!("{n:04}.eml"));
        fs::write(&path, mail)?;
        self.notices.mail(path);
        Ok(format!("local-{n}"))
    }
}

/// SendEmail of SES's API v2, with a whole mail.
pub(crate) async fn send(State(mails): State<Mails>, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mail = request["Content"]["Raw"]["Data"].as_str().and_then(|it| STANDARD.decode(it).ok());
    let (status, code, answer) = match mail.map(|mail| mails.keep(&mail)) {
        None => {
            let message = "this machine takes whole mails, in Content.Raw.Data";
            (StatusCode::BAD_REQUEST, "BadRequestException", json!({ "message": message }))
        }
        Some(Err(error)) => {
            let message = error.to_string();
            (StatusCode::INTERNAL_SERVER_ERROR, "InternalFailure", json!({ "message": message }))
        }
        Some(Ok(id)) => return axum::Json(json!({ "MessageId": id })).into_response(),
    };
    (status, [("x-amzn-errortype", code)], axum::Json(answer)).into_response()
}
