//! A decision that compares the principal with a field of its command.

use ringfence_core::kit::check_in_memory;
use ringfence_core::{PrincipalKind, prelude::*};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Event)]
struct NameChosen {
    #[tag(key = "member", partition)]
    member: String,
    name: String,
}

struct Club;

impl Context for Club {
    const NAME: &'static str = "club";
    type Log = crate::shop::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [NameChosen::SCHEMA])
    }
}

/// Chooses a name: the member's own name, or any name with the scope.
#[derive(Clone, Debug, PartialEq, Command)]
struct ChooseName {
    #[tag(key = "member")]
    member: String,
    name: String,
}

#[derive(Reads)]
enum Read {
    NameChosen { name: String },
}

#[derive(Default)]
struct Member(Option<String>);

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
enum Rejection {
    #[error("the name is another member's")]
    NotYours {},
}

impl State for Member {
    type Reads = Read;

    fn evolve(self, Read::NameChosen { name }: Read) -> Self {
        Self(Some(name))
    }
}

impl ChooseName {
    fn is_allowed(&self, who: &Principal) -> bool {
        let is_member = who.kind == PrincipalKind::Jwt && who.issuer.as_deref() == Some("main");
        (is_member && who.id == self.member) || who.scopes.iter().any(|it| it == "club/write")
    }
}

impl Slice for ChooseName {
    const NAME: &'static str = "choose-name";
    type Context = Club;
    type State = Member;
    type Writes = NameChosen;
    type Rejection = Rejection;

    fn decide(&self, state: &Member, at: &CommandContext) -> Result<Vec<NameChosen>, Rejection> {
        if !at.principal.as_ref().is_some_and(|who| self.is_allowed(who)) {
            return Err(Rejection::NotYours {});
        }
        let Self { member, name } = self.clone();
        let is_new = state.0.as_ref() != Some(&name);
        Ok(is_new.then_some(NameChosen { member, name }).into_iter().collect())
    }

    fn cases() -> Vec<Case<Self>> {
        let choose = || ChooseName { member: "ada".to_owned(), name: "Ada".to_owned() };
        let chosen = || NameChosen { member: "ada".to_owned(), name: "Ada".to_owned() };
        let eve = |scope: &str| Principal::from("jwt:main:eve").with_scopes([scope]);
        let mut cases = vec![
            given([]).when(choose()).by("jwt:main:ada").then([chosen()]),
            given(events![chosen()]).when(choose()).by("jwt:main:ada").then_nothing(),
            given([]).when(choose()).by(eve("club/write")).then([chosen()]),
            given([]).when(choose()).by(eve("club/read")).then_rejected(Rejection::NotYours {}),
            given([]).when(choose()).then_rejected(Rejection::NotYours {}),
        ];
        // The same id from another issuer is another person.
        cases.extend(
            ["jwt:partner:ada", "client:main:ada", "direct:ada", "iam:user/ada"]
                .map(|who| given([]).when(choose()).by(who).then_rejected(Rejection::NotYours {})),
        );
        cases
    }
}

#[test]
fn a_decision_compares_the_principal_with_its_command() {
    check_in_memory::<ChooseName>();
}

#[test]
#[should_panic(expected = "ada is no principal: write jwt:<issuer>:<subject>")]
fn a_case_names_its_principal_as_functions_do() {
    let command = ChooseName { member: "ada".to_owned(), name: "Ada".to_owned() };
    let _ = given([]).when(command).by("ada");
}
