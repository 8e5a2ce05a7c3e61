//! Pages of an application, beside those for every stack.

use aws_sdk_dynamodb::Client;
use futures::future::BoxFuture;
use maud::Markup;
use ringfence_feed::Index;

/// A page of an application. Its title is in the navigation.
#[derive(Clone, Copy)]
pub struct ConsolePage {
    /// Its path, such as `/stock`. The page also serves all paths below.
    pub path: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Shows it. An error becomes the text of the page.
    pub show: fn(PageRequest) -> BoxFuture<'static, anyhow::Result<Markup>>,
}

/// A request for a page, and the sources that it can read.
pub struct PageRequest {
    /// The rest of the path; empty for the page itself.
    pub below: String,
    /// A client of DynamoDB.
    pub client: Client,
    /// The index.
    pub index: Index,
    /// The table of the views.
    pub view_table: String,
}
