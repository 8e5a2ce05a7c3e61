//! Checks that a slice about things of people looks at its caller.

use std::collections::BTreeSet;
use std::error::Error;

use futures::executor::block_on;
use ringfence_aws::Clock;
use ringfence_core::kit::{BEGIN_MS, Case, fail};
use ringfence_core::{
    Callers, CommandContext, Context, Envelope, LogOf, OnLog, Outcome, Principal, Reads, ReadsOf,
    Slice, Writes,
};
use ringfence_log::Log;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::Value;

use crate::template::check_none;

/// A person who owns nothing in any case.
const STRANGER: &str = "jwt:main:a-person-who-owns-nothing";

/// Panics with each slice that changes things of a person for any other person, unless its `CALLERS` say that it may.
///
/// A field or a tag names a person if its value is the subject of a case's caller, as in
/// `.when(cancel("ada")).by("jwt:main:ada")`. Each accepted case with such a name is run once more, with another person
/// as its caller. If that person has any of the scopes and is accepted too, the decision does not look at its caller.
pub fn check_callers<M: Members>() {
    check_none(&lines::<M>());
}

fn lines<M: Members>() -> Vec<String> {
    let mut names = Names(BTreeSet::new());
    MemberList::walk::<M>(&mut names);
    let mut open = Open { names: names.0, lines: Vec::new() };
    MemberList::walk::<M>(&mut open);
    open.lines
}

/// The names of the fields and tags that name a person.
struct Names(BTreeSet<String>);

impl Visitor for Names {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        for case in S::cases() {
            let Some(caller) = &case.context().principal else { continue };
            let texts = texts(&case).into_iter().filter(|(_, value)| caller.is_person(value));
            self.0.extend(texts.map(|(name, _)| name));
        }
    }
}

/// The slices that do not look at their caller.
struct Open {
    names: BTreeSet<String>,
    /// One line for each.
    lines: Vec<String>,
}

impl Visitor for Open {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        let names = |case: &Case<S>| {
            let texts = texts(case).into_iter().map(|(name, _)| name);
            texts.filter(|name| self.names.contains(name)).collect::<BTreeSet<_>>()
        };
        let mut cases = match S::CALLERS {
            Callers::Owners => S::cases(),
            Callers::Anybody | Callers::Nobody => Vec::new(),
        }
        .into_iter();
        let open = cases.find_map(|case| {
            let name = names(&case).pop_first()?;
            takes_anybody(&case).then(|| (name, case.at().to_string()))
        });
        self.lines.extend(open.map(|(name, at)| {
            let (context, slice) = (<S::Context as Context>::NAME, S::NAME);
            format!(
                "{context}/{slice}: {at}: it is accepted from any person, whoever the {name} is. Let `decide` compare the \
                 owner with the caller (`context.is_other_person(…)`). If everybody with the scope may do this for others, \
                 write `const CALLERS: Callers = Callers::Anybody;`. If no caller gives the command, write `Callers::Nobody`"
            )
        }));
    }
}

/// The texts in a case's command and in its events that the slice reads or writes, each with the name of its field or
/// tag.
fn texts<S: Slice>(case: &Case<S>) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let command = serde_json::to_value(case.command()).unwrap_or_else(|e| fail(S::NAME, e));
    collect("", &command, &mut found);
    let is_written = |name: &str| S::Writes::SCHEMAS.iter().any(|schema| schema.name == name);
    for event in case.events() {
        let name = &*event.event_type;
        if ReadsOf::<S>::TYPES.contains(&name) || is_written(name) {
            collect("", &event.data, &mut found);
            found.extend(event.tags.iter().map(|tag| (tag.key.to_string(), tag.value.clone())));
        }
    }
    found
}

fn collect(name: &str, json: &Value, found: &mut BTreeSet<(String, String)>) {
    match json {
        Value::String(text) => _ = found.insert((name.to_owned(), text.clone())),
        Value::Array(list) => list.iter().for_each(|one| collect(name, one, found)),
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| collect(name, value, found));
        }
        _ => {}
    }
}

/// Whether the case's command changes something for a stranger too, with whichever of the scopes.
fn takes_anybody<S: Slice<Context: Context<Log: Log<S>>>>(case: &Case<S>) -> bool {
    let stranger = || Principal::from(STRANGER);
    let mut strangers = match S::SCOPES {
        [] => vec![stranger()],
        scopes => scopes.iter().map(|scope| stranger().with_scopes([*scope])).collect(),
    }
    .into_iter();
    case.code().is_none() && strangers.all(|stranger| takes(case, stranger))
}

fn takes<S: Slice<Context: Context<Log: Log<S>>>>(case: &Case<S>, caller: Principal) -> bool {
    let clock = Clock::fixed(BEGIN_MS);
    let memory = <LogOf<S> as Log<S>>::memory();
    let on = memory.and_then(|memory| LogOf::<S>::in_memory(memory, clock.clone(), 0));
    let on = on.unwrap_or_else(|error| fail(S::NAME, error as Box<dyn Error>));
    let context = CommandContext { principal: Some(caller), ..case.context().clone() };
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

    /// A slice that cancels a visit. The case of one of them says who owns a visit.
    macro_rules! cancels {
        ($($slice:ident, $name:literal, $callers:expr, $scopes:expr, $is_refused:expr, $by:literal;)*) => {$(
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
                        given(events![booked]).when(cancel()).by($by).then([cancelled]),
                    ]
                }
            }
        )*};
    }

    cancels! {
        Cancel, "cancel", Callers::Owners, &["clinic/write"],
            |owner, at| at.is_other_person(owner), "jwt:main:ada";
        CancelForAll, "cancel-for-all", Callers::Owners, &["clinic/write", "clinic/all"],
            |_, _| false, "iam:role/desk";
        CancelAtDesk, "cancel-at-desk", Callers::Anybody, &["clinic/desk"],
            |_, _| false, "iam:role/desk";
        // Only one of its scopes is for visits of others.
        CancelOwnOrAll, "cancel-own-or-all", Callers::Owners, &["clinic/write", "clinic/all"],
            |owner, at| {
                let may = |who: &Principal| who.may_use(&["clinic/all"]);
                at.is_other_person(owner) && !at.principal.as_ref().is_some_and(may)
            }, "iam:role/desk";
        LapseVisit, "lapse-visit", Callers::Nobody, &[], |_, _| false, "iam:role/desk";
    }

    struct Open;

    impl Members for Open {
        fn list(list: &mut MemberList<impl Visitor>) {
            list.slice::<CancelForAll>();
            list.slice::<CancelAtDesk>();
            list.slice::<CancelOwnOrAll>();
            list.slice::<LapseVisit>();
        }
    }

    struct Whole;

    impl Members for Whole {
        fn list(list: &mut MemberList<impl Visitor>) {
            list.slice::<Cancel>();
            Open::list(list);
        }
    }

    #[test]
    fn a_slice_that_lets_every_person_change_things_of_a_patient_is_named() {
        let lines = lines::<Whole>();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.starts_with("clinic/cancel-for-all: case at "), "{line}");
        assert!(line.contains("whoever the patientId is"), "{line}");
        // Without a case of a person who owns something, nothing tells which field names a person.
        assert_eq!(super::lines::<Open>(), [""; 0]);
    }
}
