//! What a stack costs a month, item by item: from its template, its list, the units that tests count, and one table of
//! prices. `ringfence cost` prints it, and a test writes it into `docs/costs.md`.

mod needs;
mod prices;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use ringfence_core::LogKind;
use ringfence_stack::Stack;
use serde_json::Value;

use needs::*;
use prices::*;

pub use prices::{PRICES, PRICES_OF, Price, of_units};

/// A month has 30 days.
const DAYS: f64 = 30.0;
const MINUTES: f64 = DAYS * 24.0 * 60.0;

/// Megabytes of a function whose template names none.
const MEMORY: f64 = 128.0;

/// How the amount of an item is known. Its price is AWS's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It follows from the template, or tests count its units.
    Counted,
    /// It is an estimate.
    Modelled,
}

/// One line of a bill.
#[derive(Debug)]
pub struct BillLine {
    /// The thing that is paid for.
    pub what: &'static str,
    /// Dollars a month.
    pub dollars: f64,
    /// How its amount is known.
    pub known: Known,
}

/// What matters of a template, with the defaults of its parameters.
#[derive(Debug, Default)]
struct Facts {
    alarm_metrics: f64,
    /// Keys of KMS.
    keys: f64,
    dashboards: f64,
    /// Runs on a schedule a month, of functions and of state machines.
    runs: f64,
    machine_runs: f64,
    /// Gigabyte-seconds of the functions that run on a schedule.
    compute: f64,
    /// Megabytes of a function, and of a reader of the index.
    memory: f64,
    reader_memory: f64,
    queues: f64,
    /// For each function that feeds lanes, the share of event types that it reads.
    lanes: Vec<f64>,
    /// The share of event types for which project-views sends a notification.
    notified: f64,
    /// Their runs on a schedule a month.
    lane_runs: f64,
    views: f64,
    dues: f64,
    /// The share of event types that go to the bus.
    on_bus: f64,
}

/// The bill of a month with so many commands a day.
///
/// # Errors
/// The text is not YAML.
pub fn bill(
    template: &str,
    stack: &Stack,
    commands_a_day: f64,
) -> Result<Vec<BillLine>, serde_yaml_ng::Error> {
    let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(template)?;
    let template: Value = serde_json::to_value(yaml).unwrap_or_default();
    let dues = stack.contexts.iter().map(|context| context.dues.len()).sum::<usize>();
    let facts = Facts {
        views: count(stack.rows().len()),
        dues: count(dues),
        ..Template(&template).facts(stack)
    };
    Ok(facts.items(commands_a_day))
}

