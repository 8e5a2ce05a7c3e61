//! `ringfence tables check`: compares existing tables with what the stack needs.
//!
//! No function checks its tables at its start: the check would need another permission and another request before the
//! first answer. So a person checks them once, before the deploy that names the tables.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use aws_sdk_dynamodb::Client;
use clap::Args;
use ringfence_aws::Retry;
use ringfence_template::{StackTable, TableDefect, compare, properties_of, tables_of};
use serde_json::{Value, json};

use crate::Lists;
use crate::layout::{Layout, described};
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::stack::name;
use crate::tables::LogTables;

#[derive(Args)]
#[command(after_help = "\
It checks only the tables that are named. A table may have more than is needed, such as other indexes. For each thing
that a table lacks, the output says how to mend it. It also prints the parameters with which a stack uses the tables. If
a table belongs to another option, such as a table of documents under --index-table, the error names that option.

Examples:
  ringfence tables check --table restored-events --index-table restored-index
  ringfence tables check --stack ringfence-prod")]
pub(crate) struct Arguments {
    #[command(flatten)]
    logs: LogTables,
    /// The table of the index.
    #[arg(long, env = "INDEX_TABLE", value_parser = name)]
    index_table: Option<String>,
    /// The table of the views.
    #[arg(long, env = "VIEW_TABLE", value_parser = name)]
    view_table: Option<String>,
    /// The table of the keys of personal data.
    #[arg(long, env = "KEY_TABLE", value_parser = name)]
    key_table: Option<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn check(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { logs, index_table, view_table, key_table, output } = arguments;
    let names = [
        &logs.table,
        &logs.streams.aggregate_table,
        &logs.streams.document_table,
        index_table,
        view_table,
        key_table,
    ];
    ensure!(
        names.iter().any(|name| name.is_some()),
        "no table is named: name some, such as with --table, or all with --stack"
    );
    let client = dynamo_client().await?;
    let mut checked = Vec::new();
    let layouts = [
        Layout::Events,
        Layout::Aggregates,
        Layout::Documents,
        Layout::Index,
        Layout::Views,
        Layout::Keys,
    ];
    let tables = tables_of(&crate::tables::sources(), &lists.stack.catalog, true);
    for ((table, layout), name) in tables.into_iter().zip(layouts).zip(names) {
        if let Some(name) = name {
            layout.check_known(&client, name).await?;
            checked.push(Checked::of(&client, &table, name).await?);
        }
    }
    let is_well = checked.iter().all(|table| table.defects.is_empty());
    Ok(output.end(&TableReport(checked), is_well))
}

/// A table, and what it lacks.
struct Checked {
    id: &'static str,
    holds: &'static str,
    name: String,
    stream: Option<String>,
    defects: Vec<TableDefect>,
}

impl Checked {
    async fn of(client: &Client, table: &StackTable, name: &str) -> Result<Self> {
        let described = described(client, name).await?;
        let describe = || async {
            client.describe_time_to_live().table_name(name).send().await.map_err(Into::into)
        };
        let expiry = match table.layout.expires_at {
            None => None,
            Some(_) => {
                let answer = Retry::default().run(describe).await;
                answer
                    .with_context(|| format!("describing when items of {name} expire"))?
                    .time_to_live_description
            }
        };
        let found = properties_of(&described, expiry.as_ref());
        let has_stream =
            table.layout.stream.is_some() && found.get("StreamSpecification").is_some();
        Ok(Self {
            id: table.id,
            holds: table.holds,
            name: name.to_owned(),
            stream: described.latest_stream_arn.filter(|_| has_stream),
            defects: compare(&table.layout, &found),
        })
    }

    /// The stack's parameters that name the table.
    fn parameters(&self) -> Vec<(String, &str)> {
        let stream = self.stream.iter().map(|arn| (format!("{}StreamArn", self.id), arn.as_str()));
        [(format!("{}Name", self.id), self.name.as_str())].into_iter().chain(stream).collect()
    }
}

struct TableReport(Vec<Checked>);

impl Display for TableReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for table in &self.0 {
            let Checked { name, holds, defects, .. } = table;
            for defect in defects {
                write_line!(f, "lacking  {name}, of {holds}: {defect}")?;
                for step in defect.mend(name) {
                    write_line!(f, "         {step}")?;
                }
            }
            if defects.is_empty() {
                let parameters = table.parameters().into_iter();
                let parameters = parameters.map(|(name, value)| format!("{name}={value}"));
                let fits = match parameters.collect::<Vec<_>>() {
                    none if none.is_empty() => format!("{name}, of {holds}"),
                    parameters => parameters.join(" "),
                };
                write_line!(f, "fits     {fits}")?;
            }
        }
        let lacking = self.0.iter().filter(|table| !table.defects.is_empty()).count();
        match lacking {
            0 => write_line!(f, "{} tables: all in order", self.0.len()),
            _ => write_line!(f, "{} tables, {lacking} not in order", self.0.len()),
        }
    }
}

serialize_as!(TableReport, |TableReport(tables)| {
    let tables = tables.iter().map(|table| {
        let defects = table.defects.iter();
        let lacking = defects.map(|it| json!({ "what": it.to_string(), "mend": it.mend(&table.name) }));
        let parameters = table.parameters().into_iter();
        json!({
            "table": table.name,
            "id": table.id,
            "lacking": lacking.collect::<Value>(),
            "parameters": parameters.map(|(name, value)| (name, json!(value))).collect::<serde_json::Map<_, _>>(),
        })
    });
    tables.collect()
});
