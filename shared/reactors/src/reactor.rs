//! The trait of reactors: which effects an event has outside of the stack, and how one is carried out.

use std::error::Error;
use std::fmt::Debug;

use ringfence_core::{Context, Lane, Reads, SequencedEvent, chain};
use ringfence_lambda::Variables;
use ringfence_log::Sourced;
use sha2::{Digest, Sha256};

use crate::case::ReactorCase;

/// Effects outside of the stack that follow from events: a mail, a payment, an entry of a search engine. It is fed from
/// the index, lane by lane. In a lane, an event is handled once all effects of the event before it are done.
///
/// The name is a part of the receipts: a reactor with another name is another reactor, which has done nothing yet.
pub trait Reactor: Sized + Send + Sync + 'static {
    /// Name in kebab case, also of its binary.
    const NAME: &'static str;
    /// Which events are handled one after another.
    const LANE: Lane = Lane::Partition;
    /// The event with which it begins when its function runs for the first time.
    const STARTS: Starts;
    /// How an effect is handled that may have happened, because its run ended before it had an answer.
    const IN_DOUBT: InDoubt;
    /// The views whose rows it reads while it carries out an effect. Its role allows it.
    const VIEWS: &'static [&'static str] = &[];

    /// The context that lists it. It reads events of this context, and of all contexts on the DCB log that this one
    /// lists with `reads`.
    type Context: Context<Log: Sourced>;
    /// The events that it reads.
    type Reads: Reads;
    /// One effect, as data.
    type Effect: Debug + PartialEq + Send + Sync;
    /// The values of its variables, such as the address of a server.
    type Config;

    /// Reads its variables.
    fn config(variables: &mut Variables) -> Self::Config;

    /// Opens it, once for all invocations of its process.
    ///
    /// # Errors
    /// The function does not start.
    fn open(
        config: Self::Config,
    ) -> impl Future<Output = Result<Self, Box<dyn Error + Send + Sync>>>;

    /// The effects of an event, in the order in which they are carried out; empty if it has none. It is pure: an event
    /// has the same effects in the same order each time that it is handled.
    fn plan(event: &Self::Reads) -> Vec<Self::Effect>;

    /// Whether it reads an event. Streams of other contexts may have types of the same names.
    #[must_use]
    fn reads(event: &SequencedEvent) -> bool {
        (event.partition.is_of_dcb_log() || event.context == Self::Context::NAME)
            && Self::Reads::TYPES.contains(&&*event.event_type)
    }

    /// Carries out one effect.
    ///
    /// # Errors
    /// It did not happen, or may have happened.
    fn run(
        &self,
        effect: &Self::Effect,
        delivery: &Delivery<'_>,
    ) -> impl Future<Output = Result<(), Failed>>;

    /// The effects that it plans, as cases ([`crate::kit`]). The checks of a stack run them, and refuse a reactor
    /// without cases.
    #[must_use]
    fn cases() -> Vec<ReactorCase<Self::Effect>> {
        Vec::new()
    }
}

/// The event with which a reactor begins. There is no default: mails for ten years of events can't be taken back, and a
/// skipped event is easily overlooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// With the first event that is indexed after its function has run for the first time.
    Now,
    /// With the first event of the index.
    Beginning,
}

/// How an effect that may have happened is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InDoubt {
    /// It is carried out again under the same [`Delivery::key`]. The receiver knows the key, so it takes effect once.
    Repeat,
    /// Its lane is parked, and a person finds out: `ringfence parked` carries it out again or skips it. It costs one more
    /// write an effect, because the effect is noted before it begins.
    Park,
}

/// Why an effect was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It did not happen, and may later. It is tried again after a pause.
    ForNow(String),
    /// It did not happen, and never will: the receiver has refused it. Its lane is parked at once.
    ForGood(String),
    /// It did not happen, and nobody who runs the stack can change that, as with a mistyped mail address. The log notes
    /// it, and the lane goes on.
    Undeliverable(String),
    /// It may have happened: the receiver got the request and did not answer. [`Reactor::IN_DOUBT`] says what follows.
    Unknown(String),
}

impl Failed {
    /// It did not happen, and may later.
    #[must_use]
    pub fn for_now(error: &(dyn Error + 'static)) -> Self {
        Self::ForNow(chain(error))
    }

    /// It did not happen, and never will.
    #[must_use]
    pub fn for_good(error: &(dyn Error + 'static)) -> Self {
        Self::ForGood(chain(error))
    }

    /// It may have happened.
    #[must_use]
    pub fn unknown(error: &(dyn Error + 'static)) -> Self {
        Self::Unknown(chain(error))
    }
}

/// An effect on its way.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'e> {
    reactor: &'e str,
    event: &'e SequencedEvent,
    /// The number of the effect among those of its event, from 0.
    n: usize,
    /// How often the reactor was sent back to do all again.
    again: u32,
}

impl<'e> Delivery<'e> {
    /// The first delivery of effect `n` of an event, from 0.
    #[must_use]
    pub fn new(reactor: &'e str, event: &'e SequencedEvent, n: usize) -> Self {
        Self { reactor, event, n, again: 0 }
    }

    /// The same after an operator has sent the reactor back so many times to do all again.
    #[must_use]
    pub fn again(self, again: u32) -> Self {
        Self { again, ..self }
    }

    /// Identifies the effect: `<reactor>/<hash of the event's id>/<n>`. It is the same each time the effect is carried
    /// out, except after `ringfence replay reactor --again`. It has at most 200 characters, all of them visible ASCII, so
    /// that it fits into a header.
    #[must_use]
    pub fn key(&self) -> String {
        let hash = Sha256::digest(self.event.id().as_bytes());
        let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let again = if self.again == 0 { String::new() } else { format!("/again-{}", self.again) };
        format!("{}/{hash}/{}{again}", self.reactor, self.n)
    }

    /// The number of the effect among those of its event, from 0.
    pub(crate) fn number(&self) -> usize {
        self.n
    }

    /// The event as it is stored: its id, its time, its metadata.
    #[must_use]
    pub fn event(&self) -> &'e SequencedEvent {
        self.event
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::BoundaryId;

    use super::*;

    #[test]
    fn the_key_of_an_effect_is_short_and_of_one_effect() {
        let event = SequencedEvent::gap(BoundaryId::stored("orderId:é ".repeat(100)), 7, 0);
        let other = SequencedEvent { slot: 8, ..event.clone() };
        let key = |reactor, event, n| Delivery::new(reactor, event, n).key();
        let mine = key("send-receipt", &event, 0);
        assert!(mine.len() < 60 && mine.bytes().all(|byte| byte.is_ascii_graphic()), "{mine}");
        for another in [
            key("send-bill", &event, 0),
            key("send-receipt", &other, 0),
            key("send-receipt", &event, 1),
            Delivery::new("send-receipt", &event, 0).again(1).key(),
        ] {
            assert_ne!(mine, another);
        }
    }
}
