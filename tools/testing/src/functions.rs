//! Checks that each function has its part of the template, its route and its rule.

use std::collections::BTreeSet;

use ringfence_core::{Catalog, Cause, Lane, LogKind};
use ringfence_local::template::Model;
use ringfence_new::near;
use ringfence_stack::{Members, Stack};
use ringfence_template::{StackTable, compare, tables_of};

use crate::listed::names;
use crate::samples::check_samples;
use crate::template::{check_none, differences};
use crate::variables::the_template_sets_the_variables_that_functions_read;
use crate::written::{Current, differences_of_template};

/// Panics unless every function of a context, and every function that serves all contexts, has its part of
/// `template.yaml`, with the variables that it reads, and its samples, and there are no other parts or samples. The
/// message says what to write.
pub fn check_functions<M: Members>() {
    let current = Current::of::<M>();
    let (stack, model) = (&current.stack, current.model());
    let lines = [
        differences_of_template(stack, None),
        tables_have_their_layouts(&current),
        contexts_and_views_have_unique_names(stack),
        a_view_reads_types_that_exist(stack),
        a_slice_reacts_to_types_that_exist(stack),
        every_function_is_in_the_template(stack, &model),
        the_template_sets_the_variables_that_functions_read::<M>(stack, &model),
        check_samples::<M>(stack, &model),
        a_lane_by_a_tag_is_one_that_every_event_has(stack),
        personal_data_can_be_forgotten(stack),
    ];
    check_none(&lines.concat());
}

/// `ringfence template` writes the functions of slices and reactors, and a team writes the others.
fn every_function_is_in_the_template(stack: &Stack, model: &Model) -> Vec<String> {
    let names = names(stack, model);
    let twice = repeated("a binary is built once, so each function needs another name", &names);
    let template = model.functions.iter().map(|function| function.binary.clone()).collect();
    let lines = differences(
        &template,
        &names.into_iter().collect(),
        |name| format!("template.yaml has no function `Binary: {name}`"),
        |name| {
            format!(
                "template.yaml has a function `Binary: {name}`, but no context lists a function of that name"
            )
        },
    );
    twice.into_iter().chain(lines).collect()
}

fn contexts_and_views_have_unique_names(stack: &Stack) -> Vec<String> {
    // Otherwise the source of an entry of the EventTopic would be ambiguous.
    let contexts = stack.contexts.iter().map(|context| context.name);
    let views = stack.rows();
    let mut lines = Vec::new();
    for names in [contexts.collect(), views.iter().map(|view| view.name).collect::<Vec<_>>()] {
        lines.extend(repeated("contexts need different names, and so do views and dues", &names));
        if names.contains(&"commands") {
            lines.push(
                "the path /commands belongs to queued commands: choose another name".to_owned(),
            );
        }
        // The name of a context is in the table of a log of streams, and another program may have chosen it.
        let is_stored = |name: &str| stack.context(name).is_some_and(|it| it.log != LogKind::Dcb);
        let wrong = names.iter().filter(|name| !is_name(name, is_stored(name)));
        lines.extend(
            wrong.map(|name| format!("the name {name} is not in kebab case, such as cancel-order")),
        );
    }
    lines
}

/// A line if a name occurs twice, with the rule and the names.
fn repeated<N: AsRef<str>>(rule: &str, names: &[N]) -> Option<String> {
    let mut all = BTreeSet::new();
    let twice: Vec<_> = names.iter().map(N::as_ref).filter(|name| !all.insert(*name)).collect();
    let line = || format!("{rule}: give one of each of these another name: {}", twice.join(", "));
    (!twice.is_empty()).then(line)
}

/// Whether a text is a valid name: in kebab case, or stored as the name of a store or a category.
fn is_name(name: &str, is_stored: bool) -> bool {
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let stored = |c: char| is_stored && (c.is_ascii_uppercase() || c == '_');
    name.chars().all(|c| kebab(c) || stored(c))
}

