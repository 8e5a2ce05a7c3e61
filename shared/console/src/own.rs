//! Pages of an application, beside those for every stack.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use futures::future::BoxFuture;
use maud::Markup;
use ringfence_feed::Index;

use crate::frame::{self, Cost, Path, Problem};
use crate::site::Site;
use crate::views::UNNAMED;

/// A page of an application: its title is in the navigation.
#[derive(Clone, Copy)]
pub struct Page {
    /// Its path, such as `/stock`. What is below it belongs to it too.
    pub path: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Shows it. An error becomes the page's text.
    pub show: fn(Asked) -> BoxFuture<'static, anyhow::Result<Markup>>,
}

/// What a page is asked for, and what it can read from.
pub struct Asked {
    /// What follows in the path; empty for the page itself.
    pub below: String,
    /// A client of DynamoDB.
    pub client: Client,
    /// The index.
    pub index: Index,
    /// The table of the views.
    pub view_table: String,
}

/// The pages, in the frame of the console.
pub(crate) fn router(pages: &'static [Page]) -> Router<Arc<Site>> {
    pages.iter().fold(Router::new(), |router, page| {
        let show = async move |site: Arc<Site>, below: String| {
            let view_table = site.view_table.clone().ok_or_else(|| Problem::nothing(UNNAMED))?;
            let (client, index) = (site.logs.client.clone(), site.index());
            let asked = Asked { below, client, index, view_table };
            let main = (page.show)(asked).await;
            let main = main.map_err(|error| Problem::bad(format!("{error:#}.")))?;
            Ok::<_, Problem>(frame::page(&site, page.path, page.title, Cost::default(), &main))
        };
        let whole = get(move |State(site)| show(site, String::new()));
        let below = get(move |State(site), Path(below): Path<String>| show(site, below));
        router.route(page.path, whole).route(&format!("{}/{{*below}}", page.path), below)
    })
}
