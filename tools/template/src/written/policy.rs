//! The statements of a role, and a check whether others cover one.

use serde_yaml_ng::Value;

/// The statements of a role's `Policies`. `None` if they have another form.
pub(super) fn statements(policies: &Value) -> Option<Vec<&Value>> {
    let mut all = Vec::new();
    for policy in each(policies) {
        all.extend(each(policy.get("PolicyDocument")?.get("Statement")?));
    }
    all.iter().all(|statement| statement.is_mapping()).then_some(all)
}

/// Whether statements allow all that this one allows. Only an equal statement covers one that denies.
pub(super) fn is_covered(statement: &Value, by: &[&Value]) -> bool {
    const LISTS: [&str; 2] = ["Action", "Resource"];
    let rest = |statement: &Value| {
        let mut rest = statement.as_mapping().cloned().unwrap_or_default();
        rest.retain(|name, _| !LISTS.iter().chain(&["Sid"]).any(|list| *name == **list));
        rest
    };
    let has = |other: &Value, list: &str, one: &Value| {
        other.get(list).is_some_and(|all| each(all).contains(&one))
    };
    let all = |list: &str| statement.get(list).map(each).unwrap_or_default();
    if LISTS.iter().any(|list| statement.get(*list).is_none()) {
        let is_same = |other: &&&Value| LISTS.iter().all(|it| other.get(*it) == statement.get(*it));
        return by.iter().filter(is_same).any(|other| rest(other) == rest(statement));
    }
    all("Action").into_iter().all(|action| {
        all("Resource").into_iter().all(|resource| {
            by.iter().any(|other| {
                rest(other) == rest(statement)
                    && has(other, "Action", action)
                    && has(other, "Resource", resource)
            })
        })
    })
}

fn each(value: &Value) -> Vec<&Value> {
    // `as_sequence` would look through a tag such as `!If`.
    match value {
        Value::Sequence(all) => all.iter().collect(),
        one => vec![one],
    }
}
