//! The log line of a run of all views, with its metrics.

use std::collections::BTreeMap;

use ringfence_feed::Checkpoint;
use ringfence_lambda::{Level, LogLine, MetricUnit, chain};
use serde_json::{Value, json};

use crate::together::Member;
use crate::{Definition, Generation, Parked, Projector, Ran, ViewError};

/// The name of the function.
pub const NAME: &str = "project-views";
/// The most parked rows, and as many events, that the line names of a view.
const NAMED_MAX: usize = 10;

/// The result of a generation that went alone.
pub(super) struct Alone<'a> {
    pub(super) view: &'a Definition,
    /// `None` if the generations could not be read.
    pub(super) generation: Option<Generation>,
    /// Whether it may move together with others once it is current.
    pub(super) may_join: bool,
    /// How many rows and events of the generation are parked, if that is known.
    pub(super) parked: Option<u64>,
    pub(super) ran: Ran,
    pub(super) error: Option<ViewError>,
}

impl<'a> Alone<'a> {
    /// A view whose generations could not be read.
    pub(super) fn unknown(view: &'a Definition, error: ViewError) -> Self {
        let (ran, error) = (Ran::default(), Some(error));
        Self { view, generation: None, may_join: false, parked: None, ran, error }
    }

    /// The generation with its own checkpoint, if it can move together with others from now on.
    pub(super) fn current(&self) -> Option<(&'static str, Generation, Checkpoint)> {
        let is_current = self.may_join && self.error.is_none() && self.ran.present;
        let is_current = is_current && self.parked == Some(0);
        Some((self.view.name, self.generation.filter(|_| is_current)?, self.ran.checkpoint?))
    }
}

