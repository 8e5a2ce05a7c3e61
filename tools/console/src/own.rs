//! Pages of an application, beside those for every stack.

use aws_sdk_dynamodb::Client;
use futures::future::BoxFuture;
use maud::Markup;
use ringfence_feed::Index;

/// A page of an application: its title is in the navigation.
#[derive(Clone, Copy)]
pub struct ConsolePage {
    /// Its path, such as `/stock`. What is below it belongs to it too.
    pub path: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Shows it. An error becomes the page's text.
    pub show: fn(PageRequest) -> BoxFuture<'static, anyhow::Result<Markup>>,
}

/// What a page is asked for, and what it can read from.
pub struct PageRequest {
    /// What follows in the path; empty for the page itself.
    pub below: String,
    /// A client of DynamoDB.
    pub client: Client,
    /// The index.
    pub index: Index,
    /// The table of the views.
    pub view_table: String,
}
