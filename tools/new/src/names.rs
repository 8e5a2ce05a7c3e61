//! The names of contexts and slices, and the names that follow from them.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use heck::{ToPascalCase, ToSnakeCase};

/// Names are similar if their likeness is above this. Equal names have a likeness of 1.
const NEAR: f64 = 0.85;
/// The most similar names that are shown.
const NAMES_MAX: usize = 2;

/// The most bytes of a name. Lambda has the same limit for names of functions.
const NAME_BYTES_MAX: usize = 64;

/// Words that modules and crates can't have as names.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types that the files of contexts and slices use by their short names.
pub(crate) const TYPES: [&str; 34] = [
    "AccessStrategy",
    "Aggregates",
    "Callers",
    "Case",
    "Catalog",
    "CatalogError",
    "Cause",
    "Command",
    "CommandContext",
    "Consumed",
    "Context",
    "Current",
    "Dcb",
    "Document",
    "Documents",
    "Due",
    "DueCase",
    "Event",
    "Heard",
    "MemberList",
    "Members",
    "Never",
    "Option",
    "Reads",
    "Result",
    "Self",
    "Slice",
    "Snapshot",
    "State",
    "String",
    "TopicEvent",
    "Vec",
    "Visitor",
    "Writes",
];

/// Crates that come with Rust, that every context depends on, or that test a stack.
const CRATES: [&str; 7] = ["alloc", "core", "proc-macro", "ringfence", "std", "test", "tests"];

/// Folders of cargo in `target/`. A binary can't have such a name.
const CARGO_FOLDERS: [&str; 4] = ["build", "deps", "examples", "incremental"];

/// Files of a context's crate that can't be a slice's: cargo builds `main.rs` as a program, and `views` has the views.
const MODULES: [&str; 2] = ["main", "views"];

/// Verbs whose past participle does not follow the rules of [`participle`].
const IRREGULAR: [(&str, &str); 58] = [
    ("admit", "admitted"),
    ("begin", "begun"),
    ("bid", "bid"),
    ("bind", "bound"),
    ("break", "broken"),
    ("bring", "brought"),
    ("build", "built"),
    ("buy", "bought"),
    ("cancel", "cancelled"),
    ("catch", "caught"),
    ("choose", "chosen"),
    ("commit", "committed"),
    ("cut", "cut"),
    ("draw", "drawn"),
    ("drive", "driven"),
    ("feed", "fed"),
    ("find", "found"),
    ("forget", "forgotten"),
    ("freeze", "frozen"),
    ("get", "got"),
    ("give", "given"),
    ("go", "gone"),
    ("hold", "held"),
    ("keep", "kept"),
    ("lead", "led"),
    ("leave", "left"),
    ("lend", "lent"),
    ("lose", "lost"),
    ("make", "made"),
    ("meet", "met"),
    ("pay", "paid"),
    ("permit", "permitted"),
    ("prepay", "prepaid"),
    ("put", "put"),
    ("read", "read"),
    ("rebuild", "rebuilt"),
    ("refer", "referred"),
    ("repay", "repaid"),
    ("resend", "resent"),
    ("reset", "reset"),
    ("rewrite", "rewritten"),
    ("run", "run"),
    ("sell", "sold"),
    ("send", "sent"),
    ("set", "set"),
    ("show", "shown"),
    ("spend", "spent"),
    ("split", "split"),
    ("submit", "submitted"),
    ("take", "taken"),
    ("teach", "taught"),
    ("tell", "told"),
    ("transfer", "transferred"),
    ("undo", "undone"),
    ("unfreeze", "unfrozen"),
    ("win", "won"),
    ("withdraw", "withdrawn"),
    ("write", "written"),
];

/// Words that belong to the verb before them, as in `check-out`.
const PARTICLES: [&str; 10] = ["at", "down", "for", "from", "in", "off", "on", "out", "to", "up"];

/// Refuses a name that is not in kebab case.
///
/// # Errors
/// The name has another form. The error shows a right one.
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

/// Refuses a name whose path the API uses already.
///
/// # Errors
/// The API has the path. The error says for what.
pub(crate) fn check_path(what: &str, name: &str) -> Result<()> {
    ensure!(
        name != "commands",
        "{what} {name}: the path /{name} is that of queued commands, so choose another name"
    );
    Ok(())
}

/// Refuses a name whose type would conflict with another type of its file.
///
/// # Errors
/// The file has the type. The error names it.
pub(crate) fn check_type(what: &str, name: &str, others: &[&str]) -> Result<()> {
    let own = name.to_pascal_case();
    ensure!(
        !others.contains(&&*own),
        "{what} {name}: its file has another type {own}: choose another name"
    );
    Ok(())
}

