//! Under `UPDATE=1` a check writes into `template.yaml` what it would otherwise ask for: the indexes of the events, the
//! scopes of routes, and what roles allow. It changes the text, so that what a person wrote around it stays. What it can't write, it still
//! asks for.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

use ringfence::kit::fail;
use ringfence_local::stack_root;
use ringfence_local::template::{Excess, Fix, LackingPermission, Part, Permission, Template};
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

/// The lines of a text, and where those of a resource begin and end.
fn resource<'t>(text: &'t str, id: &str) -> Option<(Vec<&'t str>, usize, usize)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = format!("  {id}:");
    let begin = lines.iter().position(|line| line.trim_end().split(" #").next() == Some(&*head))?;
    let is_inside = |line: &&str| line.starts_with("   ") || line.trim().is_empty();
    let more = lines[begin + 1..].iter().take_while(|line| is_inside(line)).count();
    let blank = lines[..=begin + more].iter().rev().take_while(|line| line.trim().is_empty());
    let end = begin + 1 + more - blank.count();
    Some((lines, begin, end))
}

fn joined(parts: &[&[&str]]) -> String {
    parts.concat().concat()
}

/// EventTable with these indexes, their attributes, and no others.
pub(crate) fn with_indexes(text: &str, needed: &BTreeSet<String>) -> Option<String> {
    const ATTRIBUTE: &str = "        - { AttributeName: ";
    const ATTRIBUTES: &str = "AttributeDefinitions:";
    const INDEX: &str = "        - IndexName: ";
    const INDEXES: &str = "      GlobalSecondaryIndexes:";
    let (lines, begin, end) = resource(text, "EventTable")?;
    let (mut attributes, mut indexes, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut inside, mut section) = (None, false, "");
    for line in &lines[begin..end] {
        if line.starts_with("      ") && !line[6..].starts_with(' ') {
            section = line.trim();
        }
        inside &= line.starts_with("        ");
        inside |= line.starts_with(INDEXES);
        if let Some(attribute) = line.strip_prefix(ATTRIBUTE).filter(|_| section == ATTRIBUTES) {
            let name = attribute.split([',', ' ']).next()?;
            attributes.push((name, (*line).to_owned()));
            at = Some(rest.len());
        } else if let Some(name) = line.strip_prefix(INDEX).filter(|_| inside) {
            indexes.push((name.trim(), (*line).to_owned()));
        } else if inside {
            match indexes.last_mut() {
                Some((_, index)) => index.push_str(line),
                None => rest.push(*line),
            }
        } else {
            rest.push(*line);
        }
    }
    let attribute = |name: &str, of: char| format!("{ATTRIBUTE}{name}, AttributeType: {of} }}\n");
    let key = |name: &str, of: &str| format!("{{ AttributeName: {name}, KeyType: {of} }}");
    attributes.retain(|(name, _)| match *name {
        "at" => !needed.is_empty(),
        name => !name.starts_with("tag_") || needed.contains(name),
    });
    indexes.retain(|(name, _)| needed.contains(*name));
    if !needed.is_empty() && attributes.iter().all(|(name, _)| *name != "at") {
        attributes.push(("at", attribute("at", 'N')));
    }
    for name in needed {
        if attributes.iter().all(|(found, _)| found != name) {
            attributes.push((name, attribute(name, 'S')));
        }
        if indexes.iter().all(|(found, _)| found != name) {
            let keys = [key(name, "HASH"), key("at", "RANGE")].join(", ");
            let index = format!(
                "{INDEX}{name}\n          KeySchema: [{keys}]\n          \
                 Projection: {{ ProjectionType: INCLUDE, NonKeyAttributes: [event, data, tags] }}\n"
            );
            indexes.push((name, index));
        }
    }
    let had = rest.iter().position(|line| line.starts_with(INDEXES));
    let mut section: String = attributes.into_iter().map(|(_, line)| line).collect();
    if had.is_none() && !needed.is_empty() {
        section += "      # An update of a deployed stack adds one index at most.\n";
        section += &format!("{INDEXES}\n");
    }
    let indexes: String = indexes.into_iter().map(|(_, index)| index).collect();
    let (before, after) = rest.split_at(at?);
    let body = match had {
        Some(_) if needed.is_empty() => {
            let after = after.iter().filter(|line| !line.starts_with(INDEXES));
            joined(&[before, &[&section], &after.copied().collect::<Vec<_>>()])
        }
        Some(had) => {
            let (between, after) = after.split_at((had + 1).checked_sub(before.len())?);
            joined(&[before, &[&section], between, &[&indexes], after])
        }
        None => joined(&[before, &[&section, &indexes], after]),
    };
    Some(joined(&[&lines[..begin], &[&body], &lines[end..]]))
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
    let Part::Access { action, resource, .. } = excess.part.clone() else { return None };
    let access = Permission { action, resource, key: None, enclosing: None };
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
