//! Brings a template that was written by hand, or edited between its marks, into the form that `ringfence template`
//! writes. Unknown parts stay below the marks. A setting that differs goes into the table under `Metadata`. Parts that
//! can't be kept are named. A section whose block has no edits is left as it is.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_new::marks::{Section, sealed, sections};
use ringfence_stack::Stack;
use serde_yaml_ng::{Mapping, Value};

use super::edits::{Change, changes, entries, line, setting};
use super::error::WriteError;
use super::flow::flow;
use super::line_ends::in_its_line_ends;
use super::lines::{Lines, comments};
use super::source::{SECTIONS, Source, StackPlace};
use super::table::with_settings;
use super::write::written;

/// Ids that older releases wrote. project-views does the work of that function now.
const FORMER: [&str; 4] = ["NotifyReaders", "NotifyReadersRole", "RingReaders", "RingReadersRole"];

/// A template that was taken over.
#[derive(Debug)]
pub struct Adopted {
    /// Its text.
    pub text: String,
    /// Parts that were not kept, a line each, with the steps to take.
    pub lost: Vec<String>,
}

/// Takes over a template.
///
/// # Errors
/// As [`written`].
pub fn adopted(text: &str, stack: &Stack, place: &StackPlace) -> Result<Adopted, WriteError> {
    let mut lost = Vec::new();
    let text = in_its_line_ends(text, |text| {
        let taken = taken(text, stack, place)?;
        lost = taken.lost;
        Ok(taken.text)
    })?;
    Ok(Adopted { text, lost })
}

fn taken(text: &str, stack: &Stack, place: &StackPlace) -> Result<Adopted, WriteError> {
    let mut source = Source::of(text, stack, place, None)?;
    let mut known = Source { all: true, ..Source::of(text, stack, place, None)? };
    let had = source.settings.clone();
    // The settings of the API decide whether routes have scopes, and whether there is a user pool, which functions
    // know. A role has the condition of its function. So everything is compared twice, and the second round takes the
    // settings of roles and of all functions.
    let mut found = Found::default();
    for is_last in [false, true] {
        found = Found::default();
        for section in sections(text) {
            found.section(&section, &source, &known)?;
        }
        let set = std::mem::take(&mut found.set).into_iter();
        let follows = |id: &str| id.ends_with("Role") || id == "Globals";
        for (id, name, value) in set.filter(|(id, ..)| is_last || !follows(id)) {
            match had.get(&id, &name) {
                None => source.settings.set(&id, &name, value),
                Some(_) => found.lost.push(format!(
                    "{name} of {id} is set already: {}",
                    setting(&id, &name, &flow(&value))
                )),
            }
        }
        source = source.with_access()?;
        known.pool = source.pool.clone();
    }
    let mut own = String::new();
    for section in sections(text) {
        let Section { name, before, block, after } = section;
        own += before;
        if let Some(body) = by_hand(&section) {
            let all = entries(body)?;
            let lines = Lines::of(name, body, &all, |id| found.is_kept(name, id))?;
            let known = comments(&known.body(name)?);
            let gone = comments(&lines.dropped);
            let mut gone = gone.difference(&known);
            if let Some(first) = gone.next() {
                let more = gone.count();
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                found.lost.push(format!(
                    "{name}: the comment `{first}`{more}: write comments outside of the marks"
                ));
            }
            own += &sealed("");
            if name == "Resources" {
                own += &found.policies(&source, &all)?;
            }
            own += &lines.kept;
        } else if let Some(block) = block {
            own += &sealed(block.body);
        }
        if block.is_some() || by_hand(&section).is_none() {
            own += after;
        }
    }
    let own = with_settings(&own, &had, &source.settings)?;
    let text = written(&own, stack, place, Some(&source.kept_grants()))?;
    Ok(Adopted { text, lost: found.lost })
}

/// Whether a template has marks.
#[must_use]
pub fn has_marks(text: &str) -> bool {
    sections(&text.replace("\r\n", "\n")).iter().any(|section| section.block.is_some())
}

/// The part of a section that a person may have written: the block between its marks if it has edits, or everything if
/// the marks are missing.
fn by_hand<'t>(section: &Section<'t>) -> Option<&'t str> {
    match section.block {
        _ if !SECTIONS.contains(&section.name) => None,
        Some(block) => (!block.is_intact).then_some(block.body),
        None => Some(section.after),
    }
}

