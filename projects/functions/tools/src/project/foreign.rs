//! The file of another program: an event a line, as a JSON object with `event_type` and `timestamp`. The event's other
//! members are beside them, or in `data` or `payload`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use projects::{AgentId, EdgeName, EdgeRef, FeatureRef, ProjectId, Sha256};
use ringfence_aws::ms_of_rfc3339;
use serde_json::{Map, Value};

use super::json;
use projects::line::snake_case;

/// The members that name the feature of a line.
pub(crate) const FEATURE: &[&str] = &["feature", "feature_id", "featureId"];

/// A number that is larger counts milliseconds since 1970, and not seconds.
const SECONDS_MAX: f64 = 1e11;

/// A line.
pub(crate) struct Foreign {
    /// 1 for the first line of the file.
    pub(crate) number: usize,
    /// The SHA-256 of the line in canonical JSON.
    pub(crate) sha256: Sha256,
    /// Which of equal lines it is, from 1 on.
    occurrence: usize,
    /// As it is spelt.
    pub(crate) event_type: String,
    pub(crate) members: Map<String, Value>,
}

impl Foreign {
    /// The lines of a file, without blank ones.
    ///
    /// # Errors
    /// A line is not a JSON object.
    pub(crate) fn read(text: &str) -> Result<Vec<Self>> {
        let (mut lines, mut occurrences) = (Vec::new(), BTreeMap::new());
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let number = n + 1;
            let members = json::object(line).with_context(|| format!("line {number}"))?;
            let sha256 = Sha256::of(&serde_json::to_string(&members)?);
            let occurrence: &mut usize = occurrences.entry(sha256.clone()).or_default();
            *occurrence += 1;
            let event_type =
                ["event_type", "type"].iter().find_map(|name| members.get(*name)?.as_str());
            let event_type = event_type.unwrap_or("unknown").to_owned();
            lines.push(Self { number, sha256, occurrence: *occurrence, event_type, members });
        }
        Ok(lines)
    }

    /// The id under which a line is imported once: its own, or else its content and which of equal lines it is.
    pub(crate) fn id(&self) -> String {
        let own = ["event_id", "eventId"].iter().find_map(|name| self.members.get(*name)?.as_str());
        match own {
            Some(id) => format!("{}-id", Sha256::of(id)),
            None => format!("{}-{}", self.sha256, self.occurrence),
        }
    }

    /// The type of the event in snake case.
    pub(crate) fn kind(&self) -> String {
        snake_case(&self.event_type)
    }

    /// The first of these members that the line, its `data` or its `payload` has.
    pub(crate) fn member(&self, names: &[&str]) -> Option<&Value> {
        let within = |name| self.members.get(name).and_then(Value::as_object);
        let places = [Some(&self.members), within("data"), within("payload")];
        let has = |name: &&str| places.iter().flatten().find_map(|members| of(members, name));
        names.iter().find_map(has)
    }

    pub(crate) fn text(&self, names: &[&str]) -> Option<&str> {
        self.member(names)?.as_str()
    }

    /// A list of strings. Any other value becomes its JSON.
    pub(crate) fn texts(&self, names: &[&str]) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.member(names).and_then(Value::as_array).into_iter().flatten().map(text).collect()
    }

    /// The feature that one of these members names.
    pub(crate) fn feature(&self, project: &ProjectId, names: &[&str]) -> Option<FeatureRef> {
        let (project, feature) = (project.clone(), self.text(names)?.parse().ok()?);
        Some(FeatureRef { project, feature })
    }

    pub(crate) fn edge_name(&self) -> Option<EdgeName> {
        self.text(&["edge"])?.replace(' ', "").parse().ok()
    }

    /// The edge that the line is about.
    pub(crate) fn edge(&self, project: &ProjectId) -> Option<EdgeRef> {
        Some(self.feature(project, FEATURE)?.edge(&self.edge_name()?))
    }

    /// Whether the line is about work. Then the project's graph must have its edge.
    pub(crate) fn is_work(&self) -> bool {
        ["edge_claim", "edge_started", "iteration_completed", "edge_converged"]
            .contains(&&*self.kind())
    }

    /// The agent that it names.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        self.text(&["agent", "agent_id", "agentId"])?.parse().ok()
    }

    /// A hash, or the hash of another string in its place.
    pub(crate) fn hash(&self, names: &[&str]) -> Option<Sha256> {
        let text = self.text(names)?;
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        Some(text.parse().unwrap_or_else(|_| Sha256::of(text)))
    }

    /// A number of things.
    pub(crate) fn count(&self, names: &[&str]) -> Option<u32> {
        self.member(names)?.as_u64()?.try_into().ok()
    }

    /// The names in a list of names, or of objects with one.
    pub(crate) fn names(&self, names: &[&str]) -> Vec<String> {
        let name = |value: &Value| {
            let of = |name| value.get(name).and_then(Value::as_str);
            let of_feature = || FEATURE.iter().copied().find_map(of);
            let name = value.as_str().or_else(of_feature).or_else(|| of("id"));
            name.map_or_else(|| value.to_string(), str::to_owned)
        };
        self.member(names).and_then(Value::as_array).into_iter().flatten().map(name).collect()
    }

    /// How many checks failed; 0 if the line has no number; `None` if it has a wrong one.
    pub(crate) fn delta(&self) -> Option<u32> {
        let failed = || of(self.member(&["evaluators"])?.as_object()?, "failed");
        let Some(delta) = self.member(&["delta"]).or_else(failed) else { return Some(0) };
        delta.as_u64()?.try_into().ok()
    }

    fn time(&self) -> Option<&Value> {
        self.member(&["timestamp", "ts", "time"])
    }

    /// Whether its time is given but can't be read, or is before 1970.
    pub(crate) fn has_wrong_time(&self) -> bool {
        self.time().is_some() && self.at_ms().is_none()
    }

    /// When it happened, in milliseconds since 1970.
    pub(crate) fn at_ms(&self) -> Option<u64> {
        match self.time()? {
            Value::Number(number) => ms_of_number(number.as_f64()?),
            // Eight digits are a date, and not a second of the year 1970.
            Value::String(text) if text.len() == 8 => ms_of_text(text),
            Value::String(text) => text.parse().ok().map_or_else(|| ms_of_text(text), ms_of_number),
            _ => None,
        }
    }
}

