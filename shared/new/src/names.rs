//! The names of contexts and slices, and the names that follow from them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

/// Names that are more alike than this are similar. Equal names have 1.
const NEAR: f64 = 0.85;
/// Most similar names to show.
const NAMES_MAX: usize = 2;

/// The longest name. Lambda's names of functions end there too.
const NAME_BYTES_MAX: usize = 64;

/// Words that no module and no crate can have as its name.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Crates that come with Rust, that every context depends on, or that test a stack.
const CRATES: [&str; 7] = ["alloc", "core", "proc-macro", "ringfence", "std", "test", "tests"];

/// Folders of cargo in `target/`, which no binary can have as its name.
const CARGO_FOLDERS: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Verbs whose past participle does not end in `ed`, or doubles its last letter.
const IRREGULAR: [(&str, &str); 38] = [
    ("begin", "begun"),
    ("bring", "brought"),
    ("build", "built"),
    ("buy", "bought"),
    ("cancel", "cancelled"),
    ("choose", "chosen"),
    ("cut", "cut"),
    ("drop", "dropped"),
    ("find", "found"),
    ("give", "given"),
    ("go", "gone"),
    ("hold", "held"),
    ("keep", "kept"),
    ("leave", "left"),
    ("lend", "lent"),
    ("lose", "lost"),
    ("make", "made"),
    ("pay", "paid"),
    ("plan", "planned"),
    ("put", "put"),
    ("read", "read"),
    ("run", "run"),
    ("sell", "sold"),
    ("send", "sent"),
    ("set", "set"),
    ("ship", "shipped"),
    ("show", "shown"),
    ("sign", "signed"),
    ("split", "split"),
    ("stop", "stopped"),
    ("submit", "submitted"),
    ("swap", "swapped"),
    ("take", "taken"),
    ("tell", "told"),
    ("transfer", "transferred"),
    ("undo", "undone"),
    ("withdraw", "withdrawn"),
    ("write", "written"),
];

/// Words that belong to the verb before them, as in `check-out`.
const PARTICLES: [&str; 10] = ["at", "down", "for", "from", "in", "off", "on", "out", "to", "up"];

