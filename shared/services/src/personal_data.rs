//! The context of a stack with personal data: the event that a person is forgotten, and the function that then destroys
//! the person's keys.
//!
//! - forget-subject: writes down that a person is forgotten.
//! - destroy-keys: puts a fence in the place of a forgotten person's key.
//!
//! The event is in the log, and the fence in the table of keys. If that table is restored from a copy of the time
//! before, the two contradict each other, and `ringfence subjects verify` sees it.

use std::error::Error;

use ringfence_aws::{Clock, client_from_env};
use ringfence_core::SUBJECT_BYTES_MAX;
use ringfence_core::kit::BEGIN_MS;
use ringfence_core::prelude::*;
use ringfence_dcb_log::Dcb;
use ringfence_lambda::Variables;
use ringfence_reactors::kit::{ReactorCase, when};
use ringfence_reactors::{Delivery, Failed, InDoubt, Reactor, Starts};
use ringfence_stack::{MemberList, Members, Visitor};
use ringfence_subjects::{ForgetError, KeyTable, WHY_BYTES_MAX};
use serde::Serialize;

/// The context, which every stack with personal data lists.
pub struct PersonalData;

impl Context for PersonalData {
    const NAME: &'static str = "personal-data";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for PersonalData {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<ForgetSubject>().reactor::<DestroyKeys>();
    }
}

/// A person is forgotten: from then on no value of the person may be read.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct SubjectForgotten {
    /// The person's id, as in the field that is marked `#[subject]`.
    #[tag(partition, key = "subject")]
    pub subject_id: String,
    /// Why, without personal data.
    pub why: String,
}

/// Forgets a person. Send it again if the person was known again since.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ForgetSubject {
    /// The person's id, as in the field that is marked `#[subject]`.
    #[tag(partition, key = "subject")]
    pub subject_id: String,
    /// Why, without personal data.
    pub why: String,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    /// It counts for the order alone.
    SubjectForgotten,
}

/// Nothing: who was forgotten may be known again, and the log does not say so.
#[derive(Default)]
pub struct Nothing;

/// Why nobody is forgotten.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum NotForgotten {
    /// A text is missing or too long.
    #[error("`{field}` has {bytes} bytes; it must have 1 to {limit}")]
    InvalidLength {
        /// Its name.
        field: &'static str,
        /// Its length.
        bytes: usize,
        /// The most that it can have.
        limit: usize,
    },
}

impl State for Nothing {
    type Reads = Consumed;

    fn evolve(self, _: Consumed) -> Self {
        self
    }
}

impl Slice for ForgetSubject {
    const NAME: &'static str = "forget-subject";
    const CALLERS: Callers = Callers::Nobody;
    type Context = PersonalData;
    type State = Nothing;
    type Writes = SubjectForgotten;
    type Rejection = NotForgotten;

    fn decide(
        &self,
        _: &Nothing,
        _: &CommandContext,
    ) -> Result<Vec<SubjectForgotten>, NotForgotten> {
        let Self { subject_id, why } = self.clone();
        for (field, bytes, limit) in
            [("subjectId", subject_id.len(), SUBJECT_BYTES_MAX), ("why", why.len(), WHY_BYTES_MAX)]
        {
            if !(1..=limit).contains(&bytes) {
                return Err(NotForgotten::InvalidLength { field, bytes, limit });
            }
        }
        Ok(vec![SubjectForgotten { subject_id, why }])
    }

    fn cases() -> Vec<Case<Self>> {
        let forget =
            |why: &str| ForgetSubject { subject_id: "ada".to_owned(), why: why.to_owned() };
        let long = "y".repeat(WHY_BYTES_MAX + 1);
        let wrong =
            |bytes| NotForgotten::InvalidLength { field: "why", bytes, limit: WHY_BYTES_MAX };
        vec![
            given([]).when(forget("asked for it")).then([forgotten()]),
            case("a person who may be known again")
                .given(events![forgotten()])
                .when(forget("asked for it"))
                .then([forgotten()]),
            given([]).when(forget("")).then_rejected(wrong(0)),
            given([]).when(forget(&long)).then_rejected(wrong(WHY_BYTES_MAX + 1)),
        ]
    }
}

fn forgotten() -> SubjectForgotten {
    SubjectForgotten { subject_id: "ada".to_owned(), why: "asked for it".to_owned() }
}

/// Puts a fence in the place of a forgotten person's key. `ringfence subjects forget` does the same at once.
pub struct DestroyKeys {
    keys: KeyTable,
}

/// What it reacts to.
#[derive(Reads)]
pub enum Forgotten {
    /// Each time anew: a later one forbids a key that was allowed again.
    SubjectForgotten {
        /// The person's id.
        subject_id: String,
        /// Why.
        why: String,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
}

/// A fence.
#[derive(Debug, PartialEq)]
pub struct PutFence {
    subject: String,
    at_ms: u64,
    why: String,
}

impl Reactor for DestroyKeys {
    const NAME: &'static str = "destroy-keys";
    const STARTS: Starts = Starts::Beginning;
    const IN_DOUBT: InDoubt = InDoubt::Repeat; // a fence that is there stays
    type Context = PersonalData;
    type Reads = Forgotten;
    type Effect = PutFence;
    type Config = String;

    fn config(variables: &mut Variables) -> String {
        variables.required("KEY_TABLE")
    }

    async fn open(table: String) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self { keys: KeyTable::new(client_from_env()?, table, Clock::system()) })
    }

    fn plan(event: &Forgotten) -> Vec<PutFence> {
        let Forgotten::SubjectForgotten { subject_id, why, at_ms } = event;
        vec![PutFence { subject: subject_id.clone(), at_ms: *at_ms, why: why.clone() }]
    }

    async fn run(&self, fence: &PutFence, _: &Delivery<'_>) -> Result<(), Failed> {
        let PutFence { subject, at_ms, why } = fence;
        match self.keys.forget(subject, *at_ms, why).await {
            Ok(_) => Ok(()),
            Err(error @ ForgetError::Store(_)) => Err(Failed::for_now(&error)),
            Err(error) => Err(Failed::for_good(&error)),
        }
    }

    fn cases() -> Vec<ReactorCase<PutFence>> {
        let (subject, why) = ("ada".to_owned(), "asked for it".to_owned());
        let fence = PutFence { subject, at_ms: BEGIN_MS, why };
        vec![when(forgotten()).then([fence])]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn cases_hold() {
        ringfence_stack::check_cases_in_memory::<super::PersonalData>();
    }
}
