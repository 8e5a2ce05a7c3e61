//! States: decisions rest on them. They are folded from events.

use crate::{Current, Reads, Snapshots, TYPES_MAX};

/// The basis of a decision: the fold of the events that it reads. Slices can share a state. A tuple of states is a
/// state, too: it reads the events of all its states, and each state folds its own events.
///
/// The default is the state without events. `evolve` is pure.
pub trait State: Default + Send {
    /// The events from which the state is folded.
    type Reads: Reads;

    /// How handlers keep the state in the log. With `None`, only warm handlers keep it.
    const SNAPSHOTS: Option<Snapshots<Self>> = None;

    /// The state after one more event.
    ///
    /// The events of one boundary come in the order of their commits. Events of different boundaries come by the
    /// times of their writers, whose clocks differ: a price that was set after a quote can come before it. So the
    /// state must not depend on the order of events of different boundaries. If a decision needs the basis of another
    /// decision, put it into the event: the quote names its price. The [kit](crate::kit) decides each case in other
    /// orders and fails if the decision changes.
    #[must_use]
    fn evolve(self, event: Self::Reads) -> Self;
}

/// The events of a tuple of states. An event is decoded for each state that reads its type.
macro_rules! tuple {
    ($($name:ident $n:tt),*) => {
        impl<$($name: Reads),*> Reads for ($(Option<$name>,)*) {
            const TYPES: &'static [&'static str] = {
                let (types, _) = Union::<($($name,)*)>::TYPES.0.split_at(Union::<($($name,)*)>::TYPES.1);
                types
            };
            const PERSONAL: &'static [&'static str] = {
                let (types, _) =
                    Union::<($($name,)*)>::PERSONAL.0.split_at(Union::<($($name,)*)>::PERSONAL.1);
                types
            };

            fn decode(event: &Current<'_>) -> Result<Self, serde_json::Error> {
                let event_type = event.event_type.as_str();
                Ok(($(
                    match $name::TYPES.contains(&event_type) {
                        true => Some($name::decode(event)?),
                        false => None,
                    },
                )*))
            }
        }

        impl<$($name: Reads),*> Union<($($name,)*)> {
            const TYPES: &'static ([&'static str; TYPES_MAX], usize) = &union(&[$($name::TYPES),*]);
            const PERSONAL: &'static ([&'static str; TYPES_MAX], usize) =
                &union(&[$($name::PERSONAL),*]);
        }

        impl<$($name: State),*> State for ($($name,)*) {
            type Reads = ($(Option<$name::Reads>,)*);

            fn evolve(self, event: Self::Reads) -> Self {
                ($(
                    match event.$n {
                        Some(event) => self.$n.evolve(event),
                        None => self.$n,
                    },
                )*)
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Computes a tuple's list of types.
struct Union<T>(std::marker::PhantomData<T>);

/// The names in all lists, without repeats, and their number.
const fn union(lists: &[&[&'static str]]) -> ([&'static str; TYPES_MAX], usize) {
    let (mut types, mut count, mut list) = ([""; TYPES_MAX], 0, 0);
    while list < lists.len() {
        let mut n = 0;
        while n < lists[list].len() {
            let name = lists[list][n];
            if !has(&types, count, name) {
                assert!(
                    count < TYPES_MAX,
                    "a tuple of states reads more types of events than a condition can name"
                );
                types[count] = name;
                count += 1;
            }
            n += 1;
        }
        list += 1;
    }
    (types, count)
}

const fn has(types: &[&str; TYPES_MAX], count: usize, name: &str) -> bool {
    let mut n = 0;
    while n < count {
        if is_same(types[n].as_bytes(), name.as_bytes()) {
            return true;
        }
        n += 1;
    }
    false
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut n = 0;
    while n < a.len() {
        if a[n] != b[n] {
            return false;
        }
        n += 1;
    }
    true
}
