//! All parts of a stack together, as `template.yaml` says.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use anyhow::{Context, Result};
use axum::{Router, routing::get};
use ringfence_aws::wire::Limits;
use ringfence_token::JWKS_PATH;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::broadcast, task::JoinSet};

use crate::{
    api,
    authorizer::Authorizer,
    buckets::Buckets,
    bus::Buses,
    destinations::Destinations,
    embedded::Embedded,
    environment::{self, Environment, Files},
    forward,
    functions::Functions,
    inbox::Inbox,
    invoke::{Invoke, InvokeError},
    kept::{Kept, database, emptied},
    notices::{Notice, Notices, TroubleWatch},
    port,
    queue_poller::QueuePoller,
    queues::{Message, Queues},
    routes::takes_path,
    sam, schedule,
    services::{self, Services},
    stack_clock::StackClock,
    stream::Poller,
    template::{ACCOUNT, FunctionResource, Model, Route, Schedule, TableResource, Template},
    tokens,
};

/// The options of a stack.
pub struct StackOptions {
    /// The folder of the stack.
    pub root: PathBuf,
    /// The template that describes the stack.
    pub template: Template,
    /// The folder in which the stack makes a folder for its files, named by its port. So stacks that run at the same
    /// time have separate logs, buckets and variables.
    pub data: PathBuf,
    /// The API's port on the loopback address; 0 for a free one. The console's port is ten higher.
    pub port: u16,
    /// The folder for data that outlive the stack; without one they are deleted with it.
    pub keep: Option<PathBuf>,
    /// The file of each function's program, by the function's name.
    pub programs: BTreeMap<String, PathBuf>,
    /// Whether the API asks for tokens where the template does. Otherwise everybody may use it.
    pub auth: bool,
    /// What the tables consume at most.
    pub limits: Option<Limits>,
}

/// Makes the console of a stack, for [`RunningStack::serve_console`].
pub type Console = Box<
    dyn FnOnce(
        Environment,
        BTreeMap<String, String>,
        SocketAddr,
        Vec<String>,
        TroubleWatch,
    ) -> Result<Router>,
>;

/// A running stack. It ends when it is dropped.
pub struct RunningStack {
    folder: PathBuf,
    logs: PathBuf,
    api: String,
    services: String,
    data: String,
    console: Arc<OnceLock<String>>,
    console_listener: Option<TcpListener>,
    root: PathBuf,
    auth: bool,
    dynamo: Embedded,
    data_routes: Router,
    model: Model,
    /// The functions, with their processes.
    pub functions: Arc<Functions>,
    queues: Queues,
    buckets: Buckets,
    inbox: Inbox,
    notices: Notices,
    router: Router,
    tasks: JoinSet<()>,
    _sam: Option<TempDir>,
}

