//! Checks that a slice that changes things of a person looks at its caller.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use futures::executor::block_on;
use ringfence_aws::Clock;
use ringfence_core::kit::{BEGIN_MS, Case, fail};
use ringfence_core::{
    Callers, CommandContext, Context, Envelope, LogOf, OnLog, Outcome, Principal, PrincipalKind,
    Reads, ReadsOf, Slice, Writes,
    personal::{Form, form},
};
use ringfence_log::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::Value;

use crate::template::check_none;

/// A person who owns nothing in any case.
const STRANGER: &str = "a-person-who-owns-nothing";

/// Panics, and names each slice that changes things of a person for any other person, unless its `CALLERS` allow it.
///
/// Each accepted case is run again, with other people as its caller, each with one of the slice's scopes. If a decision
/// rejects a stranger and accepts the person whose id is in a field, then this field names an owner, in the whole
/// stack. If a decision accepts a stranger although such a field is in its command or its events, then it does not look
/// at its caller.
pub fn check_callers<M: Members>() {
    check_none(&lines::<M>());
}

fn lines<M: Members>() -> Vec<String> {
    let mut found = Found::default();
    MemberList::walk::<M>(&mut found);
    let Found { owners, open } = found;
    let line = |(slice, cases): (String, Vec<(String, Texts)>)| {
        let is_owner = |name: &&String| owners.get(*name).is_some_and(|is_owner| *is_owner);
        let found = cases.iter().find_map(|(at, texts)| Some((at, texts.keys().find(is_owner)?)));
        found.map(|(at, name)| {
            format!(
                "{slice}: {at}: it is accepted from any person, whoever the {name} is. Let `decide` compare the owner with \
                 the caller (`context.is_other_person(…)`). If everybody with the scope may do this for others, write \
                 `const CALLERS: Callers = Callers::Anybody;`. If no caller gives the command, write `Callers::Nobody`"
            )
        })
    };
    open.into_iter().filter_map(line).collect()
}

/// Texts by the names of their fields and tags.
type Texts = BTreeMap<String, BTreeSet<String>>;

#[derive(Default)]
struct Found {
    /// The names of fields and tags in cases that only an owner may give, and whether the name is the owner's in each.
    owners: BTreeMap<String, bool>,
    /// Slices for owners, with their cases that a stranger may give.
    open: Vec<(String, Vec<(String, Texts)>)>,
}

impl Visitor for Found {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let scopes = if S::SCOPES.is_empty() { &[""] } else { S::SCOPES };
        let mut open = Vec::new();
        for case in S::cases().into_iter().filter(|case| case.code().is_none()) {
            let texts = texts(&case);
            let Some(scope) = scopes.iter().find(|scope| !takes(&case, STRANGER, scope)) else {
                open.push((case.at().to_string(), texts));
                continue;
            };
            let is_owner = |ids: &BTreeSet<String>| ids.iter().any(|id| takes(&case, id, scope));
            let names = texts.iter().map(|(name, ids)| (name, is_owner(ids)));
            let names: Vec<_> = names.collect();
            // Without an owner, the case has nothing to change, or is not for people.
            if names.iter().any(|(_, is_owner)| *is_owner) {
                for (name, is_owner) in names {
                    *self.owners.entry(name.clone()).or_insert(true) &= is_owner;
                }
            }
        }
        if S::CALLERS == Callers::Owners {
            self.open.push((format!("{}/{}", <S::Context as Context>::NAME, S::NAME), open));
        }
    }
}

/// The texts in a case's command and in its events that the slice reads or writes, each with the name of its field or
/// tag.
fn texts<S: Slice>(case: &Case<S>) -> Texts {
    let mut found = Texts::new();
    let command = serde_json::to_value(case.command()).unwrap_or_else(|e| fail(S::NAME, e));
    collect("", &command, &mut found);
    let is_written = |name: &str| S::Writes::SCHEMAS.iter().any(|schema| schema.name == name);
    for event in case.events() {
        let name = &*event.event_type;
        if ReadsOf::<S>::TYPES.contains(&name) || is_written(name) {
            collect("", &event.data, &mut found);
            for tag in &event.tags {
                found.entry(tag.key.to_string()).or_default().insert(tag.value.clone());
            }
        }
    }
    found
}

fn collect(name: &str, json: &Value, found: &mut Texts) {
    match json {
        Value::String(text) => {
            found.entry(name.to_owned()).or_default().insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|one| collect(name, one, found)),
        // A personal value is no id.
        Value::Object(fields) if form(json) == Form::Plain => {
            fields.iter().for_each(|(name, value)| collect(name, value, found));
        }
        _ => {}
    }
}

/// Whether the case's command changes something if this person gives it, with a token that has this scope.
fn takes<S: Slice<Context: Context<Log: Log<S>>>>(case: &Case<S>, id: &str, scope: &str) -> bool {
    let clock = Clock::fixed(BEGIN_MS);
    let memory = <LogOf<S> as Log<S>>::memory();
    let on = memory.and_then(|memory| LogOf::<S>::in_memory(memory, clock.clone(), 0));
    let on = on.unwrap_or_else(|error| fail(S::NAME, error as Box<dyn Error>));
    let person = Principal::new(PrincipalKind::Jwt, Some("main"), id).with_scopes([scope]);
    let context = CommandContext { principal: Some(person), ..case.context().clone() };
    let envelope = Envelope { context, ..Envelope::default() };
    let handled = block_on(async {
        case.prepare(&on, &|now_ms| clock.set(now_ms)).await;
        on.handle(case.command(), &envelope).await
    });
    let handled = handled.unwrap_or_else(|error| fail(case.at(), error));
    matches!(handled.outcome, Outcome::Accepted(_)) && !handled.written.is_empty()
}

