//! run-commands: takes commands into the queue, carries them out in order, and tells their results.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::config::timeout::TimeoutConfig;
use lambda_runtime::{Diagnostic, Error};
use ringfence_aws::{Clock, Meter, sdk_config};
use ringfence_core::LogKind;
use ringfence_lambda::{
    Call, Issuers, Sender, Service, Variables, VaultNames, delivered, records, vault as vault_of,
};
use ringfence_log::StackLogs;
use serde_json::{Value, json};

use crate::queue::answers::CommandAnswers;
use crate::queue::ask::Asked;
use crate::queue::commands::{OpenSlice, QueuedSlices};
use crate::queue::run::Batch;
use crate::queue::sqs::{CommandQueue, SqsCommandQueue};

/// One call to SQS, the SDK's own retries included.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The function. It serves the slices of the stack.
pub struct RunCommands {
    slices: Vec<OpenSlice>,
    answers: CommandAnswers,
    queue: Box<dyn CommandQueue>,
    issuers: Issuers,
    clock: Clock,
}

/// The configuration, from the variables.
pub struct CommandsConfig {
    tables: BTreeMap<LogKind, String>,
    views: String,
    commands: String,
    dead_letters: String,
    issuers: Issuers,
    vault: Option<VaultNames>,
}

impl Service for RunCommands {
    const NAME: &'static str = "run-commands";
    // An answer is kept after its command.
    const ANSWER_TIME: Duration = Duration::from_secs(5);
    const TIME_DEFAULT: Duration = Duration::from_secs(20);
    type Of = QueuedSlices;
    type Config = CommandsConfig;

    fn config(slices: &QueuedSlices, variables: &mut Variables) -> CommandsConfig {
        CommandsConfig {
            tables: variables.tables(&slices.sources),
            views: variables.required("VIEW_TABLE"),
            commands: variables.required("COMMAND_QUEUE_URL"),
            dead_letters: variables.required("DEAD_LETTER_QUEUE_URL"),
            issuers: variables.optional("JWT_ISSUERS", Issuers::default()),
            vault: variables.vault(slices.is_personal),
        }
    }

    async fn open(slices: QueuedSlices, config: CommandsConfig) -> Result<Self, Error> {
        let CommandsConfig { tables, views, commands, dead_letters, issuers, vault } = config;
        let client = ringfence_aws::client_from_env()?;
        let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
        let sqs = sdk_config()?.into_builder().timeout_config(timeouts).build();
        let sqs = aws_sdk_sqs::Client::new(&sqs);
        let queue = Box::new(SqsCommandQueue::new(sqs, commands, dead_letters));
        let clock = Clock::system();
        ringfence_aws::open(&client, &clock).await;
        let vault = vault_of(vault, &client, &clock).await?;
        let logs = StackLogs { client, clock, tables, vault };
        Self::on(&slices, &logs, &views, queue, issuers)
    }

    async fn answer(&self, call: Call) -> Result<Value, Diagnostic> {
        let Call { mut payload, request_id, time, .. } = call;
        let Self { slices, answers, issuers, clock, .. } = self;
        let (queue, request_id) = (&*self.queue, &*request_id);
        if Sender::of(&payload) == Sender::Http {
            let asked = Asked { slices, answers, queue, issuers, clock, request_id, time };
            return Ok(json!(asked.answer(payload).await));
        }
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let until_ms = clock.machine_ms().saturating_add(time_ms);
        let batch = Batch { slices, answers, queue, clock, request_id, until_ms };
        Ok(delivered(batch.run(&records(&mut payload)?).await))
    }
}

impl RunCommands {
    /// The cost of its requests for answers so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        self.answers.meter()
    }

    /// The function with these slices on these logs.
    ///
    /// # Errors
    /// As [`StackLogs::open`].
    pub fn on(
        slices: &QueuedSlices,
        logs: &StackLogs,
        views: &str,
        queue: Box<dyn CommandQueue>,
        issuers: Issuers,
    ) -> Result<Self, Error> {
        let slices = slices.open(logs)?;
        let answers = CommandAnswers::new(logs.client.clone(), views);
        Ok(Self { slices, answers, queue, issuers, clock: logs.clock.clone() })
    }
}