/// A report in the making.
pub(super) struct Report<'a> {
    projector: &'a Projector,
    now_ms: u64,
    /// The end of the index, if somebody is not there.
    end: Option<Checkpoint>,
    worst: (Level, &'static str),
    together: Value,
    /// Why readers of lanes could not be notified.
    pub(super) unnotified: Option<String>,
    /// The views that left the others, with the causes.
    pub(super) left: BTreeMap<&'static str, String>,
    events: u64,
    rows: u64,
    /// Figures of views.
    views: Vec<Value>,
    /// The longest lag in milliseconds, and whose it is.
    lag: Option<(u64, String)>,
    parked: Option<u64>,
    /// Whether a view went alone, so that it may have something parked, or had.
    went_alone: bool,
    unfinished: Vec<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(projector: &'a Projector, now_ms: u64) -> Self {
        let (worst, together) = ((Level::INFO, "present"), Value::Null);
        let (events, rows, views, lag, parked) = (0, 0, Vec::new(), None, None);
        let (end, went_alone, unfinished) = (None, false, Vec::new());
        Self {
            projector,
            now_ms,
            end,
            worst,
            together,
            unnotified: None,
            left: BTreeMap::new(),
            events,
            rows,
            views,
            lag,
            parked,
            went_alone,
            unfinished,
        }
    }

    /// The views that move together, with figures of those that new events touched.
    pub(super) async fn together(
        &mut self,
        members: &BTreeMap<String, Member<'_>>,
        ran: &Ran,
        error: Option<ViewError>,
    ) {
        if members.is_empty() && error.is_none() {
            return;
        }
        let outcome = self.count(ran, error.as_ref());
        if error.is_some() || !ran.present {
            self.together =
                json!({ "views": members.len(), "outcome": outcome, "checkpoint": ran.checkpoint });
        }
        if let Some(error) = &error {
            self.together["cause"] = chain(error).into();
        }
        for Member { view, ran, .. } in members.values().filter(|it| it.ran.batches > 0) {
            self.rows += ran.rows;
            self.views.push(json!({ "view": view.name, "rows": ran.rows }));
        }
        let views: Vec<_> = members.values().map(|member| member.view).collect();
        let names: Vec<_> = views.iter().map(|view| view.name).collect();
        let names = if names.is_empty() { "views".to_owned() } else { names.join(", ") };
        if !members.is_empty() {
            // A view with something parked goes alone.
            self.parked.get_or_insert(0);
        }
        let behind = self.served(&names, &views, ran, error.as_ref()).await;
        if let Some(events) = behind.filter(|_| !self.together.is_null()) {
            self.together["events_behind"] = events.into();
        }
    }

    /// A generation that went alone.
    pub(super) async fn alone(&mut self, alone: &Alone<'_>) {
        let Alone { view, generation, parked, ran, error, .. } = alone;
        self.went_alone = true;
        let outcome = self.count(ran, error.as_ref());
        self.rows += ran.rows;
        let mut figures = json!({
            "view": view.name,
            "generation": generation.map(|generation| generation.number),
            "outcome": outcome,
            "checkpoint": ran.checkpoint,
            "events": ran.events,
            "rows": ran.rows,
            "batches": ran.batches,
            "overtaken": ran.overtaken,
        });
        if let Some(error) = error {
            figures["cause"] = chain(error).into();
        }
        let rows = ran.examples.iter().map(|(row, parked)| (Some(row), parked)).take(NAMED_MAX);
        let events = ran.unread.iter().map(|parked| (None, parked)).take(NAMED_MAX);
        let named = rows.chain(events).map(
            |(row, Parked { event, cause })| json!({ "row": row, "event": event, "cause": cause }),
        );
        let named: Vec<_> = named.collect();
        if !named.is_empty() {
            figures["parked"] = named.into();
        }
        if let Some(parked) = parked {
            figures["rows_parked"] = (*parked).into();
            self.parked = Some(self.parked.unwrap_or_default() + parked);
        }
        if let Some(events) = self.served(view.name, &[*view], ran, error.as_ref()).await {
            figures["events_behind"] = events.into();
        }
        self.views.push(figures);
    }

    /// Counts the events of a run, and takes over its outcome if that is the worst.
    fn count(&mut self, ran: &Ran, error: Option<&ViewError>) -> &'static str {
        // Each run reads the same events.
        self.events = self.events.max(ran.events);
        let (level, outcome) = match error {
            Some(_) => (Level::ERROR, "failed"),
            None if !ran.unread.is_empty() => (Level::ERROR, "parked events"),
            None if ran.parked > 0 => (Level::ERROR, "parked rows"),
            None if !ran.present => (Level::WARN, "behind"),
            None => (Level::INFO, "present"),
        };
        // The lowest level is the worst.
        if level < self.worst.0 {
            self.worst = (level, outcome);
        }
        outcome
    }

    /// Takes over the lag of what is served, and what it needs. Returns how many events it is behind, if that is known.
    async fn served(
        &mut self,
        name: &str,
        views: &[&Definition],
        ran: &Ran,
        error: Option<&ViewError>,
    ) -> Option<u64> {
        match error {
            Some(error) => self.unfinished.push(format!("{name}: {}", chain(error))),
            None if !ran.present => self.unfinished.push(format!("{name}: behind")),
            None => {}
        }
        // Without an answer the checkpoint is not known.
        if error.is_some() && ran.checkpoint.is_none() {
            return None;
        }
        let (events, ms) = self.lag(views, ran).await.ok()?;
        if self.lag.as_ref().is_none_or(|(most, _)| ms > *most) {
            self.lag = Some((ms, name.to_owned()));
        }
        Some(events)
    }

    /// How many events were not read yet, and for how many milliseconds the first of them has been there that the views
    /// read. Events of other types alone make no view late.
    async fn lag(&mut self, views: &[&Definition], ran: &Ran) -> Result<(u64, u64), ViewError> {
        if ran.present {
            // Later events bring another notification.
            return Ok((0, 0));
        }
        let Some(next_ms) = self.projector.next_ms(views, ran.checkpoint).await? else {
            return Ok((0, 0));
        };
        let end = match self.end {
            Some(end) => end,
            None => *self.end.insert(self.projector.end().await?),
        };
        let events = self.projector.events_after(ran.checkpoint, end).await?;
        Ok((events, self.now_ms.saturating_sub(next_ms)))
    }

    /// The line and what is unfinished. All views share the two metrics, so a new view needs no new alarm and costs
    /// nothing a month. While all is well, few lines have them, because they double a line.
    pub(super) fn end(self) -> (LogLine, Vec<String>) {
        let (mut level, mut outcome) = self.worst;
        let mut json = json!({ "outcome": outcome, "events": self.events, "rows": self.rows });
        if !self.together.is_null() {
            json["together"] = self.together;
        }
        if !self.views.is_empty() {
            json["views"] = self.views.into();
        }
        if !self.left.is_empty() {
            json["left"] = json!(self.left);
        }
        // The invocation does not fail, because a repeat would delay the views. The alarm counts the line.
        if let Some(cause) = self.unnotified {
            (level, outcome) = (Level::ERROR, "failed");
            json["outcome"] = outcome.into();
            json["failed_function"] = NAME.into();
            json["unnotified"] = cause.into();
        }
        let is_well = level == Level::INFO && !self.went_alone;
        let has_figures = self.lag.is_some() || self.parked.is_some();
        let measures = has_figures && self.projector.warm.is_to_be_measured(self.now_ms, is_well);
        let lag = self.lag.filter(|_| measures).map(|(ms, view)| {
            if ms > 0 {
                json["furthest_behind"] = view.into();
            }
            ("view_lag", MetricUnit::Milliseconds, ms)
        });
        let parked =
            self.parked.filter(|_| measures).map(|rows| ("rows_parked", MetricUnit::Count, rows));
        let mut line = LogLine::new(self.now_ms, level, format!("views {outcome}"), json);
        line.measure(&[], lag.into_iter().chain(parked));
        (line, self.unfinished)
    }
}
