//! ConfirmSignUp: confirms a sign-up with a one-time password.
//!
//! Address and password together are the boundary. A password that was sent to another address does not
//! count.

use crate::{EmailId, OTP_VALID_MS, Otp, SignUpConfirmed, Signups};
use ringfence::{Personal, prelude::*};
use serde::Serialize;

/// Confirms a sign-up.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ConfirmSignUp {
    #[tag(partition)]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    SignUpInitiated {
        name: Personal<String>,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    SignUpConfirmed,
    SignUpLapsed,
}

/// The sign-up of this address and password.
#[derive(Default)]
pub struct SignUp {
    pending: Option<(Personal<String>, u64)>,
    used: bool,
}

/// Why nothing is confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub enum Rejection {
    /// The password was never sent to this address, or too long ago.
    #[error("no pending sign-up for this OTP / email address")]
    NoPendingSignUp,
    #[error("OTP was already used")]
    OtpUsed,
}

impl State for SignUp {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::SignUpInitiated { name, at_ms } => {
                SignUp { pending: Some((name, at_ms)), ..self }
            }
            Consumed::SignUpConfirmed => SignUp { used: true, ..self },
            // The clock that said so may be ahead.
            Consumed::SignUpLapsed => SignUp { pending: None, ..self },
        }
    }
}

impl Slice for ConfirmSignUp {
    const NAME: &'static str = "confirm-sign-up";
    type Context = Signups;
    type State = SignUp;
    type Writes = SignUpConfirmed;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &SignUp,
        context: &CommandContext,
    ) -> Result<Vec<SignUpConfirmed>, Rejection> {
        let Self { email_id, otp } = self.clone();
        if state.used {
            return Err(Rejection::OtpUsed);
        }
        match state.pending.clone() {
            Some((name, at_ms)) if context.now_ms.saturating_sub(at_ms) <= OTP_VALID_MS => {
                Ok(vec![SignUpConfirmed { email_id, otp, name }])
            }
            _ => Err(Rejection::NoPendingSignUp),
        }
    }

    /// The published cases, then the exact time at which a password expires.
    fn cases() -> Vec<Case<Self>> {
        use crate::{SignUpInitiated, SignUpLapsed};

        let initiated = |email, otp| SignUpInitiated {
            email_id: id(email),
            otp: id(otp),
            name: "John Doe".to_owned().into(),
        };
        let confirmed = |email, otp| SignUpConfirmed {
            email_id: id(email),
            otp: id(otp),
            name: "John Doe".to_owned().into(),
        };
        let confirm = |email, otp| ConfirmSignUp { email_id: id(email), otp: id(otp) };
        let john = |otp| given(events![initiated("john", otp)]);
        let unknown = || Rejection::NoPendingSignUp;
        vec![
            given([]).when(confirm("john", "000000")).then_rejected(unknown()),
            john("111111").when(confirm("jane", "111111")).then_rejected(unknown()),
            john("222222")
                .and(events![confirmed("john", "222222")])
                .when(confirm("john", "222222"))
                .then_rejected(Rejection::OtpUsed),
            john("444444").when(confirm("john", "444444")).then([confirmed("john", "444444")]),
            john("333333")
                .wait(OTP_VALID_MS + 60_000)
                .when(confirm("john", "000000"))
                .then_rejected(unknown()),
            john("333333")
                .wait(OTP_VALID_MS)
                .when(confirm("john", "333333"))
                .then([confirmed("john", "333333")]),
            john("333333")
                .wait(OTP_VALID_MS + 1)
                .when(confirm("john", "333333"))
                .then_rejected(unknown()),
            // A used password stays used.
            john("222222")
                .and(events![confirmed("john", "222222")])
                .wait(2 * OTP_VALID_MS)
                .when(confirm("john", "222222"))
                .then_rejected(Rejection::OtpUsed),
            john("1")
                .and(events![SignUpLapsed { email_id: id("john"), otp: id("1") }])
                .when(confirm("john", "1"))
                .then_rejected(unknown()),
            // A password does not confirm another address.
            john("1")
                .and(events![initiated("jane", "2")])
                .when(confirm("john", "2"))
                .then_rejected(unknown()),
        ]
    }
}
