//! The answer and the log line of a command that is not settled.

use crate::Problem;
use ringfence_core::{
    BoundaryId, Conflict, HandleError, LogError, PlanError, StoreError, SubjectError, VaultError,
};
/// The problem for the caller. `request_id` leads to the full cause in the log.
pub(crate) fn problem(error: &HandleError, request_id: &str) -> Problem {
    match error {
        HandleError::Plan(PlanError::EmptyValue(key)) => {
            Problem::malformed(key, "must not be empty")
        }
        HandleError::Plan(PlanError::Boundary(error)) => Problem::malformed("tags", error),
        HandleError::Plan(error @ PlanError::Nothing) => Problem::malformed("tags", error),
        HandleError::Subject(error @ SubjectError::Length(field, _)) => {
            Problem::malformed(field, error)
        }
        HandleError::Plan(_)
        | HandleError::Event(_)
        | HandleError::Slice(_)
        | HandleError::Subject(_)
        | HandleError::Unread { .. }
        | HandleError::Leaves { .. } => Problem::internal(request_id),
        HandleError::Log(error) => of_log(error, request_id),
    }
}

/// The number of attempts of the command.
pub(crate) fn attempts(error: &HandleError) -> u32 {
    match error {
        HandleError::Log(LogError::Store(error)) => error.attempts(),
        _ => 1,
    }
}

/// The boundaries in which others appended during the last attempts, if the error names them.
pub(crate) fn conflicts(error: &HandleError) -> Vec<BoundaryId> {
    let HandleError::Log(LogError::Store(StoreError::Contention { over: Some(over), .. })) = error
    else {
        return Vec::new();
    };
    let conflict = over.downcast_ref::<Conflict>();
    conflict.into_iter().flat_map(Conflict::boundaries).cloned().collect()
}

fn of_log(error: &LogError, request_id: &str) -> Problem {
    match error {
        LogError::Limit(limit) => Problem::limit(limit),
        LogError::Conflict(_) => Problem::contention(),
        LogError::Store(error) => Problem::of_store(error, request_id),
        LogError::KeyReused(error) => Problem::key_reused(error),
        LogError::Filing(error) => Problem::malformed("tags", error),
        LogError::Unstorable { field, reason } => Problem::malformed(field, reason),
        LogError::UnknownType { .. } => Problem::unknown_type(),
        LogError::NewerVersion(_) => Problem::newer_version(),
        LogError::Vault(VaultError::Forgotten(_)) => Problem::subject_forgotten(),
        LogError::Vault(_)
        | LogError::Corrupt(_)
        | LogError::Downcast(_)
        | LogError::Undecodable { .. }
        | LogError::Nothing => Problem::internal(request_id),
    }
}

/// The problem of personal data that can't be sealed or opened before a decision.
pub(crate) fn of_vault(error: VaultError, request_id: &str) -> Problem {
    of_log(&error.into(), request_id)
}

#[cfg(test)]
mod tests {
    use crate::chain;
    use ringfence_core::NewerVersion;
    use ringfence_document_log::{DocumentError, StreamName};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_can_not_be_stored_is_a_malformed_request() {
        let length = HandleError::Subject(SubjectError::Length("name".to_owned(), 0));
        assert_eq!(problem(&length, "r").kind, "malformed");
        let [field, reason] =
            ["data.rows[0]", "a field in it has an empty name"].map(str::to_owned);
        let error = HandleError::Log(LogError::Unstorable { field, reason });
        let problem = problem(&error, "r");
        assert_eq!((problem.status, problem.kind), (400, "malformed"));
        let errors = problem.document()["errors"].take();
        let expected =
            json!([{ "field": "data.rows[0]", "message": "a field in it has an empty name" }]);
        assert_eq!(errors, expected);
    }

    #[test]
    fn an_event_of_an_unknown_type_or_version_is_a_503_that_names_it_in_the_log_alone() {
        let name = || "RoomBooked".to_owned();
        let (event, context) = ("roomId:r1/3".to_owned(), "rooms".to_owned());
        let of_dcb =
            HandleError::from(LogError::UnknownType { event, event_type: name(), context });
        let stream = StreamName::new("rooms", "r1").expect("a name");
        let unknown = DocumentError::UnknownType { stream, index: 2, event_type: name() };
        let newer = || NewerVersion {
            event: "roomId:r1/3".to_owned(),
            event_type: name(),
            version: 2,
            known: 1,
        };
        for (error, kind) in [
            (of_dcb, "unknown-type"),
            (unknown.into(), "unknown-type"),
            (LogError::from(newer()).into(), "newer-version"),
            (DocumentError::from(newer()).into(), "newer-version"),
        ] {
            let (problem, logged) = (problem(&error, "r"), chain(&error));
            assert_eq!((problem.status, problem.kind), (503, kind));
            let text = problem.document().to_string();
            assert!(["deploy", "roll-back"].iter().all(|when| text.contains(when)), "{text}");
            assert!(!text.contains("RoomBooked") && !text.contains("r1"), "{text}");
            assert!(logged.contains("RoomBooked") && logged.contains("r1"), "{logged}");
        }
    }
}
