//! Checks the answers of each slice to input that is not a command.

use std::fs;

use ringfence_aws::Clock;
use ringfence_core::kit::fail;
use ringfence_core::{Slice, json};
use ringfence_lambda::slice::read;
use ringfence_lambda::{Issuers, Problem};
use ringfence_local::stack_root;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::{Value, json};

/// Words of Rust and of serde.
const JARGON: [&str; 18] = [
    "u8",
    "u16",
    "u32",
    "u64",
    "usize",
    "i32",
    "i64",
    "f64",
    "struct",
    "enum",
    "variant",
    "tuple",
    "nonzero",
    "sequence",
    "invalid type",
    "invalid value",
    "expected",
    "`",
];

/// The problem with the text of a slice's command; `None` if it is a valid command.
type Refused = fn(&str) -> Option<Problem>;

/// The command of a slice's sample. Panics if it is not one.
fn sample(slice: &str, refused: Refused) -> Value {
    let path = format!("events/{slice}/direct.json");
    let sample = fs::read_to_string(stack_root().join(&path));
    let sample = sample.unwrap_or_else(|error| fail(&path, error));
    let sample = json::read(&sample, json::LEVELS_MAX);
    let mut sample = sample.unwrap_or_else(|error| fail(&path, error));
    let sample = if sample.get("command").is_some() { sample["command"].take() } else { sample };
    if let Some(problem) = refused(&sample.to_string()) {
        panic!("{path} is not a command of {slice}: {}\n{sample:#}", problem.detail());
    }
    sample
}

/// The pointers of all values within `json`.
fn pointers(json: &Value, at: &str, all: &mut Vec<String>) {
    let inside: Vec<(String, &Value)> = match json {
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(n, v)| (n.to_string(), v)).collect(),
        _ => vec![],
    };
    for (step, value) in inside {
        let at = format!("{at}/{step}");
        pointers(value, &at, all);
        all.push(at);
    }
}

/// Tries wrong values in each place of the sample, and leaves out each field.
fn harass(slice: &str, refused: Refused) {
    let sample = sample(slice, refused);
    let mut at = vec![];
    pointers(&sample, "", &mut at);
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("\u{7f}\"`, expected u64".repeat(10_000)),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "\u{1}".repeat(30_000): 1 }),
    ];
    let mut checked = 0;
    let mut check = |command: &Value, pointer: &str| {
        let text = command.to_string();
        assert!(text.len() < 350 * 1_024, "the body is within the limit of its size");
        let Some(problem) = refused(&text) else { return };
        let document = problem.clone().document();
        let context = format!("{slice} {pointer}: {document:#}");
        assert_eq!(problem.status, 400, "{context}");
        let field = document["errors"][0]["field"].as_str().expect("a field");
        let step = pointer.rsplit('/').find(|step| step.parse::<usize>().is_err());
        assert!(field.contains(step.unwrap_or_default()), "{context}");
        // A caller may have chosen the field's name.
        let message = document["errors"][0]["message"].as_str().expect("a message");
        let words = message.split_once(", is \"").map_or(message, |(said, _)| said);
        let word = JARGON.iter().find(|word| words.contains(**word));
        assert_eq!(word, None, "{context}");
        assert!(document.to_string().len() < 4_096, "{context}");
        checked += 1;
    };
    for pointer in &at {
        for wrong in &wrong {
            let mut command = sample.clone();
            *command.pointer_mut(pointer).expect("it is there") = wrong.clone();
            check(&command, pointer);
        }
        let (parent, step) = pointer.rsplit_once('/').expect("a pointer");
        let mut command = sample.clone();
        if let Some(Value::Object(object)) = command.pointer_mut(parent) {
            object.remove(step);
            check(&command, pointer);
        }
    }
    let mut command = sample.clone();
    command["unheardOf"] = 1.into();
    assert!(refused(&command.to_string()).is_some(), "{slice}");
    check(&command, "/unheardOf");
    assert!(checked > 1, "{slice}");
}

/// Tries wrong values in each place of each slice's sample `events/<slice>/direct.json`, and leaves out each field.
/// Panics unless the answer is 400, names the field, and has no words of Rust.
pub fn check_bad_input<M: Members>() {
    struct Each;

    impl Visitor for Each {
        fn slice<S: Slice>(&mut self) {
            harass(S::NAME, |command| {
                read::<S>(command, &Issuers::default(), &Clock::fixed(0)).err()
            });
        }
    }

    MemberList::walk::<M>(&mut Each);
}
