//! Under `UPDATE=1` a check writes into `template.yaml` what it would otherwise ask for: the indexes of the events, the
//! scopes of routes, and what roles allow. It changes the text, so that what a person wrote around it stays. What it can't write, it still
//! asks for.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_local::template::{Excess, Fix, LackingPermission, Part, Permission, Template};
use ringfence_template::template::{joined, resource};
use serde_yaml_ng::Value;

/// What a check says if it could have written what it asks for.
pub(crate) const HINT: &str = "`UPDATE=1 cargo test` writes this";

/// Whether checks write.
pub(crate) fn is_asked() -> bool {
    env::var_os("UPDATE").is_some()
}

/// Changes the template. Checks run side by side, and those that only read find the text before or after. A text that
/// is not a template any more is not written; then the check asks for the change.
pub(crate) fn template(change: impl FnOnce(String) -> String) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (path, new) = (stack_root().join("template.yaml"), stack_root().join("template.yaml.new"));
    let before = fs::read_to_string(&path).unwrap_or_else(|error| fail(path.display(), error));
    let after = change(before.clone());
    if after != before && Template::parse(&after).is_ok() {
        let written = fs::write(&new, after).and_then(|()| fs::rename(&new, &path));
        written.unwrap_or_else(|error| fail(path.display(), error));
        eprintln!("wrote {}", path.display());
    }
}

/// The route of this path with these scopes. `None` if a person has to write them, because the route is written in
/// another form than that of `new-slice`, or has more under `Auth`.
pub(crate) fn with_scopes(text: &str, path: &str, scopes: &BTreeSet<String>) -> Option<String> {
    const AUTH: &str = ", Auth: { AuthorizationScopes: [";
    let ends = [format!(" Path: {path}"), format!(" Path: \"{path}\"")];
    let end = |written: &String| {
        let found = text.match_indices(&**written).map(|(at, _)| at + written.len());
        found.filter(|end| text[*end..].starts_with([' ', ','])).last()
    };
    let end = ends.iter().find_map(end)?;
    let (before, rest) = text.split_at(end);
    let rest = match rest.strip_prefix(AUTH) {
        Some(had) => had.split_once("] }")?.1,
        None => rest,
    };
    let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
    let auth = match scopes[..] {
        [] => String::new(),
        _ => format!("{AUTH}{}] }}", scopes.join(", ")),
    };
    rest.starts_with(" }").then(|| format!("{before}{auth}{rest}"))
}

/// A statement of a role.
#[derive(Clone, PartialEq)]
struct Statement {
    actions: Vec<String>,
    /// As the template writes them.
    resources: Vec<String>,
}

/// The role with the permission that it lacks; `None` if a person has to write it.
pub(crate) fn with_access(text: &str, refused: &LackingPermission) -> Option<String> {
    let LackingPermission { role, access, fix } = refused;
    match fix {
        Fix::Conditions { .. } => None,
        Fix::Resource { sid } => {
            with_statement(text, role, sid, |one| one.resources.push(access.yaml()))
        }
        Fix::Action { sid } => {
            with_statement(text, role, sid, |one| one.actions.push(access.action.clone()))
        }
        Fix::Statement => with_new_statement(text, role, access),
    }
}

/// The role without what nothing needs, of one statement. What only some actions of a statement need of only some
/// resources stays: a person has to divide the statement. `None` if nothing else can go.
pub(crate) fn without_excess(text: &str, excess: &[&Excess]) -> Option<String> {
    let Excess { role, sid, .. } = excess.first()?;
    let unused: BTreeSet<_> = excess.iter().filter_map(|one| unused(one)).collect();
    with_statement(text, role, sid, |one| {
        let (actions, resources) = (one.actions.clone(), one.resources.clone());
        let is_unused = |action: &str, resource: &str| {
            unused.contains(&(action.to_owned(), resource.to_owned()))
        };
        one.resources.retain(|it| !actions.iter().all(|action| is_unused(action, it)));
        one.actions.retain(|it| !resources.iter().all(|resource| is_unused(it, resource)));
    })
}

/// The action and the resource, as the template writes it.
fn unused(excess: &Excess) -> Option<(String, String)> {
    let Part::Access { action, resource, arn, .. } = excess.part.clone() else { return None };
    let access = Permission { action, resource, arn, key: None, enclosing: None };
    Some((access.action.clone(), access.yaml()))
}

/// The spaces before a statement's dash.
const DASH: &str = "              - ";

