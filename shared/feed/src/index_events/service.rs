//! index-events as a Lambda on the streams of the logs' tables.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::{Clock, sdk_config};
use ringfence_core::{Catalog, LogKind};
use ringfence_lambda::{Call, DeadLetterQueue, Service, Variables, delivered, records};
use ringfence_log::{Sources, StackLogs};
use serde_json::Value;

use super::batch::index;
use crate::checkpoint::EpochEntries;
use crate::indexer::Indexer;

/// One message to the dead-letter queue, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The function. It serves the logs of the stack.
pub struct IndexEvents {
    sources: Sources,
    indexer: Indexer,
    dead_letters: DeadLetterQueue,
}

/// Names of tables, the URL of the queue, and how large an epoch is.
pub struct Config {
    logs: BTreeMap<LogKind, String>,
    index: String,
    queue: String,
    epoch_entries: EpochEntries,
}

impl Service for IndexEvents {
    const NAME: &'static str = "index-events";
    const ANSWER_TIME: Duration = Duration::from_secs(2);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = (Sources, Catalog);
    type Config = Config;

    fn config((sources, _): &Self::Of, variables: &mut Variables) -> Config {
        Config {
            logs: variables.tables(sources),
            index: variables.required("INDEX_TABLE"),
            queue: variables.required("DEAD_LETTER_QUEUE_URL"),
            epoch_entries: variables.optional("EPOCH_ENTRIES", EpochEntries::MAX),
        }
    }

    async fn open((sources, catalog): Self::Of, config: Config) -> Result<Self, Error> {
        let Config { logs, index, queue, epoch_entries } = config;
        let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let config = sdk_config()?.into_builder().timeout_config(timeouts).build();
        let dead_letters = DeadLetterQueue::new(aws_sdk_sqs::Client::new(&config), queue);
        let clock = Clock::system();
        let client = ringfence_aws::client_from_env()?;
        ringfence_aws::open(&client, &clock).await;
        let logs = StackLogs { client: client.clone(), clock, tables: logs, vault: None };
        let indexer = Indexer::new(logs.sources(&sources, &catalog), client, index)
            .epoch_entries(epoch_entries);
        Ok(Self { sources, indexer, dead_letters })
    }

    async fn answer(&self, mut call: Call) -> Result<Value, Diagnostic> {
        let records = records(&mut call.payload)?;
        let report =
            index(&self.sources, &self.indexer, &self.dead_letters, &records, call.time).await;
        if report.dead_letters > 0 || report.failed_from.is_some() {
            tracing::info!(
                function_request_id = call.request_id,
                records = records.len(),
                partitions = report.partitions,
                indexed = report.indexed,
                dead_letters = report.dead_letters,
                failed_from = report.failed_from.as_deref(),
                cause = report.cause,
                "batch",
            );
        }
        Ok(delivered(report.failed_from))
    }
}