/// The results for the parts that a person has written.
#[derive(Default)]
struct Found {
    set: Vec<(String, String, Value)>,
    statements: BTreeMap<String, Vec<Value>>,
    /// The entries that are not kept, with their sections.
    dropped: BTreeSet<(String, String)>,
    lost: Vec<String>,
}

impl Found {
    fn is_kept(&self, section: &str, id: &str) -> bool {
        !self.dropped.contains(&(section.to_owned(), id.to_owned()))
    }

    fn section(
        &mut self,
        section: &Section<'_>,
        source: &Source<'_>,
        known: &Source<'_>,
    ) -> Result<(), WriteError> {
        let (name, is_marked) = (section.name, section.block.is_some());
        let Some(body) = by_hand(section) else { return Ok(()) };
        let (fresh, known) = (entries(&source.body(name)?)?, entries(&known.body(name)?)?);
        for (id, entry) in &entries(body)? {
            let id = flow(id);
            let mut drop = || self.dropped.insert((name.to_owned(), id.clone()));
            let is_known = known.get(&id).filter(|it| it.get("Type") == entry.get("Type"));
            match (fresh.get(&id), is_known) {
                (Some(fresh), any) => {
                    drop();
                    self.entry(name, &id, (entry, fresh, any.unwrap_or(fresh)), is_marked);
                }
                (None, Some(_)) => {
                    drop();
                    self.lost.push(format!("{name}: {id}: the list does not need it"));
                }
                _ if name == "Resources" && FORMER.contains(&&*id) => {
                    drop();
                    self.lost.push(format!("{name}: {id}: ProjectViews does its work now"));
                }
                _ if is_marked && is_of_list(entry) => {
                    drop();
                    self.lost.push(format!(
                        "{name}: {id} does not follow from the list: if it is yours, move it below the closing mark of {name}"
                    ));
                }
                _ => {}
            }
        }
        let found = entries(body)?;
        let gone = fresh.keys().filter(|id| is_marked && !found.contains_key(id)).map(flow);
        self.lost.extend(gone.map(|id| format!("{name}: {id} is gone, and the list needs it")));
        Ok(())
    }

    /// Compares an entry as it is, as it is written, and as a stack with everything has it.
    fn entry(
        &mut self,
        section: &str,
        id: &str,
        (is, fresh, any): (&Value, &Value, &Value),
        is_marked: bool,
    ) {
        for change in changes(section, id, is, fresh, any) {
            match change {
                Change::Set { id, name, value } => self.set.push((id, name, value)),
                Change::Statement { role, statement } => {
                    self.statements.entry(role).or_default().push(statement);
                }
                Change::Lacks(_) if !is_marked => {}
                change => self.lost.push(line(change)),
            }
        }
    }

    /// The statements that only a person wrote, in policies beside their roles.
    fn policies(&self, source: &Source<'_>, all: &Mapping) -> Result<String, WriteError> {
        let written = entries(&source.body("Resources")?)?;
        let policy = |(role, statements): (&String, &Vec<Value>)| {
            let ids = (1..).map(|n| {
                format!("{role}Own{}", if n == 1 { String::new() } else { n.to_string() })
            });
            let own = &source.template["Resources"];
            let is_free = |id: &String| !all.contains_key(&**id) && own.get(&**id).is_none();
            let id = ids.into_iter().find(is_free).unwrap_or_default();
            let condition = written.get(&**role).and_then(|role| role.get("Condition"));
            let condition = condition.map(|it| format!("    Condition: {}\n", flow(it)));
            let lines = statements.iter().map(|it| format!("          - {}\n", flow(it)));
            format!(
                "\n  {id}: # what the role allowed besides\n    Type: AWS::IAM::RolePolicy\n{}    Properties:\n      \
                 RoleName: !Ref {role}\n      PolicyName: {id}\n      PolicyDocument:\n        Version: \"2012-10-17\"\n        \
                 Statement:\n{}",
                condition.unwrap_or_default(),
                lines.collect::<String>()
            )
        };
        Ok(self.statements.iter().map(policy).collect())
    }
}

/// Whether an entry is of a kind that follows from the list. Such an entry between marks may be of a deleted slice.
fn is_of_list(entry: &Value) -> bool {
    let kind = entry.get("Type").and_then(Value::as_str).unwrap_or_default();
    let builds = entry.get("Metadata").and_then(|it| it.get("BuildProperties")?.get("Binary"));
    match kind {
        "AWS::Serverless::Function" => builds.is_some(),
        kind => ["AWS::IAM::Role", "AWS::CloudWatch::Alarm"].contains(&kind),
    }
}
