//! Checks that the template gives each function the variables that it reads.

use std::collections::{BTreeMap, BTreeSet};

use heck::ToPascalCase;
use ringfence_core::{Context, Slice};
use ringfence_feed::index_events::IndexEvents;
use ringfence_lambda::{VariableNames, variables};
use ringfence_local::template::Model;
use ringfence_log::Log;
use ringfence_reactors::{Reactor, ReactorFunction};
use ringfence_services::automations::{Ordered, ReactInOrder};
use ringfence_services::deadlines::{Deadlines, FireDeadlines};
use ringfence_services::project_views::ProjectViews;
use ringfence_services::queue::{QueuedSlices, RunCommands};
use ringfence_services::spans::ForwardSpans;
use ringfence_services::topic::PublishEvents;
use ringfence_stack::{Function, MemberList, Members, Stack, Visitor};
use ringfence_views::query_views::QueryViews;

use crate::lanes::IN_ORDER;
use crate::template::binary;

/// The variables that each function reads, by its name.
struct Read(BTreeMap<&'static str, VariableNames>);

impl Visitor for Read {
    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.0.insert(S::NAME, ringfence_lambda::slice::variables::<S>());
    }

    fn reactor<R: Reactor>(&mut self) {
        self.0.insert(R::NAME, variables::<ReactorFunction<R>>(&()));
    }

    fn function<F: Function>(&mut self) {
        self.0.insert(F::NAME, variables::<F>(&()));
    }
}

/// The variables that each function reads, by its binary.
fn read<M: Members>(stack: &Stack, model: &Model) -> BTreeMap<String, VariableNames> {
    let mut read = Read(BTreeMap::new());
    MemberList::walk::<M>(&mut read);
    let serving = [
        ("PublishEvents", variables::<PublishEvents>(&stack.clone().logs())),
        ("IndexEvents", variables::<IndexEvents>(&stack.clone().logs())),
        ("ProjectViews", variables::<ProjectViews>(&stack.clone().folded())),
        ("QueryViews", variables::<QueryViews>(&stack.views())),
        (IN_ORDER, variables::<ReactInOrder>(&Ordered::of::<M>())),
        ("FireDeadlines", variables::<FireDeadlines>(&Deadlines::of::<M>())),
        ("RunCommands", variables::<RunCommands>(&QueuedSlices::of::<M>())),
        ("ForwardSpans", variables::<ForwardSpans>(&())),
    ];
    // The template of a new stack has variables for functions that it does not need yet.
    let serving = serving.into_iter().map(|(id, names)| (binary(model, id).unwrap_or(id), names));
    let all = read.0.into_iter().chain(serving);
    all.map(|(name, names)| (name.to_owned(), names)).collect()
}

/// The binaries of the functions that need a vault for personal data.
pub(crate) fn with_vaults<M: Members>(stack: &Stack, model: &Model) -> BTreeSet<String> {
    let all = read::<M>(stack, model).into_iter();
    all.filter(|(_, names)| names.have_vault()).map(|(name, _)| name).collect()
}

pub(crate) fn the_template_sets_the_variables_that_functions_read<M: Members>(
    stack: &Stack,
    model: &Model,
) -> Vec<String> {
    let read = read::<M>(stack, model);
    let read = read.iter().map(|(name, names)| (name.as_str(), names)).collect();
    let functions = model.functions.iter();
    let set = functions.map(|function| {
        let names = function.environment.keys().map(String::as_str);
        (function.binary.as_str(), names.collect::<BTreeSet<_>>())
    });
    differing(&read, &set.collect())
}

/// A line for each variable that a function lacks, and for each that nothing reads.
fn differing(
    read: &BTreeMap<&str, &VariableNames>,
    set: &BTreeMap<&str, BTreeSet<&str>>,
) -> Vec<String> {
    // Each function has the variables of `Globals`, whether it reads them or not.
    let mut common = set.values().flatten().copied().collect::<BTreeSet<_>>();
    common.retain(|variable| set.values().all(|names| names.contains(variable)));
    let mut lines = Vec::new();
    let mut known_to_any = BTreeSet::new();
    for (name, VariableNames { required, optional }) in read {
        let required = required.iter().map(String::as_str).collect::<BTreeSet<_>>();
        let known = required.iter().copied().chain(optional.iter().map(String::as_str));
        let known = known.collect::<BTreeSet<_>>();
        known_to_any.extend(known.iter().copied());
        let Some(set) = set.get(name) else { continue };
        lines.extend(required.difference(set).map(|variable| {
            format!(
                "template.yaml: the Environment of {name}, or of Globals, lacks {variable}, which {name} requires: write, \
                 in the section Metadata,\n  Ringfence:\n    {}: {{ Environment: {{ Variables: {{ {variable}: … }} }} }}",
                name.to_pascal_case()
            )
        }));
        lines.extend(set.iter().filter(|it| !common.contains(*it) && !known.contains(*it)).map(
            |variable| {
                format!(
                    "template.yaml: the Environment of {name} has {variable}, which {name} does not read"
                )
            },
        ));
    }
    lines.extend(common.difference(&known_to_any).map(|variable| {
        format!("template.yaml: the Environment of Globals has {variable}, which no function reads")
    }));
    lines
}

#[test]
fn a_variable_that_is_missing_or_that_nothing_reads_is_named() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let reads = |required: &[&str], optional: &[&str]| VariableNames {
        required: names(required),
        optional: names(optional),
    };
    let (a, b) = (reads(&["TABLE"], &["CACHE"]), reads(&["BUS"], &[]));
    let read = BTreeMap::from([("a", &a), ("b", &b)]);
    let set = |a: &[&'static str], b: &[&'static str]| {
        let set = |names: &[&'static str]| names.iter().copied().collect();
        differing(&read, &BTreeMap::from([("a", set(a)), ("b", set(b))]))
    };
    assert_eq!(set(&["TABLE", "BUS"], &["TABLE", "BUS"]), [""; 0]);
    assert_eq!(set(&["TABLE", "CACHE"], &["BUS"]), [""; 0]);
    let lines = set(&["TABLE", "BUS", "MODE"], &["CACHE", "MODE"]);
    let said = ["of b, or of Globals, lacks BUS", "of a has BUS", "of b has CACHE", "has MODE"];
    assert_eq!(lines.len(), said.len(), "{lines:?}");
    for said in said {
        assert!(lines.iter().any(|line| line.contains(said)), "{said}: {lines:?}");
    }
}
