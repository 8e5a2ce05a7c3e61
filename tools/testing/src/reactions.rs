//! A slice's rule takes the events that the slice says it reacts to.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::Cause;
use ringfence_stack::Stack;
use serde_json::Value;

use crate::template::{check_none, differences, resources};

/// The pattern of a rule that takes these events, as the template writes it.
fn pattern(causes: &[Cause]) -> Option<String> {
    let list = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let contexts = list(causes.iter().map(|cause| cause.context).collect());
    let types = list(causes.iter().map(|cause| cause.event_type).collect());
    (!causes.is_empty()).then(|| format!("{{ source: [{contexts}], detail-type: [{types}] }}"))
}

/// The pattern of a function's rule in the same form, or as JSON if it has another one.
fn found(function: &Value) -> Option<String> {
    let pattern = function["Events"].get("Rule")?.pointer("/Properties/Pattern")?;
    let texts = |name: &str| {
        let names = pattern[name].as_array()?.iter().map(Value::as_str);
        let mut names = names.collect::<Option<Vec<_>>>()?;
        names.sort_unstable();
        Some(names.join(", "))
    };
    let fields = pattern.as_object().map_or(0, serde_json::Map::len);
    let list = texts("source").zip(texts("detail-type")).filter(|_| fields == 2);
    Some(list.map_or_else(
        || pattern.to_string(),
        |(contexts, types)| format!("{{ source: [{contexts}], detail-type: [{types}] }}"),
    ))
}

pub(crate) fn the_rule_of_a_slice_takes_the_events_that_the_slice_reacts_to_and_no_others(
    stack: &Stack,
    template: &Value,
) {
    let ids = resources(template, "AWS::Serverless::Function").into_iter();
    let binary = |id: &str| {
        let properties = &template["Resources"][id]["Metadata"]["BuildProperties"];
        properties["Binary"].as_str().unwrap_or_default().to_owned()
    };
    let rules: BTreeMap<String, Option<String>> =
        ids.map(|(id, function)| (binary(&id), found(&function))).collect();
    let rules = rules.into_iter().filter_map(|(slice, rule)| Some((slice, rule?))).collect();
    let expected = stack
        .slices()
        .filter(|(_, slice)| slice.order.is_none())
        .filter_map(|(_, slice)| Some((slice.name.to_owned(), pattern(slice.reacts_to)?)));
    let is_ordered =
        |name: &str| stack.slices().any(|(_, slice)| slice.name == name && slice.order.is_some());
    check_none(&differences(
        &rules,
        &expected.collect(),
        |(slice, pattern)| {
            format!(
                "template.yaml: the Rule of {slice} lacks `Pattern: {pattern}`, which is its REACTS_TO"
            )
        },
        |(slice, pattern)| match is_ordered(slice) {
            true => format!(
                "template.yaml: {slice} has a Rule, but its ORDER feeds it from the index: take the Rule out, and its \
                 EventInvokeConfig"
            ),
            false => format!(
                "template.yaml: the Rule of {slice} has `Pattern: {pattern}`, which is not its REACTS_TO"
            ),
        },
    ));
}

#[test]
fn a_rule_is_compared_whole_and_whatever_the_order_of_its_lists() {
    let rule = |pattern: Value| {
        found(
            &serde_json::json!({ "Events": { "Rule": { "Properties": { "Pattern": pattern } } } }),
        )
    };
    let cause = |context, event_type| Cause::named(context, event_type);
    let causes = [cause("carts", "CheckedOut"), cause("carts", "Cleared")];
    let lists =
        serde_json::json!({ "source": ["carts"], "detail-type": ["Cleared", "CheckedOut"] });
    assert_eq!(rule(lists.clone()), pattern(&causes));
    let mut narrower = lists;
    narrower["detail"] = serde_json::json!({ "slot": [1] });
    assert_eq!(rule(narrower.clone()), Some(narrower.to_string()));
    assert_eq!((found(&Value::Null), pattern(&[])), (None, None));
}
