//! The console: pages for a browser that show a stack. `ringfence console` serves them for any stack, and a stack on
//! one machine has them too.
//!
//! Architecture invariant: the server writes every page with `maud`, which escapes the values. Only `guard` decides who
//! has access, and whether a request may change anything.
#![warn(missing_docs)] // public items say what they are, in which unit, and how they fail

mod axis;
mod boundary;
mod command;
mod commands;
mod contract;
mod curve;
mod dead_letters;
mod deadlines;
mod event;
mod events;
mod explanation;
mod filter;
mod flow;
mod followed;
mod frame;
mod guard;
mod job;
mod jobs;
mod lanes;
mod last_look;
mod map;
mod node;
mod overview;
mod own;
mod redrives;
mod replay;
mod search;
mod series;
mod site;
mod slices;
mod touched;
mod trouble;
mod types;
mod verdict;
mod versions;
mod views;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use clap::{Args, Subcommand};
use ringfence_aws::{Clock, sdk_config_of};
use ringfence_cli::machine::sdk_config;
use ringfence_cli::{Lists, Own, say};
use ringfence_stack::Members;
use ringfence_template::map::MAP_STYLE;
use tokio::net::TcpListener;

use crate::frame::{Cost, Path, Problem};
use crate::guard::Guard;
use crate::site::{Flags, Site, Trouble};
use crate::views::UNNAMED;

pub use own::{ConsolePage, PageRequest};
pub use site::Troubles;

/// The style of all pages. Each file is for the pages that its name says.
const STYLE: &str = concat!(
    include_str!("style/base.css"),
    include_str!("style/events.css"),
    include_str!("style/event.css"),
    include_str!("style/map.css"),
    include_str!("style/overview.css"),
    include_str!("style/work.css"),
);
/// The script of all pages, which work without it. Its parts share their names.
const SCRIPT: &str = concat!(
    include_str!("script/live.js"),
    include_str!("script/map.js"),
    include_str!("script/overview.js"),
    include_str!("script/trouble.js"),
);

/// The command of a stack whose application adds no pages.
#[derive(Subcommand)]
pub enum ConsoleCommand {
    /// Serves the console on this machine. Its pages show the events with their causes and effects, the slices, the
    /// boundaries, the views, and whether all is well. Ctrl-C ends it.
    Console(Arguments),
}

impl Own for ConsoleCommand {
    async fn run(&self, lists: Arc<Lists>) -> Result<ExitCode> {
        let Self::Console(arguments) = self;
        arguments.serve(lists, &[]).await
    }
}

/// The command line of `ringfence console`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfence console --stack ringfence-dev
  ringfence console --stack ringfence-dev --port 8080 --write")]
pub struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// The port on 127.0.0.1; 0 chooses a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Lets the pages send commands and change the stack. Without it they only read.
    #[arg(long)]
    write: bool,
}

