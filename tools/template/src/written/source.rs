//! The facts from which the written part of a template follows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ringfence_core::{Cause, LogKind};
use ringfence_new::is_written;
use ringfence_new::pool::UserPool;
use ringfence_stack::{ContextInfo, SliceInfo, Stack};
use serde_json::Value;

use super::effects::{condition_of, effects};
use super::error::WriteError;
use super::flow::flow;
use super::grants::Grants;
use super::settings::Settings;

/// The sections with marks, in their order.
pub(super) const SECTIONS: [&str; 6] =
    ["Parameters", "Rules", "Conditions", "Globals", "Resources", "Outputs"];

/// The place of a stack: the prefix of its programs' names, and the folder where cargo builds them.
#[derive(Clone, Debug)]
pub struct StackPlace {
    pub(super) prefix: String,
    pub(super) code: &'static str,
}

impl StackPlace {
    /// A stack in a folder of a workspace shares the workspace with others, so the names of its programs begin with its
    /// own name.
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

    /// The place of a stack, if the folder is that stack's: a program must not write another stack's template.
    ///
    /// # Errors
    /// The folder is another stack's.
    pub fn own(root: &Path, stack: &Stack) -> Result<Self, WriteError> {
        let read = |file: &str| {
            fs::read_to_string(root.join("functions/stack").join(file)).unwrap_or_default()
        };
        // Its type, such as `stack::Shop`, is in the list of the folder `functions/stack`.
        let mut names = stack.name.split("::");
        let package = format!("name=\"{}\"", names.next().unwrap_or_default().replace('_', "-"));
        let name = names.last().unwrap_or_default();
        let is_package = |line: &str| line.replace(' ', "").replace('_', "-") == package;
        let list = read("src/lib.rs");
        let mut words = list.split(|c: char| !c.is_alphanumeric() && c != '_');
        match read("Cargo.toml").lines().any(is_package) && words.any(|word| word == name) {
            true => Ok(Self::of(root)),
            false => {
                Err(WriteError::Other { stack: stack.name, folder: root.display().to_string() })
            }
        }
    }

    /// The program of a function that serves all contexts, such as `index-events`.
    #[must_use]
    pub fn program(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// The facts from which the written part follows.
pub(super) struct Source<'a> {
    pub(super) stack: &'a Stack,
    pub(super) place: &'a StackPlace,
    /// The logs whose tables the stack has.
    pub(super) logs: Vec<LogKind>,
    pub(super) settings: Settings,
    /// Whether the API asks for tokens.
    pub(super) takes_tokens: bool,
    /// The user pool, if the API takes its tokens.
    pub(super) pool: Option<UserPool<'static>>,
    /// The template as it is, in which a tag such as `!Ref x` is `{"!Ref": x}`.
    pub(super) template: Value,
    pub(super) grants: Option<&'a Grants>,
    /// Whether all parts are written that any stack can have.
    pub(super) all: bool,
}

/// `place-order` as `PlaceOrder`.
pub(super) fn id_of(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The logical id of a log's table.
#[must_use]
pub fn table_of(log: LogKind) -> &'static str {
    match log {
        LogKind::Dcb => "EventTable",
        LogKind::Aggregates => "AggregateTable",
        LogKind::Documents => "DocumentTable",
    }
}

/// The prefix of the keys of a context's streams.
pub(super) fn prefix(context: &ContextInfo) -> Option<String> {
    match context.log {
        LogKind::Dcb => None,
        LogKind::Aggregates => Some(format!("{}#*", context.name)),
        LogKind::Documents => Some(format!("{}-*", context.name)),
    }
}

/// The role of a context's slices. All contexts on the DCB log share one.
pub(super) fn role_of(context: &ContextInfo) -> String {
    match context.log {
        LogKind::Dcb => "DcbLogRole".to_owned(),
        LogKind::Aggregates | LogKind::Documents => format!("{}Role", id_of(context.name)),
    }
}

/// The text of a route's scopes.
pub(super) fn scopes(of: &BTreeSet<&str>) -> String {
    let of: Vec<_> = of.iter().copied().collect();
    match of[..] {
        [] => String::new(),
        _ => format!(", Auth: {{ AuthorizationScopes: [{}] }}", of.join(", ")),
    }
}

/// The pattern of the rule for the events that a slice reacts to.
pub(super) fn pattern(causes: &[Cause]) -> String {
    let list = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let contexts = list(causes.iter().map(|cause| cause.context).collect());
    let types = list(causes.iter().map(|cause| cause.event_type).collect());
    format!("{{ source: [{contexts}], detail-type: [{types}] }}")
}

/// Whether a rule of the EventTopic invokes the slice.
pub(super) fn has_rule(slice: &SliceInfo) -> bool {
    slice.order.is_none() && !slice.reacts_to.is_empty()
}

/// Checks that no function of the list and no role of a context has the name of another written part.
fn check_names(stack: &Stack) -> Result<(), WriteError> {
    let slices = stack.slices().map(|(_, slice)| ("slice", slice.name, id_of(slice.name)));
    let reactors =
        stack.reactors().map(|(_, reactor)| ("reactor", reactor.name, id_of(reactor.name)));
    let contexts = stack.contexts.iter().filter(|context| context.log != LogKind::Dcb);
    let contexts = contexts.map(|context| ("context", context.name, role_of(context)));
    let mut ids = BTreeSet::new();
    for (what, name, id) in slices.chain(reactors).chain(contexts) {
        if is_written(&id) || !ids.insert(id.clone()) {
            return Err(WriteError::Name(format!(
                "the {what} {name}: another thing in template.yaml has its id {id}"
            )));
        }
    }
    Ok(())
}

/// Cognito can't give a scope.
fn no_server(scope: &str) -> WriteError {
    WriteError::Settings(format!(
        "the scope {scope}: a user pool gives scopes of the form <server>/<name>, whose servers differ in their letters or digits: rename it, or let the API take tokens of \
         your own issuer (Metadata: Ringfence: Api: Auth without MakesUserPool)"
    ))
}

impl<'a> Source<'a> {
    pub(super) fn of(
        text: &str,
        stack: &'a Stack,
        place: &'a StackPlace,
        grants: Option<&'a Grants>,
    ) -> Result<Self, WriteError> {
        check_names(stack)?;
        let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
        let settings = Settings::of(&yaml)?;
        let template = serde_json::to_value(yaml)?;
        let logs = stack.sources.iter().map(|log| log.facts().kind).collect();
        let (takes_tokens, pool, all) = (false, None, false);
        let source =
            Self { stack, place, logs, settings, takes_tokens, pool, template, grants, all };
        source.with_access()
    }

