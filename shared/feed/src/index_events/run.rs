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
use ringfence_lambda::{
    Variables,
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
    ringfence_lambda::main(serve(catalog))
}

async fn serve(catalog: Catalog) -> Result<(), Error> {
    let mut variables = Variables::from_env();
    let events = variables.required("EVENT_TABLE");
    let aggregates = variables.required("AGGREGATE_TABLE");
    let documents = variables.required("DOCUMENT_TABLE");
    let index = variables.required("INDEX_TABLE");
    let queue = variables.required("DEAD_LETTER_QUEUE_URL");
    let epoch_entries = variables.optional("EPOCH_ENTRIES", EpochEntries::MAX);
    let (index, queue) = variables.finish((index, queue))?;
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    let config = sdk_config().await.into_builder().timeout_config(timeouts).build();
    let letters = &LetterQueue::new(aws_sdk_sqs::Client::new(&config), queue);
    let clock = &Clock::system();
    let client = ringfence_dynamo::client_from_env().await;
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
