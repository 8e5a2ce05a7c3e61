//! Who gave the command of an event, and what wrote the event.

use std::fmt;

use crate::{CommandRecord, Metadata, model::command::REACTION};

/// Who gave the command of an event, and what wrote the event, from its metadata.
///
/// As text: `place-order for jwt:main:ada`, or `record-demand by record-demand for jwt:main:ada` for a reaction. An
/// event that an older version wrote, or that was imported, may lack each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'m> {
    /// The slice that wrote it.
    pub slice: Option<&'m str>,
    /// The slice, or another part of the stack, that gave the command, unless a caller gave it.
    pub by: Option<&'m str>,
    /// The principal that gave the command, or caused the first one of its flow.
    pub principal: Option<&'m str>,
}

impl Metadata {
    /// The key for the text of the [`Principal`](crate::Principal) that gave the command, or that caused the first
    /// command of its flow.
    pub const PRINCIPAL: &'static str = "principal";
    /// The key for the slice that reacts to an event, or for another part of the stack that gave the command. Missing
    /// if a caller gave it.
    pub const BY: &'static str = "by";
    /// The key for the span of the command that wrote the event, in the format of
    /// [`Traceparent`](crate::Traceparent).
    pub const TRACEPARENT: &'static str = "traceparent";

    /// Who gave the command of the event with this metadata, and what wrote the event.
    #[must_use]
    pub fn origin(&self) -> Origin<'_> {
        let [command_id, slice, _] = CommandRecord::MARKS.map(|mark| self.text(mark));
        // An older version did not record `by`. A command under a reaction's key is a reaction of its slice.
        let is_reaction = command_id.is_some_and(|id| id.starts_with(REACTION));
        let by = self.text(Self::BY).or(slice.filter(|_| is_reaction));
        Origin { slice, by, principal: self.text(Self::PRINCIPAL) }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slice, by, principal } = self;
        f.write_str(slice.unwrap_or("slice not recorded"))?;
        by.map_or(Ok(()), |by| write!(f, " by {by}"))?;
        principal.map_or(Ok(()), |principal| write!(f, " for {principal}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_origin_of_an_event_has_its_recorded_parts() {
        let check = |metadata, expected: &str| {
            let metadata: Metadata = serde_json::from_value(metadata).expect("not reserved");
            assert_eq!(metadata.origin().to_string(), expected);
        };
        let (slice, principal) = ("record-demand", "jwt:main:ada");
        check(json!({}), "slice not recorded");
        check(json!({ "slice": slice }), "record-demand");
        check(json!({ "principal": "ada", "by": 1 }), "slice not recorded for ada");
        check(json!({ "slice": slice, "principal": principal }), "record-demand for jwt:main:ada");
        let reaction = json!({ "slice": slice, "by": slice, "principal": principal });
        check(reaction, "record-demand by record-demand for jwt:main:ada");
        let before = json!({ "slice": slice, "commandId": "reaction/1" });
        check(before, "record-demand by record-demand");
        check(json!({ "commandId": "reaction/1" }), "slice not recorded");
    }
}
