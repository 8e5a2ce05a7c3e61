//! The part of `template.yaml` that follows from the list of the stack. It is written between marks, a pair in each section,
//! and everything outside of them is a team's own. The texts are in `files/`; a line there that begins with a word and a
//! bar is written if the stack has what the word says.

mod adopt;
mod alarms;
mod edits;
mod functions;
mod grants;
mod settings;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ringfence_core::LogKind;
use ringfence_new::marks::{Section, sealed, sections};
use ringfence_stack::{ContextInfo, Stack};
use serde_json::Value;

use self::functions::{has_rule, role_of, table_of};
pub use self::grants::{Grant, Grants};
use self::settings::Settings;
use crate::document::index_yaml;
use crate::{StackTable, tables_of};

pub use self::adopt::{Adopted, adopted};

/// The sections with marks, in their order.
const SECTIONS: [&str; 6] =
    ["Parameters", "Rules", "Conditions", "Globals", "Resources", "Outputs"];

/// What can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The text is not a template.
    #[error("template.yaml is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// It has a value that JSON can't hold.
    #[error("template.yaml has a value that JSON can't hold")]
    Json(#[from] serde_json::Error),
    /// A setting is of nothing that is written.
    #[error("template.yaml: {0}")]
    Settings(String),
    /// A person has changed what is between the marks.
    #[error("template.yaml has edits by hand between its marks, which would be lost:\n{}", .0.join("\n"))]
    Edited(Vec<String>),
}

/// Where a stack is: what the names of its programs begin with, and where cargo builds them.
#[derive(Clone, Debug)]
pub struct Place {
    prefix: String,
    code: &'static str,
}

impl Place {
    /// A stack that is a folder of a workspace shares it with others, so its programs have its name.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        match manifest.lines().any(|line| line == "[workspace]")
            || !root.join("../Cargo.toml").exists()
        {
            true => Self { prefix: String::new(), code: "." },
            false => Self { prefix: format!("{name}-"), code: ".." },
        }
    }

    /// The program of a function that serves all contexts, such as `index-events`.
    #[must_use]
    pub fn program(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// What the written part follows from.
struct Source<'a> {
    stack: &'a Stack,
    place: &'a Place,
    /// The logs whose tables the stack has.
    logs: Vec<LogKind>,
    settings: Settings,
    /// Whether the API asks for tokens.
    takes_tokens: bool,
    /// The template as it is, in which a tag such as `!Ref x` is `{"!Ref": x}`.
    template: Value,
    grants: Option<&'a Grants>,
    /// Whether everything is written that any stack has.
    all: bool,
}

/// `place-order` as `PlaceOrder`.
fn id_of(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The template with what follows from the list of the stack. What the roles of slices allow in the tables of the logs
/// is in `grants`, or stays as it is.
///
/// # Errors
/// The text is not a template, or has settings of something that is not written.
pub fn written(
    text: &str,
    stack: &Stack,
    place: &Place,
    grants: Option<&Grants>,
) -> Result<String, WriteError> {
    let source = Source::of(text, stack, place, grants)?;
    let bodies = SECTIONS.map(|name| Ok((name, source.body(name)?)));
    let bodies: Vec<(&str, String)> = bodies.into_iter().collect::<Result<_, WriteError>>()?;
    source.settings.check(&bodies)?;
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
            if let Some((_, before)) = at.checked_sub(1).and_then(|at| parts.get_mut(at)) {
                before.truncate(before.trim_end().len());
                before.push_str("\n\n");
            }
            let gap = if at < parts.len() { "\n" } else { "" };
            parts.insert(at, (*name, format!("{name}:\n{}{gap}", sealed(body))));
        }
    }
    Ok(parts.into_iter().map(|(_, text)| text).collect())
}

/// Whether a section comes after another one.
fn is_later(name: &str, other: &str) -> bool {
    let place = |name: &str| SECTIONS.iter().position(|it| *it == name);
    place(name).is_some_and(|at| Some(at) > place(other))
}

/// What a person has changed between the marks, as lines that say how to keep it.
///
/// # Errors
/// As [`written`].
pub fn edits(text: &str, fresh: &str) -> Result<Vec<String>, WriteError> {
    edits::edits(text, fresh)
}

impl<'a> Source<'a> {
    fn of(
        text: &str,
        stack: &'a Stack,
        place: &'a Place,
        grants: Option<&'a Grants>,
    ) -> Result<Self, WriteError> {
        let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
        let settings = Settings::of(&yaml);
        let template = serde_json::to_value(yaml)?;
        let logs = stack.sources.iter().map(|log| log.facts().kind).collect();
        let takes_tokens = settings.takes_tokens();
        Ok(Self { stack, place, logs, settings, takes_tokens, template, grants, all: false })
    }

