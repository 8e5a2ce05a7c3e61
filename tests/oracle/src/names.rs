//! No value, however hostile, makes one boundary look like another.

use std::collections::HashMap;

use ringfence_aws::Random;
use ringfence_core::{Boundary, Tag};

/// One seed makes this many sets of tags.
pub const SEED_SETS: u64 = 10_000;

/// Checks that each id decodes to its boundary. So no two boundaries of any seeds share an id. For the boundaries of
/// this seed, that is also checked directly.
///
/// # Errors
/// The first id that does not.
pub fn check(seed: u64) -> Result<(), String> {
    let mut draw = Draw(Random::new(&[seed]));
    let mut seen = HashMap::from([(Boundary::Tagless.id(), Boundary::Tagless)]);
    for n in 0..SEED_SETS {
        for boundary in draw.boundaries() {
            let id = boundary.id();
            if id.decode().as_ref() != Some(&boundary) {
                return Err(format!(
                    "set {n}: {id:?} decodes to {:?}, not {boundary:?}",
                    id.decode()
                ));
            }
            let first = seen.entry(id.clone()).or_insert_with(|| boundary.clone());
            if *first != boundary {
                return Err(format!("set {n}: {id:?} names {first:?} and {boundary:?}"));
            }
        }
    }
    // Otherwise nothing was tried.
    if (seen.len() as u64) < SEED_SETS / 2 {
        return Err(format!("{} names of {SEED_SETS} sets", seen.len()));
    }
    Ok(())
}

struct Draw(Random);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.below(n as u64)).expect("below a usize")
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A value of characters with a meaning in ids.
    fn value(&mut self) -> String {
        const PARTS: [&str; 24] = [
            "a", "b", "%", "#", ":", "/", "|", "~", ",", "+", "\0", "\n", "\u{85}", "%2", "%23",
            "a:", "#b:", "dcb", "$type:", "fence#", "tag#", "é", "🦀", " ",
        ];
        (0..self.below(6)).map(|_| self.of(&PARTS)).collect()
    }

    fn boundaries(&mut self) -> Vec<Boundary> {
        let mut keys = vec!["a", "b", "ab", "dcb", "aB", "type"];
        let mut tags: Vec<Tag> = Vec::new();
        for _ in 0..=self.below(3) {
            let key = keys.remove(self.below(keys.len()));
            tags.push(Tag::new(key, self.value()));
        }
        let mut sorted = tags.clone();
        sorted.sort();
        match &tags[..] {
            [tag] => vec![Boundary::Tag(tag.clone()), Boundary::EventType(tag.value.clone())],
            _ => vec![
                Boundary::Composite(sorted),
                Boundary::CompositePartition(tags, self.of(&['/', '|', '~', ','])),
            ],
        }
    }
}
