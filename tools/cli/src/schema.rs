//! `ringfence schema`: the tables that the catalog needs, as documents for other tools.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use ringfence_template::{document, legacy_table, tables_of};

use crate::Lists;
use crate::out;

#[derive(Args)]
#[command(group = ArgGroup::new("document").required(true))]
#[command(after_help = "\
The tables are those of the three logs, of the index and of the views. Their outputs are the parameters with which a
stack uses tables that are there: docs/deploy.md. The template of the stack itself is written by `ringfence template`.

With --legacy a document has the table of one event store in Castore's older layout instead. No stack uses it, but a program
can by the crate of the aggregate log: docs/aggregate-log.md.

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
    /// Prints the table of one event store in Castore's older layout, and not those of the stack.
    #[arg(long)]
    legacy: bool,
}

pub(crate) fn schema(arguments: &Arguments, lists: &Lists) -> ExitCode {
    let tables = match arguments.legacy {
        true => vec![legacy_table()],
        false => tables_of(&lists.stack.sources, &lists.stack.catalog),
    };
    let print = match arguments {
        Arguments { cloudformation: true, .. } => document::cloudformation,
        Arguments { terraform: true, .. } => document::terraform,
        Arguments { .. } => document::cdk,
    };
    out::lines(&print(&tables));
    ExitCode::SUCCESS
}
