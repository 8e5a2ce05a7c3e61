//! What commands did over a time, as numbers of its parts, and the last flows.

use std::collections::BTreeMap;

use ringfence_cli::commands::{CommandLine, FunctionLines, OutcomeKind};
use ringfence_cli::deployments::Deployment;

/// A curve has so many points.
pub(crate) const PARTS: usize = 60;
/// So many flows are shown.
const FLOWS_MAX: usize = 8;

pub(crate) type Parts = [f64; PARTS];

/// A flow: the commands with one correlation id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastFlow {
    pub(crate) correlation_id: String,
    /// The slice of its first command in this time.
    pub(crate) slice: String,
    pub(crate) at_ms: u64,
    pub(crate) commands: u64,
    pub(crate) events: u64,
    /// The outcome of the first command that was not accepted, if there is one.
    pub(crate) outcome: Option<String>,
}

/// Numbers of the parts of a time, the oldest first.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) since_ms: u64,
    pub(crate) until_ms: u64,
    /// The times of the first and last command that were read, if there were more than are read at once.
    pub(crate) cut: Option<[u64; 2]>,
    /// What was deployed, or why that is not known.
    pub(crate) deployments: Result<Vec<Deployment>, String>,
    /// How many commands there were.
    pub(crate) commands: u64,
    /// Events a minute, by context.
    pub(crate) events: BTreeMap<&'static str, Parts>,
    /// Commands: accepted, rejected, and failed.
    pub(crate) outcomes: [Parts; 3],
    pub(crate) conflicts: Parts,
    /// Milliseconds within which half and 99 % of the commands ended.
    pub(crate) durations: [Parts; 2],
    /// Read and write units.
    pub(crate) units: [Parts; 2],
    /// The most milliseconds that views and deadlines were late. A part without a line has the value before it, and
    /// is not a number before the first line; so are lanes.
    pub(crate) late: [Parts; 2],
    /// The most lanes of a reactor that were parked or tried again.
    pub(crate) lanes: Parts,
    /// The newest first.
    pub(crate) flows: Vec<LastFlow>,
}

impl Series {
    /// The series of lines, in the order of time, between two times. `contexts` has the context of each slice.
    pub(crate) fn of(
        contexts: &BTreeMap<&str, &'static str>,
        lines: &FunctionLines,
        deployments: Result<Vec<Deployment>, String>,
        (since_ms, until_ms): (u64, u64),
    ) -> Self {
        let length = until_ms.saturating_sub(since_ms).max(1);
        let minutes = length as f64 / 60_000.0 / PARTS as f64;
        let mut series = Self {
            since_ms,
            until_ms,
            cut: lines
                .commands
                .first()
                .zip(lines.commands.last())
                .filter(|_| lines.are_cut())
                .map(|(first, last)| [first.at_ms(), last.at_ms()]),
            deployments,
            commands: lines.commands.len() as u64,
            events: BTreeMap::new(),
            outcomes: [[0.0; PARTS]; 3],
            conflicts: [0.0; PARTS],
            durations: [[0.0; PARTS]; 2],
            units: [[0.0; PARTS]; 2],
            late: [[f64::NAN; PARTS]; 2],
            lanes: [f64::NAN; PARTS],
            flows: flows(&lines.commands),
        };
        let part = |at_ms: u64| {
            let part = at_ms.saturating_sub(since_ms) * PARTS as u64 / length;
            usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1)
        };
        let mut lasted = vec![Vec::new(); PARTS];
        for run in &lines.runs {
            let part = part(run.at_ms());
            let lanes =
                run.lanes_parked.map(|parked| parked + run.lanes_waiting.unwrap_or_default());
            let [views, deadlines] = &mut series.late;
            for (most, number) in
                [(views, run.view_lag), (deadlines, run.due_lag_ms), (&mut series.lanes, lanes)]
            {
                // The most of a number and of what is none is the number.
                most[part] = number.map_or(most[part], |number| most[part].max(number as f64));
            }
        }
        for parts in series.late.iter_mut().chain([&mut series.lanes]) {
            for part in 1..PARTS {
                if parts[part].is_nan() {
                    parts[part] = parts[part - 1];
                }
            }
        }
        for line in &lines.commands {
            let part = part(line.at_ms());
            let events: u64 = line.events.values().sum();
            if let Some(context) = contexts.get(&*line.slice).filter(|_| events > 0) {
                series.events.entry(context).or_insert([0.0; PARTS])[part] +=
                    events as f64 / minutes;
            }
            let outcome = match line.kind() {
                OutcomeKind::Accepted => 0,
                OutcomeKind::Failed => 2,
                _ => 1,
            };
            series.outcomes[outcome][part] += 1.0;
            series.conflicts[part] += line.conflicts.len() as f64;
            series.units[0][part] += line.read_units;
            series.units[1][part] += line.write_units;
            lasted[part].push(line.duration_ms);
        }
        for (part, mut lasted) in lasted.into_iter().enumerate() {
            lasted.sort_unstable();
            series.durations[0][part] = of_hundred(&lasted, 50);
            series.durations[1][part] = of_hundred(&lasted, 99);
        }
        series
    }
}

