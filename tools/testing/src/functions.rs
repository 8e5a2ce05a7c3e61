//! Checks that each function has its part of the template, its route, its rule and its samples.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ringfence_core::kit::{assert_same, fail};
use ringfence_core::{Catalog, Cause, Lane, LogKind, json};
use ringfence_local::stack_root;
use ringfence_local::template::Model;
use ringfence_stack::{Members, Stack};
use ringfence_template::tables_of;
use ringfence_template::template::{differences as table_differences, with_indexes};

use crate::lanes::{
    IN_ORDER, RING, a_reader_of_lanes_has_a_bell_a_schedule_and_an_alarm, has_lanes, has_ordered,
};
use crate::mend;
use crate::reactions::the_rule_of_a_slice_takes_the_events_that_the_slice_reacts_to_and_no_others;
use crate::scopes::every_route_has_the_scopes_of_its_slice_or_views;
use crate::template::{binary, check_none, differences, model, template};
use crate::variables::the_template_sets_the_variables_that_functions_read;

/// The functions that serve all contexts, by their logical ids in every template, each with the samples that show how
/// it is invoked.
const SERVING: [(&str, &[&str]); 7] = [
    ("PublishEvents", &["stream.json"]),
    ("IndexEvents", &["stream.json"]),
    ("ProjectViews", &["stream.json"]),
    ("QueryViews", &["http.json", "list.json"]),
    ("FireDeadlines", &[]),
    ("RunCommands", &["http.json", "answer.json", "sqs.json"]),
    ("ForwardSpans", &["logs.json"]),
];

/// The binaries of the functions that serve all contexts, each with its samples.
pub(crate) fn serving<'m>(
    stack: &Stack,
    model: &'m Model,
) -> Vec<(&'m str, &'static [&'static str])> {
    let ring = has_lanes(stack).then_some((RING, &["stream.json"][..]));
    let in_order = has_ordered(stack).then_some((IN_ORDER, &["eventbridge.json"][..]));
    let all = SERVING.into_iter().chain(ring).chain(in_order);
    all.map(|(id, samples)| (binary(model, id), samples)).collect()
}

/// Panics unless every function of a context, and every function that serves all contexts, has its part of
/// `template.yaml`, with the variables that it reads, and its samples, and nothing else has them. The message says what
/// to write.
pub fn check_functions<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    check_tables(&stack);
    let model = model();
    contexts_and_views_have_names_of_their_own(&stack);
    a_view_reads_types_that_exist(&stack);
    a_slice_reacts_to_types_that_exist(&stack);
    every_function_has_its_template_entry_and_nothing_else_has_one(&stack, &model);
    every_slice_answers_post_at_its_own_path_and_what_reads_views_answers_get(&stack, &model);
    every_route_has_the_scopes_of_its_slice_or_views(&stack);
    the_template_sets_the_variables_that_functions_read::<M>(&stack, &model);
    every_function_has_sample_payloads_that_parse(&stack, &model);
    let template = template(&stack_root());
    the_rule_of_a_slice_takes_the_events_that_the_slice_reacts_to_and_no_others(&stack, &template);
    a_reader_of_lanes_has_a_bell_a_schedule_and_an_alarm(&stack, &model, &template);
    a_lane_by_a_tag_is_one_that_every_event_has(&stack);
}

/// The names of all functions.
fn names(stack: &Stack, model: &Model) -> Vec<String> {
    let slices = stack.slices().map(|(_, slice)| slice.name);
    let others = stack.functions().map(|(_, function)| function.name);
    let reactors = stack.reactors().map(|(_, reactor)| reactor.name);
    let serving = serving(stack, model).into_iter().map(|(name, _)| name);
    slices.chain(others).chain(reactors).chain(serving).map(str::to_owned).collect()
}

fn contexts_and_views_have_names_of_their_own(stack: &Stack) {
    // The source of an entry of the EventTopic would not say whose event it is.
    let contexts = stack.contexts.iter().map(|context| context.name);
    let views = stack.rows();
    for names in [contexts.collect(), views.iter().map(|view| view.name).collect::<Vec<_>>()] {
        check_once("contexts have names of their own, and so have views and dues", &names);
        assert!(!names.contains(&"commands"), "the path /commands is that of queued commands");
        // The name of a context is in the table of a log of streams, which other programs may have begun.
        let is_stored = |name: &str| stack.context(name).is_some_and(|it| it.log != LogKind::Dcb);
        let wrong: Vec<_> = names.iter().filter(|name| !is_name(name, is_stored(name))).collect();
        assert!(wrong.is_empty(), "these names are not in kebab case: {wrong:?}");
    }
}

/// Panics if a name stands there twice. The message has the rule and the names.
fn check_once<N: AsRef<str>>(rule: &str, names: &[N]) {
    let mut all = BTreeSet::new();
    let twice: Vec<_> = names.iter().map(N::as_ref).filter(|name| !all.insert(*name)).collect();
    assert!(
        twice.is_empty(),
        "{rule}: give one of each of these another name: {}",
        twice.join(", ")
    );
}

/// Whether a text can be a name: in kebab case, or as a store or a category has it.
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
                 write Cause::of::<{event_type}>({context:?}), or Cause::named with upcasts of its own",
                slice.name
            );
        }
    }
}

