//! Sign-ups that a token confirms: the DCB specification's opt-in token.

pub mod confirm_sign_up;
mod events;
pub mod initiate_sign_up;
pub mod lapse_sign_up;

use ringfence::prelude::*;

pub use events::*;

ringfence::context! {
    pub Signups, "signups" on Dcb;
    slice confirm_sign_up::ConfirmSignUp;
    slice initiate_sign_up::InitiateSignUp;
    slice lapse_sign_up::LapseSignUp;
    due lapse_sign_up::LapseSignUp;
}
