//! The receiver of effects. It compares the arrived effects with a serial run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringfence_aws::Random;
use ringfence_core::SequencedEvent;
use ringfence_reactors::{Delivery, EFFECT_TIME_MAX, Failed};
use tokio::time::sleep;

use super::storm::Storm;
use crate::Kind;

/// An event whose effects are expected.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) id: String,
    pub(crate) lane: String,
    /// The number of its effects.
    pub(crate) letters: usize,
    /// Whether the receiver never takes them.
    pub(crate) is_refused: bool,
    /// The time of the event, in milliseconds since 1970.
    pub(crate) published: u64,
}

/// An effect that has happened.
#[derive(Clone, Debug)]
struct Arrival {
    /// The run that sent it.
    run: usize,
    event: String,
    n: usize,
    /// How often the reactor had been moved back to repeat all effects.
    again: u32,
    /// Whether the run knows it.
    is_answered: bool,
    at: u64,
}

/// A request of a person.
#[derive(Clone, Debug)]
struct Ask {
    event: String,
    is_skip: bool,
    began: u64,
    /// `None` if nobody knows whether it is recorded.
    ended: Option<(u64, bool)>,
}

/// A request of an operator: to move the reactor back to the place after so many events.
#[derive(Clone, Debug)]
struct SentBack {
    to: usize,
    is_again: bool,
    began: u64,
    is_done: bool,
}

#[derive(Default)]
struct State {
    expected: Vec<Expected>,
    arrivals: Vec<Arrival>,
    /// How often each effect was tried.
    tries: BTreeMap<(String, usize), u64>,
    /// For each run its beginning, and whether it ended by itself without an error.
    runs: Vec<(u64, bool)>,
    asks: Vec<Ask>,
    sent_back: Vec<SentBack>,
    moments: u64,
}

impl State {
    fn moment(&mut self) -> u64 {
        self.moments += 1;
        self.moments
    }
}

/// The receiver, and the requests of persons and operators.
#[derive(Clone)]
pub(crate) struct Far(Arc<Mutex<State>>, Arc<Storm>);

/// The promises of the reactor.
#[derive(Clone, Copy)]
pub(crate) struct Promise {
    /// It asks a person if an effect is in doubt.
    pub(crate) parks: bool,
    /// It keeps receipts.
    pub(crate) receipts: bool,
    /// It begins with the events of so many milliseconds before its first run; `None`: with the first event.
    pub(crate) overlap_ms: Option<u64>,
}

