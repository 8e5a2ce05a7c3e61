//! Checks that each function has its part of the template, its route, its rule and its samples.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use aws_lambda_events::cloudwatch_logs::LogsEvent;
use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::{dynamodb, sqs::SqsEvent};
use ringfence_core::kit::{assert_same, fail};
use ringfence_core::{Catalog, Cause, Lane, LogKind, json};
use ringfence_local::stack_root;
use ringfence_local::template::Model;
use ringfence_stack::{Members, Stack};
use ringfence_template::written::StackPlace;
use ringfence_template::{StackTable, compare, tables_of};
use serde::Deserialize;
use serde_json::Value;

use crate::lanes::{IN_ORDER, NOTIFY};
use crate::template::{check_none, differences, model, template};
use crate::variables::the_template_sets_the_variables_that_functions_read;
use crate::written::check_written;

/// The functions that serve all contexts: their logical ids, the names of their programs, and the samples of their
/// invocations.
const SERVING: [(&str, &str, &[&str]); 9] = [
    ("PublishEvents", "publish-events", &["stream.json"]),
    ("IndexEvents", "index-events", &["stream.json"]),
    ("ProjectViews", "project-views", &["stream.json"]),
    ("QueryViews", "query-views", &["http.json", "list.json"]),
    ("FireDeadlines", "fire-deadlines", &[]),
    ("RunCommands", "run-commands", &["http.json", "answer.json", "sqs.json"]),
    ("ForwardSpans", "forward-spans", &["logs.json"]),
    (NOTIFY, "notify-readers", &["stream.json"]),
    (IN_ORDER, "react-in-order", &["eventbridge.json"]),
];

/// The functions that serve all contexts: their logical ids, their programs, and their samples. A stack has all
/// programs, and the template has only the functions that the stack needs.
pub(crate) fn serving() -> impl Iterator<Item = (&'static str, String, &'static [&'static str])> {
    let place = StackPlace::of(&stack_root());
    SERVING.into_iter().map(move |(id, name, samples)| (id, place.program(name), samples))
}

/// Panics unless every function of a context, and every function that serves all contexts, has its part of
/// `template.yaml`, with the variables that it reads, and its samples, and there are no other parts or samples. The
/// message says what to write.
pub fn check_functions<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    check_written(&stack, None);
    check_tables(&stack);
    let model = model();
    contexts_and_views_have_unique_names(&stack);
    a_view_reads_types_that_exist(&stack);
    a_slice_reacts_to_types_that_exist(&stack);
    every_function_is_in_the_template(&stack, &model);
    the_template_sets_the_variables_that_functions_read::<M>(&stack, &model);
    every_function_has_samples_that_the_types_of_its_events_read(&stack, &model);
    a_lane_by_a_tag_is_one_that_every_event_has(&stack);
}

/// The names of all functions.
fn names(stack: &Stack, model: &Model) -> Vec<String> {
    let slices = stack.slices().map(|(_, slice)| slice.name);
    let others = stack.functions().map(|(_, function)| function.name);
    let reactors = stack.reactors().map(|(_, reactor)| reactor.name);
    let is_there = |name: &String| model.functions.iter().any(|function| function.binary == *name);
    let serving = serving().map(|(_, name, _)| name).filter(is_there);
    slices.chain(others).chain(reactors).map(str::to_owned).chain(serving).collect()
}

/// `ringfence template` writes the functions of slices and reactors, and a team writes the others.
fn every_function_is_in_the_template(stack: &Stack, model: &Model) {
    let names = names(stack, model);
    check_once("a binary is built once, so each function needs another name", &names);
    let template = model.functions.iter().map(|function| function.binary.clone()).collect();
    check_none(&differences(
        &template,
        &names.into_iter().collect(),
        |name| format!("template.yaml has no function `Binary: {name}`"),
        |name| {
            format!(
                "template.yaml has a function `Binary: {name}`, but no context lists a function of that name"
            )
        },
    ));
}

