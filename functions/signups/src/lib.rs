//! Sign-ups that a token confirms: the DCB specification's opt-in token.

pub mod confirm_sign_up;
mod events;
pub mod initiate_sign_up;
pub mod lapse_sign_up;

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct Signups;

impl Context for Signups {
    const NAME: &'static str = "signups";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Signups {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<confirm_sign_up::ConfirmSignUp>()
            .slice::<initiate_sign_up::InitiateSignUp>()
            .slice::<lapse_sign_up::LapseSignUp>()
            .due::<lapse_sign_up::LapseSignUp>();
    }
}

#[test]
fn the_cases_of_signups_hold() {
    ringfence_stack::check_cases_in_memory::<Signups>();
}
