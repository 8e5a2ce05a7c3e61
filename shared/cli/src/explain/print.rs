//! An explanation as text.

use std::fmt;

use super::explanation::{Explanation, Reading, Writing, Written};

/// Most events that a text names.
const EVENTS_MAX: usize = 20;

/// An explanation for a terminal.
pub(super) struct Text<'a>(pub(super) &'a Explanation);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { slice, log, reads, events, cost, .. } = self.0;
        writeln!(f, "{slice}, on the {log} log")?;
        writeln!(f, "\nReads:")?;
        for Reading { boundary, by, types, seen } in reads {
            writeln!(f, "  {boundary}")?;
            let types = if types.is_empty() { String::new() } else { types.join(", ") + " " };
            writeln!(f, "    {types}by {by}: {seen}")?;
        }
        writeln!(f, "\nRests on {}:", counted(events.len(), "event"))?;
        for event in events.iter().rev().take(EVENTS_MAX).rev() {
            writeln!(f, "  {} {}", event.id, event.event_type)?;
        }
        if events.len() > EVENTS_MAX {
            writeln!(f, "  (the last {EVENTS_MAX} of them)")?;
        }
        self.answer(f)?;
        self.writes(f)?;
        writeln!(
            f,
            "\nCosts {} read units in {} and {} write units in {}.",
            cost.read_units,
            counted(cost.read_requests as usize, "request"),
            cost.write_units,
            counted(cost.write_requests as usize, "request"),
        )?;
        self.conflicts(f)
    }
}

impl Text<'_> {
    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = &self.0.answer;
        let verb = if answer.repeated { "has taken effect before" } else { "is accepted" };
        match &answer.message {
            None => writeln!(f, "\nIt {verb}, with {}:", counted(answer.events.len(), "event"))?,
            Some(message) => {
                writeln!(f, "\nIt is refused: {message}")?;
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

    fn writes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.writes[..] {
            [] => return writeln!(f, "\nWrites nothing."),
            [_] => writeln!(f, "\nWrites, in one request:")?,
            _ => writeln!(f, "\nWrites, in one transaction:")?,
        }
        for Writing { item, does, requires, bytes, units } in &self.0.writes {
            writeln!(f, "  {item}")?;
            let does = does.as_deref().unwrap_or("is checked");
            let requires = requires.iter().map(|requires| format!(", if {requires}"));
            let bytes = if *bytes > 0 { format!(", {bytes} bytes") } else { String::new() };
            writeln!(f, "    {does}{}{bytes}: {units} units", requires.collect::<String>())?;
        }
        for (index, units) in &self.0.indexes {
            writeln!(f, "  the index {index}\n    follows: {units} units")?;
        }
        Ok(())
    }

    fn conflicts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for conflict in &self.0.conflicts {
            writeln!(f, "Conflict: {conflict}. The command was decided again.")?;
        }
        match self.0.answer.repeated {
            true => Ok(()),
            false => {
                writeln!(f, "Now it would meet no conflict: nothing was added to what it has read.")
            }
        }
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
