//! The written part of a template.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::LogKind;
use ringfence_new::marks::{Section, sealed, sections};
use ringfence_new::pool::UserPool;
use ringfence_stack::Stack;
use serde_yaml_ng::Value;

use super::conditions::check_conditions;
use super::edits::entries;
use super::error::WriteError;
use super::flow::flow;
use super::functions::asks;
use super::grants::{self, Grants};
use super::line_ends::in_its_line_ends;
use super::policy::statements;
use super::settings;
use super::source::{SECTIONS, Source, StackPlace, table_of};
use super::variables::{Statement, statements_of};
use crate::document::index_yaml;
use crate::{StackTable, tables_of};

/// Writes the parts that follow from the list of the stack into the template. `grants` are the permissions of the roles
/// of slices in the tables of the logs. Without `grants`, they stay as they are.
///
/// # Errors
/// The text is not a template, or has settings of parts that are not written.
pub fn written(
    text: &str,
    stack: &Stack,
    place: &StackPlace,
    grants: Option<&Grants>,
) -> Result<String, WriteError> {
    in_its_line_ends(text, |text| with_written(text, stack, place, grants))
}

fn with_written(
    text: &str,
    stack: &Stack,
    place: &StackPlace,
    grants: Option<&Grants>,
) -> Result<String, WriteError> {
    let source = Source::of(text, stack, place, grants)?;
    let bodies = SECTIONS.map(|name| Ok((name, source.body(name)?)));
    let bodies: Vec<(&str, String)> = bodies.into_iter().collect::<Result<_, WriteError>>()?;
    source.settings.check(&bodies)?;
    check_conditions(&bodies)?;
    let mut parts: Vec<_> = sections(text)
        .into_iter()
        .map(|Section { name, before, after, .. }| {
            let body = bodies.iter().find(|(of, body)| *of == name && !body.is_empty());
            let block = body.map_or_else(String::new, |(_, body)| sealed(body));
            (name, format!("{before}{block}{after}"))
        })
        .collect();
    for (name, body) in bodies.iter().filter(|(_, body)| !body.is_empty()) {
        if parts.iter().all(|(found, _)| found != name) {
            let at = parts.iter().position(|(found, _)| is_later(found, name));
            let at = at.unwrap_or(parts.len());
            // Comments right before a section are of that section.
            let mut next = String::new();
            if let Some((_, before)) = at.checked_sub(1).and_then(|at| parts.get_mut(at)) {
                next = before.split_off(of_next(before));
                let gap = ["\n\n", "\n", ""];
                let ends = gap.iter().position(|end| before.ends_with(end)).unwrap_or(2);
                before.push_str(if before.is_empty() { "" } else { &"\n\n"[..ends] });
            }
            let gap = if at < parts.len() { "\n" } else { "" };
            parts.insert(at, (*name, format!("{name}:\n{}{gap}{next}", sealed(body))));
        }
    }
    let text: String = parts.into_iter().map(|(_, text)| text).collect();
    // The parser refuses a repeated key.
    match serde_yaml_ng::from_str::<Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            let keys = repeated(&text, &bodies)?;
            Err(WriteError::Marks(if keys.is_empty() {
                error.to_string()
            } else {
                keys.join(", ")
            }))
        }
    }
}

/// The entries that a person has written beside the ones of the marks.
fn repeated(text: &str, bodies: &[(&str, String)]) -> Result<Vec<String>, WriteError> {
    let mut found = Vec::new();
    for Section { name, before, after, .. } in sections(text) {
        let Some((_, body)) = bodies.iter().find(|(of, _)| *of == name) else { continue };
        let (written, own) = (entries(body)?, entries(&format!("{before}{after}"))?);
        let own = own.get(name).and_then(Value::as_mapping);
        let keys = written.keys().filter(|key| own.is_some_and(|own| own.contains_key(key)));
        found.extend(keys.filter_map(Value::as_str).map(str::to_owned));
    }
    Ok(found)
}

/// The beginning of the comments right before the next section.
fn of_next(text: &str) -> usize {
    let comments = text.split_inclusive('\n').rev().take_while(|line| line.starts_with('#'));
    text.len() - comments.map(str::len).sum::<usize>()
}

/// Whether a section comes after another one.
fn is_later(name: &str, other: &str) -> bool {
    let place = |name: &str| SECTIONS.iter().position(|it| *it == name);
    place(name).is_some_and(|at| Some(at) > place(other))
}

