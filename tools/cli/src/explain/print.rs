//! An explanation as text.

use std::fmt;

use ringfence_core::visible;

use ringfence_log::ReadBoundary;

use super::explanation::{Explanation, Writing, Written};

/// A text names at most this many events.
const EVENTS_MAX: usize = 20;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { slice, log, principal, by, reads, events, cost, .. } = self;
        write!(f, "{slice}, on the {log} log")?;
        by.as_ref().map_or(Ok(()), |by| write!(f, ", by {}", visible(by)))?;
        principal.as_ref().map_or(Ok(()), |who| write!(f, ", for {}", visible(who)))?;
        writeln!(f)?;
        writeln!(f, "\nReads:")?;
        for ReadBoundary { boundary, by, types, seen } in reads {
            writeln!(f, "  {boundary}")?;
            let types = if types.is_empty() { String::new() } else { types.join(", ") + " " };
            writeln!(f, "    {types}by {by}: {seen}")?;
        }
        if !events.is_empty() {
            writeln!(f, "\nRests on {}:", counted(events.len() as f64, "event"))?;
        }
        for event in events.iter().rev().take(EVENTS_MAX).rev() {
            let origin = event.origin.iter().map(|origin| format!(": {}", visible(origin)));
            writeln!(f, "  {} {}{}", event.id, event.event_type, origin.collect::<String>())?;
        }
        if events.len() > EVENTS_MAX {
            writeln!(f, "  (the last {EVENTS_MAX} of them)")?;
        }
        self.write_answer(f)?;
        self.write_writes(f)?;
        writeln!(
            f,
            "\nCosts {} in {} and {} in {}.",
            counted(cost.read_units, "read unit"),
            counted(cost.read_requests.into(), "request"),
            counted(cost.write_units, "write unit"),
            counted(cost.write_requests.into(), "request"),
        )?;
        self.write_conflicts(f)
    }
}

impl Explanation {
    fn write_answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = &self.answer;
        let verb = if answer.repeated { "has taken effect before" } else { "is accepted" };
        match &answer.message {
            None => {
                writeln!(f, "\nIt {verb}, with {}:", counted(answer.events.len() as f64, "event"))?
            }
            Some(message) => {
                writeln!(f, "\nIt is rejected: {}", visible(message))?;
                writeln!(f, "  {}", answer.rejection.as_ref().unwrap_or_default())?;
            }
        }
        for Written { event_type, partition, slot, data } in &answer.events {
            writeln!(f, "  {partition}/{slot} {event_type}")?;
            if let Some(data) = data {
                writeln!(f, "    {data}")?;
            }
        }
        Ok(())
    }

    fn write_writes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.writes[..] {
            [] => return writeln!(f, "\nWrites nothing."),
            [_] => writeln!(f, "\nWrites, in one request:")?,
            _ => writeln!(f, "\nWrites, in one transaction:")?,
        }
        for Writing { item, does, requires, bytes, units } in &self.writes {
            writeln!(f, "  {item}")?;
            let does = does.as_deref().unwrap_or("is checked");
            let requires = requires.iter().map(|requires| format!(", if {requires}"));
            let bytes = if *bytes > 0 { format!(", {bytes} bytes") } else { String::new() };
            writeln!(
                f,
                "    {does}{}{bytes}: {}",
                requires.collect::<String>(),
                counted(*units, "unit")
            )?;
        }
        for (index, units) in &self.indexes {
            writeln!(f, "  the index {index}\n    follows: {}", counted(*units, "unit"))?;
        }
        Ok(())
    }

    fn write_conflicts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for conflict in &self.conflicts {
            writeln!(f, "While it was decided: {conflict}. So it was decided again.")?;
        }
        writeln!(f, "Nothing was added to these boundaries since.")
    }
}

/// A number with its noun.
pub fn counted(count: f64, what: &str) -> String {
    if count == 1.0 { format!("1 {what}") } else { format!("{count} {what}s") }
}
