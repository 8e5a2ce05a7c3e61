//! The filter of a page: the fields of its form, which are also parameters of its URL.

use maud::{Markup, html};
use ringfence_aws::ms_of_rfc3339;
use ringfence_core::SequencedEvent;
use ringfence_feed::Reference;
use ringfence_stack::Stack;

use crate::frame::{Problem, boundary_url, url};

/// The form as a person filled it in. An empty field does not filter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    context: String,
    event_type: String,
    tag: String,
    partition: String,
    since: String,
    until: String,
}

/// The parsed form.
pub(crate) struct Filter {
    form: Form,
    tag: Option<ringfence_core::Tag>,
    since_ms: Option<u64>,
    until_ms: Option<u64>,
}

impl Form {
    /// The form of a URL with these parameters.
    pub(crate) fn of(parameters: &[(String, String)]) -> Self {
        let text = |name: &str| {
            let found = parameters.iter().find(|(parameter, _)| parameter == name);
            found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        Self {
            context: text("context"),
            event_type: text("type"),
            tag: text("tag"),
            partition: text("partition"),
            since: text("since"),
            until: text("until"),
        }
    }

    /// The page of the boundary with the form's tags.
    pub(crate) fn boundary(&self) -> Option<String> {
        let id = [&self.partition, &self.tag].into_iter().find(|id| !id.is_empty());
        id.map(|id| boundary_url(id))
    }

    fn parameters(&self) -> [(&str, &str); 6] {
        [
            ("context", &self.context),
            ("type", &self.event_type),
            ("tag", &self.tag),
            ("partition", &self.partition),
            ("since", &self.since),
            ("until", &self.until),
        ]
    }

    /// A path with this form and another parameter.
    pub(crate) fn url(&self, path: &str, other: &[(&str, &str)]) -> String {
        url(path, self.parameters().into_iter().chain(other.iter().copied()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parameters().iter().all(|(_, value)| value.is_empty())
    }

    /// The form for a person.
    pub(crate) fn markup(&self, stack: &Stack, limit: usize) -> Markup {
        let times = [("since", "From (UTC)", &self.since), ("until", "Until (UTC)", &self.until)];
        html! {
            form.filter.events method="get" action="/events" role="search" aria-label="Filter" {
                label { "Context"
                    select name="context" {
                        option value="" { "any" }
                        @for context in &stack.contexts {
                            option selected[context.name == self.context] { (context.name) }
                        }
                    }
                }
                label { "Type" input name="type" value=(self.event_type) list="types" placeholder="any"; }
                datalist #types { @for name in stack.event_types() { option value=(name) {} } }
                label { "Tag" input name="tag" value=(self.tag) placeholder="key:value"; }
                label { "Partition" input name="partition" value=(self.partition) placeholder="any"; }
                @for (name, label, value) in times {
                    label { (label) input type="datetime-local" step="1" name=(name) value=(value); }
                }
                input type="hidden" name="limit" value=(limit);
                button { "Filter" }
            }
            @if !self.is_empty() { p.note { a href="/events" { "Show all events" } } }
        }
    }
}

impl Filter {
    /// # Errors
    /// A field can't be understood.
    pub(crate) fn of(form: Form) -> Result<Self, Problem> {
        let tag = match form.tag.split_once(':') {
            Some((key, value)) => Some(ringfence_core::Tag::new(key.to_owned(), value)),
            None if form.tag.is_empty() => None,
            None => return Err(Problem::bad("tag: write key:value, such as orderId:ord-1.")),
        };
        let (since_ms, until_ms) = (time("since", &form.since)?, time("until", &form.until)?);
        Ok(Self { form, tag, since_ms, until_ms })
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Says which events may match, before they are read.
    pub(crate) fn wants(&self) -> impl Fn(&Reference) -> bool + Send + Sync + use<> {
        let (form, since_ms, until_ms) = (self.form.clone(), self.since_ms, self.until_ms);
        move |it| {
            let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
            is(&form.event_type, &it.event_type)
                && is(&form.partition, it.partition.id.as_str())
                && since_ms.is_none_or(|since| it.at >= since)
                && until_ms.is_none_or(|until| it.at < until)
        }
    }

    pub(crate) fn matches(&self, event: &SequencedEvent) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        is(&self.form.context, &event.context)
            && is(&self.form.event_type, &event.event_type)
            && is(&self.form.partition, event.partition.as_str())
            && self.tag.as_ref().is_none_or(|tag| event.tags.contains(tag))
            && self.since_ms.is_none_or(|since| event.at >= since)
            && self.until_ms.is_none_or(|until| event.at < until)
    }
}

/// Milliseconds since 1970, from a field in a browser's format or in RFC 3339.
fn time(field: &str, text: &str) -> Result<Option<u64>, Problem> {
    if text.is_empty() {
        return Ok(None);
    }
    let forms =
        [text.to_owned(), format!("{text}Z"), format!("{text}:00Z"), format!("{text}T00:00:00Z")];
    let wrong = || {
        Problem::bad(format!(
            "{field}: write a time since 1970 such as 2026-01-31T12:00:00, in UTC."
        ))
    };
    forms.iter().find_map(|text| ms_of_rfc3339(text)).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use ringfence_core::{BoundaryId, Metadata};
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_filter_takes_events_from_its_first_time_to_before_its_last() {
        const FROM: u64 = 1_719_100_800_000;
        let event = |at| SequencedEvent {
            partition: BoundaryId::tag("orderId", "o1"),
            slot: 1,
            at,
            rest: 0,
            context: "ordering".to_owned(),
            event_type: "OrderPlaced".to_owned(),
            tags: Vec::new(),
            version: 1,
            data: Value::Null,
            metadata: Metadata::default(),
        };
        let times = [("since", "2024-06-23T00:00"), ("until", "2024-06-23T00:00:01")];
        let form = Form::of(&times.map(|(name, time)| (name.to_owned(), time.to_owned())));
        let Ok(filter) = Filter::of(form) else { panic!("the times are understood") };
        for (at, is_shown) in
            [(FROM - 1, false), (FROM, true), (FROM + 999, true), (FROM + 1_000, false)]
        {
            assert_eq!(filter.matches(&event(at)), is_shown, "{at}");
        }
    }
}