    /// With what follows from the settings of the API.
    pub(super) fn with_access(mut self) -> Result<Self, WriteError> {
        self.takes_tokens = self.settings.takes_tokens();
        self.pool = match self.settings.makes_pool() {
            false => None,
            true => Some(UserPool::of(&self.all_scopes()).map_err(no_server)?),
        };
        Ok(self)
    }

    /// The scopes of all slices and views.
    fn all_scopes(&self) -> BTreeSet<&'static str> {
        let slices = self.stack.slices().flat_map(|(_, slice)| slice.scopes.unwrap_or_default());
        slices.chain(self.stack.views().iter().flat_map(|view| view.scopes)).copied().collect()
    }

    /// Whether the stack has the thing that a word of `files/` names.
    pub(super) fn has(&self, what: &str) -> bool {
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
                "both" => self.stack.reactors().any(|(_, it)| effects(it).count() == 2),
                "mail" | "webhook" => {
                    let mut all = self.stack.reactors().flat_map(|(_, it)| effects(it));
                    all.any(|effect| effect.word == what)
                }
                "dues" => self.stack.contexts.iter().any(|context| !context.dues.is_empty()),
                "rows" => !self.stack.rows().is_empty(),
                "followers" => self.has("rows") || self.has("lanes"),
                "views" => !self.stack.views().is_empty(),
                "personal" => self.stack.is_personal(),
                _ => unreachable!("no file has the word {what}"),
            }
    }

    /// The condition of a function.
    pub(super) fn condition(&self, id: &str) -> Option<String> {
        let own = || self.template["Resources"][id]["Condition"].as_str().map(str::to_owned);
        let is_own = self.stack.functions().any(|(_, function)| id_of(function.name) == id);
        let reactor = self.stack.reactors().find(|(_, reactor)| id_of(reactor.name) == id);
        let of_effects = || reactor.and_then(|(_, it)| condition_of(it)).map(str::to_owned);
        let set = self.settings.get(id, "Condition").map(flow);
        set.or_else(|| own().filter(|_| is_own)).or_else(of_effects)
    }

    /// The tables, by their logical ids.
    pub(super) fn tables(&self) -> Vec<&'static str> {
        let logs = self.logs.iter().map(|log| table_of(*log));
        let keys = self.has("personal").then_some("KeyTable");
        logs.chain(["IndexTable", "ViewTable"]).chain(keys).collect()
    }

    /// The functions whose mappings keep the batches that they give up.
    pub(super) fn streams(&self) -> Vec<String> {
        let views = self.has("followers").then_some("ProjectViews");
        ["PublishEvents", "IndexEvents"].into_iter().chain(views).map(str::to_owned).collect()
    }

    /// The event source mappings, with their functions.
    pub(super) fn mappings(&self) -> Vec<(&'static str, String)> {
        let events = [("dcb", "Stream"), ("aggregates", "Aggregates"), ("documents", "Documents")];
        let of_logs = ["PublishEvents", "IndexEvents"].into_iter().flat_map(|id| {
            let of = events.iter().filter(|(log, _)| self.has(log));
            of.map(move |(_, event)| (id, *event))
        });
        let views = self.has("followers").then_some(("ProjectViews", "Stream"));
        of_logs.chain(views).map(|(id, event)| (id, format!("{id}{event}"))).collect()
    }

    /// The functions that are not slices, without forward-spans: a lost span is still in the log.
    pub(super) fn watched(&self) -> Vec<String> {
        let serving = |all: &[(&str, &str)]| -> Vec<String> {
            let of = all.iter().filter(|(what, _)| what.is_empty() || self.has(what));
            of.map(|(_, id)| (*id).to_owned()).collect()
        };
        let first = [
            ("", "PublishEvents"),
            ("", "IndexEvents"),
            ("followers", "ProjectViews"),
            ("views", "QueryViews"),
        ];
        let last =
            [("slices", "RunCommands"), ("dues", "FireDeadlines"), ("ordered", "ReactInOrder")];
        let functions = self.stack.functions().map(|(_, function)| id_of(function.name));
        let reactors = self.stack.reactors().map(|(_, reactor)| id_of(reactor.name));
        serving(&first).into_iter().chain(functions).chain(reactors).chain(serving(&last)).collect()
    }

    /// The functions that read views for callers.
    pub(super) fn readers(&self) -> Vec<String> {
        let functions = self.stack.functions().filter(|(_, function)| function.get.is_some());
        let functions = functions.map(|(_, function)| id_of(function.name));
        functions.chain(self.has("views").then(|| "QueryViews".to_owned())).collect()
    }
}