    /// Whether the stack has something, by a word of `files/`.
    fn has(&self, what: &str) -> bool {
        let mut slices = self.stack.slices();
        self.all
            || match what {
                "dcb" => self.logs.contains(&LogKind::Dcb),
                "aggregates" => self.logs.contains(&LogKind::Aggregates),
                "documents" => self.logs.contains(&LogKind::Documents),
                "streams" => self.has("aggregates") || self.has("documents"),
                "slices" => slices.next().is_some(),
                "rules" => slices.any(|(_, slice)| has_rule(slice)),
                "ordered" => slices.any(|(_, slice)| slice.order.is_some()),
                "lanes" => self.has("ordered") || self.stack.reactors().next().is_some(),
                "dues" => self.stack.contexts.iter().any(|context| !context.dues.is_empty()),
                "rows" => !self.stack.rows().is_empty(),
                "views" => !self.stack.views().is_empty(),
                _ => unreachable!("no file has the word {what}"),
            }
    }

    /// The condition under which a function is there.
    fn condition(&self, id: &str) -> Option<String> {
        let own = || self.template["Resources"][id]["Condition"].as_str().map(str::to_owned);
        let is_own = self.stack.functions().any(|(_, function)| id_of(function.name) == id);
        self.settings.get(id, "Condition").map(settings::flow).or_else(|| own().filter(|_| is_own))
    }