fn count(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

fn compute(megabytes: f64, ms: f64) -> f64 {
    megabytes / 1_024.0 * ms / 1_000.0
}

fn lambda(megabytes: f64, ms: f64) -> f64 {
    INVOCATION.of(1.0) + COMPUTE.of(compute(megabytes, ms))
}

impl Facts {
    fn items(&self, commands_a_day: f64) -> Vec<BillLine> {
        use Known::{Counted, Modelled};
        let commands = commands_a_day * DAYS;
        let a_second = commands_a_day / 86_400.0;
        let more = |together: f64| (together - 1.0) * MORE_MS;
        // Events that are handled together, and how often that happens: of a shard of the log's stream, of those of
        // them that go to the bus, and of the index's stream.
        let shards = (a_second * COMMAND_WRITE / SHARD_WRITE).max(SHARDS_MIN);
        let of_shard = together(a_second / shards);
        let (pages, published) = (commands / of_shard, commands * self.on_bus);
        let of_bus = together(a_second * self.on_bus / shards);
        let together = together(a_second);
        let runs = commands / together;
        let read_entries = (together / ENTRIES_OF_UNIT).floor();
        let touched = ROWS_OF_EVENT.min(self.views);
        let lanes = if self.lanes.is_empty() { 0.0 } else { 1.0 };
        // How often events come together of which one is read.
        let read = |share: f64| runs * (1.0 - (1.0 - share).powf(together));
        let notified = read(self.notified);
        let woken = self.lanes.iter().map(|lanes| read(*lanes)).sum::<f64>();
        let views = if self.views > 0.0 { 1.0 } else { 0.0 };
        let project = f64::max(lanes, views);
        let view_reads = project * (VIEWS_READ + read_entries);
        let view_writes = project * VIEWS_WRITE;
        // The share of hours in which something happens.
        let hours = 1.0 - (-commands_a_day / 24.0).exp();
        let metrics = 2.0 * views + lanes;
        let item = |what, known, dollars| BillLine { what, dollars, known };
        let keys = (self.keys > 0.0).then(|| item("keys of KMS", Counted, KEY.of(self.keys)));
        let rest = vec![
            item("alarms", Counted, ALARM.of(self.alarm_metrics)),
            item("dashboard", Counted, DASHBOARD.of(self.dashboards)),
            item(
                "schedules, with their runs",
                Modelled,
                SCHEDULE.of(self.runs + self.machine_runs)
                    + MACHINE.of(self.machine_runs)
                    + INVOCATION.of(self.runs)
                    + COMPUTE.of(self.compute),
            ),
            item(
                "looks of an idle stack",
                Counted,
                READ.of(MINUTES * self.dues * DUE_READ + self.lane_runs * LANES_READ)
                    + LOG.of(if self.dues > 0.0 { MINUTES * SWEEP_LINE } else { 0.0 }),
            ),
            item("polls of the queue", Modelled, QUEUE.of(MINUTES * POLLS * self.queues)),
            item("metrics that are sent", Modelled, METRIC.of(metrics * hours)),
            item("HTTP API", Counted, API.of(commands)),
            item("slices", Modelled, commands * lambda(self.memory, SLICE_MS)),
            item(
                "logs",
                Modelled,
                LOG.of(commands * (SLICE_LINE + ACCESS_LINE) + runs * VIEWS_LINE * project),
            ),
            item(
                "log of events",
                Modelled,
                commands * (WRITE.of(COMMAND_WRITE) + READ.of(COMMAND_READ)),
            ),
            item(
                "index",
                Modelled,
                commands * (WRITE.of(INDEX_EVENT) + READ.of(INDEX_EVENT))
                    + pages
                        * (WRITE.of(INDEX_WRITE_PAGE.max(of_shard * INDEX_WRITE_ENTRY))
                            + READ.of(INDEX_READ_PAGE)),
            ),
            item(
                "index-events",
                Modelled,
                pages * lambda(self.reader_memory, INDEX_MS + more(of_shard)),
            ),
            item(
                "bus and publish-events",
                Modelled,
                BUS.of(published)
                    + published / of_bus * lambda(self.memory, PUBLISH_MS + more(of_bus)),
            ),
            item(
                "views",
                Modelled,
                runs * (READ.of(view_reads) + WRITE.of(view_writes))
                    + commands * views * READ.of(BODY_READ)
                    + commands * touched * (READ.of(ROW_READ) + WRITE.of(ROW_WRITE)),
            ),
            item(
                "project-views",
                Modelled,
                project * runs * lambda(self.reader_memory, VIEWS_MS + more(together)),
            ),
            item(
                "notifications of reactors",
                Modelled,
                BUS.of(notified)
                    + woken * (READ.of(LANES_READ) + lambda(self.reader_memory, LANES_MS)),
            ),
            item("storage of one month's events", Modelled, STORAGE.of(commands * STORED)),
        ];
        keys.into_iter().chain(rest).collect()
    }
}

struct Template<'a>(&'a Value);

