//! The events and the value types.

use ringfence::{Event, Personal, Text, id_type};

id_type!(
    EmailId,
    "stands for an address: a keyed hash, because a tag must not hold the address itself"
);
id_type!(Otp, "confirms that a message arrived: a one-time password");

/// The name of a person, as a command gives it.
pub type PersonName = Text<200>;

/// How long a one-time password confirms a sign-up, in milliseconds: an hour.
pub const OTP_VALID_MS: u64 = 60 * 60 * 1_000;

/// Someone wants to sign up; a message with the one-time password is on its way.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
pub struct SignUpInitiated {
    #[tag(partition)]
    #[subject]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
    pub name: Personal<String>,
}

/// A person has shown that an address is theirs.
#[derive(Clone, Debug, PartialEq, Event)]
#[event(version = 2)]
#[upcast(1 = Ok)]
pub struct SignUpConfirmed {
    #[tag(partition)]
    #[subject]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
    pub name: Personal<String>,
}

/// A one-time password was not used in time.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct SignUpLapsed {
    #[tag(partition)]
    pub email_id: EmailId,
    #[tag(partition, key = "otp")]
    pub otp: Otp,
}
