//! The samples of functions, in `events/`. Under `UPDATE=1` missing ones are written, commands from the cases of their
//! slices, and samples of no function are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::cloudwatch_logs::LogsEvent;
use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::{dynamodb, sqs::SqsEvent};
use ringfence_aws::Clock;
use ringfence_core::kit::fail;
use ringfence_core::personal::{self, Form, has};
use ringfence_core::{Callers, Context, Slice, chain, json};
use ringfence_lambda::slice::read;
use ringfence_lambda::{Issuers, Problem};
use ringfence_local::stack_root;
use ringfence_local::template::Model;
use ringfence_stack::{MemberList, Members, Stack, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::listed::{entries, serving};
use crate::written::is_asked;

/// The samples that can be written for any function: `__…__` are its names.
const HTTP: &str = include_str!("../files/http.json");
const INDEX_GROWN: &str = include_str!("../files/index_grown.json");
const INDEX_STREAM: &str = include_str!("../files/index_stream.json");
const SCHEDULE: &str = include_str!("../files/schedule.json");

/// The sample of a slice's command.
pub(crate) struct CommandSample {
    /// The name of its context.
    context: &'static str,
    /// Whether callers give it over HTTP.
    has_route: bool,
    /// The command of the slice's first case.
    of_case: Option<String>,
    /// The problem with the text of a command; `None` if it is a valid one.
    pub(crate) refused: Refused,
}

/// The problem with the text of a slice's command; `None` if it is a valid command.
pub(crate) type Refused = fn(&str) -> Option<Problem>;

/// The samples of all slices' commands, by the names of the slices.
pub(crate) fn commands<M: Members>() -> BTreeMap<&'static str, CommandSample> {
    #[derive(Default)]
    struct Each(BTreeMap<&'static str, CommandSample>);

    impl Visitor for Each {
        fn slice<S: Slice>(&mut self) {
            let cases = S::cases();
            let of_case = cases
                .first()
                .map(|case| of_caller(case.command()).unwrap_or_else(|error| fail(S::NAME, error)));
            let has_route = S::CALLERS != Callers::Nobody;
            let refused: Refused =
                |command| read::<S>(command, &Issuers::default(), &Clock::fixed(0)).err();
            self.0.insert(
                S::NAME,
                CommandSample { context: S::Context::NAME, has_route, of_case, refused },
            );
        }
    }

    let mut each = Each::default();
    MemberList::walk::<M>(&mut each);
    each.0
}

/// The text of a command as callers send it: its personal values are not marked.
fn of_caller(command: &impl Serialize) -> serde_json::Result<String> {
    let mut json = serde_json::to_value(command)?;
    if !has(&json, Form::Marked) {
        return serde_json::to_string_pretty(command);
    }
    personal::show(&mut json);
    serde_json::to_string_pretty(&json)
}

impl CommandSample {
    /// The command in `events/<slice>/direct.json`, or else in the slice's first case. The file may be missing, or have
    /// an older command.
    ///
    /// # Errors
    /// The file has no command, and the slice has no case.
    pub(crate) fn command(&self, root: &Path, slice: &str) -> Result<Value, String> {
        self.of_file(root, slice).or_else(|trouble| match &self.of_case {
            Some(text) => {
                serde_json::from_str(text).map_err(|error| format!("{slice}: {}", chain(&error)))
            }
            None => Err(format!("{trouble}: write a case of {slice}, which gives the command")),
        })
    }

    /// The command in the file.
    fn of_file(&self, root: &Path, slice: &str) -> Result<Value, String> {
        let path = format!("events/{slice}/direct.json");
        let text = fs::read_to_string(root.join(&path));
        let text = text.map_err(|error| format!("{path}: {}", chain(&error)))?;
        let json = json::read(&text, json::LEVELS_MAX);
        let mut json = json.map_err(|error| format!("{path}: {}", chain(&error)))?;
        let command = json.get_mut("command").map(Value::take).unwrap_or(json);
        match (self.refused)(&command.to_string()) {
            None => Ok(command),
            Some(problem) => {
                Err(format!("{path} is not a command of {slice}: {}", problem.detail()))
            }
        }
    }
}

/// Lines for samples that are missing, of no function, or not what their function reads.
pub(crate) fn check_samples<M: Members>(stack: &Stack, model: &Model) -> Vec<String> {
    let samples = Samples { needed: needed(stack, model), commands: commands::<M>(), model };
    samples.differences(&stack_root(), is_asked())
}

/// The samples of a stack.
struct Samples<'m> {
    /// The samples that each function needs.
    needed: BTreeMap<String, Vec<String>>,
    commands: BTreeMap<&'static str, CommandSample>,
    model: &'m Model,
}