/// Refuses a name that is not in kebab case.
///
/// # Errors
/// Says what is wrong with the name, and what a name looks like.
pub(crate) fn check(what: &str, name: &str) -> Result<()> {
    let is_word = |word: &str| {
        let begins = word.starts_with(|c: char| c.is_ascii_lowercase());
        begins && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    ensure!(
        name.split('-').all(is_word),
        "{what} {name:?} is not in kebab case: lowercase words of letters and digits, with a hyphen between \
         them, such as cancel-order"
    );
    ensure!(
        name.len() <= NAME_BYTES_MAX,
        "{what} {name} has {} characters; at most {NAME_BYTES_MAX} are possible: choose a shorter name",
        name.len()
    );
    ensure!(
        !KEYWORDS.contains(&name),
        "{what} {name} is a keyword of Rust: choose another name, for example with a second word"
    );
    Ok(())
}

/// Refuses a name that a crate has already.
///
/// # Errors
/// Names the crate.
pub(crate) fn check_crate(name: &str) -> Result<()> {
    ensure!(
        !CRATES.contains(&name),
        "a crate of the name {name} exists in Rust or in every stack: choose another name for the context"
    );
    Ok(())
}

/// Refuses a name that no binary can have.
///
/// # Errors
/// Says what has the name.
pub(crate) fn check_target(name: &str) -> Result<()> {
    ensure!(
        !CARGO_FOLDERS.contains(&name),
        "cargo has a folder {name} where the slice's binary would be: choose another name for the slice"
    );
    Ok(())
}

/// Asks whether one of the most similar names is meant.
#[must_use]
pub fn near(unknown: &str, known: &BTreeSet<&str>) -> String {
    let like = known.iter().map(|name| (strsim::jaro_winkler(name, unknown), *name));
    let mut like: Vec<_> = like.filter(|(like, _)| *like > NEAR).collect();
    like.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = like.into_iter().take(NAMES_MAX).map(|(_, name)| name).collect();
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

/// `cancel-order` as `CancelOrder`.
pub(crate) fn pascal(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// `cancel-order` as `cancel_order`.
pub(crate) fn snake(name: &str) -> String {
    name.replace('-', "_")
}

/// `OrderCancelled` as `order_cancelled`.
pub(crate) fn snake_of_pascal(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// `order_id` as `orderId`.
pub(crate) fn camel(name: &str) -> String {
    let pascal = pascal(&name.replace('_', "-"));
    pascal[..1].to_lowercase() + &pascal[1..]
}

/// The context's name without its plural `s`.
pub(crate) fn singular(context: &str) -> &str {
    context.strip_suffix('s').unwrap_or(context)
}

/// The declaration of the type of a thing's ids, such as `OrderId`.
pub(crate) fn id_type(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let (name, thing) = (pascal(noun), noun.replace('-', " "));
    format!("\nringfence::id_type!({name}Id, \"names {article} {thing}\");\n")
}

/// What a slice does, as its name says it.
pub(crate) struct Deed {
    /// The thing that it is done to, such as `order`.
    pub(crate) noun: String,
    /// The event, such as `OrderCancelled`.
    pub(crate) event: String,
}

impl Deed {
    /// Of the slice `name`. Where the name has no thing, it is the context's name without its plural `s`.
    pub(crate) fn of(context: &str, name: &str) -> Self {
        let mut words: Vec<&str> = name.split('-').collect();
        let verb = words.remove(0);
        let leading = words.iter().take_while(|word| PARTICLES.contains(word)).count();
        let (particles, noun) = words.split_at(leading);
        let past = pascal(&participle(verb));
        let (particles, thing) = (particles.join("-"), noun.join("-"));
        let event = match (particles.is_empty(), thing.is_empty()) {
            (true, true) => past,
            (true, false) => pascal(&thing) + &past,
            (false, true) => past + &pascal(&particles),
            (false, false) => past + &pascal(&particles) + &pascal(&thing),
        };
        let noun = if thing.is_empty() { singular(context).to_owned() } else { thing };
        Self { noun, event }
    }

    /// The event as the name of a field, such as `order_cancelled`.
    pub(crate) fn field(&self) -> String {
        snake_of_pascal(&self.event)
    }
}

fn participle(verb: &str) -> String {
    if let Some((_, past)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == verb) {
        return (*past).to_owned();
    }
    let is_vowel = |c: char| "aeiou".contains(c);
    match verb.strip_suffix('y') {
        Some(stem) if !stem.ends_with(is_vowel) => format!("{stem}ied"),
        _ if verb.ends_with('e') => format!("{verb}d"),
        _ => format!("{verb}ed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_is_the_slices_name_in_the_past() {
        for (context, slice, noun, event) in [
            ("orders", "cancel-order", "order", "OrderCancelled"),
            ("orders", "place-order", "order", "OrderPlaced"),
            ("rooms", "book-room", "room", "RoomBooked"),
            ("carts", "check-out", "cart", "CheckedOut"),
            ("carts", "add-to-cart", "cart", "AddedToCart"),
            ("accounts", "deposit", "account", "Deposited"),
            ("shop", "supply-spare-part", "spare-part", "SparePartSupplied"),
        ] {
            let deed = Deed::of(context, slice);
            assert_eq!((&*deed.noun, &*deed.event), (noun, event), "{slice}");
        }
        assert_eq!(camel("spare_part_id"), "sparePartId");
        assert_eq!(
            id_type("order-item"),
            "\nringfence::id_type!(OrderItemId, \"names an order item\");\n"
        );
    }

    #[test]
    fn a_name_that_cannot_be_used_is_refused_with_the_way_out() {
        for (name, said) in [
            ("CancelOrder", "is not in kebab case"),
            ("cancel_order", "is not in kebab case"),
            ("cancel--order", "is not in kebab case"),
            ("4-orders", "is not in kebab case"),
            ("../orders", "is not in kebab case"),
            ("", "such as cancel-order"),
            ("move", "is a keyword of Rust"),
            (&"a".repeat(65), "at most 64"),
        ] {
            let error = check("the slice", name).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
        check("the slice", &"a".repeat(64)).unwrap();
        for name in ["core", "tests"] {
            let error = check_crate(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("choose another name"), "{error}");
        }
        let error = check_target("build").unwrap_err().to_string();
        assert!(error.contains("folder build"), "{error}");
    }
}