    /// The tables, by their logical ids.
    fn tables(&self) -> Vec<&'static str> {
        let logs = self.logs.iter().map(|log| table_of(*log));
        logs.chain(["IndexTable", "ViewTable"]).collect()
    }

    /// The functions whose mappings keep what they give up.
    fn streams(&self) -> Vec<String> {
        let views = self.has("rows").then_some("ProjectViews");
        ["PublishEvents", "IndexEvents"].into_iter().chain(views).map(str::to_owned).collect()
    }

    /// The event source mappings; also those whose records may be lost, if asked.
    fn mappings(&self, all: bool) -> Vec<String> {
        let events = [("dcb", "Stream"), ("aggregates", "Aggregates"), ("documents", "Documents")];
        let of_logs = ["PublishEvents", "IndexEvents"].into_iter().flat_map(|id| {
            let of = events.iter().filter(|(log, _)| self.has(log));
            of.map(move |(_, event)| format!("{id}{event}"))
        });
        let views = self.has("rows").then(|| "ProjectViewsStream".to_owned());
        let ring = (all && self.has("lanes")).then(|| "NotifyReadersStream".to_owned());
        of_logs.chain(views).chain(ring).collect()
    }

    /// The functions that are no slices. A span that is lost is in the log, so forward-spans is not one of them.
    fn watched(&self) -> Vec<String> {
        let serving = |all: &[(&str, &str)]| -> Vec<String> {
            let of = all.iter().filter(|(what, _)| what.is_empty() || self.has(what));
            of.map(|(_, id)| (*id).to_owned()).collect()
        };
        let first = [
            ("", "PublishEvents"),
            ("", "IndexEvents"),
            ("rows", "ProjectViews"),
            ("views", "QueryViews"),
        ];
        let last = [
            ("slices", "RunCommands"),
            ("dues", "FireDeadlines"),
            ("lanes", "NotifyReaders"),
            ("ordered", "ReactInOrder"),
        ];
        let functions = self.stack.functions().map(|(_, function)| id_of(function.name));
        let reactors = self.stack.reactors().map(|(_, reactor)| id_of(reactor.name));
        serving(&first).into_iter().chain(functions).chain(reactors).chain(serving(&last)).collect()
    }

    /// The functions that read views for callers.
    fn readers(&self) -> Vec<String> {
        let functions = self.stack.functions().filter(|(_, function)| function.get.is_some());
        let functions = functions.map(|(_, function)| id_of(function.name));
        functions.chain(self.has("views").then(|| "QueryViews".to_owned())).collect()
    }

    /// What is written in a section.
    fn body(&self, section: &str) -> Result<String, WriteError> {
        let files: &[(&str, &str)] = match section {
            "Parameters" => &[("", include_str!("../files/parameters.yaml"))],
            "Rules" => &[("", include_str!("../files/rules.yaml"))],
            "Conditions" => &[("", include_str!("../files/conditions.yaml"))],
            "Globals" => &[("", include_str!("../files/globals.yaml"))],
            "Outputs" => &[("", include_str!("../files/outputs.yaml"))],
            _ => &[
                ("", include_str!("../files/tables.yaml")),
                ("", include_str!("../files/index.yaml")),
                ("", include_str!("../files/views.yaml")),
                ("slices", include_str!("../files/queue.yaml")),
                ("dues", include_str!("../files/deadlines.yaml")),
                ("", include_str!("../files/way_in.yaml")),
                ("", include_str!("../files/topic.yaml")),
                ("rules", include_str!("../files/automations.yaml")),
                ("lanes", include_str!("../files/lanes.yaml")),
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
        Ok(if section == "Resources" { self.with_statements(text) } else { text })
    }

    /// The resources with what the roles of functions need for the variables that a team has set.
    fn with_statements(&self, mut text: String) -> String {
        for id in self.settings.0.keys().filter_map(|id| id.as_str()) {
            if let Some((_, end)) = settings::range(&text, &format!("{id}Role")) {
                let statements = functions::statements_of(&self.settings.variables(id));
                text.insert_str(end, &statements.concat());
            }
        }
        text
    }

    fn filled(&self, file: &str) -> String {
        let mut text = String::new();
        for line in file.lines() {
            let word =
                |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
            match (line.strip_prefix('@'), line.split_once('|')) {
                (Some("event-indexes"), _) => text += &self.event_indexes(),
                (Some(grants), _) => {
                    let role = grants.trim_start_matches("grants ");
                    if role != "ReactInOrderRole" || self.has("ordered") {
                        text += &self.grants(role);
                    }
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
            .replace("__sources__", &format!("[{contexts}]"))
            .replace("__streams__", &streams)
    }

    /// The event table, if the stack has it.
    fn events(&self) -> Option<StackTable> {
        let tables = tables_of(&self.stack.sources, &self.stack.catalog);
        tables.into_iter().find(|table| table.id == table_of(LogKind::Dcb))
    }

    /// The attributes and the indexes of the event table, one for each tag by which slices read across partitions.
    fn event_indexes(&self) -> String {
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
    fn grants(&self, role: &str) -> String {
        let contexts = || self.stack.contexts.iter().filter(|context| self.asks(role, context));
        let tables: BTreeSet<_> = contexts().map(|context| table_of(context.log)).collect();
        let events = self.events();
        let indexes = events.iter().flat_map(|events| &events.layout.indexes);
        let indexes: Vec<_> = indexes.map(|index| &*index.name).collect();
        let of_cases = self.grants.and_then(|grants| grants.get(role).cloned());
        let mut grants = of_cases.unwrap_or_else(|| grants::of_role(&self.template, role));
        // A table that was not there has what any slice can need, until the cases are run.
        let new = tables.iter().filter(|table| grants.iter().all(|grant| grant.table != **table));
        let new = grants::all(&new.copied().collect(), &indexes);
        grants.extend(new);
        grants.retain(|grant| {
            let is_there = |index: &String| indexes.contains(&&**index);
            tables.contains(&*grant.table) && grant.index.as_ref().is_none_or(is_there)
        });
        grants::statements(&grants, |table| self.keys(role, table))
    }

    /// What the roles of the template allow, which stays until the cases are run.
    fn kept_grants(&self) -> Grants {
        let roles = self.template["Resources"].as_object().into_iter().flatten();
        roles.map(|(role, _)| (role.clone(), grants::of_role(&self.template, role))).collect()
    }

    /// Whether a role carries out commands of a context.
    fn asks(&self, role: &str, context: &ContextInfo) -> bool {
        match role {
            "RunCommandsRole" => true,
            "FireDeadlinesRole" => !context.dues.is_empty(),
            "ReactInOrderRole" => context.slices.iter().any(|slice| slice.order.is_some()),
            _ => role_of(context) == role,
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{Catalog, Catalogs};

    use super::*;

    #[test]
    fn a_stack_on_the_dcb_log_alone_has_three_tables_and_nothing_that_no_function_needs() {
        let catalog = Catalog::new("none", []).expect("no contradiction");
        let catalogs = Catalogs(vec![catalog.clone()]);
        let sources = [ringfence_dcb_log::SOURCE].into();
        let stack = Stack { catalog, catalogs, sources, contexts: Vec::new() };
        let place = Place { prefix: String::new(), code: "." };
        let source = Source::of("Resources:\n", &stack, &place, None).expect("YAML");
        let text = SECTIONS.map(|section| source.body(section).expect("no settings")).concat();
        assert_eq!(text.matches("Type: AWS::DynamoDB::Table\n").count(), 3, "events, index, views");
        for other in ["Aggregate", "AGGREGATE", "DocumentTable", "DocumentStream", "DOCUMENT"] {
            assert!(!text.contains(other), "{other}");
        }
        // No slice, no view, no deadline, no automation.
        for id in ["RunCommands", "QueryViews", "FireDeadlines", "NotifyReaders", "AutomationsDead"] {
            assert!(!text.contains(&format!("  {id}")), "{id}");
        }
    }
}