#[cfg(test)]
mod tests {
    use ringfence_core::{events, id_type, prelude::*};
    use ringfence_dcb_log::Dcb;
    use serde::Serialize;

    use super::*;

    id_type!(VisitId, "names a visit");
    id_type!(PatientId, "names a patient");

    #[derive(Clone, Debug, PartialEq, Event)]
    struct Booked {
        #[tag(partition)]
        visit_id: VisitId,
        #[tag(cross_partition)]
        patient_id: PatientId,
    }

    #[derive(Clone, Debug, PartialEq, Event)]
    struct Cancelled {
        #[tag(partition)]
        visit_id: VisitId,
    }

    #[derive(Reads)]
    enum Consumed {
        Booked { patient_id: PatientId },
        Cancelled,
    }

    #[derive(Default)]
    struct Visit(Option<PatientId>);

    impl State for Visit {
        type Reads = Consumed;

        fn evolve(self, event: Consumed) -> Self {
            match event {
                Consumed::Booked { patient_id } => Self(Some(patient_id)),
                Consumed::Cancelled => Self(None),
            }
        }
    }

    #[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
    #[serde(tag = "code")]
    enum Rejection {
        #[error("the visit is another patient's")]
        NotYours {},
    }

    struct Clinic;

    impl Context for Clinic {
        const NAME: &'static str = "clinic";
        type Log = Dcb;

        fn catalog() -> Result<Catalog, CatalogError> {
            Catalog::new(Self::NAME, [Booked::SCHEMA, Cancelled::SCHEMA])
        }
    }

    /// Slices that cancel a visit: their names, callers and scopes, and from whom they do not take the command.
    macro_rules! cancels {
        ($($slice:ident, $name:literal, $callers:expr, $scopes:expr, $is_refused:expr;)*) => {$(
            #[derive(Clone, Debug, PartialEq, Command)]
            struct $slice {
                #[tag(partition)]
                visit_id: VisitId,
            }

            impl Slice for $slice {
                const NAME: &'static str = $name;
                const CALLERS: Callers = $callers;
                const SCOPES: &'static [&'static str] = $scopes;
                type Context = Clinic;
                type State = Visit;
                type Writes = Cancelled;
                type Rejection = Rejection;

                fn decide(&self, state: &Visit, at: &CommandContext) -> Result<Vec<Cancelled>, Rejection> {
                    let is_refused: fn(&PatientId, &CommandContext) -> bool = $is_refused;
                    match &state.0 {
                        Some(owner) if is_refused(owner, at) => Err(Rejection::NotYours {}),
                        Some(_) => Ok(vec![Cancelled { visit_id: self.visit_id.clone() }]),
                        None => Ok(vec![]),
                    }
                }

                fn cases() -> Vec<Case<Self>> {
                    let booked = Booked { visit_id: id("v1"), patient_id: id("ada") };
                    let cancelled = Cancelled { visit_id: id("v1") };
                    let cancel = || $slice { visit_id: id("v1") };
                    vec![
                        given([]).when(cancel()).then_nothing(),
                        given(events![booked]).when(cancel()).then([cancelled]),
                    ]
                }
            }
        )*};
    }

    cancels! {
        CancelForAll, "cancel-for-all", Callers::Owners, &["clinic/write", "clinic/all"], |_, _| false;
        CancelAtDesk, "cancel-at-desk", Callers::Anybody, &["clinic/desk"], |_, _| false;
        LapseVisit, "lapse-visit", Callers::Nobody, &[], |_, _| false;
        // Only one of its scopes is for visits of others.
        CancelOwnOrAll, "cancel-own-or-all", Callers::Owners, &["clinic/all", "clinic/write"], |owner, at| {
            let may = |who: &Principal| who.may_use(&["clinic/all"]);
            at.is_other_person(owner) && !at.principal.as_ref().is_some_and(may)
        };
    }

    struct WithoutOwners;

    impl Members for WithoutOwners {
        fn list(list: &mut MemberList<impl Visitor>) {
            list.slice::<CancelForAll>();
            list.slice::<CancelAtDesk>();
            list.slice::<LapseVisit>();
        }
    }

    struct Whole;

    impl Members for Whole {
        fn list(list: &mut MemberList<impl Visitor>) {
            WithoutOwners::list(list);
            list.slice::<CancelOwnOrAll>();
        }
    }

    #[test]
    fn a_slice_that_lets_every_person_change_things_of_a_patient_is_named() {
        let lines = super::lines::<Whole>();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("clinic/cancel-for-all: case at "), "{line}");
        assert!(line.contains("whoever the patientId is"), "{line}");
        // If no slice looks at its caller, nothing belongs to people.
        assert_eq!(super::lines::<WithoutOwners>(), [""; 0]);
    }
}