fn a_view_reads_types_that_exist(stack: &Stack) -> Vec<String> {
    let known = stack.event_types();
    let views = stack.rows().into_iter();
    let unknown = views.flat_map(|view| {
        view.types.iter().filter(|name| !known.contains(*name)).map(move |name| (view.name, *name))
    });
    let line = |(view, name): (&str, &str)| {
        format!("{view} reads {name}, which no context declares{}", near(name, &known))
    };
    unknown.map(line).collect()
}

fn a_slice_reacts_to_types_that_exist(stack: &Stack) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, slice) in stack.slices() {
        for Cause { context, event_type, upcasts } in slice.reacts_to {
            let publisher = stack.context(context);
            let exists = publisher
                .is_some_and(|context| context.event_types.iter().any(|name| name == event_type));
            if !exists {
                let near = near(event_type, &stack.event_types());
                lines.push(format!(
                    "{} reacts to {event_type} of {context}, which does not exist{near}",
                    slice.name
                ));
                continue;
            }
            let declares = |of: &&Catalog| of.context(event_type) == Some(*context);
            let catalog = stack.catalogs.0.iter().find(declares);
            let (known, newest) =
                (upcasts.version(), catalog.map_or(1, |of| of.version(event_type)));
            if known != newest {
                lines.push(format!(
                    "{} knows {event_type} of {context} up to version {known}, and its newest version is {newest}: \
                     write Cause::of::<{event_type}>({context:?}), or Cause::named with its upcasts",
                    slice.name
                ));
            }
        }
    }
    lines
}

/// A lane by a tag handles the events that have exactly one such tag.
fn a_lane_by_a_tag_is_one_that_every_event_has(stack: &Stack) -> Vec<String> {
    let of_slices = stack.slices().flat_map(|(_, slice)| {
        let types = slice.reacts_to.iter().map(|cause| cause.event_type);
        types.map(move |event_type| (slice.name, slice.order, event_type))
    });
    let of_reactors = stack.reactors().flat_map(|(_, reactor)| {
        let lane = Some(reactor.lane);
        reactor.reads.iter().map(move |event_type| (reactor.name, lane, *event_type))
    });
    let lacks = |(name, lane, event_type): (&str, Option<Lane>, &str)| {
        let Some(Lane::Tag(key)) = lane else { return None };
        let schema = stack.catalogs.0.iter().find_map(|catalog| catalog.schema(event_type));
        let tag = schema.and_then(|schema| schema.tags.iter().find(|tag| tag.key == key));
        (!tag.is_some_and(|tag| !tag.many && tag.required)).then(|| {
            format!(
                "{name}: its lanes go by {key}, but not every {event_type} has one {key}: tag each with it, or write \
                 Lane::Partition"
            )
        })
    };
    of_slices.chain(of_reactors).filter_map(lacks).collect()
}

/// A line if a stack has personal data, and nothing in it can forget a person.
pub(crate) fn personal_data_can_be_forgotten(stack: &Stack) -> Vec<String> {
    let forgets = stack.reactors().any(|(_, reactor)| reactor.destroys_keys());
    let line = "the stack has personal data, and nobody can be forgotten: write the line `context \
                ringfence_services::personal_data::PersonalData;` in functions/stack/src/lib.rs";
    (stack.is_personal() && !forgets).then(|| line.to_owned()).into_iter().collect()
}

/// Lines unless the tables of the template have the layouts that the catalog needs, also with a team's settings.
fn tables_have_their_layouts(current: &Current) -> Vec<String> {
    let (template, mut lines) = (current.json(), Vec::new());
    let Stack { sources, catalog, .. } = &current.stack;
    for StackTable { id, layout, .. } in tables_of(sources, catalog, current.stack.is_personal()) {
        let found = &template["Resources"][id]["Properties"];
        if !found.is_null() {
            let defects = compare(&layout, found).into_iter();
            lines.extend(defects.map(|defect| format!("template.yaml: {id}: {defect}")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{is_name, repeated};

    #[test]
    fn a_repeated_name_is_reported() {
        let line = repeated("names are unique", &["orders", "carts", "orders"]);
        assert!(line.is_some_and(|line| line.ends_with("another name: orders")));
        assert_eq!(repeated("names are unique", &["orders", "carts"]), None);
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
