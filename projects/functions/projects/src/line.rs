//! A line of `events.jsonl`: an event, as one JSON object with sorted keys.
//!
//! The last key is `sum`: 16 hexadecimal digits of the SHA-256 of the bytes before it. So each damaged byte is found.

use std::collections::BTreeSet;

use ringfence::aws::ms_of_rfc3339;
use ringfence::feed::{Checkpoint, Entry};
use ringfence::{BoundaryId, Context, Metadata, SequencedEvent, Tag};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256 as Hasher};

use crate::{AgentId, EdgeName, EdgeRef, FeatureId, FeatureRef, ProjectId, Projects};

/// How many bytes of a hash a sum has.
const SUM_BYTES: usize = 8;

/// An event of a project, and where it is in the index or in the file. The fields are in the order of their names.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Line {
    pub agent_id: Option<AgentId>,
    /// The checkpoint after the event. In a local project, which has no index, the number of the line.
    pub checkpoint: Checkpoint,
    pub data: Value,
    pub edge: Option<EdgeName>,
    pub event_id: String,
    /// In snake case.
    pub event_type: String,
    pub feature: Option<FeatureId>,
    pub meta: Metadata,
    pub project: ProjectId,
    /// In a local project, how many lines of the same append follow. Absent in a copy, whose lines stand alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest: Option<u64>,
    /// The version of the payload; absent for version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<u32>,
    pub tags: Vec<Tag>,
    /// When it was recorded: RFC 3339, UTC, milliseconds.
    pub timestamp: String,
}

/// An event of the index.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub struct Place {
    /// The checkpoint after it.
    pub checkpoint: Checkpoint,
    pub event_id: String,
    pub timestamp: String,
}

impl Place {
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        let (event_id, timestamp) = (entry.event.id(), entry.event.recorded_at());
        Self { checkpoint: entry.checkpoint, event_id, timestamp }
    }

    #[must_use]
    pub fn of_line(line: &Line) -> Self {
        let (event_id, timestamp) = (line.event_id.clone(), line.timestamp.clone());
        Self { checkpoint: line.checkpoint, event_id, timestamp }
    }

    /// The checkpoint before it.
    #[must_use]
    pub fn before(&self) -> Checkpoint {
        Checkpoint::try_from(i64::from(self.checkpoint) - 1).unwrap_or(Checkpoint::START)
    }
}

/// A line whose event has no place or no time.
#[derive(Debug, thiserror::Error)]
#[error("{0} has no place or no time: `ringfence project reconstruct`")]
pub struct NoPlace(String);

/// The subject of an event, by the names in its payload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    pub project: Option<ProjectId>,
    pub feature: Option<FeatureRef>,
    pub edge: Option<EdgeRef>,
}

impl About {
    /// The subject of a payload of an event or of a command.
    #[must_use]
    pub fn of(data: &Value) -> Self {
        let text = |field: &str| data.get(field).and_then(Value::as_str);
        let edge: Option<EdgeRef> = text("edge").and_then(|edge| edge.parse().ok());
        let feature = text("feature").and_then(|feature| feature.parse().ok());
        let feature = edge.as_ref().map(|edge| edge.feature.clone()).or(feature);
        let project = text("project").and_then(|project| project.parse().ok());
        let project = feature.as_ref().map(|it: &FeatureRef| it.project.clone()).or(project);
        Self { project, feature, edge }
    }
}

/// The features that a command names, also by one of their edges.
#[must_use]
pub fn named(data: &Value) -> BTreeSet<FeatureRef> {
    match data {
        Value::String(text) => {
            let edge = text.parse().map(|edge: EdgeRef| edge.feature);
            edge.ok().or_else(|| text.parse().ok()).into_iter().collect()
        }
        Value::Array(values) => values.iter().flat_map(named).collect(),
        Value::Object(fields) => fields.values().flat_map(named).collect(),
        _ => BTreeSet::new(),
    }
}

impl Line {
    /// The line of an entry of the index; `None` if it does not belong to a project.
    #[must_use]
    pub fn of(entry: Entry) -> Option<Self> {
        let Entry { checkpoint, event } = entry;
        if event.context != Projects::NAME {
            return None;
        }
        let About { project, feature, edge } = About::of(&event.data);
        let agent_id = event.data.get("agent").and_then(Value::as_str);
        Some(Self {
            agent_id: agent_id.and_then(|agent| agent.parse().ok()),
            checkpoint,
            edge: edge.map(|edge| edge.name),
            event_id: event.id(),
            event_type: snake_case(&event.event_type),
            feature: feature.map(|feature| feature.feature),
            project: project?,
            rest: None,
            schema: (event.version > 1).then_some(event.version),
            timestamp: event.recorded_at(),
            data: event.data,
            meta: event.metadata,
            tags: event.tags,
        })
    }

