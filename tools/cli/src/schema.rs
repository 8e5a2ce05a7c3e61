//! `ringfence schema`: the tables that the catalog needs, as documents and in `template.yaml`.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use ringfence_template::{StackTable, document, legacy_table, tables_of, template};

use crate::Lists;
use crate::out;

/// The template of the working directory.
const TEMPLATE: &str = "template.yaml";

#[derive(Args)]
#[command(group = ArgGroup::new("document"))]
#[command(after_help = "\
The tables are those of the three logs, of the index and of the views. Their outputs are the parameters with which a
stack uses tables that are there: docs/deploy.md. Without a flag, it compares the template of the working directory.
`UPDATE=1 cargo test` writes its indexes, and lets the roles query them.

With --legacy a document has the table of one event store in Castore's older layout instead. No stack uses it, but a program
can by the crate of the aggregate log: docs/aggregate-log.md.

Examples:
  ringfence schema
  ringfence schema --terraform > tables.tf
  ringfence schema --cloudformation --legacy")]
pub(crate) struct Arguments {
    /// Prints a template of CloudFormation.
    #[arg(long, group = "document")]
    cloudformation: bool,
    /// Prints a module of Terraform.
    #[arg(long, group = "document")]
    terraform: bool,
    /// Prints a construct of CDK, in TypeScript.
    #[arg(long, group = "document")]
    cdk: bool,
    /// Prints the table of one event store in Castore's older layout, and not those of the stack.
    #[arg(long, requires = "document")]
    legacy: bool,
}

pub(crate) fn schema(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let tables = match arguments.legacy {
        true => vec![legacy_table()],
        false => tables_of(&lists.stack.catalog).to_vec(),
    };
    let print = match arguments {
        Arguments { cloudformation: true, .. } => document::cloudformation,
        Arguments { terraform: true, .. } => document::terraform,
        Arguments { cdk: true, .. } => document::cdk,
        _ => return compared(&tables),
    };
    out::lines(&print(&tables));
    Ok(ExitCode::SUCCESS)
}

/// Says what the template of the working directory lacks.
fn compared(tables: &[StackTable]) -> Result<ExitCode> {
    let reading = || format!("reading {TEMPLATE}: call this in the folder of the stack");
    let text = fs::read_to_string(TEMPLATE).with_context(reading)?;
    let lines = lacking(&text, tables).with_context(reading)?;
    for line in &lines {
        out::line(line);
    }
    if lines.is_empty() {
        out::line("all in order");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// What a template lacks, and what mends it if only indexes are wrong that can be written.
fn lacking(text: &str, tables: &[StackTable]) -> Result<Vec<String>> {
    let mut lines = template::differences(text, tables)?;
    if template::with_indexes(text, tables) != text {
        lines.push("`UPDATE=1 cargo test` puts the indexes right".to_owned());
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use ringfence_aws::{IndexLayout, number_key, text_key};
    use ringfence_core::Catalog;

    use super::*;

    #[test]
    fn an_index_that_a_template_lacks_is_named_with_the_command_that_writes_it() {
        let [mut events, ..] = tables_of(&Catalog::new("none", []).expect("no contradiction"));
        let bare = "Resources:
  EventTable:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }, { AttributeName: position, KeyType: RANGE }]
      AttributeDefinitions:
        - { AttributeName: id, AttributeType: S }
        - { AttributeName: position, AttributeType: N }
      StreamSpecification: { StreamViewType: NEW_IMAGE }
      TimeToLiveSpecification: { AttributeName: expiresAt, Enabled: true }
";
        let lacks = |text: &str, table: &StackTable| lacking(text, std::slice::from_ref(table));
        assert_eq!(lacks(bare, &events).expect("a template"), [""; 0]);
        events.layout.indexes.push(IndexLayout {
            name: "tag_guestId".to_owned(),
            keys: [text_key("tag_guestId"), number_key("at")],
            attributes: vec!["data"],
        });
        let lines = lacks(bare, &events).expect("a template");
        assert!(lines.iter().any(|line| line.contains("tag_guestId")), "{lines:?}");
        assert_eq!(lines.last().expect("lines"), "`UPDATE=1 cargo test` puts the indexes right");
        let error = lacks("[", &events).expect_err("it is not YAML").to_string();
        assert!(error.contains("the template is not YAML"), "{error}");
    }
}
