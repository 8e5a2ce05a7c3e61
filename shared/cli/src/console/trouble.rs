//! The page of trouble, which only a stack on one machine has: failures of which no caller learns. The stack itself
//! answers what the script asks for.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use crate::console::frame;
use crate::console::site::Site;

pub(crate) async fn page(State(site): State<Arc<Site>>) -> Markup {
    let main = html! {
        p {
            "Failures of which no caller learns: functions that fail or give no answer. Their logs say why. "
            a href="/health" { "Health" } " has the letters of them."
        }
        ul #trouble role="log" {}
        h2 { "Routes of the HTTP API" }
        ul #routes {}
    };
    frame::page(&site, frame::TROUBLE.0, frame::TROUBLE.1, None, &main)
}
