//! The words of a case: `given`, `when`, `then`, and before them `case`, if it has a name.

use serde_json::Value;

use super::same::fail;
use crate::{
    CommandContext, NewEvent, Principal, PrincipalKind, Rejected, Rejection, Slice,
    decide::case::{At, Came, Case, Fact, written},
};

/// The time at which a case begins, in milliseconds since 1970: 2024-06-23T00:00:00Z.
pub const BEGIN_MS: u64 = 1_719_100_800_000;

/// The name of a case.
pub struct CaseName(&'static str);

/// Facts before a command.
pub struct Given {
    pub(super) name: Option<&'static str>,
    pub(super) facts: Vec<Fact>,
    pub(super) now_ms: u64,
}

/// Facts and a command.
pub struct When<S: Slice> {
    name: Option<&'static str>,
    given: Vec<Fact>,
    command: S,
    context: CommandContext,
}

/// Starts a case with the events in the log; without events: `given([])`.
pub fn given(events: impl IntoIterator<Item = NewEvent>) -> Given {
    Given { name: None, facts: Vec::new(), now_ms: BEGIN_MS }.and(events)
}

/// Starts a case with a name. The message of a failure shows it: `case("a second payment").given(…)`.
#[must_use]
pub fn case(name: &'static str) -> CaseName {
    CaseName(name)
}

impl CaseName {
    /// The events in the log.
    pub fn given(self, events: impl IntoIterator<Item = NewEvent>) -> Given {
        Given { name: Some(self.0), ..given(events) }
    }
}

impl Given {
    /// Adds further events, now.
    #[must_use]
    pub fn and(mut self, events: impl IntoIterator<Item = NewEvent>) -> Self {
        let at_ms = self.now_ms;
        self.facts.extend(events.into_iter().map(|event| Fact { at_ms, event }));
        self
    }

    /// Lets this many milliseconds pass before the next step.
    #[must_use]
    pub fn wait(self, ms: u64) -> Self {
        Self { now_ms: self.now_ms + ms, ..self }
    }

    /// The command under test.
    pub fn when<S: Slice>(self, command: S) -> When<S> {
        let context = CommandContext { now_ms: self.now_ms, ..CommandContext::default() };
        When { name: self.name, given: self.facts, command, context }
    }
}

/// Members of the problem document for a rejection.
const PROBLEM_MEMBERS: [&str; 7] =
    ["type", "title", "status", "detail", "instance", "events", "repeated"];

/// The rejection as the answer has it: its fields beside the members of a problem document. Panics if it has no
/// `code`, or if a field has the name of such a member.
#[track_caller]
fn check_rejection(rejection: &impl Rejection) -> Value {
    let Rejected { rejection, .. } = Rejected::of(rejection);
    assert!(
        rejection["code"].is_string(),
        "a rejection is an object with a `code`: derive Serialize for an enum of struct variants and \
         mark it #[serde(tag = \"code\")]; this one is {rejection}"
    );
    for member in PROBLEM_MEMBERS {
        assert!(
            rejection.get(member).is_none(),
            "field `{member}` of the rejection {rejection} is a member of the problem document that \
             answers it: give the field another name"
        );
    }
    rejection
}

impl<S: Slice> When<S> {
    /// Sets the principal that gives the command: `"jwt:main:ada"`, `"iam:role/shop"`. Panics if no function gives a
    /// principal with this text.
    #[must_use]
    #[track_caller]
    pub fn by(mut self, principal: impl Into<Principal>) -> Self {
        let principal = principal.into();
        assert!(
            principal.kind != PrincipalKind::Other,
            "{principal} is no principal: write jwt:<issuer>:<subject>, client:<issuer>:<client id>, iam:user/<name>, \
             iam:role/<name> or direct:<name>"
        );
        self.context.principal = Some(principal);
        self
    }

    /// Sets the writer's clock to this time, in milliseconds since 1970, instead of the time of the last fact.
    #[must_use]
    pub fn at(mut self, now_ms: u64) -> Self {
        self.context.now_ms = now_ms;
        self
    }

    /// The command is accepted and writes exactly these events.
    #[track_caller]
    pub fn then(self, events: impl IntoIterator<Item = S::Writes>) -> Case<S> {
        let events: Vec<_> = events.into_iter().collect();
        assert!(!events.is_empty(), "no events: say then_nothing()");
        self.case(None, &events)
    }

    /// The command is accepted and writes nothing, because its result is already so.
    #[track_caller]
    pub fn then_nothing(self) -> Case<S> {
        self.case(None, &[])
    }

    /// The command is rejected with exactly this rejection, and leaves no events.
    #[track_caller]
    pub fn then_rejected(self, rejection: S::Rejection) -> Case<S> {
        self.then_rejected_leaving(rejection, [])
    }

    /// The command is rejected with exactly this rejection, and leaves exactly these events.
    #[track_caller]
    pub fn then_rejected_leaving(
        self,
        rejection: S::Rejection,
        events: impl IntoIterator<Item = S::Writes>,
    ) -> Case<S> {
        let events: Vec<_> = events.into_iter().collect();
        self.case(Some(check_rejection(&rejection)), &events)
    }

    #[track_caller]
    fn case(self, rejection: Option<Value>, events: &[S::Writes]) -> Case<S> {
        let Self { name, given, command, context } = self;
        let events = match written(events) {
            Ok(events) => events,
            Err(error) => fail("an expected event", error),
        };
        let then = Came { rejection, events };
        Case { given, command, context, then, at: At::here(name) }
    }
}
