//! Answers of outcomes.

use crate::Problem;
use ringfence_core::{Handled, Outcome};
use serde_json::{Value, json};

/// The answer to a command: a document, or the slice's rejection as a problem.
pub(crate) fn of_handled(handled: Handled) -> Result<Value, Problem> {
    match handled.outcome {
        Outcome::Accepted(events) => {
            let mut answer = json!({ "accepted": true, "events": events });
            if handled.repeated {
                answer["repeated"] = true.into();
            }
            Ok(answer)
        }
        Outcome::Rejected { rejected, events } => {
            let mut problem = Problem::rejected(rejected);
            if !events.is_empty() {
                problem = problem.and("events", json!(events));
            }
            if handled.repeated {
                problem = problem.and("repeated", true.into());
            }
            Err(problem)
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{EventRef, Rejected};

    use super::*;

    #[test]
    fn a_rejection_names_the_events_that_it_leaves_and_says_if_it_is_a_repeat() {
        let answer = |events, repeated| {
            let rejection = json!({ "code": "IsLent", "has": "ada" });
            let rejected = Rejected { message: "ada has it".to_owned(), rejection };
            let outcome = Outcome::of(Some(rejected), events);
            let handled =
                Handled { outcome, attempts: 1, repeated, conflicts: vec![], written: vec![] };
            of_handled(handled).unwrap_err().document()
        };
        let plain = json!({
            "code": "IsLent",
            "has": "ada",
            "type": "urn:ringfence:problem:rejected",
            "title": "The command is rejected",
            "status": 422,
            "detail": "ada has it",
        });
        assert_eq!(answer(vec![], false), plain);
        let (event_type, partition) = ("Missed".to_owned(), "wish:saw%2Fbob".to_owned());
        let events = vec![EventRef { event_type, partition, slot: 1 }];
        let (left, again) = (answer(events.clone(), false), answer(events, true));
        let missed = json!({ "type": "Missed", "partition": "wish:saw%2Fbob", "slot": 1 });
        assert_eq!(left["events"][0], missed);
        assert_eq!(left["code"], plain["code"]);
        let mut repeated = left;
        repeated["repeated"] = true.into();
        assert_eq!(again, repeated);
    }
}