fn of<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    members.get(name).filter(|value| !value.is_null())
}

fn ms_of_number(number: f64) -> Option<u64> {
    let seconds = if number < SECONDS_MAX { number } else { number / 1_000.0 };
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// A time as programs spell it: with `T` or a blank, in the extended or the basic format, with or without seconds,
/// a fraction or an offset. Without an offset it is UTC; a date alone is its beginning.
fn ms_of_text(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase().replace("UTC", "Z").replace(',', ".");
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((&text, "00:00:00"));
    let (clock, offset) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let clock = clock.trim_end();
    let digits = clock.bytes().take_while(u8::is_ascii_digit).count();
    let clock = match (digits, clock.len()) {
        (4 | 6, _) => colons(&clock[..digits], ":") + &clock[digits..],
        _ => clock.to_owned(),
    };
    let seconds = if clock.len() == "00:00".len() { ":00" } else { "" };
    let offset = match offset {
        "" | "Z" => "Z".to_owned(),
        _ if offset.len() == "+01".len() => format!("{offset}:00"),
        _ if offset.contains(':') => offset.to_owned(),
        _ => format!("{}{}", offset.get(..1)?, colons(offset.get(1..)?, ":")),
    };
    let date = match date.len() {
        8 if date.is_ascii() => format!("{}-{}", &date[..4], colons(&date[4..], "-")),
        _ => date.to_owned(),
    };
    ms_of_rfc3339(&format!("{date}T{clock}{seconds}{offset}"))
}

/// Pairs of digits, with something between them.
fn colons(digits: &str, between: &str) -> String {
    let pairs: Vec<_> = digits.as_bytes().chunks(2).map(String::from_utf8_lossy).collect();
    pairs.join(between)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(value: &Value) -> Foreign {
        Foreign::read(&value.to_string()).unwrap().remove(0)
    }

    #[test]
    fn times_are_understood_however_they_are_spelt() {
        let at = |timestamp: Value| line(&json!({ "timestamp": timestamp })).at_ms();
        let second = 1_771_502_400_000;
        for spelt in [
            json!("2026-02-19T12:00:00Z"),
            json!("2026-02-19T12:00:00.000+00:00"),
            json!("2026-02-19t12:00:00z"),
            json!("2026-02-19T13:00:00+0100"),
            json!("2026-02-19T11:00:00-01"),
            json!("2026-02-19 12:00:00"),
            json!("2026-02-19 12:00:00 UTC"),
            json!("2026-02-19T12:00"),
            json!("2026-02-19T12:00:00,000Z"),
            json!("20260219T120000Z"),
            json!(1_771_502_400),
            json!(1_771_502_400.0),
            json!(1_771_502_400_000_u64),
            json!("1771502400"),
        ] {
            assert_eq!(at(spelt.clone()), Some(second), "{spelt}");
        }
        assert_eq!(at(json!("2026-02-19T12:00:00.123456")), Some(second + 123));
        assert_eq!(at(json!("2026-02-19")), Some(second - 12 * 3_600_000));
        for wrong in [json!("yesterday"), json!("é"), json!(""), json!(-1), json!({})] {
            assert_eq!(at(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn a_line_is_known_by_what_it_says_and_not_by_how_it_is_written() {
        let text = "{\"a\": 1, \"b\":2}\n\n{\"b\":2,\"a\":1}\n{\"a\":2}\n";
        let lines = Foreign::read(text).unwrap();
        let [first, second, other] = &lines[..] else { panic!("{}", lines.len()) };
        assert_eq!((first.number, second.number, other.number), (1, 3, 4));
        assert_eq!(first.sha256, second.sha256);
        assert_eq!([first.id(), second.id()], [1, 2].map(|n| format!("{}-{n}", first.sha256)));
        assert!(other.id().ends_with("-1") && other.sha256 != first.sha256);
        // Only its own id counts.
        let ids = ["first", "second"]
            .map(|title| line(&json!({ "event_id": "e-1", "title": title })).id());
        assert!(ids[0] == ids[1] && ids[0].ends_with("-id"), "{ids:?}");
        let error = Foreign::read("{}\n[]\n").err().unwrap();
        assert_eq!(format!("{error:#}"), "line 2: must be a JSON object");
    }

    #[test]
    fn what_a_line_is_about_is_beside_its_type_or_in_its_data_or_payload() {
        let project = "shop".parse().unwrap();
        let (feature, edge) = ("REQ-F-AUTH-001", "design → code");
        for value in [
            json!({ "event_type": "edge_started", "feature": feature, "edge": edge }),
            json!({ "type": "EdgeStarted", "feature": null, "data": { "feature": feature, "edge": edge } }),
            json!({ "event_type": "edge_claim", "feature_id": feature, "payload": { "edge": edge } }),
        ] {
            let edge = line(&value).edge(&project).unwrap();
            assert_eq!(edge.to_string(), "shop/REQ-F-AUTH-001/design_code");
            assert!(line(&value).is_work());
        }
        let all = json!({ "event_type": "edge_started", "feature": "all", "edge": edge });
        assert_eq!(line(&all).edge(&project), None);
    }
}
