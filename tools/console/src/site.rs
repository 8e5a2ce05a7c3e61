//! The sources of the pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use clap::builder::Resettable;
use clap::{Args, Command, FromArgMatches};
use futures::lock::Mutex;
use futures::stream::BoxStream;
use ringfence_aws::{Clock, client_of};
use ringfence_feed::Index;
use ringfence_log::StackLogs;
use ringfence_reactors::ReactorTable;
use ringfence_views::{DueReader, Projector, ViewReader};

use crate::job::Jobs;
use crate::last_look::LastLook;
use crate::own::ConsolePage;
use crate::series::Series;
use ringfence_cli::Lists;
use ringfence_cli::api::{self, Api};
use ringfence_cli::stack::{Outputs, name};
use ringfence_cli::tables::{IndexTable, KeyFlags, LogTables};
use ringfence_cli::verdict::{StackVerdict, VerdictFlags};
use ringfence_cli::work::Does;

/// For each watcher, the latest troubles of a stack, each with its age, the oldest first; and a signal for each later
/// one.
pub type Troubles =
    Box<dyn Fn() -> (Vec<(Duration, Arc<str>)>, BoxStream<'static, ()>) + Send + Sync>;

/// The content of the page `/trouble`.
pub(crate) struct Trouble {
    /// The routes of the HTTP API.
    pub(crate) routes: Vec<String>,
    pub(crate) troubles: Troubles,
}

/// The place of the stack.
#[derive(Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) index: IndexTable,
    /// The table of the views, which has the readers' checkpoints.
    #[arg(long, env = "VIEW_TABLE", value_parser = name)]
    view_table: Option<String>,
    #[command(flatten)]
    pub(crate) tables: LogTables,
    #[command(flatten)]
    keys: KeyFlags,
    /// The bus, for events of dead letters.
    #[arg(long, env = "EVENT_BUS", value_parser = name)]
    bus: Option<String>,
    #[command(flatten)]
    pub(crate) verdict: VerdictFlags,
    /// The stack, of which the overview shows the deployments.
    #[arg(long, value_name = "NAME", value_parser = name)]
    stack: Option<String>,
    /// The URL of the HTTP API, for sending commands.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = api::url)]
    api: Option<String>,
    /// The operator's token, if the API asks for one.
    #[arg(long = "api-token", env = "API_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// The folder with the samples of the functions, which fill the forms.
    #[arg(long, env = "FUNCTION_SAMPLES", value_name = "FOLDER", default_value = "events")]
    samples: PathBuf,
}

impl Flags {
    /// The flags with these values of variables in place of the environment's, and with the queues and buckets of these
    /// outputs.
    pub(crate) fn of_stack(
        variables: &BTreeMap<String, String>,
        outputs: BTreeMap<String, String>,
    ) -> Result<Self> {
        let command = Self::augment_args(Command::new("console")).mut_args(|flag| {
            let value = flag.get_env().and_then(|name| variables.get(name.to_str()?));
            let flag = match value.cloned() {
                // A command is made once and lives as long as the program.
                Some(value) => flag.required(false).default_value(&*value.leak()),
                None => flag,
            };
            flag.env(Resettable::Reset)
        });
        let command = Arc::new(Outputs::here(outputs)).fill(command);
        Ok(Self::from_arg_matches(&command.try_get_matches_from(["console"])?)?)
    }
}

/// The stack that the pages show.
pub(crate) struct Site {
    /// Its lists.
    pub(crate) lists: Arc<Lists>,
    /// The configuration for the clients of all services except DynamoDB.
    pub(crate) config: SdkConfig,
    client: Client,
    index_table: String,
    pub(crate) view_table: Option<String>,
    bus: Option<String>,
    /// Its name, if it is deployed.
    pub(crate) stack: Option<String>,
    /// Its queues and buckets, and the log lines of its functions.
    pub(crate) flags: VerdictFlags,
    /// Its logs.
    pub(crate) logs: StackLogs,
    /// The keys of personal data, for dry runs.
    keys: KeyFlags,
    /// The folder with the samples of its functions.
    pub(crate) samples: PathBuf,
    api: Option<String>,
    token: Option<String>,
    /// Jobs that pages have started.
    pub(crate) jobs: Jobs,
    /// The last verdict.
    pub(crate) verdict: Mutex<Option<LastLook<StackVerdict>>>,
    /// What commands did, for each time of the overview.
    pub(crate) series: Mutex<BTreeMap<&'static str, LastLook<Series>>>,
    /// Whether pages may change the stack. If not, the guard refuses such requests, and no page offers them.
    pub(crate) may_write: bool,
    /// The content of the page `/trouble`, if there is one.
    pub(crate) trouble: Option<Trouble>,
    /// The pages of the application.
    pub(crate) own: &'static [ConsolePage],
}

