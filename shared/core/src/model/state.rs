//! States: what decisions rest on, folded from events.

use crate::{Current, Reads, Snapshots, TYPES_MAX};

/// What a decision rests on: the fold of the events that it reads. Slices can share a state, and a tuple of states is
/// a state: it reads what they read, and each of them folds its own events.
///
/// The default is the state without events. `evolve` is pure.
pub trait State: Default + Send {
    /// The events that it is folded from.
    type Reads: Reads;

    /// How handlers keep it in the log; `None` keeps it only as long as a handler is warm.
    const SNAPSHOTS: Option<Snapshots<Self>> = None;

    /// The state after one more event.
    ///
    /// The events of one boundary come in the order in which they were committed. Those of different
    /// boundaries come by the times of their writers, whose clocks differ: a price that was set after a
    /// quote can come before it. So the state may not depend on the order of events of different
    /// boundaries. If a decision needs to know what another one rested on, let the event carry it: the
    /// quote names its price. The [kit](crate::kit) decides each case in other orders and fails if that
    /// changes the decision.
    #[must_use]
    fn evolve(self, event: Self::Reads) -> Self;
}

/// A tuple of what several states read: an event is decoded for each of them that reads its type.
macro_rules! tuple {
    ($($name:ident $n:tt),*) => {
        impl<$($name: Reads),*> Reads for ($(Option<$name>,)*) {
            const TYPES: &'static [&'static str] = {
                let (types, _) = Union::<($($name,)*)>::TYPES.0.split_at(Union::<($($name,)*)>::TYPES.1);
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

/// Where a tuple's list of types is computed.
struct Union<T>(std::marker::PhantomData<T>);

/// The names of all lists, each once, and how many they are.
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