impl Template<'_> {
    fn facts(&self, stack: &Stack) -> Facts {
        let memory = self.number(&self.0["Globals"]["Function"]["MemorySize"]).unwrap_or(MEMORY);
        let readers = self.number(&self.0["Parameters"]["ReaderMemory"]["Default"]);
        let (reader_memory, notified) = (readers.unwrap_or(memory), share(stack, |_| true));
        let listed = &self.0["Parameters"]["EventsOnBus"]["Default"];
        let on_bus = on_bus(stack, listed.as_str().unwrap_or("*"));
        let mut facts = Facts { memory, reader_memory, notified, on_bus, ..Facts::default() };
        let resources = self.0["Resources"].as_object();
        let resources = resources.into_iter().flatten().map(|(_, resource)| resource);
        for resource in resources.filter(|it| self.is_on(&it["Condition"])) {
            let properties = &resource["Properties"];
            match resource["Type"].as_str().unwrap_or_default() {
                "AWS::CloudWatch::Alarm" => {
                    let metrics = properties["Metrics"].as_array();
                    let read = |all: &Vec<Value>| {
                        all.iter().filter(|one| one["MetricStat"].is_object()).count()
                    };
                    facts.alarm_metrics += metrics.map_or(1.0, |all| count(read(all)));
                }
                "AWS::KMS::Key" => facts.keys += 1.0,
                "AWS::CloudWatch::Dashboard" => facts.dashboards += 1.0,
                "AWS::Serverless::StateMachine" => facts.machine_runs += runs(properties),
                "AWS::Serverless::Function" => {
                    let memory = self.number(&properties["MemorySize"]).unwrap_or(facts.memory);
                    let runs = runs(properties);
                    facts.runs += runs;
                    facts.compute += runs * compute(memory, IDLE_MS);
                    let pattern = &properties["Events"]["Notified"]["Properties"]["Pattern"];
                    if let Some(readers) = pattern["detail"]["readers"].as_array() {
                        let is_it = |name: &str| readers.iter().any(|reader| reader == name);
                        facts.lanes.push(share(stack, is_it));
                        facts.lane_runs += runs;
                    }
                    let polls = events(properties).any(|event| event["Type"] == "SQS");
                    facts.queues += if polls { 1.0 } else { 0.0 };
                }
                _ => {}
            }
        }
        facts
    }

    /// A value, or the default of the parameter that it names.
    fn value<'v>(&'v self, of: &'v Value) -> &'v Value {
        of["!Ref"].as_str().map_or(of, |name| &self.0["Parameters"][name]["Default"])
    }

    fn number(&self, of: &Value) -> Option<f64> {
        self.value(of).as_f64()
    }

    /// Whether a condition holds with the defaults of the parameters. One that is not understood does.
    fn is_on(&self, condition: &Value) -> bool {
        if let Some(name) = condition.as_str() {
            return self.is_on(&self.0["Conditions"][name]);
        }
        if let Some([a, b]) = condition["!Equals"].as_array().map(Vec::as_slice) {
            return text(self.value(a)) == text(self.value(b));
        }
        if let Some([of]) = condition["!Not"].as_array().map(Vec::as_slice) {
            return !self.is_on(of);
        }
        let all = condition["!And"].as_array().into_iter().flatten();
        all.into_iter().all(|of| self.is_on(&of["Condition"]))
    }
}

/// The share of event types that readers of lanes with these names read.
fn share(stack: &Stack, is_it: impl Fn(&str) -> bool) -> f64 {
    let reactors = stack.reactors().filter(|(_, reactor)| is_it(reactor.name));
    let reactors = reactors.flat_map(|(_, reactor)| reactor.reads).copied();
    let ordered = stack.slices().filter(|(_, it)| it.order.is_some() && is_it(it.name));
    let causes = ordered.flat_map(|(_, slice)| slice.reacts_to).map(|cause| cause.event_type);
    let types: BTreeSet<_> = reactors.chain(causes).collect();
    count(types.len()) / count(stack.event_types().len().max(1))
}

/// The share of event types that go to the bus if these types of the DCB log are listed.
fn on_bus(stack: &Stack, listed: &str) -> f64 {
    if listed == "*" {
        return 1.0;
    }
    let ruled = stack.slices().filter(|(_, slice)| slice.order.is_none());
    let caused = ruled.flat_map(|(_, slice)| slice.reacts_to).map(|cause| cause.event_type);
    let others = stack.contexts.iter().filter(|context| context.log != LogKind::Dcb);
    let others = others.flat_map(|context| &context.event_types).map(|name| &**name);
    let types: BTreeSet<_> = listed.split(',').chain(caused).chain(others).collect();
    let all = stack.event_types();
    count(all.intersection(&types).count()) / count(all.len().max(1))
}

fn text(of: &Value) -> String {
    of.as_str().map_or_else(|| of.to_string(), str::to_owned)
}

fn events(properties: &Value) -> impl Iterator<Item = &Value> {
    properties["Events"].as_object().into_iter().flatten().map(|(_, event)| event)
}

/// Runs a month, on schedules of the form `rate(10 minutes)`.
fn runs(properties: &Value) -> f64 {
    let of = events(properties).filter_map(|event| {
        let rate = event["Properties"]["ScheduleExpression"].as_str()?.strip_prefix("rate(")?;
        let (every, unit) = rate.strip_suffix(')')?.split_once(' ')?;
        let minutes = match unit.trim_end_matches('s') {
            "minute" => 1.0,
            "hour" => 60.0,
            "day" => 24.0 * 60.0,
            _ => return None,
        };
        Some(MINUTES / (every.parse::<f64>().ok()? * minutes))
    });
    of.sum()
}

/// Dollars as people write them.
#[must_use]
pub fn dollars(of: f64) -> String {
    let whole = format!("{:.0}", of);
    match whole.len() {
        0..=2 => format!("{of:.2}"),
        3 => whole,
        len => {
            let digits = whole.chars().enumerate();
            digits
                .flat_map(|(n, digit)| {
                    let comma = n > 0 && (len - n).is_multiple_of(3);
                    comma.then_some(',').into_iter().chain([digit])
                })
                .collect()
        }
    }
}
