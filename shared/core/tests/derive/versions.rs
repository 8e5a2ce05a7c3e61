//! Only a catalog makes an event that can be decoded. A retired type can't be written.

use ringfence::prelude::*;
use ringfence::SequencedEvent;

#[derive(Reads)]
enum Consumed {
    Placed,
}

#[derive(Event)]
#[event(retired)]
struct Ordered {}

#[derive(Writes)]
enum Written {
    Ordered(Ordered),
}

fn decode_what_is_stored(event: &SequencedEvent) {
    drop(Consumed::decode(event));
}

fn react_to_what_was_sent<S: Slice>(event: &TopicEvent) {
    drop(S::react(event));
}

fn make_it_current_by_hand(event: &SequencedEvent) {
    drop(Consumed::decode(&Current(std::borrow::Cow::Borrowed(event))));
}

fn change_what_is_current(event: &mut Current<'_>) {
    event.data.take();
}

fn main() {}