impl Far {
    pub(crate) fn new(storm: Arc<Storm>) -> Self {
        Self(Arc::default(), storm)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expect(&self, expected: Expected) {
        self.state().expected.push(expected);
    }

    pub(crate) fn events(&self) -> usize {
        self.state().expected.len()
    }

    /// A run begins.
    pub(crate) fn begin(&self) -> usize {
        let mut state = self.state();
        state.runs.push((self.1.now_ms(), false));
        state.runs.len() - 1
    }

    /// A run has ended by itself without an error.
    pub(crate) fn end(&self, run: usize) {
        self.state().runs[run].1 = true;
    }

    /// Whether all effects of an event have arrived, and whether the receiver never takes them.
    pub(crate) fn look(&self, event: &str) -> (bool, bool) {
        let state = self.state();
        let Some(expected) = state.expected.iter().find(|of| of.id == event) else {
            return (false, false);
        };
        let of_event = state.arrivals.iter().filter(|of| of.event == event);
        let last = of_event.clone().map(|of| of.again).max();
        let arrived: BTreeSet<_> =
            of_event.filter(|of| Some(of.again) == last).map(|of| of.n).collect();
        (arrived.len() == expected.letters, expected.is_refused)
    }

    /// A person asks. Returns the number for the answer.
    pub(crate) fn ask(&self, event: &str, is_skip: bool) -> usize {
        let mut state = self.state();
        let began = state.moment();
        state.asks.push(Ask { event: event.to_owned(), is_skip, began, ended: None });
        state.asks.len() - 1
    }

    /// The person knows now whether the request is recorded, or has given up.
    pub(crate) fn asked(&self, ask: usize, is_noted: bool) {
        let mut state = self.state();
        let ended = state.moment();
        state.asks[ask].ended = Some((ended, is_noted));
    }

    /// An operator moves the reactor back.
    pub(crate) fn send_back(&self, to: usize, is_again: bool) -> usize {
        let mut state = self.state();
        let began = state.moment();
        state.sent_back.push(SentBack { to, is_again, began, is_done: false });
        state.sent_back.len() - 1
    }

    /// The operator knows whether it is done; false: it is not known.
    pub(crate) fn sent_back(&self, n: usize, is_done: Option<bool>) {
        let mut state = self.state();
        match is_done {
            Some(true) => state.sent_back[n].is_done = true,
            Some(false) => drop(state.sent_back.remove(n)),
            None => {}
        }
    }

    /// Whether the operator still waits for an answer, or never got one.
    pub(crate) fn is_sent_back_in_doubt(&self) -> bool {
        self.state().sent_back.iter().any(|of| !of.is_done)
    }

    /// An effect is sent by a run.
    pub(crate) async fn send(&self, run: usize, delivery: &Delivery<'_>) -> Result<(), Failed> {
        let (n, again) = number_and_again(&delivery.key());
        let event = delivery.event();
        let of = (event.id(), n);
        let tries = {
            let mut state = self.state();
            let tries = state.tries.entry(of.clone()).or_default();
            *tries += 1;
            *tries
        };
        let is_refused = self.look(&of.0).1;
        let hash = of.0.bytes().fold(n as u64, |hash, byte| hash.rotate_left(7) ^ u64::from(byte));
        let random = &mut Random::new(&[self.1.seed, 23, hash, tries, u64::from(again)]);
        let mut wait = || Duration::from_millis(random.below(12));
        let (there, back) = (wait(), wait());
        sleep(there).await;
        let why = || "injected".to_owned();
        if is_refused {
            return Err(Failed::ForGood(why()));
        }
        let fails = self.1.has(Kind::Effect);
        let arrives = |is_answered| self.arrive(run, event, n, again, is_answered);
        let ended = match random.below(30) {
            0..=2 if fails => Err(Failed::ForNow(why())),
            3 if fails => Err(Failed::ForGood(why())),
            4 if fails => Err(Failed::Unknown(why())),
            5 if fails => {
                arrives(false);
                Err(Failed::Unknown(why()))
            }
            6 if fails => {
                // It happens when nobody waits for it any more.
                let (far, event) = (self.clone(), event.clone());
                tokio::spawn(async move {
                    sleep(EFFECT_TIME_MAX + back).await;
                    far.arrive(run, &event, n, again, false);
                });
                sleep(2 * EFFECT_TIME_MAX).await;
                Err(Failed::Unknown(why()))
            }
            _ => {
                arrives(false);
                Ok(())
            }
        };
        sleep(back).await;
        if ended.is_ok() {
            self.answered(run, &of.0, n);
        }
        self.1.note(|| format!("effect {} of {} by run {run}: {ended:?}", n, of.0));
        ended
    }

    fn arrive(&self, run: usize, event: &SequencedEvent, n: usize, again: u32, is_answered: bool) {
        let mut state = self.state();
        let (event, at) = (event.id(), state.moment());
        state.arrivals.push(Arrival { run, event, n, again, is_answered, at });
        drop(state);
        self.1.count(|tally| tally.effects += 1);
    }

    fn answered(&self, run: usize, event: &str, n: usize) {
        let mut state = self.state();
        let mine = |of: &&mut Arrival| of.run == run && of.event == event && of.n == n;
        if let Some(arrival) = state.arrivals.iter_mut().rev().find(mine) {
            arrival.is_answered = true;
        }
    }

    /// Compares the arrived effects with a serial run.
    pub(crate) fn check(&self, promise: Promise) -> Result<(), String> {
        let state = self.state();
        let check = Check { state: &state, promise, first_write: self.1.first_write() };
        check.repeats()?;
        check.order()?;
        check.all()
    }
}

/// The number of an effect, and how often the reactor was moved back to repeat all effects, from the effect's key.
fn number_and_again(key: &str) -> (usize, u32) {
    let mut parts = key.split('/').skip(2);
    let n = parts.next().and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
    let again = parts.next().and_then(|again| again.strip_prefix("again-")?.parse().ok());
    (n, again.unwrap_or(0))
}

struct Check<'a> {
    state: &'a State,
    promise: Promise,
    first_write: Option<u64>,
}