/// Refuses the name of an existing crate.
///
/// # Errors
/// The crate exists. The error names it.
pub(crate) fn check_crate(name: &str) -> Result<()> {
    ensure!(
        !CRATES.contains(&name),
        "a crate of the name {name} exists in Rust or in every stack: choose another name for the context"
    );
    Ok(())
}

/// Refuses a name that a binary can't have.
///
/// # Errors
/// The name is taken. The error says by what.
pub(crate) fn check_target(what: &str, name: &str) -> Result<()> {
    ensure!(
        !CARGO_FOLDERS.contains(&name),
        "cargo has a folder {name} where the binary would be: choose another name for {what}"
    );
    ensure!(
        !MODULES.contains(&name),
        "{what} can't be named {name}, because src/{}.rs of a context has another purpose: choose another name in \
         kebab case, such as show-{name}",
        name.to_snake_case()
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

/// The context's name in the singular, as its ending suggests: `carts` gives `cart`.
pub(crate) fn singular(context: &str) -> String {
    let is_of = |ends: &[&str]| ends.iter().any(|end| context.ends_with(end));
    if let Some(stem) = context.strip_suffix("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    let end = match () {
        () if is_of(&["sses", "xes", "ches", "shes"]) => "es",
        () if is_of(&["ss", "us", "is"]) => "",
        () => "s",
    };
    context.strip_suffix(end).unwrap_or(context).to_owned()
}

/// The declaration of the type of a thing's ids, such as `OrderId`.
pub(crate) fn id_type(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    let (name, thing) = (noun.to_pascal_case(), noun.replace('-', " "));
    format!("\nringfence::id_type!({name}Id, \"names {article} {thing}\");\n")
}

/// The thing and the event of a slice, as its name suggests.
pub(crate) struct Deed {
    /// The thing that the slice changes, such as `order`.
    pub(crate) noun: String,
    /// The event, such as `OrderCancelled`.
    pub(crate) event: String,
}

impl Deed {
    /// The deed of the slice `name`. If the name has no thing, the thing is the context's name in the singular.
    pub(crate) fn of(context: &str, name: &str) -> Self {
        let mut words: Vec<&str> = name.split('-').collect();
        let verb = words.remove(0);
        let leading = words.iter().take_while(|word| PARTICLES.contains(word)).count();
        let (particles, thing) = words.split_at(leading);
        let (past, particles, thing) = (participle(verb), particles.join("-"), thing.join("-"));
        let noun = if thing.is_empty() { singular(context) } else { thing.clone() };
        let joined = |words: [&str; 3]| -> String {
            words
                .into_iter()
                .filter(|word| !word.is_empty())
                .map(ToPascalCase::to_pascal_case)
                .collect()
        };
        let event = match () {
            // Without the noun in front, the event of `set-up` would have the slice's own name.
            () if past == verb => joined([&noun, &past, &particles]),
            () if particles.is_empty() => joined([&thing, &past, ""]),
            () => joined([&past, &particles, &thing]),
        };
        Self { noun, event }
    }

    /// The event as the name of a field, such as `order_cancelled`.
    pub(crate) fn field(&self) -> String {
        self.event.to_snake_case()
    }
}

fn participle(verb: &str) -> String {
    if let Some((_, past)) = IRREGULAR.iter().find(|(irregular, _)| *irregular == verb) {
        return (*past).to_owned();
    }
    let is_vowel = |c: char| "aeiou".contains(c);
    // As in ship and plan: one vowel, and one consonant after it.
    let is_short = verb.chars().filter(|c| is_vowel(*c)).count() == 1
        && verb
            .strip_suffix(|c| !is_vowel(c) && !"wxy".contains(c))
            .is_some_and(|it| it.ends_with(is_vowel));
    match verb.strip_suffix('y') {
        Some(stem) if !stem.ends_with(is_vowel) => format!("{stem}ied"),
        _ if verb.ends_with('e') => format!("{verb}d"),
        _ if is_short => format!("{verb}{}ed", &verb[verb.len() - 1..]),
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
            ("wishes", "scan", "wish", "Scanned"),
            ("categories", "open", "category", "Opened"),
            ("address", "fix", "address", "Fixed"),
            ("rooms", "set-up", "room", "RoomSetUp"),
            ("rooms", "set-up-bed", "bed", "BedSetUp"),
        ] {
            let deed = Deed::of(context, slice);
            assert_eq!((&*deed.noun, &*deed.event), (noun, event), "{slice}");
        }
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
        let error = check_target("the slice", "build").unwrap_err().to_string();
        assert!(error.contains("folder build"), "{error}");
    }
}
