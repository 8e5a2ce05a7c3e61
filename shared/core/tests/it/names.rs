//! No value, however hostile, makes one boundary pass for another.

use std::collections::HashMap;

use ringfence::{Boundary, Tag};

/// How many sets of tags a run makes, and from which seed; both can be set.
const NAMES: u64 = 50_000;
const SEED: u64 = 1;

/// SplitMix64: a run is its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % n as u64).expect("below a usize")
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Made of all that means something in an id.
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

#[expect(clippy::disallowed_methods, reason = "a longer run is asked for from outside")]
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn every_id_decodes_to_its_boundary_and_to_no_other() {
    let (names, seed) = (setting("RINGFENCE_NAMES", NAMES), setting("RINGFENCE_SEED", SEED));
    let mut random = Random(seed);
    let mut seen = HashMap::from([(Boundary::Tagless.id(), Boundary::Tagless)]);
    for n in 0..names {
        for boundary in random.boundaries() {
            let id = boundary.id();
            let at = || format!("seed {seed}, set {n}: {id:?}");
            assert_eq!(id.decode().as_ref(), Some(&boundary), "{}", at());
            let first = seen.entry(id.clone()).or_insert_with(|| boundary.clone());
            assert_eq!(*first, boundary, "{}", at());
        }
    }
    assert!(seen.len() as u64 > names / 2, "{} names of {names} sets", seen.len());
}