impl Site {
    pub(crate) fn new(
        lists: Arc<Lists>,
        flags: &Flags,
        config: SdkConfig,
        may_write: bool,
    ) -> Self {
        let client = client_of(&config);
        Self {
            lists,
            config,
            index_table: flags.index.index_table.clone(),
            view_table: flags.view_table.clone(),
            bus: flags.bus.clone(),
            stack: flags.stack.clone(),
            flags: flags.verdict.clone(),
            logs: flags.tables.logs(client.clone(), Clock::system()),
            keys: flags.keys.clone(),
            samples: flags.samples.clone(),
            api: flags.api.clone(),
            token: flags.token.clone(),
            client,
            jobs: Jobs::default(),
            verdict: Mutex::default(),
            series: Mutex::default(),
            may_write,
            trouble: None,
            own: &[],
        }
    }

    /// The folder of the stack, which has its samples and its locks.
    pub(crate) fn root(&self) -> PathBuf {
        self.samples.parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The URL of the HTTP API.
    pub(crate) async fn api(&self) -> Result<Api> {
        let unnamed = "commands are sent to the HTTP API: name it with --api or --stack";
        Api::at(self.api.as_deref().context(unnamed)?, self.token.as_deref()).await
    }

    /// The logs for a dry run, which opens personal data if their keys are named.
    pub(crate) async fn opened(&self) -> Result<StackLogs> {
        self.keys.open(self.logs.clone()).await
    }

    /// The index with a new meter, because each page shows its cost.
    pub(crate) fn index(&self) -> Index {
        let logs = self.logs.bodies(&ringfence_cli::tables::sources());
        Index::new(self.client.clone(), &self.index_table, logs)
    }

    /// The rows of the views, if their table is named.
    pub(crate) fn views(&self, index: &Index) -> Option<ViewReader> {
        let table = self.view_table.as_ref()?;
        let views = self.lists.stack.rows();
        Some(ViewReader::new(self.client.clone(), index.clone(), table, &views))
    }

    /// The table of the reactors and ordered automations, which is the table of the views, if it is named.
    pub(crate) fn reactors(&self) -> Option<ReactorTable> {
        let table = self.view_table.clone()?;
        Some(ReactorTable::new(self.client.clone(), table, Clock::system()))
    }

    /// The reader of due rows, if the table of the views is named.
    pub(crate) fn due(&self) -> Option<DueReader> {
        Some(DueReader::new(self.client.clone(), self.view_table.as_ref()?))
    }

    /// The projector of the views, if their table is named.
    pub(crate) fn projector(&self, index: Index) -> Option<Projector> {
        let table = self.view_table.as_ref()?;
        let catalogs = self.lists.stack.catalogs.clone();
        Some(Projector::new(self.client.clone(), index, table, catalogs, Clock::system()))
    }

    /// Redrives dead letters.
    pub(crate) fn does(&self) -> Result<Does> {
        let (bus, index) = (self.bus.as_deref(), Some(&*self.index_table));
        let (catalog, queue) = (&self.lists.stack.catalog, self.flags.command_queue.as_deref());
        Does::new(&self.config, catalog, &self.logs, bus, index, queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_cli::stack::Named;

    #[test]
    fn a_stack_on_this_machine_names_its_tables_queues_and_buckets() {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let variables = [("INDEX_TABLE", "index"), ("VIEW_TABLE", "views")].map(owned).into();
        let outputs = [
            ("AutomationsDeadLettersUrl", "http://here/0/dead"),
            ("IndexEventsFailedBatchesName", "lost"),
            ("IndexTableName", "of an output"),
        ];
        let flags = Flags::of_stack(&variables, outputs.map(owned).into()).expect("flags");
        assert_eq!(flags.index.index_table, "index");
        assert_eq!(flags.view_table.as_deref(), Some("views"));
        let named = |name: &str, at: &str| Named { name: name.to_owned(), at: at.to_owned() };
        assert_eq!(flags.verdict.queues, [named("Automations", "http://here/0/dead")]);
        assert_eq!(flags.verdict.buckets, [named("IndexEvents", "lost")]);
    }
}