/// The smallest duration that so many of a hundred do not exceed; 0 if there is none.
fn of_hundred(sorted: &[u64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).map_or(0.0, |ms| *ms as f64)
}

fn flows(lines: &[CommandLine]) -> Vec<LastFlow> {
    let mut flows = BTreeMap::<&str, LastFlow>::new();
    for line in lines {
        let Some(id) = &line.correlation_id else { continue };
        let flow = flows.entry(id).or_insert_with(|| LastFlow {
            correlation_id: id.clone(),
            slice: line.slice.clone(),
            at_ms: line.at_ms(),
            commands: 0,
            events: 0,
            outcome: None,
        });
        flow.commands += 1;
        flow.events += line.events.values().sum::<u64>();
        let outcome = Some(&line.outcome).filter(|outcome| *outcome != "accepted");
        flow.outcome = flow.outcome.take().or_else(|| outcome.cloned());
    }
    let mut flows: Vec<_> = flows.into_values().collect();
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.at_ms));
    flows.truncate(FLOWS_MAX);
    flows
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_cli::commands::RunLine;

    #[test]
    fn a_share_of_durations_is_the_smallest_that_so_many_do_not_exceed() {
        for (percent, of_ten, of_none) in [(50, 5.0, 0.0), (99, 10.0, 0.0)] {
            assert_eq!(of_hundred(&(1..=10).collect::<Vec<_>>(), percent), of_ten);
            assert_eq!(of_hundred(&[], percent), of_none);
        }
    }

    #[test]
    fn every_command_counts_in_one_part_and_flows_come_newest_first() {
        let line = |second: u64, flow: &str, outcome: &str| -> CommandLine {
            let timestamp = ringfence_core::rfc3339(second * 1_000);
            serde_json::from_value(serde_json::json!({
                "timestamp": timestamp, "slice": "lend", "outcome": outcome, "attempts": 1, "duration_ms": second,
                "requests": 1, "read_units": 0.5, "write_units": 1.0, "correlation_id": flow, "events": { "Lent": 2 },
                "conflicts": ["a"],
            }))
            .expect("a line")
        };
        let commands =
            vec![line(0, "a", "accepted"), line(60, "b", "internal"), line(61, "a", "rejected")];
        let run = |lag| RunLine { view_lag: lag, lanes_parked: Some(1), ..RunLine::default() };
        let runs = vec![run(Some(7)), run(None), run(Some(5))];
        let lines = FunctionLines { commands, runs };
        let series = Series::of(&[("lend", "library")].into(), &lines, Ok(vec![]), (0, 60_000));
        assert_eq!((series.commands, series.late[0][0], series.lanes[0]), (3, 7.0, 1.0));
        assert_eq!(series.late[0][PARTS - 1], 7.0, "no line says that it ended");
        assert!(series.late[1][0].is_nan(), "no line says how late deadlines are");
        assert_eq!(series.events["library"].iter().sum::<f64>(), 6.0 * PARTS as f64);
        let sums = series.outcomes.map(|parts| parts.iter().sum::<f64>());
        assert_eq!(sums, [1.0, 1.0, 1.0]);
        assert_eq!((series.conflicts[0], series.conflicts[PARTS - 1]), (1.0, 2.0));
        assert_eq!(series.durations[1][PARTS - 1], 61.0);
        assert_eq!(series.units[0].iter().sum::<f64>(), 1.5);
        let flows: Vec<_> =
            series.flows.iter().map(|flow| (&*flow.correlation_id, flow.commands)).collect();
        assert_eq!(flows, [("b", 1), ("a", 2)]);
        assert_eq!(series.flows[1].outcome.as_deref(), Some("rejected"));
    }
}
