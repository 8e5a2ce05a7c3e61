//! The tables of a template: compared with those that the catalog needs, and with the indexes that they lack.
//!
//! A template is changed as text, so that what a person wrote around it stays.

use ringfence_aws::{IndexLayout, TableLayout};

use crate::compare::{compare, indexes};
use crate::{StackTable, TableDefect};

/// A template that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// It is not YAML.
    #[error("the template is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// It has a value that JSON can't hold.
    #[error("the template has a value that JSON can't hold")]
    Json(#[from] serde_json::Error),
}

/// What the template lacks of the tables, and which indexes it has that nothing reads: a line for each.
///
/// # Errors
/// The text is not a template.
pub fn differences(text: &str, tables: &[StackTable]) -> Result<Vec<String>, TablesError> {
    let yaml: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
    let template = serde_json::to_value(yaml)?;
    let mut lines = Vec::new();
    for StackTable { id, holds, layout } in tables {
        let found = &template["Resources"][*id]["Properties"];
        if found.is_null() {
            lines.push(format!("template.yaml lacks the table {id}, of {holds}"));
            continue;
        }
        lines.extend(compare(layout, found).into_iter().map(|defect| line(id, &defect)));
        let unread = indexes(found).into_keys().filter(|name| layout.index(name).is_none());
        lines.extend(
            unread.map(|name| {
                format!("template.yaml: {id} has the index {name}, which nothing reads")
            }),
        );
    }
    Ok(lines)
}

fn line(id: &str, defect: &TableDefect) -> String {
    let lacks = format!(
        "template.yaml: {id}: {defect}: write it as `ringfence schema --cloudformation` prints it"
    );
    match defect {
        TableDefect::NoIndex { .. } => format!("{lacks}; the roles that read by it need it too"),
        _ => lacks,
    }
}

/// The template whose tables have the indexes that they need, with their attributes, and no others. A table that is
/// written in another form than that of a new stack is as it was: a person has to write its index.
#[must_use]
pub fn with_indexes(text: &str, tables: &[StackTable]) -> String {
    let with = |text: String, table: &StackTable| {
        with_indexes_of(&text, table.id, &table.layout).unwrap_or(text)
    };
    tables.iter().fold(text.to_owned(), with)
}

/// The lines of a text, and where those of a resource begin and end.
#[must_use]
pub fn resource<'t>(text: &'t str, id: &str) -> Option<(Vec<&'t str>, usize, usize)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = format!("  {id}:");
    let begin = lines.iter().position(|line| line.trim_end().split(" #").next() == Some(&*head))?;
    let is_inside = |line: &&str| line.starts_with("   ") || line.trim().is_empty();
    let more = lines[begin + 1..].iter().take_while(|line| is_inside(line)).count();
    let blank = lines[..=begin + more].iter().rev().take_while(|line| line.trim().is_empty());
    let end = begin + 1 + more - blank.count();
    Some((lines, begin, end))
}

/// The text of the lines of all parts.
#[must_use]
pub fn joined(parts: &[&[&str]]) -> String {
    parts.concat().concat()
}

const ATTRIBUTE: &str = "        - { AttributeName: ";
const ATTRIBUTES: &str = "AttributeDefinitions:";
const INDEX: &str = "        - IndexName: ";
const INDEXES: &str = "      GlobalSecondaryIndexes:";
const ITEM: &str = "        - ";

