//! `ringfence project zoom`: a project in more and more detail. A feature shows its edges, an edge its iterations, an
//! iteration its events, and an event its whole line.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Result, ensure};
use clap::Args;
use projects::{EdgeName, FeatureId, FeatureRef};
use serde_json::{Value, json};

use super::folder::Folder;
use super::read::{brief, print, standing, warn_of_folded, with};
use super::standing::FEATURES;
use projects::line::Line;

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfence project zoom REQ-F-AUTH-001
  ringfence project zoom REQ-F-AUTH-001/design_code
  ringfence project zoom REQ-F-AUTH-001/design_code/2.1
  ringfence project zoom edge:shop%2FREQ-F-AUTH-001%2Fdesign_code/1")]
pub(crate) struct Zoom {
    /// A feature, an edge as `<feature>/<edge>`, an iteration as `<feature>/<edge>/<iteration>` or
    /// `<feature>/<edge>/<run>.<iteration>`, or the id of an event. Without a run, it is the last one.
    at: At,
}

/// The place that is shown.
#[derive(Clone, Debug, PartialEq)]
enum At {
    Feature(FeatureId),
    Edge(FeatureId, EdgeName),
    Iteration(FeatureId, EdgeName, Option<u64>, u64),
    Event(String),
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            return Ok(Self::Event(text.to_owned()));
        }
        let mut parts = text.splitn(3, '/');
        let feature = parts.next().unwrap_or_default().parse::<FeatureId>();
        let feature = feature.map_err(|error| error.to_string())?;
        let Some(edge) = parts.next() else { return Ok(Self::Feature(feature)) };
        let edge = edge.parse::<EdgeName>().map_err(|error| error.to_string())?;
        let Some(iteration) = parts.next() else { return Ok(Self::Edge(feature, edge)) };
        let number = |text: &str| {
            let error = "an iteration is a number, such as 3, or a run and a number, such as 2.1";
            text.parse::<u64>().map_err(|_| error.to_owned())
        };
        Ok(match iteration.split_once('.') {
            Some((run, n)) => Self::Iteration(feature, edge, Some(number(run)?), number(n)?),
            None => Self::Iteration(feature, edge, None, number(iteration)?),
        })
    }
}

pub(crate) fn run(folder: &Folder, Zoom { at }: &Zoom) -> Result<ExitCode> {
    warn_of_folded(&folder.read()?)?;
    let mut lines = Vec::new();
    let is_at = |line: &Line| match at {
        At::Event(id) => line.event_id == *id,
        At::Feature(feature) => line.feature.as_ref() == Some(feature),
        At::Edge(feature, edge) | At::Iteration(feature, edge, ..) => {
            (&line.feature, &line.edge) == (&Some(feature.clone()), &Some(edge.clone()))
        }
    };
    let standing =
        standing(folder, &[FEATURES], |line| lines.extend(is_at(&line).then_some(line)))?;
    let shown = match at {
        At::Event(_) => lines.iter().map(|line| json!(line)).collect(),
        At::Feature(feature) => {
            let (project, feature) = (folder.project.clone(), feature.clone());
            let of = FeatureRef { project, feature };
            standing.feature(&of).map_or(vec![], |row| edges(&json!(row), &lines))
        }
        At::Edge(..) => {
            let done = numbered(&lines).into_iter().filter(|(_, line)| is_iteration(line));
            done.map(|((run, iteration), line)| attempt(run, iteration, line)).collect()
        }
        At::Iteration(_, _, run, iteration) => {
            let numbered = numbered(&lines);
            let last = numbered.iter().map(|((run, _), _)| *run).max().unwrap_or(1);
            let wanted = (run.unwrap_or(last), *iteration);
            let of = numbered.into_iter().filter(|(number, _)| *number == wanted);
            of.map(|(_, line)| with("data", line.data.clone(), brief(line))).collect()
        }
    };
    ensure!(
        !shown.is_empty(),
        "the copy has nothing of this: `ringfence project log` lists the events, and features that are folded come back \
         by `ringfence project reconstruct`"
    );
    print(shown)
}

/// The edges of a feature, in the order of its rules, then edges that the rules lack.
fn edges(row: &Value, lines: &[Line]) -> Vec<Value> {
    let rules = row["definition"]["rules"]["edges"].as_array().into_iter().flatten();
    let names: Vec<&str> = rules.filter_map(|rule| rule["edge"].as_str()).collect();
    let known = row["edges"].as_object().into_iter().flatten();
    let others = known.map(|(name, _)| name.as_str()).filter(|name| !names.contains(name));
    let shown = names.iter().copied().chain(others).map(|name| {
        let is_of = |line: &&Line| line.edge.as_ref().is_some_and(|edge| edge.to_string() == name);
        let events = lines.iter().filter(is_of);
        let edge = match &row["edges"][name] {
            Value::Null => json!({}),
            edge => edge.clone(),
        };
        with("edge", name, with("events", events.count(), edge))
    });
    shown.collect()
}

fn is_iteration(line: &Line) -> bool {
    line.event_type == "iteration_completed"
}

/// An iteration on one line.
fn attempt(run: u64, iteration: u64, line: &Line) -> Value {
    let checks = line.data["checks"].as_array().map_or(0, Vec::len);
    let mut shown = brief(line);
    for (name, value) in
        [("run", json!(run)), ("iteration", json!(iteration)), ("checks", json!(checks))]
    {
        shown[name] = value;
    }
    for name in ["status", "delta", "artifact", "reqKeys"] {
        shown[name] = line.data.get(name).cloned().unwrap_or_default();
    }
    shown
}

/// The events of an edge, each with its run and its iteration. Events without an iteration, such as a claim, belong to
/// the next one.
fn numbered(lines: &[Line]) -> Vec<((u64, u64), &Line)> {
    let (mut run, mut last) = (1, 0);
    let number = |line: &Line, name: &str| line.data.get(name).and_then(Value::as_u64);
    let numbered = lines.iter().map(|line| {
        let named = number(line, "run");
        if let Some(new) = named.filter(|named| *named > run) {
            (run, last) = (new, 0);
        }
        let of = number(line, "iteration");
        if is_iteration(line) {
            last = of.unwrap_or(last);
        }
        ((named.unwrap_or(run), of.unwrap_or(last + 1)), line)
    });
    numbered.collect()
}

#[test]
fn what_is_looked_at_is_a_feature_an_edge_an_iteration_or_an_event() {
    let feature: FeatureId = "REQ-F-AUTH-001".parse().expect("a name");
    let edge: EdgeName = "design_code".parse().expect("a name");
    let text = |rest: &str| format!("REQ-F-AUTH-001{rest}").parse::<At>();
    assert_eq!(text(""), Ok(At::Feature(feature.clone())));
    assert_eq!(text("/design_code"), Ok(At::Edge(feature.clone(), edge.clone())));
    let iteration = |run| Ok(At::Iteration(feature.clone(), edge.clone(), run, 3));
    assert_eq!(text("/design_code/3"), iteration(None));
    assert_eq!(text("/design_code/2.3"), iteration(Some(2)));
    assert_eq!("edge:a/1".parse(), Ok(At::Event("edge:a/1".to_owned())));
    for wrong in ["auth", "REQ-F-AUTH-001/Design", "REQ-F-AUTH-001/design_code/last"] {
        assert!(wrong.parse::<At>().is_err(), "{wrong}");
    }
}