impl Check<'_> {
    /// An effect that is known to be done is never sent again.
    fn repeats(&self) -> Result<(), String> {
        let State { arrivals, runs, asks, sent_back, .. } = self.state;
        let mut of_effect: BTreeMap<_, Vec<&Arrival>> = BTreeMap::new();
        for arrival in arrivals {
            let effect = (&arrival.event, arrival.n, arrival.again);
            of_effect.entry(effect).or_default().push(arrival);
        }
        let asked_again = sent_back.iter().filter(|of| of.is_again).count();
        for (effect, arrivals) in of_effect {
            let known = |of: &&&Arrival| of.is_answered && runs[of.run].1;
            if self.promise.receipts && arrivals.iter().filter(known).count() > 1 {
                return Err(format!("{effect:?} was done and is sent again: {arrivals:?}"));
            }
            let asked = |of: &&Ask| of.event == *effect.0 && !of.is_skip;
            if self.promise.parks && arrivals.len() > 1 + asks.iter().filter(asked).count() {
                return Err(format!("{effect:?} is sent again and nobody has asked: {arrivals:?}"));
            }
            if usize::try_from(effect.2).unwrap_or(usize::MAX) > asked_again {
                return Err(format!("{effect:?} is sent again more often than an operator said"));
            }
        }
        Ok(())
    }

    /// In a lane, the effects of an event begin when those of the previous event have happened, or it was skipped.
    fn order(&self) -> Result<(), String> {
        let State { expected, arrivals, asks, .. } = self.state;
        let generations: BTreeSet<_> = arrivals.iter().map(|of| of.again).collect();
        for again in generations {
            let mut first: BTreeMap<(&str, usize), u64> = BTreeMap::new();
            for of in arrivals.iter().filter(|of| of.again == again) {
                first.entry((&of.event, of.n)).or_insert(of.at);
            }
            for (n, later) in expected.iter().enumerate() {
                let moments = (0..later.letters).filter_map(|n| first.get(&(&*later.id, n)));
                let Some(begun) = moments.clone().min() else { continue };
                let is_skipped =
                    |of: &Expected| asks.iter().any(|ask| ask.is_skip && ask.event == of.id);
                if !moments.is_sorted() && !is_skipped(later) {
                    return Err(format!("the effects of {later:?} are not in order: {first:?}"));
                }
                for earlier in expected[..n].iter().filter(|of| of.lane == later.lane) {
                    let done: Vec<_> =
                        (0..earlier.letters).map(|n| first.get(&(&*earlier.id, n))).collect();
                    let is_in = self.must(earlier, again) || done.iter().any(Option::is_some);
                    let is_before = done.iter().all(|at| at.is_some_and(|at| at < begun));
                    if is_in && !is_before && !is_skipped(earlier) {
                        return Err(format!("{later:?} is handled before {earlier:?}: {first:?}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an event is certainly handled under this number of `again`.
    fn must(&self, of: &Expected, again: u32) -> bool {
        again == 0
            && match (self.promise.overlap_ms, self.first_write) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(overlap), Some(first)) => {
                    of.published > first || first - of.published < overlap
                }
            }
    }

    /// In the end everything is done, or a person has skipped it.
    fn all(&self) -> Result<(), String> {
        let State { expected, arrivals, runs, sent_back, .. } = self.state;
        let last = sent_back.iter().rfind(|of| of.is_again);
        let generation = sent_back.iter().filter(|of| of.is_again && of.is_done).count();
        let generation = u32::try_from(generation).unwrap_or(u32::MAX);
        for (n, event) in expected.iter().enumerate() {
            let arrived = |again: u32| {
                let of_event = |of: &&Arrival| of.event == event.id && of.again == again;
                arrivals.iter().filter(of_event).map(|of| of.n).collect::<BTreeSet<_>>().len()
            };
            let since = last.map_or(0, |of| of.began);
            let (must, found) = match last {
                // Nobody knows whether that was done.
                Some(last) if !last.is_done => continue,
                Some(last) if n >= last.to => (true, arrived(generation)),
                Some(_) => continue,
                None => (self.must(event, 0), arrived(0)),
            };
            if must && found < event.letters && !self.may_be_skipped(&event.id, since) {
                return Err(format!("{event:?} is passed over"));
            }
            let has_begun = runs.first().is_some_and(|(first, _)| event.published >= *first);
            let is_before = self.promise.overlap_ms == Some(0) && !has_begun;
            if is_before && sent_back.is_empty() && found > 0 {
                return Err(format!("{event:?} is from before the first run"));
            }
        }
        Ok(())
    }

    /// Whether a person may have skipped an event since a moment: no retry was recorded after that.
    fn may_be_skipped(&self, event: &str, since: u64) -> bool {
        let asks = self.state.asks.iter().filter(|ask| ask.event == event && ask.began > since);
        let replaced = |skip: &Ask| {
            let ended = skip.ended.map_or(u64::MAX, |(at, _)| at);
            let is_later = |of: &Ask| !of.is_skip && of.began > ended;
            asks.clone().any(|of| is_later(of) && of.ended.is_some_and(|(_, is_noted)| is_noted))
        };
        asks.clone().any(|ask| ask.is_skip && !replaced(ask))
    }
}
