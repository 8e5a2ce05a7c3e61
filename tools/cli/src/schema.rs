//! `ringfence schema`: the tables that the catalog needs, as documents and in `template.yaml`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use ringfence_template::{StackTable, document, legacy_table, tables_of, template};

use crate::Lists;
use crate::out;

/// The template of the working directory.
const TEMPLATE: &str = "template.yaml";

#[derive(Args)]
#[command(group = ArgGroup::new("form"))]
#[command(group = ArgGroup::new("document"))]
#[command(after_help = "\
The tables are those of the three logs, of the index and of the views. Their outputs are the parameters with which a
stack uses tables that are there: docs/deploy.md. Without a flag, it compares the template of the working directory.
`--fix` writes indexes as `UPDATE=1 cargo test` does, which also lets the roles query them.

With --legacy a document has the table of one event store in Castore's older layout instead. No stack uses it, but a program
can by the crate of the aggregate log: docs/aggregate-log.md.

Examples:
  ringfence schema
  ringfence schema --fix
  ringfence schema --terraform > tables.tf
  ringfence schema --cloudformation --legacy")]
pub(crate) struct Arguments {
    /// Prints a template of CloudFormation.
    #[arg(long, groups = ["form", "document"])]
    cloudformation: bool,
    /// Prints a module of Terraform.
    #[arg(long, groups = ["form", "document"])]
    terraform: bool,
    /// Prints a construct of CDK, in TypeScript.
    #[arg(long, groups = ["form", "document"])]
    cdk: bool,
    /// Writes the indexes that template.yaml lacks, and takes out those that nothing reads.
    #[arg(long, group = "form")]
    fix: bool,
    /// Prints the table of one event store in Castore's older layout, and not those of the stack.
    #[arg(long, requires = "document")]
    legacy: bool,
}

pub(crate) fn schema(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let tables = match arguments.legacy {
        true => vec![legacy_table()],
        false => tables_of(&lists.stack.sources, &lists.stack.catalog),
    };
    let print = match arguments {
        Arguments { cloudformation: true, .. } => document::cloudformation,
        Arguments { terraform: true, .. } => document::terraform,
        Arguments { cdk: true, .. } => document::cdk,
        Arguments { fix, .. } => return compared(Path::new(TEMPLATE), &tables, *fix),
    };
    out::lines(&print(&tables));
    Ok(ExitCode::SUCCESS)
}

/// Says what the template lacks, after it has got its indexes if they are to be written.
fn compared(path: &Path, tables: &[StackTable], fix: bool) -> Result<ExitCode> {
    let reading = || format!("reading {}: call this in the folder of the stack", path.display());
    let text = fs::read_to_string(path).with_context(reading)?;
    // A text that is not a template is not changed.
    let mut lines = template::differences(&text, tables).with_context(reading)?;
    let with = template::with_indexes(&text, tables);
    let can_fix = with != text;
    if fix && can_fix {
        lines = template::differences(&with, tables).with_context(reading)?;
        let new = path.with_extension("yaml.new");
        let written = fs::write(&new, &with).and_then(|()| fs::rename(&new, path));
        written.with_context(|| format!("writing {}", path.display()))?;
        out::lines(&format!(
            "wrote {}; `UPDATE=1 cargo test` lets the roles query its indexes\n",
            path.display()
        ));
    }
    for line in &lines {
        out::line(line);
    }
    if lines.is_empty() {
        out::line("all in order");
        return Ok(ExitCode::SUCCESS);
    }
    match (fix, can_fix) {
        (false, true) => out::line("`ringfence schema --fix` puts the indexes right"),
        (true, false) => out::line(
            "`--fix` has changed nothing: it writes indexes alone, and only where a table has the form of a new stack's \
             template",
        ),
        _ => {}
    }
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use ringfence_aws::{IndexLayout, number_key, text_key};
    use ringfence_core::Catalog;

    use super::*;

    #[test]
    fn an_index_is_named_and_written_once_and_a_text_that_is_no_template_stays() {
        let folder = std::env::temp_dir().join(format!("schema-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(TEMPLATE);
        let catalog = Catalog::new("none", []).expect("no contradiction");
        let mut events = tables_of(&crate::tables::sources(), &catalog).swap_remove(0);
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
        fs::write(&path, bare).expect("a file");
        let index = IndexLayout {
            name: "tag_guestId".to_owned(),
            keys: [text_key("tag_guestId"), number_key("at")],
            attributes: vec!["data"],
        };
        events.layout.indexes.push(index);
        let run = |fix| {
            compared(&path, std::slice::from_ref(&events), fix)
                .map(|code| code == ExitCode::SUCCESS)
        };
        assert!(!run(false).expect("a template"));
        assert_eq!(fs::read_to_string(&path).expect("a file"), bare);
        assert!(run(true).expect("a template"));
        let written = fs::read_to_string(&path).expect("a file");
        assert!(written.contains("- IndexName: tag_guestId\n"), "{written}");
        assert!(run(true).expect("a template") && run(false).expect("a template"));
        assert_eq!(fs::read_to_string(&path).expect("a file"), written);
        fs::write(&path, "[").expect("a file");
        let error = format!("{:#}", run(true).expect_err("it is not YAML"));
        assert!(
            error.contains("call this in the folder of the stack: the template is not YAML"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), "[");
        fs::remove_dir_all(&folder).expect("a folder");
    }
}