fn contexts_and_views_have_unique_names(stack: &Stack) {
    // Otherwise the source of an entry of the EventTopic would be ambiguous.
    let contexts = stack.contexts.iter().map(|context| context.name);
    let views = stack.rows();
    for names in [contexts.collect(), views.iter().map(|view| view.name).collect::<Vec<_>>()] {
        check_once("contexts need different names, and so do views and dues", &names);
        assert!(!names.contains(&"commands"), "the path /commands belongs to queued commands");
        // The name of a context is in the table of a log of streams, and another program may have chosen it.
        let is_stored = |name: &str| stack.context(name).is_some_and(|it| it.log != LogKind::Dcb);
        let wrong: Vec<_> = names.iter().filter(|name| !is_name(name, is_stored(name))).collect();
        assert!(wrong.is_empty(), "these names are not in kebab case: {wrong:?}");
    }
}

/// Panics if a name occurs twice. The message has the rule and the names.
fn check_once<N: AsRef<str>>(rule: &str, names: &[N]) {
    let mut all = BTreeSet::new();
    let twice: Vec<_> = names.iter().map(N::as_ref).filter(|name| !all.insert(*name)).collect();
    assert!(
        twice.is_empty(),
        "{rule}: give one of each of these another name: {}",
        twice.join(", ")
    );
}

/// Whether a text is a valid name: in kebab case, or stored as the name of a store or a category.
fn is_name(name: &str, is_stored: bool) -> bool {
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let stored = |c: char| is_stored && (c.is_ascii_uppercase() || c == '_');
    name.chars().all(|c| kebab(c) || stored(c))
}

fn a_view_reads_types_that_exist(stack: &Stack) {
    for view in stack.rows() {
        for name in view.types {
            assert!(stack.event_types().contains(name), "{} reads {name}", view.name);
        }
    }
}

fn a_slice_reacts_to_types_that_exist(stack: &Stack) {
    for (_, slice) in stack.slices() {
        for Cause { context, event_type, upcasts } in slice.reacts_to {
            let publisher = stack.context(context);
            let exists = publisher
                .is_some_and(|context| context.event_types.iter().any(|name| name == event_type));
            assert!(
                exists,
                "{} reacts to {event_type} of {context}, which does not exist",
                slice.name
            );
            let declares = |of: &&Catalog| of.context(event_type) == Some(*context);
            let catalog = stack.catalogs.0.iter().find(declares);
            let (known, written) =
                (upcasts.version(), catalog.map_or(1, |of| of.version(event_type)));
            assert_eq!(
                known, written,
                "{} knows {event_type} of {context} up to version {known}, and it is written in version {written}: \
                 write Cause::of::<{event_type}>({context:?}), or Cause::named with its upcasts",
                slice.name
            );
        }
    }
}

/// A lane by a tag handles the events that have exactly one such tag.
fn a_lane_by_a_tag_is_one_that_every_event_has(stack: &Stack) {
    let of_slices = stack.slices().flat_map(|(_, slice)| {
        let types = slice.reacts_to.iter().map(|cause| cause.event_type);
        types.map(move |event_type| (slice.name, slice.order, event_type))
    });
    let of_reactors = stack.reactors().flat_map(|(_, reactor)| {
        let lane = Some(reactor.lane);
        reactor.reads.iter().map(move |event_type| (reactor.name, lane, *event_type))
    });
    for (name, lane, event_type) in of_slices.chain(of_reactors) {
        let Some(Lane::Tag(key)) = lane else { continue };
        let schema = stack.catalogs.0.iter().find_map(|catalog| catalog.schema(event_type));
        let tag = schema.and_then(|schema| schema.tags.iter().find(|tag| tag.key == key));
        assert!(
            tag.is_some_and(|tag| !tag.many && tag.required),
            "{name}: its lanes go by {key}, but not every {event_type} has one {key}"
        );
    }
}

