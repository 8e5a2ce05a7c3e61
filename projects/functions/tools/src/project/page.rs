//! The console's page of projects: features, claims with the time that is left, and ready edges.

use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::FutureExt;
use futures::future::BoxFuture;
use maud::{Markup, html};
use projects::ready_work::{standing, views};
use projects::views::Holder;
use projects::views::project_features::{EdgeRow, FeatureRow};
use projects::views::project_status::ProjectStatus;
use projects::{FeatureRows, ProjectId, ready, status};
use ringfence_aws::Clock;
use ringfence_console::{ConsolePage, PageRequest};
use ringfence_views::{LIST_MAX, ListPage, View, ViewRead, ViewReader};

/// Most edges that are shown as ready.
const READY_MAX: usize = 25;

/// `/projects` lists the projects, and `/projects/<project>` shows one.
pub const PAGE: ConsolePage = ConsolePage { path: "/projects", title: "Projects", show };

fn show(asked: PageRequest) -> BoxFuture<'static, Result<Markup>> {
    async move {
        let PageRequest { below, client, index, view_table } = asked;
        let reader = ViewReader::new(client, index, view_table, &views());
        match below.as_str() {
            "" => all(&reader).await,
            project => one(&reader, &project.parse()?).await,
        }
    }
    .boxed()
}

async fn all(reader: &ViewReader) -> Result<Markup> {
    let page = ListPage { limit: LIST_MAX, ..ListPage::default() };
    let ViewRead::Found(listed) = reader.list(ProjectStatus::NAME, &page, None).await? else {
        return Err(anyhow!("the view {} is being built", ProjectStatus::NAME));
    };
    Ok(html! {
        @if listed.rows.is_empty() { p { "There are no projects yet. To begin one, give the command init-project." } }
        ul.list { @for row in &listed.rows { li { a href={ "/projects/" (row.id) } { (row.id) } } } }
        @if listed.next.is_some() { p.note { "These are the first " (LIST_MAX) " projects." } }
    })
}

async fn one(reader: &ViewReader, project: &ProjectId) -> Result<Markup> {
    let found = standing(reader, project).await?;
    let (exists, features) = found.map_err(|problem| anyhow!("{}", problem.detail()))?;
    let now_ms = Clock::system().now_ms();
    let ready = ready(&features, now_ms);
    Ok(html! {
        h2 { (project) ": " (format!("{:?}", status(exists, &features, now_ms))) }
        h2 { "Ready" }
        @if ready.is_empty() { p { "No edge can be claimed now." } }
        ol.list {
            @for edge in ready.iter().take(READY_MAX) { li { code { (edge.edge) } " " (edge.title) } }
        }
        @if ready.len() > READY_MAX { p.note { "These are the first " (READY_MAX) " of " (ready.len()) " edges." } }
        h2 { "Claims" }
        (claims(&features, now_ms))
        h2 { "Features" }
        ul.list { @for (id, feature) in &features { li { (of_feature(id, feature)) } } }
    })
}

fn claims(features: &FeatureRows, now_ms: u64) -> Markup {
    let mut held = Vec::new();
    for (feature, row) in features {
        for (name, edge) in &row.edges {
            held.extend(edge.holding.holder.as_ref().map(|holder| (feature, name, edge, holder)));
        }
    }
    html! {
        @if held.is_empty() { p { "Nobody holds an edge." } }
        ul.list {
            @for (feature, name, edge, holder) in held {
                li {
                    code { (feature) "/" (name) } " " strong { (holder.agent) } ", epoch " (holder.epoch) ": "
                    (left(edge, holder, now_ms))
                }
            }
        }
    }
}

/// How long a claim lasts, in words.
fn left(edge: &EdgeRow, holder: &Holder, now_ms: u64) -> String {
    if holder.expired {
        return "it has expired".to_owned();
    }
    if edge.holding.lease.is_suspended() {
        return "its time stands still while a person looks".to_owned();
    }
    match edge.holding.lease.until_ms() {
        None => "without end".to_owned(),
        Some(until) if until <= now_ms => "its time is over".to_owned(),
        Some(until) => {
            let left = Duration::from_secs((until - now_ms).div_ceil(1_000));
            format!("{}:{:02} minutes left", left.as_secs() / 60, left.as_secs() % 60)
        }
    }
}

fn of_feature(id: &str, feature: &FeatureRow) -> Markup {
    let title = feature.definition.as_ref().map(|definition| definition.title.as_str());
    let left = feature.edges_left();
    html! {
        code { (id) } " " (title.unwrap_or("its beginning is not here yet"))
        @if let Some(left) = left { ": " (left) (if left == 1 { " edge left" } else { " edges left" }) }
        ul {
            @for (name, edge) in &feature.edges {
                li {
                    (name) ", run " (edge.run)
                    @if edge.converged_ms.is_some() { ": converged" }
                    @else { ": iteration " (edge.iteration) }
                    @if let Some(intent) = &edge.stuck { ", stuck by " (intent) }
                }
            }
        }
    }
}