impl Source<'_> {
    /// The written part of a section.
    pub(super) fn body(&self, section: &str) -> Result<String, WriteError> {
        let files: &[(&str, &str)] = match section {
            "Parameters" => &[("", include_str!("../../files/parameters.yaml"))],
            "Rules" => &[("", include_str!("../../files/rules.yaml"))],
            "Conditions" => &[("", include_str!("../../files/conditions.yaml"))],
            "Globals" => &[("", include_str!("../../files/globals.yaml"))],
            "Outputs" => &[("", include_str!("../../files/outputs.yaml"))],
            _ => &[
                ("", include_str!("../../files/tables.yaml")),
                ("", include_str!("../../files/index.yaml")),
                ("", include_str!("../../files/views.yaml")),
                ("personal", include_str!("../../files/keys.yaml")),
                ("slices", include_str!("../../files/queue.yaml")),
                ("dues", include_str!("../../files/deadlines.yaml")),
                ("", include_str!("../../files/way_in.yaml")),
                ("", include_str!("../../files/topic.yaml")),
                ("rules", include_str!("../../files/automations.yaml")),
                ("ordered", include_str!("../../files/lanes.yaml")),
            ],
        };
        let files = files.iter().filter(|(what, _)| what.is_empty() || self.has(what));
        let mut parts: Vec<_> = files.map(|(_, file)| self.filled(file)).collect();
        if section == "Resources" {
            parts.extend(self.contexts());
            parts.push(self.alarms());
        }
        let text = parts.join("\n");
        let text = self.settings.apply(section, text)?;
        if section == "Resources" { self.with_statements(text) } else { Ok(text) }
    }

    /// The resources, with the statements that roles need for the variables of their functions.
    fn with_statements(&self, mut text: String) -> Result<String, WriteError> {
        let resources = entries(&text)?;
        let is_resource =
            |id: &str| resources.contains_key(id) || self.template["Resources"].get(id).is_some();
        let has_identity = is_resource("MailIdentity")
            || self.has("mail")
            || self.template["Parameters"].get("MailIdentity").is_some();
        let mut roles: BTreeMap<String, Vec<Statement>> = BTreeMap::new();
        for (id, of) in &resources {
            let role = of.get("Properties").and_then(|of| of.get("Role")).map(flow);
            let role = role
                .as_deref()
                .and_then(|role| role.strip_prefix("!GetAtt ")?.strip_suffix(".Arn"));
            let Some(role) = role else { continue };
            let written = resources.get(role).and_then(|of| of.get("Properties")?.get("Policies"));
            let written = written.and_then(statements).unwrap_or_default();
            let sids: Vec<_> = written.iter().filter_map(|it| it.get("Sid")?.as_str()).collect();
            let all = roles.entry(role.to_owned()).or_default();
            let own = of.get("Properties").and_then(|of| of.get("Environment")?.get("Variables"));
            let own = own.and_then(Value::as_mapping).cloned().unwrap_or_default();
            let variables = self.settings.variables_of_all().into_iter().chain(own).collect();
            for statement in statements_of(&variables, has_identity, is_resource) {
                let same = all.iter().find(|it| it.sid == statement.sid);
                let is_other = same.is_some_and(|same| same.text != statement.text);
                if is_other || sids.contains(&&*statement.sid) {
                    return Err(WriteError::Settings(format!(
                        "the variables of {} need a statement {} in {role}, which has another one of that name: give the \
                         variable another name, or write an AWS::IAM::RolePolicy of your own for it",
                        flow(id),
                        statement.sid
                    )));
                }
                if same.is_none() {
                    all.push(statement);
                }
            }
        }
        for (role, statements) in roles {
            if let Some((_, end)) = settings::range(&text, &role) {
                let lines: String = statements.into_iter().map(|it| it.text).collect();
                text.insert_str(end, &lines);
            }
        }
        Ok(text)
    }

    pub(super) fn filled(&self, file: &str) -> String {
        let mut text = String::new();
        for line in file.lines() {
            let word =
                |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
            match (line.strip_prefix('@'), line.split_once('|')) {
                (Some("event-indexes"), _) => text += &self.event_indexes(),
                (Some(part), _) if part.starts_with("pool ") => {
                    let section = part.trim_start_matches("pool ");
                    text.extend(self.pool.iter().map(|pool| pool.part(section)));
                }
                (Some(bodies), _) if bodies.starts_with("bodies ") => {
                    if self.has(bodies.trim_start_matches("bodies ")) {
                        text += &self.bodies(&[LogKind::Dcb, LogKind::Aggregates]);
                    }
                }
                (Some(grants), _) => {
                    text += &self.grants(grants.trim_start_matches("grants "));
                }
                (None, Some((what, line))) if word(what) => {
                    if self.has(what) {
                        text = text + line + "\n";
                    }
                }
                _ => text = text + line + "\n",
            }
        }
        let contexts: BTreeSet<_> =
            self.stack.contexts.iter().map(|context| context.name).collect();
        let contexts = contexts.into_iter().collect::<Vec<_>>().join(", ");
        let streams = [("aggregates", "Aggregate"), ("documents", "Document"), ("dcb", "Event")];
        let streams = streams.iter().filter(|(log, _)| self.has(log));
        let streams: Vec<_> =
            streams.map(|(_, log)| format!("!GetAtt {log}StreamArn.Value")).collect();
        let streams = match &streams[..] {
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        text.replace("__prefix__", &self.place.prefix)
            .replace("__code__", self.place.code)
            .replace("__of_views__", &self.scopes_of_views())
            .replace(
                "__issuers__",
                self.pool.as_ref().map_or("!Ref JwtIssuers", |_| UserPool::ISSUERS),
            )
            .replace("__sources__", &format!("[{contexts}]"))
            .replace("__caused__", &self.caused())
            .replace("__ordered__", &self.ordered())
            .replace("__streams__", &streams)
    }

    /// The event table, if the stack has it.
    pub(super) fn events(&self) -> Option<StackTable> {
        let tables = tables_of(&self.stack.sources, &self.stack.catalog, false);
        tables.into_iter().find(|table| table.id == table_of(LogKind::Dcb))
    }

    /// The attributes and the indexes of the event table, one for each tag by which slices read across partitions.
    pub(super) fn event_indexes(&self) -> String {
        let Some(events) = self.events() else { return String::new() };
        let (keys, indexes) = (&events.layout.keys, &events.layout.indexes);
        let attributes = events.layout.attributes().into_iter();
        let attributes = attributes.filter(|(name, _)| keys.iter().all(|(key, _)| key != name));
        let attributes = attributes.map(|(name, kind)| {
            format!("        - {{ AttributeName: {name}, AttributeType: {} }}\n", kind.as_str())
        });
        let mut text = attributes.collect::<String>();
        if !indexes.is_empty() {
            text += "      # One index for each tag that is read across partitions, and one for types that are read together. Each\n      \
                     # projects what a decision reads, so a read is one request. An update of a deployed stack adds one at most.\n      \
                     GlobalSecondaryIndexes:\n";
            text.extend(indexes.iter().map(index_yaml));
        }
        text
    }

    /// The statements of a role on the tables of the logs.
    pub(super) fn grants(&self, role: &str) -> String {
        let contexts = || self.stack.contexts.iter().filter(|context| asks(role, context));
        let tables: BTreeSet<_> = contexts().map(|context| table_of(context.log)).collect();
        let events = self.events();
        let indexes = events.iter().flat_map(|events| &events.layout.indexes);
        let indexes: Vec<_> = indexes.map(|index| &*index.name).collect();
        let of_cases = self.grants.and_then(|grants| grants.get(role).cloned());
        let mut grants = of_cases.unwrap_or_else(|| grants::of_role(&self.template, role));
        // A new table has all grants that any slice can need, until the cases are run.
        let new = tables.iter().filter(|table| grants.iter().all(|grant| grant.table != **table));
        let new = grants::all(&new.copied().collect(), &indexes);
        grants.extend(new);
        grants.retain(|grant| {
            let is_there = |index: &String| indexes.contains(&&**index);
            tables.contains(&*grant.table) && grant.index.as_ref().is_none_or(is_there)
        });
        grants::statements(&grants, |table| self.keys(role, table)) + &self.vault(role)
    }

    /// The grants of the template's roles, which stay until the cases are run.
    pub(super) fn kept_grants(&self) -> Grants {
        let roles = self.template["Resources"].as_object().into_iter().flatten();
        roles.map(|(role, _)| (role.clone(), grants::of_role(&self.template, role))).collect()
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{Catalog, Catalogs, Lane};
    use ringfence_new::is_written;
    use ringfence_stack::{ContextInfo, ReactorInfo};

    use super::*;

    /// `new-slice` and `new-context` refuse these names. They have no stack to ask for them.
    #[test]
    fn all_written_ids_are_known() {
        let stack = stack(Vec::new());
        let place = StackPlace { prefix: String::new(), code: "." };
        let with_pool =
            "Metadata: { Ringfence: { Api: { Auth: { JwtConfiguration: MakesUserPool } } } }\n";
        let source = Source::of(with_pool, &stack, &place, None).expect("YAML");
        let source = Source { all: true, ..source };
        let ids = ["Parameters", "Resources"].into_iter().flat_map(|section| {
            entries(&source.body(section).expect("no settings")).expect("YAML").into_iter()
        });
        let ids = ids.map(|(id, _)| flow(&id));
        let mappings = source.mappings().into_iter().map(|(_, id)| id);
        let ids: BTreeSet<_> = ids.chain(mappings).chain(["DcbLogRole".to_owned()]).collect();
        let unknown: Vec<_> = ids.iter().filter(|id| !is_written(id)).collect();
        assert!(unknown.is_empty(), "tools/new/src/ids.rs: WRITTEN lacks {unknown:?}");
        assert_eq!(ringfence_new::written_ids().count(), ids.len(), "it has more");

        // A hand-written list must not have these names either.
        let stack = self::stack(vec![context("dcb-log", LogKind::Aggregates)]);
        let error = written("Resources:\n", &stack, &place, None).unwrap_err().to_string();
        assert_eq!(
            error,
            "the context dcb-log: another thing in template.yaml has its id DcbLogRole: choose another name"
        );
    }

    fn context(name: &'static str, log: LogKind) -> ContextInfo {
        ContextInfo {
            name,
            log,
            event_types: Vec::new(),
            origins: Vec::new(),
            slices: Vec::new(),
            dues: Vec::new(),
            views: Vec::new(),
            reactors: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn stack(contexts: Vec<ContextInfo>) -> Stack {
        let catalog = Catalog::new("none", []).expect("no contradiction");
        let catalogs = Catalogs(vec![catalog.clone()]);
        let sources = [ringfence_dcb_log::SOURCE].into();
        Stack { name: "", catalog, catalogs, sources, contexts }
    }

    #[test]
    fn a_stack_on_the_dcb_log_alone_has_three_tables_and_nothing_that_no_function_needs() {
        let stack = stack(Vec::new());
        let place = StackPlace { prefix: String::new(), code: "." };
        let source = Source::of("Resources:\n", &stack, &place, None).expect("YAML");
        let text = SECTIONS.map(|section| source.body(section).expect("no settings")).concat();
        assert_eq!(text.matches("Type: AWS::DynamoDB::Table\n").count(), 3, "events, index, views");
        for other in ["Aggregate", "AGGREGATE", "DocumentTable", "DocumentStream", "DOCUMENT"] {
            assert!(!text.contains(other), "{other}");
        }
        // No slice, no view, no deadline, no automation.
        for id in ["RunCommands", "QueryViews", "FireDeadlines", "ProjectViews", "AutomationsDead"]
        {
            assert!(!text.contains(&format!("  {id}")), "{id}");
        }
    }

    #[test]
    fn project_views_notifies_a_reactor_of_a_stack_without_views() {
        let reactor = ReactorInfo {
            name: "send-mail",
            lane: Lane::Partition,
            reads: &["Sent"],
            views: &[],
            is_personal: false,
            variables: Default::default,
            plan: |_| Ok(Vec::new()),
        };
        let context = ContextInfo { reactors: vec![reactor], ..context("mails", LogKind::Dcb) };
        let place = StackPlace { prefix: String::new(), code: "." };
        let text = written("Resources:\n", &stack(vec![context]), &place, None).expect("YAML");
        let template: Value = serde_yaml_ng::from_str(&text).expect("YAML");
        let resources = &template["Resources"];
        let of = |id: &str| flow(&resources[id]["Properties"]);
        assert!(of("ProjectViews").contains("EVENT_BUS"), "{}", of("ProjectViews"));
        assert!(of("ProjectViewsRole").contains("events:PutEvents"));
        assert!(of("SendMail").contains("readers: [send-mail]"), "{}", of("SendMail"));
        assert!(resources.get("QueryViews").is_none() && resources.get("ReactInOrder").is_none());
    }
}
