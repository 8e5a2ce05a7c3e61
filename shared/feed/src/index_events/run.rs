//! index-events as a Lambda on the streams of the logs' tables.

use std::process::ExitCode;
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use ringfence::Catalog;
use ringfence_aggregate_log::Table;
use ringfence_dcb_log::DcbLog;
use ringfence_document_log::{DocumentLog, DynamoStore};
use ringfence_dynamo::{Clock, sdk_config};
use ringfence_function::{
    VariableNames, Variables,
    reactions::{LetterQueue, answer, records, time_for},
};
use serde_json::Value;

use crate::checkpoint::EpochEntries;
use crate::indexer::Indexer;
use crate::logs::Logs;

/// One message to the dead-letter queue, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs index-events until Lambda ends the process.
pub fn run(catalog: Catalog) -> ExitCode {
    ringfence_function::main(serve(catalog))
}

/// The variables that it reads.
pub fn variables() -> VariableNames {
    Variables::names(config)
}

/// Names of tables, the URL of the queue, and how large an epoch is.
struct Config {
    events: String,
    aggregates: String,
    documents: String,
    index: String,
    queue: String,
    epoch_entries: EpochEntries,
}

fn config(variables: &mut Variables) -> Config {
    Config {
        events: variables.required("EVENT_TABLE"),
        aggregates: variables.required("AGGREGATE_TABLE"),
        documents: variables.required("DOCUMENT_TABLE"),
        index: variables.required("INDEX_TABLE"),
        queue: variables.required("DEAD_LETTER_QUEUE_URL"),
        epoch_entries: variables.optional("EPOCH_ENTRIES", EpochEntries::MAX),
    }
}

async fn serve(catalog: Catalog) -> Result<(), Error> {
    let Config { events, aggregates, documents, index, queue, epoch_entries } =
        Variables::from_env(config)?;
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let config = sdk_config()?.into_builder().timeout_config(timeouts).build();
    let letters = &LetterQueue::new(aws_sdk_sqs::Client::new(&config), queue);
    let clock = &Clock::system();
    let client = ringfence_dynamo::client_from_env()?;
    ringfence_dynamo::open(&client).await;
    let logs = Logs {
        dcb: DcbLog::new(client.clone(), events, catalog, clock.clone()),
        aggregates: Some(Table::new(client.clone(), aggregates, clock.clone())),
        documents: Some(DocumentLog::new(
            DynamoStore::new(client.clone(), documents),
            clock.clone(),
        )),
    };
    let indexer = &Indexer::new(logs, client, index).epoch_entries(epoch_entries);
    lambda_runtime::run(service_fn(move |mut event: LambdaEvent<Value>| async move {
        let time = time_for(&event, clock);
        let records = records(&mut event)?;
        let report = super::index(indexer, letters, &records, time).await;
        tracing::info!(
            function_request_id = event.context.request_id,
            records = records.len(),
            partitions = report.partitions,
            indexed = report.indexed,
            dead_letters = report.dead_letters,
            failed_from = report.failed_from,
            cause = report.cause,
            "batch",
        );
        Ok::<_, Error>(answer(report.failed_from))
    }))
    .await
}