impl Arguments {
    /// Serves the console and these additional pages to people who know its token, until the program ends.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn serve(&self, lists: Arc<Lists>, own: &'static [ConsolePage]) -> Result<ExitCode> {
        let Self { flags, port, write } = self;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        let listening = || format!("cannot listen on {address}; --port 0 takes a free port");
        let listener = TcpListener::bind(address).await.with_context(listening)?;
        let address = listener.local_addr()?;
        let mut site = Site::new(lists, flags, sdk_config().await?, *write);
        site.own = own;
        let token = Clock::system().uuid().simple().to_string();
        say!("http://{address}/?token={token}");
        let guard = Guard::new(address.port(), Some(token), *write);
        axum::serve(listener, router(site, guard)).await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes the console of a stack on this machine. Its parameters are the variables that the stack gives to a shell, with
/// the names of its tables; the stack's outputs, which name queues and buckets; the address at which the console is
/// served; and the routes of the HTTP API and the troubles, which the page `/trouble` shows.
///
/// It fails if two contexts contradict each other, or if a variable is missing.
pub type OfStack = Box<
    dyn FnOnce(
        BTreeMap<String, String>,
        BTreeMap<String, String>,
        SocketAddr,
        Vec<String>,
        Troubles,
    ) -> Result<Router>,
>;

/// The console of the stack on this machine that `M` lists, with these additional pages. It may change the stack, and
/// needs no token, because the HTTP API beside it is as open.
#[must_use]
pub fn console<M: Members>(own: &'static [ConsolePage]) -> OfStack {
    Box::new(move |variables, outputs, address, routes, troubles| {
        let flags = Flags::of_stack(&variables, outputs)?;
        let lists = Arc::new(Lists::of::<M>()?);
        let mut site = Site::new(lists, &flags, sdk_config_of(variables)?, true);
        site.trouble = Some(Trouble { routes, troubles });
        site.own = own;
        Ok(router(site, Guard::new(address.port(), None, true)))
    })
}

/// All pages under the guard.
fn router(site: Site, guard: Guard) -> Router {
    let file = |content_type: &'static str, text: String| {
        get(async move || ([(CONTENT_TYPE, content_type)], text).into_response())
    };
    let mut pages = Router::new()
        .route("/", get(overview::page))
        .route("/verdict", get(verdict::dot))
        .route("/commands", get(commands::page))
        .route("/deadlines", get(deadlines::page))
        .route("/events", get(events::page))
        .route("/events/live", get(events::live))
        .route("/events/{event}", get(event::page))
        .route("/events/{event}/payload", get(event::payload))
        .route("/events/{event}/{slot}", get(event::find))
        .route("/boundary", get(boundary::page))
        .route("/search", get(search::page))
        .route("/types", get(types::all))
        .route("/types/{type}", get(types::page))
        .route("/slices", get(slices::all))
        .route("/slices/{context}/{slice}", get(slices::page).post(slices::send))
        .route("/map", get(map::whole))
        .route("/map/{context}", get(map::context))
        .route("/map/{context}/{slice}", get(map::slice))
        .route("/api", get(contract::page))
        .route(contract::DOCUMENT, get(contract::document))
        .route("/views", get(views::page))
        .route("/views/{view}", get(views::rows))
        .route("/views/{view}/row", get(views::row))
        .route("/views/{view}/row/whole", get(views::whole))
        .route("/views/{view}/rebuild", post(views::rebuild))
        .route("/lanes", get(lanes::page))
        .route("/lanes/{reactor}", post(lanes::ask))
        .route("/lanes/{reactor}/skip", get(lanes::skip))
        .route("/dead-letters", get(dead_letters::page))
        .route("/dead-letters/{kind}/{store}/dead-letter", get(dead_letters::whole))
        .route("/dead-letters/{kind}/{store}/redrive", post(redrives::redrive))
        .route("/dead-letters/{kind}/{store}/delete", post(redrives::delete))
        .route("/jobs/{number}", get(jobs::page))
        .merge(own_pages(site.own));
    if site.trouble.is_some() {
        pages = pages.route(frame::TROUBLE.0, get(trouble::page));
        pages = pages.route("/trouble/notices", get(trouble::notices));
        pages = pages.route(frame::LOG_PATH, get(trouble::log));
    }
    let files = Router::new()
        .route("/style.css", file("text/css; charset=utf-8", [STYLE, MAP_STYLE].concat()))
        .route("/icon.svg", file("image/svg+xml", include_str!("icon.svg").to_owned()))
        .route("/script.js", file("text/javascript; charset=utf-8", SCRIPT.to_owned()));
    let pages = pages.with_state(Arc::new(site));
    guard.over(pages.merge(files).fallback(frame::nothing))
}

/// The additional pages, in the frame of the console.
fn own_pages(pages: &'static [ConsolePage]) -> Router<Arc<Site>> {
    pages.iter().fold(Router::new(), |router, page| {
        let show = async move |site: Arc<Site>, below: String| {
            let view_table = site.view_table.clone().ok_or_else(|| Problem::nothing(UNNAMED))?;
            let (client, index) = (site.logs.client.clone(), site.index());
            let asked = PageRequest { below, client, index, view_table };
            let main = (page.show)(asked).await;
            let main = main.map_err(|error| Problem::bad(format!("{error:#}.")))?;
            Ok::<_, Problem>(frame::page(&site, page.path, page.title, Cost::default(), &main))
        };
        let whole = get(move |State(site)| show(site, String::new()));
        let below = get(move |State(site), Path(below): Path<String>| show(site, below));
        router.route(page.path, whole).route(&format!("{}/{{*below}}", page.path), below)
    })
}