impl Samples<'_> {
    /// The differences from the files in `root`, each with the way out. With `update` the files are written and deleted
    /// first.
    fn differences(&self, root: &Path, update: bool) -> Vec<String> {
        let (events, mut lines) = (root.join("events"), Vec::new());
        for (function, samples) in &self.needed {
            // Both samples of a command are written together.
            let is_old = self.commands.get(&**function);
            let is_old = is_old.is_some_and(|command| command.of_file(root, function).is_err());
            for sample in samples {
                let path = events.join(function).join(sample);
                if path.exists() && !is_old {
                    continue;
                }
                let shown = format!("events/{function}/{sample}");
                match self.text(function, sample) {
                    Some(text) if update => write(&path, &text),
                    Some(_) => lines.push(format!(
                        "{shown} is missing or is not of its function: `UPDATE=1 cargo test` writes it"
                    )),
                    None => lines.push(format!(
                        "{shown} is missing: write it, or the slice's first case, from which `UPDATE=1 cargo test` makes it"
                    )),
                }
            }
        }
        let mut found = if events.exists() { entries(&events) } else { BTreeSet::new() };
        for function in self.needed.keys().filter(|function| found.remove(*function)) {
            let command = self.commands.get(&**function);
            let without_route = events.join(function).join("http.json");
            if update && command.is_some_and(|it| !it.has_route) && without_route.exists() {
                delete(&without_route, |path| fs::remove_file(path));
            }
            lines.extend(unread(&events, function, command));
        }
        // Samples of a function that this stack does not need are allowed.
        found.retain(|name| serving().all(|(_, of, _)| of != *name));
        lines.extend(found.iter().filter_map(|name| of_no_function(&events, name, update)));
        lines
    }

    /// The text of a sample, if it can be written.
    fn text(&self, function: &str, sample: &str) -> Option<String> {
        match (sample, self.commands.get(function)) {
            ("direct.json", Some(command)) => Some(command.of_case.clone()? + "\n"),
            ("http.json", Some(CommandSample { context, of_case, .. })) => {
                let body: Value = serde_json::from_str(of_case.as_deref()?).ok()?;
                let body = Value::from(body.to_string()).to_string();
                let text = HTTP.replace("__context__", context).replace("__slice__", function);
                Some(text.replace("__body__", &body))
            }
            ("eventbridge.json", None) => Some(INDEX_GROWN.replace("__reader__", function)),
            ("stream.json", None) if function.ends_with("project-views") => {
                Some(INDEX_STREAM.to_owned())
            }
            ("schedule.json", _) => {
                let function = self.model.functions.iter().find(|of| of.binary == function)?;
                Some(SCHEDULE.replace("__Id__", &function.id))
            }
            _ => None,
        }
    }
}

/// The samples that each function needs.
fn needed(stack: &Stack, model: &Model) -> BTreeMap<String, Vec<String>> {
    let slices = stack.slices().map(|(_, slice)| {
        let samples: &[_] =
            if slice.scopes.is_some() { &["direct.json", "http.json"] } else { &["direct.json"] };
        (slice.name, samples)
    });
    let others = stack.functions().map(|(_, function)| {
        let samples: &[_] = if function.get.is_some() { &["http.json"] } else { &[] };
        (function.name, samples)
    });
    let reactors = stack.reactors().map(|(_, it)| (it.name, &["eventbridge.json"][..]));
    let own = slices.chain(others).chain(reactors);
    let own = own.map(|(name, samples)| (name.to_owned(), samples));
    let is_there = |name: &String| model.functions.iter().any(|function| function.binary == *name);
    let serving = serving().map(|(_, name, samples)| (name, samples));
    let all = own.chain(serving.filter(|(name, _)| is_there(name)));
    let all = all.map(|(function, samples)| {
        let scheduled = model.schedules.iter().any(|schedule| schedule.target.function == function);
        let samples = samples.iter().chain(scheduled.then_some(&"schedule.json"));
        (function, samples.map(|sample| (*sample).to_owned()).collect())
    });
    all.collect()
}

fn write(path: &Path, text: &str) {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.unwrap_or_else(|error| fail(path.display(), error));
    eprintln!("wrote {}", path.display());
}

fn delete(path: &Path, remove: impl Fn(&Path) -> io::Result<()>) {
    remove(path).unwrap_or_else(|error| fail(path.display(), error));
    eprintln!("deleted {}", path.display());
}