fn with_indexes_of(text: &str, id: &str, layout: &TableLayout) -> Option<String> {
    let (lines, begin, end) = resource(text, id)?;
    let (mut attributes, mut indexes, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut inside, mut section) = (None, false, "");
    for line in &lines[begin..end] {
        if line.starts_with("      ") && !line[6..].starts_with(' ') {
            section = line.trim();
        }
        inside &= line.starts_with("        ");
        if let Some(more) = line.strip_prefix(INDEXES) {
            inside = more.trim().is_empty() || more.starts_with(" #");
            if !inside {
                return None;
            }
        }
        if let Some(attribute) = line.strip_prefix(ATTRIBUTE).filter(|_| section == ATTRIBUTES) {
            let name = attribute.split([',', ' ']).next()?;
            attributes.push((name, (*line).to_owned()));
            at = Some(rest.len());
        } else if let Some(name) = line.strip_prefix(INDEX).filter(|_| inside) {
            indexes.push((name.split(" #").next()?.trim(), (*line).to_owned()));
        } else if (inside || section == ATTRIBUTES) && line.starts_with(ITEM) {
            // It may be one that is needed, which would then be there twice.
            return None;
        } else if inside {
            match indexes.last_mut() {
                Some((_, index)) => index.push_str(line),
                None => rest.push(*line),
            }
        } else {
            rest.push(*line);
        }
    }
    let needed = layout.attributes();
    attributes.retain(|(name, _)| needed.contains_key(name));
    indexes.retain(|(name, _)| layout.index(name).is_some());
    let keys = layout.indexes.iter().flat_map(|index| index.keys.iter().rev());
    for (name, kind) in keys {
        if attributes.iter().all(|(found, _)| found != name) {
            let line = format!("{ATTRIBUTE}{name}, AttributeType: {} }}\n", kind.as_str());
            attributes.push((name, line));
        }
    }
    for index in &layout.indexes {
        if indexes.iter().all(|(found, _)| *found != index.name) {
            indexes.push((&index.name, yaml(index)));
        }
    }
    let is_without = layout.indexes.is_empty();
    let had = rest.iter().position(|line| line.starts_with(INDEXES));
    let mut section: String = attributes.into_iter().map(|(_, line)| line).collect();
    if had.is_none() && !is_without {
        section += "      # An update of a deployed stack adds one index at most.\n";
        section += &format!("{INDEXES}\n");
    }
    let indexes: String = indexes.into_iter().map(|(_, index)| index).collect();
    let (before, after) = rest.split_at(at?);
    let body = match had {
        Some(_) if is_without => {
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

/// The lines of an index.
fn yaml(index: &IndexLayout) -> String {
    let [hash, range] = index.keys.each_ref().map(|(name, _)| name);
    let projection = match index.attributes[..] {
        [] => "ProjectionType: KEYS_ONLY".to_owned(),
        _ => {
            format!("ProjectionType: INCLUDE, NonKeyAttributes: [{}]", index.attributes.join(", "))
        }
    };
    format!(
        "{INDEX}{}\n          KeySchema: [{{ AttributeName: {hash}, KeyType: HASH }}, \
         {{ AttributeName: {range}, KeyType: RANGE }}]\n          Projection: {{ {projection} }}\n",
        index.name
    )
}

#[cfg(test)]
mod tests {
    use ringfence_aws::{number_key, text_key};
    use ringfence_core::Catalog;

    use super::*;
    use crate::tables_of;

    /// As a new stack has it: without an index.
    const BARE: &str = "Resources:
  EventTable:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }, { AttributeName: position, KeyType: RANGE }]
      AttributeDefinitions:
        - { AttributeName: id, AttributeType: S }
        - { AttributeName: position, AttributeType: N }
      StreamSpecification: { StreamViewType: NEW_IMAGE } # a comment
      TimeToLiveSpecification: { AttributeName: expiresAt, Enabled: true }

  # ---- The next ----
";

    /// The event table with indexes of these names.
    fn events(names: &[&str]) -> Vec<StackTable> {
        let catalog = Catalog::new("none", []).expect("no contradiction");
        let mut tables = tables_of(&[ringfence_dcb_log::SOURCE].into(), &catalog);
        tables.truncate(1);
        let index = |name: &&str| IndexLayout {
            name: (*name).to_owned(),
            keys: [text_key(*name), number_key("at")],
            attributes: vec!["event", "data", "tags"],
        };
        tables[0].layout.indexes = names.iter().map(index).collect();
        tables
    }

    #[test]
    fn indexes_are_written_with_their_attributes_and_taken_out_again() {
        let one = with_indexes(BARE, &events(&["tag_guestId"]));
        let two = with_indexes(&one, &events(&["tag_guestId", "tag_roomId"]));
        assert_eq!(
            differences(&two, &events(&["tag_guestId", "tag_roomId"])).expect("YAML"),
            [""; 0]
        );
        let attributes =
            two.lines().filter_map(|line| line.strip_prefix(ATTRIBUTE)?.split(',').next());
        let expected = ["id", "position", "at", "tag_guestId", "tag_roomId"];
        assert_eq!(attributes.collect::<Vec<_>>(), expected);
        assert_eq!(with_indexes(&two, &events(&["tag_guestId"])), one);
        let bare = with_indexes(&one, &events(&[]));
        let notice = "      # An update of a deployed stack adds one index at most.\n";
        assert_eq!(bare.replace(notice, ""), BARE);
    }

    #[test]
    fn what_a_template_lacks_and_what_nothing_reads_is_named() {
        let lines = |text: &str, names: &[&str]| differences(text, &events(names)).expect("YAML");
        assert_eq!(lines(BARE, &[]), [""; 0]);
        let lacking = lines(BARE, &["tag_guestId"]);
        let index = "template.yaml: EventTable: it lacks the index tag_guestId: write it as `ringfence schema \
                     --cloudformation` prints it; the roles that read by it need it too";
        assert_eq!(lacking, [index]);
        let with = with_indexes(BARE, &events(&["tag_guestId"]));
        let unread = "template.yaml: EventTable has the index tag_guestId, which nothing reads";
        assert_eq!(lines(&with, &[]), [unread]);
        let keys_only = lines(&BARE.replace("NEW_IMAGE", "KEYS_ONLY"), &[]);
        assert!(
            keys_only[0].starts_with("template.yaml: EventTable: its stream shows KEYS_ONLY"),
            "{keys_only:?}"
        );
        let none = lines("Resources: {}", &[]);
        assert_eq!(none, ["template.yaml lacks the table EventTable, of the DCB log"]);
        assert!(matches!(differences("[", &events(&[])), Err(TablesError::Yaml(_))));
    }

    #[test]
    fn a_table_in_another_form_is_left_to_a_person() {
        let flow = "Resources:\n  EventTable:\n    Type: AWS::DynamoDB::Table\n    Properties: { KeySchema: [] }\n";
        let with = with_indexes(BARE, &events(&["tag_guestId"]));
        let index = "- IndexName: tag_guestId\n          KeySchema:";
        assert!(with.contains(index), "{with}");
        for other in [
            flow.to_owned(),
            // An index whose name is not its first line, one in a single line, all in a single line, an attribute in two.
            with.replace(index, "- KeySchema:"),
            with.replace(index, "- { IndexName: tag_guestId, KeySchema:"),
            with.replace(INDEXES, "      GlobalSecondaryIndexes: []\n      Other:"),
            BARE.replace("- { AttributeName: id, AttributeType: S }", "- AttributeName: id"),
        ] {
            assert_ne!(other, with);
            assert_eq!(with_indexes(&other, &events(&["tag_guestId", "tag_roomId"])), other);
        }
    }
}
