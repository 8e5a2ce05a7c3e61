//! LapseSignUp: writes down that a one-time password was not used in time.
//!
//! It is due an hour after the sign-up began. No decision needs it, because confirm-sign-up looks at the time itself. The
//! event is for others, such as a view that counts the sign-ups that come to nothing.

use ringfence::prelude::*;

use crate::{EmailId, OTP_VALID_MS, Otp, SignUpLapsed, Signups};

/// Ends a sign-up whose password was not used in time.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct LapseSignUp {
    #[tag(partition)]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
}

/// The decision and the due read these events.
#[derive(Reads)]
pub enum Consumed {
    SignUpInitiated {
        email_id: EmailId,
        otp: Otp,
        /// When, in milliseconds since 1970.
        #[time]
        at_ms: u64,
    },
    SignUpConfirmed {
        email_id: EmailId,
        otp: Otp,
    },
    SignUpLapsed {
        email_id: EmailId,
        otp: Otp,
    },
}

/// When the password ends, in milliseconds since 1970. A sign-up that is confirmed or has lapsed has no such time.
#[derive(Default)]
pub struct Open(Option<u64>);

impl State for Open {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        Open(LapseSignUp::evolve(self.0, "", &event))
    }
}

impl Slice for LapseSignUp {
    const NAME: &'static str = "lapse-sign-up";
    const CALLERS: Callers = Callers::Nobody;
    type Context = Signups;
    type State = Open;
    type Writes = SignUpLapsed;
    type Rejection = Never;

    fn decide(
        &self,
        Open(until_ms): &Open,
        context: &CommandContext,
    ) -> Result<Vec<SignUpLapsed>, Never> {
        let Self { email_id, otp } = self.clone();
        let is_over = until_ms.is_some_and(|until_ms| until_ms <= context.now_ms);
        Ok(if is_over { vec![SignUpLapsed { email_id, otp }] } else { vec![] })
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{SignUpConfirmed, SignUpInitiated};

        let name = || "John Doe".to_owned().into();
        let initiated = SignUpInitiated { email_id: id("john"), otp: id("1"), name: name() };
        let confirmed = SignUpConfirmed { email_id: id("john"), otp: id("1"), name: name() };
        let lapse = || LapseSignUp { email_id: id("john"), otp: id("1") };
        let lapsed = || SignUpLapsed { email_id: id("john"), otp: id("1") };
        let begun = || given(events![initiated.clone()]);
        vec![
            given([]).when(lapse()).then_nothing(),
            begun().wait(OTP_VALID_MS).when(lapse()).then_nothing(),
            begun().wait(OTP_VALID_MS + 1).when(lapse()).then([lapsed()]),
            begun().and(events![confirmed]).wait(OTP_VALID_MS + 1).when(lapse()).then_nothing(),
            begun().wait(OTP_VALID_MS + 1).and(events![lapsed()]).when(lapse()).then_nothing(),
        ]
    }
}

impl Due for LapseSignUp {
    type Reads = Consumed;
    type Row = u64;

    fn rows(event: &Consumed) -> Vec<String> {
        let (Consumed::SignUpInitiated { email_id, otp, .. }
        | Consumed::SignUpConfirmed { email_id, otp }
        | Consumed::SignUpLapsed { email_id, otp }) = event;
        vec![format!("{email_id}/{otp}")]
    }

    fn evolve(_: Option<u64>, _: &str, event: &Consumed) -> Option<u64> {
        match event {
            Consumed::SignUpInitiated { at_ms, .. } => Some(at_ms + OTP_VALID_MS + 1),
            Consumed::SignUpConfirmed { .. } | Consumed::SignUpLapsed { .. } => None,
        }
    }

    fn due_ms(until_ms: &u64) -> Option<u64> {
        Some(*until_ms)
    }

    fn command(id: &str, _: &u64) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let (email_id, otp) = id.split_once('/').ok_or("the row is not <address>/<password>")?;
        Ok(Self { email_id: email_id.parse()?, otp: otp.parse()? })
    }

    fn due_cases() -> Vec<DueCase<Self>> {
        use crate::{SignUpConfirmed, SignUpInitiated};

        let name = || "John Doe".to_owned().into();
        let initiated = |otp| SignUpInitiated { email_id: id("john"), otp: id(otp), name: name() };
        let confirmed = |otp| SignUpConfirmed { email_id: id("john"), otp: id(otp), name: name() };
        let lapse = |otp| LapseSignUp { email_id: id("john"), otp: id(otp) };
        let both = || given(events![initiated("1"), initiated("2")]);
        vec![
            both().wait(OTP_VALID_MS).then_none_due(),
            both().wait(OTP_VALID_MS + 1).then_due([lapse("1"), lapse("2")]),
            both().and(events![confirmed("1")]).wait(OTP_VALID_MS + 1).then_due([lapse("2")]),
        ]
    }
}