/// The names of a folder's entries that are not hidden.
pub(crate) fn entries(folder: &Path) -> BTreeSet<String> {
    let found = fs::read_dir(folder).unwrap_or_else(|error| fail(folder.display(), error));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    found.filter_map(name).filter(|name| !name.starts_with('.')).collect()
}

fn every_function_has_samples_that_the_types_of_its_events_read(stack: &Stack, model: &Model) {
    let events = stack_root().join("events");
    let lacking = |name: &String| {
        format!("events/{name} is missing: `cargo new-slice <context>/{name}` writes it")
    };
    let extra = |name: &String| format!("events/{name} has samples, but there is no such function");
    let expected: BTreeSet<_> = names(stack, model).into_iter().collect();
    // Samples of a function that this stack does not need are allowed.
    let mut found = entries(&events);
    found.retain(|name| expected.contains(name) || serving().all(|(_, of, _)| of != *name));
    check_none(&differences(&found, &expected, lacking, extra));
    let slices = stack.slices().map(|(context, slice)| {
        let path = format!("/{}/{}", context.name, slice.name);
        (slice.name.to_owned(), &["http.json", "direct.json"][..], Some(path))
    });
    let others = stack.functions().map(|(_, function)| {
        let samples: &[&str] = if function.get.is_some() { &["http.json"] } else { &[] };
        (function.name.to_owned(), samples, None)
    });
    let reactors = stack
        .reactors()
        .map(|(_, reactor)| (reactor.name.to_owned(), &["eventbridge.json"][..], None));
    let serving = serving().map(|(_, name, samples)| (name, samples, None));
    let serving = serving.filter(|(name, ..)| expected.contains(name));
    for (function, samples, path) in slices.chain(others).chain(reactors).chain(serving) {
        let folder = events.join(&function);
        let scheduled = model.schedules.iter().any(|schedule| schedule.target.function == function);
        for sample in samples.iter().chain(scheduled.then_some(&"schedule.json")) {
            let sample = folder.join(sample);
            assert!(sample.exists(), "{} is missing: copy a neighbour's", sample.display());
        }
        for name in entries(&folder).iter().filter(|name| name.ends_with(".json")) {
            let sample = folder.join(name);
            let shown = format!("events/{function}/{name}");
            let text = fs::read_to_string(&sample).unwrap_or_else(|e| fail(&shown, e));
            let json = json::read(&text, json::LEVELS_MAX).unwrap_or_else(|e| fail(&shown, e));
            read_event(&json).unwrap_or_else(|e| fail(&shown, e));
            if name == "http.json" && path.is_some() {
                let found = &json["requestContext"]["http"]["path"];
                assert_same(format!("{shown}: requestContext.http.path"), &path, found);
            }
        }
    }
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

/// Panics unless the tables of the template have the layouts that the catalog needs, also with a team's settings.
fn check_tables(stack: &Stack) {
    let template = template(&stack_root());
    let mut lines = Vec::new();
    for StackTable { id, layout, .. } in tables_of(&stack.sources, &stack.catalog) {
        let found = &template["Resources"][id]["Properties"];
        if !found.is_null() {
            lines.extend(
                compare(&layout, found)
                    .iter()
                    .map(|defect| format!("template.yaml: {id}: {defect}")),
            );
        }
    }
    check_none(&lines);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check_once, is_name, read_event};

    #[test]
    #[should_panic(expected = "another name: orders")]
    fn a_repeated_name_is_reported() {
        check_once("names are unique", &["orders", "carts", "orders"]);
    }

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
    }

    #[test]
    fn only_a_context_of_streams_has_the_name_that_a_table_has() {
        assert!(is_name("add-item", false) && is_name("free-rooms-2", true));
        for name in ["ShoppingCart", "CUSTOMERS", "loyalty_points"] {
            assert!(is_name(name, true) && !is_name(name, false), "{name}");
        }
        assert!(!is_name("a b", true) && !is_name("a#b", true));
    }
}