/// Deletes the samples of no function with `update`, and otherwise names them.
fn of_no_function(events: &Path, name: &str, update: bool) -> Option<String> {
    let folder = events.join(name);
    let says = |end: &str| {
        Some(format!("events/{name} has samples, but there is no such function: {end}"))
    };
    if !folder.is_dir() || !entries(&folder).iter().all(|file| file.ends_with(".json")) {
        return says("it has other files too, so delete it by hand");
    }
    if !update {
        return says("`UPDATE=1 cargo test` deletes it");
    }
    delete(&folder, |path| fs::remove_dir_all(path));
    None
}

/// Lines for the samples of a function that the types of their events do not read, or that are of another path.
fn unread(events: &Path, function: &str, command: Option<&CommandSample>) -> Vec<String> {
    let folder = events.join(function);
    let mut lines = Vec::new();
    for name in entries(&folder).iter().filter(|name| name.ends_with(".json")) {
        let shown = format!("events/{function}/{name}");
        let text = fs::read_to_string(folder.join(name));
        let text = text.unwrap_or_else(|error| fail(&shown, error));
        let json = json::read(&text, json::LEVELS_MAX).unwrap_or_else(|error| {
            lines.push(format!("{shown}: {}", chain(&error)));
            Value::Null
        });
        lines.extend(read_event(&json).err().map(|error| format!("{shown}: {}", chain(&error))));
        let Some(command) = command.filter(|_| name == "http.json") else { continue };
        let path = format!("/{}/{function}", command.context);
        let found = &json["requestContext"]["http"]["path"];
        if !command.has_route {
            lines.push(format!(
                "{shown}: {function} has no route: `UPDATE=1 cargo test` deletes the sample"
            ));
        } else if !json.is_null() && found != path.as_str() {
            lines.push(format!("{shown}: requestContext.http.path is {found}: write {path:?}"));
        }
    }
    lines
}

/// Parses a sample as the type of its event. The payload of a direct caller is not an event of AWS.
fn read_event(sample: &Value) -> serde_json::Result<()> {
    let has = |member: &str| sample.get(member).is_some();
    match () {
        () if has("requestContext") => ApiGatewayV2httpRequest::deserialize(sample).map(drop),
        () if has("detail-type") => EventBridgeEvent::<Value>::deserialize(sample).map(drop),
        () if has("awslogs") => LogsEvent::deserialize(sample).map(drop),
        () if sample["Records"][0]["eventSource"] == "aws:sqs" => {
            SqsEvent::deserialize(sample).map(drop)
        }
        () if has("Records") => dynamodb::Event::deserialize(sample).map(drop),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sample_that_is_no_event_of_its_kind_is_found() {
        for sample in [
            json!({ "requestContext": { "http": {} } }),
            json!({ "detail-type": "Scheduled Event", "detail": {} }),
            json!({ "awslogs": { "data": "" } }),
            json!({ "Records": [{ "eventSource": "aws:sqs", "body": {} }] }),
            json!({ "Records": [{ "eventSource": "aws:dynamodb", "dynamodb": {} }] }),
        ] {
            assert!(read_event(&sample).is_err(), "{sample}");
        }
        for text in [INDEX_GROWN, INDEX_STREAM, SCHEDULE, &HTTP.replace("__body__", "\"{}\"")] {
            read_event(&serde_json::from_str(text).expect("JSON")).expect("an event");
        }
    }

    #[test]
    fn missing_samples_are_written_and_samples_of_no_function_are_deleted_on_demand() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str| write(&root.path().join("events").join(path), "{}");
        write("gone/direct.json");
        write("odd/notes.txt");
        let refused: Refused = |command| {
            let is_it = command == r#"{"roomId":"one"}"#;
            (!is_it).then(|| Problem::malformed("roomId", "is missing"))
        };
        let command = CommandSample {
            context: "rooms",
            has_route: true,
            of_case: Some(r#"{"roomId":"one"}"#.into()),
            refused,
        };
        let needed = |function: &str, samples: &[&str]| {
            (function.to_owned(), samples.iter().map(|sample| (*sample).to_owned()).collect())
        };
        let model = Model::default();
        let samples = Samples {
            needed: [
                needed("book-room", &["direct.json", "http.json"]),
                needed("mail-guest", &["eventbridge.json"]),
            ]
            .into(),
            commands: [("book-room", command)].into(),
            model: &model,
        };
        let differences = |update| samples.differences(root.path(), update);
        let lines = differences(false);
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(lines[..4].iter().all(|line| line.contains("`UPDATE=1 cargo test`")), "{lines:?}");
        for _ in 0..2 {
            let lines = differences(true);
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].ends_with("so delete it by hand"), "{lines:?}");
            assert!(!root.path().join("events/gone").exists());
        }
        // The command has got another field.
        write("book-room/direct.json");
        assert_eq!(differences(false).len(), 3);
        assert_eq!(differences(true).len(), 1);
        assert_eq!(differences(false).len(), 1);
    }
}
