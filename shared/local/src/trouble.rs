//! What the console's page of trouble asks for: failures of which no caller learns, and the routes.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    extract::State,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
    routing::get,
};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::{
    notices::{Notice, Notices},
    template::Route,
};

/// What the page shows.
pub(crate) struct Trouble {
    /// The notices of what happens.
    pub(crate) notices: Notices,
    /// The API's routes.
    pub(crate) routes: Vec<Route>,
    /// The API's URL.
    pub(crate) api: String,
}

/// The paths below `/trouble`.
pub(crate) fn router(trouble: Trouble) -> Router {
    Router::new()
        .route("/trouble/routes", get(routes))
        .route("/trouble/notices", get(notices))
        .with_state(Arc::new(trouble))
}

async fn routes(State(trouble): State<Arc<Trouble>>) -> Json<Value> {
    let url = |route: &Route| format!("{} {}{}", route.method, trouble.api, route.path);
    Json(trouble.routes.iter().map(url).collect())
}

/// The latest troubles and all later ones, as server-sent events.
async fn notices(
    State(trouble): State<Arc<Trouble>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (history, watch) = trouble.notices.watch_with_history();
    let live = stream::unfold(watch, |mut watch| async move {
        loop {
            match watch.recv().await {
                Ok(Notice::Trouble(text)) => return Some((text, watch)),
                // A watcher that is too slow goes on with the oldest notice that is left.
                Ok(Notice::Event(_)) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    // In JSON, because a text can have several lines.
    let sent = |text: Arc<str>| Ok(Event::default().data(json!(*text).to_string()));
    Sse::new(stream::iter(history).chain(live).map(sent)).keep_alive(KeepAlive::default())
}

#[cfg(test)]
#[path = "trouble_tests.rs"]
mod tests;