    /// Whether the line can follow another one, or be the first.
    #[must_use]
    pub fn follows(&self, last: Option<&Self>) -> bool {
        let number = i64::from(self.checkpoint);
        let before = last.map_or(0, |last| i64::from(last.checkpoint));
        match (self.rest, last.map_or(self.rest.map(|_| 0), |last| last.rest)) {
            (None, None) => number > before,
            (Some(_), Some(0)) => number == before + 1,
            (Some(rest), Some(announced)) => number == before + 1 && rest + 1 == announced,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// The event, as the log has it.
    ///
    /// # Errors
    /// The id or the time can't be read. This does not happen with lines of the index.
    pub fn event(&self) -> Result<SequencedEvent, NoPlace> {
        let place = self.event_id.rsplit_once('/');
        let place = place.and_then(|(partition, slot)| Some((partition, slot.parse().ok()?)));
        let no_place = || NoPlace(self.event_id.clone());
        let ((partition, slot), at) =
            place.zip(ms_of_rfc3339(&self.timestamp)).ok_or_else(no_place)?;
        Ok(SequencedEvent {
            partition: BoundaryId::stored(partition),
            slot,
            at,
            rest: 0,
            event_type: camel_case(&self.event_type),
            context: Projects::NAME.to_owned(),
            tags: self.tags.clone(),
            version: self.schema.unwrap_or(1),
            data: self.data.clone(),
            metadata: self.meta.clone(),
        })
    }
}

/// An object as a line with a sum, and its end.
#[must_use]
pub fn to_text(object: &impl Serialize) -> String {
    let mut text = serde_json::to_string(object).expect("its keys are texts");
    text.pop();
    let sum = sum(&text);
    format!("{text},\"sum\":\"{sum}\"}}\n")
}

/// The JSON of the object in a line without its end; `None` if it is not what [`to_text`] wrote.
#[must_use]
pub fn summed(text: &str) -> Option<String> {
    let (summed, of_sum) = text.rsplit_once(",\"sum\":\"")?;
    (of_sum.strip_suffix("\"}")? == sum(summed)).then(|| format!("{summed}}}"))
}

fn sum(text: &str) -> String {
    let hash = Hasher::digest(text.as_bytes());
    hash[..SUM_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `EdgeStarted` as `edge_started`.
#[must_use]
pub fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for (n, c) in name.char_indices() {
        if n > 0 && c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::entry;

    #[test]
    fn a_line_has_sorted_keys_and_its_event_is_read_back() {
        let entry = entry(7, 1);
        let line = Line::of(entry.clone()).unwrap();
        let text = to_text(&line);
        let text = text.trim_end();
        let data =
            r#"{"agent":"ada","claim":"c1","edge":"shop/REQ-F-AUTH-001/design_code","epoch":1,"#;
        let begin = format!(r#"{{"agent_id":"ada","checkpoint":7,"data":{data}"#);
        assert!(text.starts_with(&begin), "{text}");
        let middle = r#""edge":"design_code","event_id":"edge:shop%2FREQ-F-AUTH-001%2Fdesign_code/1","event_type":"edge_started","feature":"REQ-F-AUTH-001","meta":{"commandId":"é","principal":"ada"},"project":"shop","tags":[{"key":"edge","value":"shop/REQ-F-AUTH-001/design_code"}],"timestamp":"2024-06-23T00:00:00.001Z","sum":""#;
        assert!(text.contains(middle), "{text}");
        assert_eq!(serde_json::from_str::<Line>(&summed(text).unwrap()).unwrap(), line);
        assert_eq!(line.event().unwrap(), entry.event);
    }

    #[test]
    fn each_damaged_byte_is_found() {
        let text = to_text(&Line::of(entry(7, 1)).unwrap());
        let text = text.trim_end();
        for n in 0..text.len() {
            for other in [b' ', b'0', b'"', text.as_bytes()[n] ^ 1] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[n] = other;
                if let Ok(damaged) = String::from_utf8(bytes)
                    && damaged != text
                {
                    assert_eq!(summed(&damaged), None, "byte {n}: {damaged}");
                }
            }
            if text.is_char_boundary(n) {
                assert_eq!(summed(&text[..n]), None, "cut at {n}");
            }
        }
    }

    #[test]
    fn a_line_follows_only_if_no_event_of_its_append_is_missing() {
        let line = |(checkpoint, rest)| Line { rest, ..Line::of(entry(checkpoint, 1)).unwrap() };
        for (last, next, follows) in [
            (None, (1, Some(0)), true),
            (None, (2, Some(0)), false),
            (Some((1, None)), (3, None), true), // the index has events of other contexts between
            (Some((3, None)), (3, None), false),
            (Some((1, Some(0))), (2, Some(1)), true),
            (Some((1, Some(2))), (2, Some(1)), true),
            (Some((1, Some(2))), (3, Some(1)), false),
            (Some((1, Some(2))), (2, Some(0)), false),
            (Some((1, None)), (2, Some(0)), false),
        ] {
            let last = last.map(line);
            assert_eq!(line(next).follows(last.as_ref()), follows, "{next:?} after {last:?}");
        }
    }

    #[test]
    fn events_of_other_contexts_have_no_line() {
        let mut other = entry(1, 1);
        other.event.context = "ordering".to_owned();
        assert_eq!(Line::of(other), None);
        let mut nameless = entry(1, 1);
        nameless.event.data = json!({ "agent": "ada" });
        assert_eq!(Line::of(nameless), None);
    }

    #[test]
    fn every_type_has_one_spelling_in_snake_case() {
        assert_eq!(snake_case("IterationCompleted"), "iteration_completed");
        let catalog = Projects::catalog().unwrap();
        let of_context = catalog.schemas().map(|schema| &*schema.name);
        for event_type in of_context.chain(["V2Event", "HTTPSeen"]) {
            assert_eq!(camel_case(&snake_case(event_type)), event_type);
        }
    }
}