impl RunningStack {
    /// Starts everything.
    ///
    /// # Errors
    /// The template is not understood, or something does not start.
    pub async fn start(options: &StackOptions) -> Result<Self> {
        let api_listener = port::listen("the API's", options.port).await?;
        let console_listener =
            port::listen("the console's", port::of_console(options.port)?).await?;
        let services_listener = port::listen("the services'", 0).await?;
        let data_listener = port::listen("the data's", 0).await?;
        let address = api_listener.local_addr()?;
        let folder = options.data.join(address.port().to_string());
        let api = format!("http://{address}");
        let services = format!("http://{}", services_listener.local_addr()?);
        let data = format!("http://{}", data_listener.local_addr()?);
        let keep = options.keep.as_deref();
        let mut model = options.template.model(&services)?.with_keys_in(keep.unwrap_or(&folder));
        if options.auth {
            tokens::require(&mut model)?;
        }
        let notices = Notices::default();
        let kept = keep.map(|folder| Kept::open(folder, &model, &notices)).transpose()?;
        let dynamo = database(kept.as_ref(), &model.tables).await?;
        let common = environment::common(&data, &services);
        emptied(folder.join("sam"))?;
        let logs = match &kept {
            Some(kept) => kept.logs(),
            None => emptied(folder.join("logs"))?,
        };
        let clock = StackClock::of(kept.clone());
        let now_ms = u64::try_from(clock.now().timestamp_millis()).unwrap_or_default();
        let starts = kept.as_ref().map_or_else(|| vec![now_ms], |kept| kept.start(now_ms));
        let programs = &options.programs;
        let functions = Functions::start(&model.functions, programs, &common, &logs, clock);
        let functions = Arc::new(functions.await?);

        let queues = Queues::of(&model.queues, kept.clone());
        let buckets = match &kept {
            Some(kept) => kept.buckets(),
            None => emptied(folder.join("buckets"))?,
        };
        let buckets = Buckets::new(buckets, model.buckets.clone());
        let destinations = Destinations { queues: queues.clone(), buckets: buckets.clone() };
        let mut tasks = JoinSet::new();
        let data_routes = forward::to(&dynamo, options.limits, &functions);
        port::serve(&mut tasks, data_listener, data_routes.clone());
        let console = Arc::<OnceLock<String>>::default();
        let authorizer = if options.auth { Authorizer::of_tokens() } else { Authorizer::default() };
        let mut routes = api::router(&model.routes, &functions, &notices, &authorizer);
        if options.auth {
            routes = routes.route(JWKS_PATH, get(async || axum::Json(tokens::jwks())));
        }
        // A route in the router would hide the template's routes of that path, also those of other methods.
        if !takes_path(&model.routes, "/") {
            routes = routes.merge(api::to_console(console.clone()));
        }
        port::serve(&mut tasks, api_listener, port::named(routes, &options.root));
        let bus = Buses::new(&model, functions.clone(), destinations.clone(), notices.clone());
        for schedule in &model.schedules {
            tasks.spawn(schedule::run(schedule.clone(), bus.delivery(), functions.clock().clone()));
        }
        let inbox = Inbox::new(&folder, notices.clone())?;
        let router = services::router(Services {
            bus,
            queues: queues.clone(),
            buckets: buckets.clone(),
            inbox: inbox.clone(),
            parameters: environment::parameters(&model.functions),
            api: api.clone(),
            outputs: model.outputs.clone(),
            starts,
        });
        port::serve(&mut tasks, services_listener, router.clone());
        for mapping in &model.mappings {
            let poller = Poller {
                mapping: mapping.clone(),
                stream: dynamo.stream_from(
                    &mapping.table,
                    kept.as_ref().and_then(|kept| kept.position(mapping)).as_ref(),
                )?,
                functions: functions.clone(),
                destinations: destinations.clone(),
                notices: notices.clone(),
            };
            let (notices, kept) = (notices.clone(), kept.clone());
            tasks.spawn(async move {
                if let Err(error) = poller.run_and_keep(kept).await {
                    notices.trouble(&error);
                }
            });
        }
        for mapping in &model.queue_mappings {
            let poller = QueuePoller {
                mapping: mapping.clone(),
                queues: queues.clone(),
                functions: functions.clone(),
                notices: notices.clone(),
            };
            tasks.spawn(poller.run());
        }
        Ok(Self {
            folder,
            logs,
            api,
            services,
            data,
            console,
            console_listener: Some(console_listener),
            root: options.root.clone(),
            auth: options.auth,
            dynamo,
            data_routes,
            model,
            functions,
            queues,
            buckets,
            inbox,
            notices,
            router,
            tasks,
            _sam: None,
        })
    }

    /// The HTTP API's URL.
    #[must_use]
    pub fn api(&self) -> &str {
        &self.api
    }

    /// The mails and webhooks that functions have sent.
    #[must_use]
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The URL of the endpoint for all services of AWS except DynamoDB.
    #[must_use]
    pub fn services(&self) -> &str {
        &self.services
    }

    /// The URL of DynamoDB.
    #[must_use]
    pub fn dynamo(&self) -> &str {
        &self.data
    }

    /// Lets this time pass for data, functions and schedules, in milliseconds, once no function is under way.
    ///
    /// # Errors
    /// The stack's clock would be too far ahead.
    pub async fn pass_time(&self, ms: u64) -> Result<()> {
        self.functions.pass_time(ms).await
    }

    /// The URL of Lambda's invoke API.
    #[must_use]
    pub fn lambda(&self) -> &str {
        self.functions.endpoint()
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> &[TableResource] {
        &self.model.tables
    }

    /// Every item of the table of this logical id, if they have at most 1 MB together.
    ///
    /// # Errors
    /// There is no such table or it can't be read.
    pub fn items(&self, table: &str) -> Result<Vec<Value>> {
        let table = self.model.table(table).context("the template has no such table")?;
        Ok(self.dynamo.items(&table.name)?)
    }

    /// The API's routes.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.model.routes
    }

    /// The schedules.
    #[must_use]
    pub fn schedules(&self) -> &[Schedule] {
        &self.model.schedules
    }

