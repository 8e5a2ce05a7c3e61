//! `ringfence schema`: the tables that the stack needs, as documents for other tools.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use ringfence_template::{document, legacy_table, tables_of};

use crate::Lists;
use crate::out;

#[derive(Args)]
#[command(group = ArgGroup::new("document").required(true))]
#[command(after_help = "\
A document has the tables of the logs, of the index and of the views. Its outputs are the parameters with which a stack
uses existing tables: docs/deploy.md. `ringfence template` writes the template of the stack itself.

With --legacy a document has the table of one event store in Castore's older layout instead. No stack uses that table,
but a program can use it through the crate of the aggregate log: docs/aggregate-log.md.

Examples:
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
    /// Prints only the table of one event store in Castore's older layout.
    #[arg(long)]
    legacy: bool,
}

pub(crate) fn schema(arguments: &Arguments, lists: &Lists) -> ExitCode {
    let tables = match arguments.legacy {
        true => vec![legacy_table()],
        false => tables_of(&lists.stack.sources, &lists.stack.catalog, lists.stack.is_personal()),
    };
    let print = match arguments {
        Arguments { cloudformation: true, .. } => document::cloudformation,
        Arguments { terraform: true, .. } => document::terraform,
        Arguments { .. } => document::cdk,
    };
    out::lines(&print(&tables));
    ExitCode::SUCCESS
}
