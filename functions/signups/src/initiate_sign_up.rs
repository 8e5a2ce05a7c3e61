//! InitiateSignUp: begins a sign-up with a one-time password.
//!
//! The sender of the message makes the password, so it is a field of the command.

use crate::{EmailId, OTP_VALID_MS, Otp, PersonName, SignUpInitiated, Signups};
use ringfence::{Personal, prelude::*};
use serde::Serialize;

/// Begins a sign-up.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct InitiateSignUp {
    #[tag(partition)]
    #[subject]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
    pub name: Personal<PersonName>,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    SignUpInitiated {
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    SignUpConfirmed,
    SignUpLapsed,
}

/// The state of this password at this address.
#[derive(Default)]
pub enum OneTimePassword {
    /// It was never sent.
    #[default]
    New,
    /// It was sent at this time, in milliseconds since 1970.
    Sent(u64),
    /// It was used, or not in time.
    Spent,
}

/// Why nothing is sent.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub enum Rejection {
    /// A password is sent to an address once. A new message needs a new password.
    #[error("the OTP was sent to this email address before")]
    OtpSpent,
}

impl State for OneTimePassword {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::SignUpInitiated { at_ms } => OneTimePassword::Sent(at_ms),
            Consumed::SignUpConfirmed | Consumed::SignUpLapsed => OneTimePassword::Spent,
        }
    }
}

impl Slice for InitiateSignUp {
    const NAME: &'static str = "initiate-sign-up";
    type Context = Signups;
    type State = OneTimePassword;
    type Writes = SignUpInitiated;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &OneTimePassword,
        context: &CommandContext,
    ) -> Result<Vec<SignUpInitiated>, Rejection> {
        let Self { email_id, otp, name } = self.clone();
        let name = name.map(String::from);
        match state {
            OneTimePassword::New => Ok(vec![SignUpInitiated { email_id, otp, name }]),
            OneTimePassword::Sent(at_ms)
                if context.now_ms.saturating_sub(*at_ms) <= OTP_VALID_MS =>
            {
                Ok(vec![])
            }
            OneTimePassword::Sent(_) | OneTimePassword::Spent => Err(Rejection::OtpSpent),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{SignUpConfirmed, SignUpLapsed};

        let initiated = |email, otp| SignUpInitiated {
            email_id: id(email),
            otp: id(otp),
            name: "John Doe".to_owned().into(),
        };
        let confirmed = || SignUpConfirmed {
            email_id: id("john"),
            otp: id("111111"),
            name: "John Doe".to_owned().into(),
        };
        let initiate = |email, otp| InitiateSignUp {
            email_id: id(email),
            otp: id(otp),
            name: id::<PersonName>("John Doe").into(),
        };
        let john = || given(events![initiated("john", "111111")]);
        vec![
            given([]).when(initiate("john", "111111")).then([initiated("john", "111111")]),
            // The same again: the message is on its way.
            john().wait(OTP_VALID_MS).when(initiate("john", "111111")).then_nothing(),
            john()
                .wait(OTP_VALID_MS + 1)
                .when(initiate("john", "111111"))
                .then_rejected(Rejection::OtpSpent),
            john()
                .and(events![SignUpLapsed { email_id: id("john"), otp: id("111111") }])
                .when(initiate("john", "111111"))
                .then_rejected(Rejection::OtpSpent),
            john()
                .and(events![confirmed()])
                .when(initiate("john", "111111"))
                .then_rejected(Rejection::OtpSpent),
            // Another password, or another address, is another sign-up.
            john().when(initiate("john", "222222")).then([initiated("john", "222222")]),
            john().when(initiate("jane", "111111")).then([initiated("jane", "111111")]),
        ]
    }
}