    /// The first route in the template that takes a command, and its function.
    pub(crate) fn example(&self) -> Option<(&Route, &FunctionResource)> {
        let route = self.model.routes.iter().find(|route| route.method == "POST")?;
        let function = self.model.functions.iter().find(|it| it.binary == route.function)?;
        Some((route, function))
    }

    /// Watches the topic from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Notice> {
        self.notices.watch()
    }

    /// Every queue with its messages.
    #[must_use]
    pub fn queues(&self) -> BTreeMap<String, Vec<Message>> {
        self.queues.messages()
    }

    /// The URL of a queue.
    #[must_use]
    pub fn queue_url(&self, queue: &str) -> String {
        format!("{}/{ACCOUNT}/{queue}", self.services)
    }

    /// The buckets.
    #[must_use]
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// Invokes a function directly.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn invoke(&self, function: &str, payload: &Value) -> Result<Value, InvokeError> {
        self.functions.invoke(function, payload).await
    }

    /// Serves the console that `make` makes from the variables of a shell, the stack's outputs, the console's address,
    /// the routes of the HTTP API and the troubles. Returns its URL. The API's path `/` leads there, unless the
    /// template has a route of that path.
    ///
    /// # Errors
    /// The console can't be made, or there is one already.
    pub async fn serve_console(&mut self, make: Console) -> Result<String> {
        let listener = self.console_listener.take().context("this stack has a console already")?;
        let address = listener.local_addr()?;
        let url = self.console.get_or_init(|| format!("http://{address}")).clone();
        let route = |route: &Route| format!("{} {}{}", route.method, self.api, route.path);
        let routes = self.model.routes.iter().map(route).collect();
        let outputs = self.model.outputs.clone();
        let console = make(self.variables(), outputs, address, routes, self.notices.troubles())?;
        port::serve(&mut self.tasks, listener, port::named(console, &self.root));
        Ok(url)
    }

    /// The variables of a shell for this stack: endpoints, credentials, and the names of tables.
    #[must_use]
    pub fn variables(&self) -> Environment {
        let common = environment::common(&self.data, &self.services);
        let (token, Self { root, logs, api, model, .. }) = (self.token(), self);
        environment::of_shell(root, logs, &common, api, token.as_deref(), model)
    }

    /// The operator's token, for the console and for a shell, if the API asks for tokens. It is the token of a program,
    /// which may act for every person.
    fn token(&self) -> Option<String> {
        self.auth.then(|| tokens::of("client_id", "operator", &self.model.routes, &[]))
    }

    /// A token of this subject with the scopes of all routes and with these, if the API asks for tokens.
    pub(crate) fn token_of(&self, subject: &str, scopes: &[&str]) -> Option<String> {
        self.auth.then(|| tokens::of("sub", subject, &self.model.routes, scopes))
    }

    /// Writes the files for programs that a person starts on this stack.
    ///
    /// # Errors
    /// One can't be written.
    pub fn write_environment(&self) -> Result<Files> {
        let common = environment::common(&self.data, &self.services);
        environment::write(&self.folder, &self.variables(), &common, &self.model.functions)
            .with_context(|| format!("cannot write into {}", self.folder.display()))
    }

    /// Serves DynamoDB and the other services also at this address, at which containers reach this machine. Writes a
    /// template with which `sam local` runs the functions of this stack's `template` in containers, and returns its
    /// path.
    ///
    /// # Errors
    /// It can't listen at the address, or a file can't be written.
    pub fn serve_containers(&mut self, template: &Template, address: Ipv4Addr) -> Result<PathBuf> {
        let listener = port::listen_for_containers(address)?;
        let data = format!("http://{}", listener.local_addr()?);
        port::serve(&mut self.tasks, listener, self.data_routes.clone());
        let listener = port::listen_for_containers(address)?;
        let services = format!("http://{}", listener.local_addr()?);
        port::serve(&mut self.tasks, listener, self.router.clone());
        // At this address queues have other URLs.
        let model = template.model(&services)?;
        let common = environment::common(&data, &services);
        // The folder is deleted with the stack, because nothing in it works without the stack.
        let folder = tempfile::Builder::new().prefix("sam").rand_bytes(0).tempdir_in(&self.folder);
        let folder = folder.context("cannot make a folder for `sam local`")?;
        let written = sam::write(folder.path(), model, &common, &self.functions, &self.model)?;
        self._sam = Some(folder);
        Ok(written)
    }
}