fn with_statement(
    text: &str,
    role: &str,
    sid: &str,
    edit: impl FnOnce(&mut Statement),
) -> Option<String> {
    let (lines, begin, end) = resource(text, role)?;
    let heads = [format!("{DASH}Sid: {sid}"), format!("{DASH}{{ Sid: {sid},")];
    let is_head = |line: &&str| line.trim_end() == heads[0] || line.starts_with(&heads[1]);
    let begin = begin + lines[begin..end].iter().position(is_head)?;
    let deeper = |line: &&&str| line.starts_with("               ");
    let end = begin + 1 + lines[begin + 1..end].iter().take_while(deeper).count();
    let own = &lines[begin..end];
    let yaml: Vec<Value> = serde_yaml_ng::from_str(&own.concat()).ok()?;
    let [yaml] = &yaml[..] else { return None };
    let resources = each(yaml.get("Resource")?).into_iter().map(of_template);
    let mut statement = Statement {
        actions: each(yaml.get("Action")?).into_iter().map(of_template).collect::<Option<_>>()?,
        resources: resources.collect::<Option<_>>()?,
    };
    let before = statement.clone();
    edit(&mut statement);
    if statement == before {
        return None;
    }
    let is_flow = own[0].starts_with(&heads[1]);
    if is_flow && yaml.get("Condition").is_some() {
        return None;
    }
    let (mut kept, mut replaced) = (Vec::new(), false);
    for line in own {
        let is_of_next = line.starts_with("                ") && !line[16..].starts_with(' ');
        if is_of_next || line.starts_with(DASH) {
            replaced = ["Action:", "Resource:"].iter().any(|name| line[16..].starts_with(name));
        }
        let is_replaced = replaced || is_flow;
        // A comment says why something is allowed, so a person has to see the change.
        if is_replaced && line.contains('#') {
            return None;
        }
        if !is_replaced {
            kept.push(*line);
        }
    }
    let flow = [format!("{}\n", heads[0]), "                Effect: Allow\n".to_owned()];
    if is_flow {
        kept.extend(flow.iter().map(String::as_str));
    }
    let two = kept.len().min(2);
    let new = match statement.actions.is_empty() || statement.resources.is_empty() {
        true => String::new(),
        false => joined(&[&kept[..two], &[&statement.yaml()], &kept[two..]]),
    };
    Some(joined(&[&lines[..begin], &[&new], &lines[end..]]))
}

fn with_new_statement(text: &str, role: &str, access: &Permission) -> Option<String> {
    let (lines, begin, end) = resource(text, role)?;
    // Streams of one context are limited to their keys, which a person writes. Keys with a `$` are of the views' table.
    let is_of_streams =
        |line: &&str| line.contains("dynamodb:LeadingKeys") && !line.contains("[\"$");
    if lines[begin..end].iter().any(is_of_streams) {
        return None;
    }
    let sid = access.action.split_once(':')?.1.to_owned();
    let (sid, condition) = match &access.enclosing {
        None => (sid, String::new()),
        Some(operation) => (
            format!("{sid}Within{operation}"),
            format!(
                "                Condition: {{ \"ForAnyValue:StringEquals\": \
                 {{ dynamodb:EnclosingOperation: [{operation}] }} }}\n"
            ),
        ),
    };
    let statement =
        Statement { actions: vec![access.action.clone()], resources: vec![access.yaml()] };
    let head = format!("{DASH}Sid: {sid}\n                Effect: Allow\n");
    Some(joined(&[&lines[..end], &[&head, &statement.yaml(), &condition], &lines[end..]]))
}

impl Statement {
    fn yaml(&self) -> String {
        let list = |items: &[String]| match items {
            [one] => format!(" {one}\n"),
            all => all
                .iter()
                .fold("\n".to_owned(), |list, one| format!("{list}                  - {one}\n")),
        };
        let actions = match &self.actions[..] {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        let resources = list(&self.resources);
        format!("                Action: {actions}\n                Resource:{resources}")
    }
}

fn each(value: &Value) -> Vec<&Value> {
    value.as_sequence().map_or_else(|| vec![value], |list| list.iter().collect())
}

/// The name of an action, or a resource with its tag.
fn of_template(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Tagged(tagged) if tagged.tag == "Sub" => {
            Some(format!("!Sub \"{}\"", tagged.value.as_str()?))
        }
        Value::Tagged(tagged) => Some(format!("{} {}", tagged.tag, tagged.value.as_str()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
