//! Checks the answers of each slice to input that is not a command.

use ringfence_local::stack_root;
use ringfence_stack::Members;
use serde_json::{Value, json};

use crate::samples::{Refused, commands};
use crate::template::check_none;

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
fn harass(slice: &str, sample: &Value, refused: Refused) {
    let mut at = vec![];
    pointers(sample, "", &mut at);
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
    let mut lines = Vec::new();
    for (slice, sample) in commands::<M>() {
        match sample.command(&stack_root(), slice) {
            Ok(command) => harass(slice, &command, sample.refused),
            Err(line) => lines.push(line),
        }
    }
    check_none(&lines);
}