/// A lane by a tag takes the events that have the tag, once each.
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
            "{name}: its lanes are those of {key}, but not every {event_type} has one {key}"
        );
    }
}

fn every_function_has_its_template_entry_and_nothing_else_has_one(stack: &Stack, model: &Model) {
    let names = names(stack, model);
    check_once("a binary is built once, so each function has a name of its own", &names);
    let unique: BTreeSet<String> = names.iter().cloned().collect();
    let template = model.functions.iter().map(|function| function.binary.clone()).collect();
    check_none(&differences(
        &template,
        &unique,
        |name| {
            format!(
                "template.yaml has no function `Binary: {name}`: `cargo ringfence new-slice <context>/{name}` writes it"
            )
        },
        |name| {
            format!(
                "template.yaml has a function `Binary: {name}`, but no context lists a function of that name"
            )
        },
    ));
}

fn every_slice_answers_post_at_its_own_path_and_what_reads_views_answers_get(
    stack: &Stack,
    model: &Model,
) {
    let own = stack.slices().map(|(context, slice)| {
        ("POST".to_owned(), format!("/{}/{}", context.name, slice.name), slice.name.to_owned())
    });
    let views = ["/{view}", "/{view}/{id+}"];
    let query = binary(model, "QueryViews");
    let views = views.map(|path| ("GET".to_owned(), path.to_owned(), query.to_owned()));
    let others = stack.functions().filter_map(|(_, function)| Some((function.get?, function.name)));
    let others = others.map(|(path, name)| ("GET".to_owned(), path.to_owned(), name.to_owned()));
    let run = binary(model, "RunCommands");
    let queued = [("POST", "/commands/{context}/{slice}"), ("GET", "/commands/{id}")];
    let queued = queued.map(|(method, path)| (method.to_owned(), path.to_owned(), run.to_owned()));
    let expected: BTreeSet<_> = own.chain(others).chain(views).chain(queued).collect();
    let routes = model.routes.iter();
    let routes: BTreeSet<_> = routes
        .map(|route| (route.method.clone(), route.path.clone(), route.function.clone()))
        .collect();
    check_none(&differences(
        &routes,
        &expected,
        |(method, path, name)| {
            format!(
                "template.yaml: the Events of {name} lack \
                 `Http: {{ Type: HttpApi, Properties: {{ ApiId: !Ref Api, Method: {method}, Path: {path} }} }}`"
            )
        },
        |(method, path, name)| {
            format!("template.yaml: {name} answers {method} {path}, but should not")
        },
    ));
}

/// The names of a folder's entries that are not hidden.
pub(crate) fn entries(folder: &Path) -> BTreeSet<String> {
    let found = fs::read_dir(folder).unwrap_or_else(|error| fail(folder.display(), error));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    found.filter_map(name).filter(|name| !name.starts_with('.')).collect()
}

fn every_function_has_sample_payloads_that_parse(stack: &Stack, model: &Model) {
    let events = stack_root().join("events");
    let lacking = |name: &String| {
        format!("events/{name} is missing: `cargo ringfence new-slice <context>/{name}` writes it")
    };
    let extra = |name: &String| format!("events/{name} has samples, but there is no such function");
    let expected = names(stack, model).into_iter().collect();
    check_none(&differences(&entries(&events), &expected, lacking, extra));
    let slices = stack.slices().map(|(context, slice)| {
        let path = format!("/{}/{}", context.name, slice.name);
        (slice.name, &["http.json", "direct.json"][..], Some(path))
    });
    let others = stack.functions().map(|(_, function)| {
        let samples: &[&str] = if function.get.is_some() { &["http.json"] } else { &[] };
        (function.name, samples, None)
    });
    let reactors =
        stack.reactors().map(|(_, reactor)| (reactor.name, &["eventbridge.json"][..], None));
    let serving = serving(stack, model).into_iter().map(|(name, samples)| (name, samples, None));
    for (function, samples, path) in slices.chain(others).chain(reactors).chain(serving) {
        let folder = events.join(function);
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
            if name == "http.json" && path.is_some() {
                let found = &json["requestContext"]["http"]["path"];
                assert_same(format!("{shown}: requestContext.http.path"), &path, found);
            }
        }
    }
}

/// Panics unless the template has the tables that the stack needs. Under `UPDATE=1` it writes their indexes
/// before it looks, as `ringfence schema --fix` does.
pub(crate) fn check_tables(stack: &Stack) {
    let tables = tables_of(&stack.sources, &stack.catalog);
    if mend::is_asked() {
        mend::template(|text| with_indexes(&text, &tables));
    }
    let path = stack_root().join("template.yaml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| fail(path.display(), error));
    let mut lines =
        table_differences(&text, &tables).unwrap_or_else(|error| fail("the template", error));
    if lines.iter().any(|line| line.contains("index")) {
        lines.push(mend::HINT.to_owned());
    }
    check_none(&lines);
}

#[cfg(test)]
mod tests {
    use super::{check_once, is_name};

    #[test]
    #[should_panic(expected = "another name: orders")]
    fn a_name_that_stands_there_twice_is_named() {
        check_once("names are unique", &["orders", "carts", "orders"]);
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
