//! The command line: `demo` walks through the stack and ends, `up` stays.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};
use futures::future::LocalBoxFuture;
use ringfence_aws::wire::Limits;
use ringfence_core::{visible, visible_lines};
use tokio::{sync::broadcast::error::RecvError, time::sleep};

use crate::{
    bridge,
    environment::{Files, word},
    functions::FUNCTION,
    notices::Notice,
    stack::{Console, RunningStack, StackOptions},
    template::{FunctionResource, Route, Template},
    workspace::{stack_root, workspace_root},
};

/// The time in which the processes of functions end.
const KILLED: Duration = Duration::from_millis(100);

/// Ringfence on one machine.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts the stack, walks through it, verifies each step, and ends.
    Demo,
    /// Starts the stack and keeps it until Ctrl-C.
    Up {
        /// The port of the HTTP API. The console's port is ten higher. 0 chooses free ports.
        #[arg(long, default_value_t = 3000)]
        port: u16,
        /// Keeps tables, buckets, queues and the progress of streams, and continues with the data that an earlier stack
        /// on this port kept.
        #[arg(long)]
        keep: bool,
        /// Asks for tokens on the routes where the template does. `ringfence token` makes tokens.
        #[arg(long)]
        auth: bool,
        /// Switches off the rules of the bus and the schedules, so nothing acts on imported events.
        #[arg(long)]
        no_rules: bool,
        /// Refuses requests for data as DynamoDB does: each table consumes what a new one does, 1,000 write and 3,000
        /// read units a second in each of four key ranges.
        #[arg(long)]
        throttle: bool,
        /// Also serves containers, and writes a template for `sam local`. Needs Linux, and Docker or Podman as root.
        #[arg(long)]
        sam: bool,
        /// Sets a parameter of the template to another value than the one for this machine.
        #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
        parameters: Vec<String>,
    },
}

/// Uses a stack. With a type parameter in its place, every program that runs a stack would compile all of it.
type Walk = fn(&RunningStack) -> LocalBoxFuture<'_, Result<()>>;

/// Runs the function of this name until the process ends; `None` if the stack has no such function.
pub type FunctionByName = fn(&str) -> Option<ExitCode>;

/// Carries out the command line. `walk` has the stack for itself, and fails at the first fault. A stack that stays has
/// the console that `console` makes for [`RunningStack::serve_console`].
///
/// Each function of the stack is a process of this program too. A variable names its function, and then `function` runs
/// it.
#[must_use]
pub fn run(function: FunctionByName, walk: Walk, console: Console) -> ExitCode {
    let Some(name) = env::var_os(FUNCTION) else { return run_command(walk, console) };
    let name = name.to_string_lossy();
    function(&name).unwrap_or_else(|| {
        eprintln!("error: {FUNCTION}={name}: the stack has no such function");
        ExitCode::FAILURE
    })
}

#[tokio::main]
async fn run_command(walk: Walk, console: Console) -> ExitCode {
    let arguments = Arguments::parse();
    let stays = matches!(arguments.command, Command::Up { .. });
    // Dropping the future ends the stack with all its processes.
    let ended = tokio::select! {
        ended = carry_out(arguments.command, walk, console) => ended,
        () = interrupted() => match stays {
            true => {
                println!("stopped");
                Ok(())
            }
            false => Err(anyhow::anyhow!("interrupted")),
        },
    };
    // Functions are killed before their runtime API ends. Otherwise one of them would log that it lost the API.
    sleep(KILLED).await;
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn carry_out(command: Command, walk: Walk, console: Console) -> Result<()> {
    let root = stack_root();
    let mut template = Template::of_stack()?;
    let workspace = workspace_root();
    let target = workspace.join("target");
    match command {
        Command::Demo => {
            // The files of a walk are of interest only if it fails.
            fs::create_dir_all(&target)?;
            let files = tempfile::Builder::new().prefix("demo-").tempdir_in(&target)?;
            let data = files.path().to_owned();
            let walked = async {
                let (keep, programs) = (None, this_program(&template)?);
                let auth = template.model("")?.takes_tokens();
                let limits = None;
                let options =
                    StackOptions { root, template, data, port: 0, keep, programs, auth, limits };
                let mut stack = RunningStack::start(&options).await?;
                stack.serve_console(console).await?;
                walk(&stack).await
            };
            if let Err(error) = walked.await {
                eprintln!("\nlogs: below {}", files.keep().display());
                return Err(error);
            }
            println!("\nEverything happened as expected.");
            Ok(())
        }
        Command::Up { port, keep, auth, no_rules, throttle, sam, parameters } => {
            if no_rules {
                template.switch_rules_off();
            }
            for parameter in &parameters {
                template.set(parameter)?;
            }
            ensure!(
                !keep || port != 0,
                "--keep goes on with the data of a port, and `--port 0` takes another port each time: name one"
            );
            let bridge = match sam {
                true => Some(bridge::address(env::var_os("DOCKER_HOST")).await?),
                false => None,
            };
            // Two stacks of a workspace have separate data.
            let data = target.join("local").join(root.strip_prefix(&workspace)?);
            let keep = keep.then(|| data.join(port.to_string()).join("kept"));
            let programs = this_program(&template)?;
            let limits = throttle.then(Limits::default);
            let options = StackOptions { root, template, data, port, keep, programs, auth, limits };
            let mut stack = RunningStack::start(&options).await?;
            let console = stack.serve_console(console).await?;
            let files = stack.write_environment()?;
            describe(&stack, &console, &files, &options);
            if no_rules {
                println!(
                    "\nRules and schedules are off: events are published and indexed, and nothing acts on them. In a shell with\n\
                     the variables above, `ringfence import` knows it."
                );
            }
            if auth {
                println!(
                    "\nThe API asks for tokens. The variables above have one of an operator, $API_TOKEN, with the scopes of all\n\
                     routes. `cargo ringfence token` makes others."
                );
            }
            if let Some(bridge) = bridge {
                let template = stack.serve_containers(&options.template, bridge)?;
                describe_sam(&stack, &files, &template);
            }
            println!("\nCtrl-C ends it.\n");
            follow(&stack).await;
            Ok(())
        }
    }
}

/// A parameter with its value, in the form of the flag.
fn parameter(text: &str) -> Result<String, &'static str> {
    let has_value = text.contains('=');
    has_value
        .then(|| text.to_owned())
        .ok_or("write NAME=VALUE; nothing after the = is an empty value")
}

/// This program, for each function of the template.
fn this_program(template: &Template) -> Result<BTreeMap<String, PathBuf>> {
    let this = env::current_exe()?;
    let functions = template.model("")?.functions.into_iter();
    Ok(functions.map(|function| (function.binary, this.clone())).collect())
}

fn describe(stack: &RunningStack, console: &str, files: &Files, options: &StackOptions) {
    println!("\nConsole     {console} (pages for a browser: whether all is well, the map, events)");
    println!("HTTP API    {}", stack.api());
    let mut routes: Vec<_> = stack.routes().iter().map(|r| (&r.path, &r.method)).collect();
    routes.sort();
    for (path, method) in routes {
        println!("            {method} {path}");
    }
    for schedule in stack.schedules() {
        println!("Schedule    {} {}", schedule.target.function, schedule.expression);
    }
    println!("Lambda      {}", stack.lambda());
    println!(
        "Services    {} (EventBridge, SQS, S3, SES, Systems Manager, CloudFormation, CloudWatch)",
        stack.services()
    );
    println!("Mails       {} (a file for each)", stack.inbox().mails().display());
    println!("Webhooks    {} (a file for each)", stack.inbox().webhooks().display());
    let kept = options.keep.as_deref().map(|folder| format!("kept in {}", folder.display()));
    let kept = kept.as_deref().unwrap_or("empty at each start; --keep keeps it");
    println!("DynamoDB    {} ({kept})", stack.dynamo());
    for table in stack.tables() {
        println!("            {}", table.name);
    }
    println!("Kept        commands and dead letters in queues, failed batches in buckets:");
    for queue in stack.queues().keys() {
        println!("            {}", stack.queue_url(queue));
    }
    for bucket in stack.buckets().names() {
        println!("            s3://{bucket}");
    }
    if let Some((route, function)) = stack.example() {
        println!("\nA command, in another shell:");
        println!("  {}", command_line(stack.api(), route, &function.binary, options.auth));
    }
    println!("\nFor `ringfence` and AWS clients, in another shell:");
    println!("  set -a; . {}; set +a", word(&files.shell));
    println!("  cargo ringfence verify");
    println!("\nHot reload of the functions, beside this stack (which keeps what was built at its");
    println!(
        "start) and on its data, if you have cargo-lambda (pip install cargo-lambda==1.9.2); then invoke one:"
    );
    println!("  {}", watch_line(&files.watch, &workspace_root()));
    if let Some((_, FunctionResource { binary, .. })) = stack.example() {
        println!("  cargo lambda invoke -A 127.0.0.1 {binary} \\");
        println!("    --data-file events/{binary}/direct.json");
    }
}

/// The command that starts the functions with cargo-lambda. It searches for the workspace only in the working
/// directory, and a stack may be in a folder below.
fn watch_line(config: &Path, workspace: &Path) -> String {
    let [config, manifest] = [config, &workspace.join("Cargo.toml")].map(word);
    format!("cargo lambda watch -A 127.0.0.1 --config {config} --manifest-path {manifest}")
}

/// The command that sends the sample of a function to its route, with a token if the API asks for one.
fn command_line(api: &str, route: &Route, binary: &str, auth: bool) -> String {
    let request = format!("curl {api}{} -d @events/{binary}/direct.json", route.path);
    match route.token_scopes.as_deref().filter(|_| auth) {
        None => request,
        Some(scopes) => {
            let scope = scopes.first().map(|scope| format!(" --scope {scope}")).unwrap_or_default();
            let token = format!("cargo ringfence token --sub ada{scope}");
            format!("{request} \\\n    -H \"Authorization: Bearer $({token})\"")
        }
    }
}

fn describe_sam(stack: &RunningStack, files: &Files, template: &Path) {
    // SAM's default port is this stack's default port too.
    let port = if stack.api().ends_with(":3001") { 3000 } else { 3001 };
    let template = word(template);
    println!("\nThe functions in containers, on this stack's data:");
    if let Some((_, FunctionResource { id, binary, .. })) = stack.example() {
        println!("  sam local invoke {id} --template {template} \\");
        println!("    --event events/{binary}/direct.json");
    }
    println!("  sam local start-api --template {template} --port {port}");
    println!("Both in a shell without the variables of {},", files.shell.display());
    println!("which SAM would use in place of the template's.");
}

/// Prints events while the stack runs.
async fn follow(stack: &RunningStack) {
    let mut topic = stack.watch();
    loop {
        match topic.recv().await {
            // A notification is not an event of a log, and would appear after each event.
            Ok(Notice::Event(event)) if event["detail"]["id"].is_null() => {}
            Ok(Notice::Event(event)) => {
                let kind = event["detail-type"].as_str().unwrap_or_default();
                println!("topic: {}", visible(&format!("{kind} {}", event["detail"]["data"])));
            }
            Ok(Notice::Mail(path)) => println!("mail:  {}", path.display()),
            Ok(Notice::Webhook(path)) => println!("webhook: {}", path.display()),
            Ok(Notice::Trouble(text)) => eprintln!("trouble: {}", visible_lines(&text)),
            Err(RecvError::Lagged(count)) => eprintln!("{count} notices not shown"),
            Err(RecvError::Closed) => return,
        }
    }
}

async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};

    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without handlers a signal ends the process immediately.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[test]
fn the_command_that_is_shown_has_a_token_where_the_api_asks_for_one() {
    let mut route = Route {
        method: "POST".to_owned(),
        path: "/a/b".to_owned(),
        function: "b".to_owned(),
        token_scopes: Some(vec!["a/write".to_owned()]),
    };
    let plain = "curl http://x/a/b -d @events/b/direct.json";
    assert_eq!(command_line("http://x", &route, "b", false), plain);
    let token = "cargo ringfence token --sub ada --scope a/write";
    let expected = format!("{plain} \\\n    -H \"Authorization: Bearer $({token})\"");
    assert_eq!(command_line("http://x", &route, "b", true), expected);
    route.token_scopes = Some(vec![]);
    assert!(command_line("http://x", &route, "b", true).ends_with("--sub ada)\""));
    route.token_scopes = None;
    assert_eq!(command_line("http://x", &route, "b", true), plain);
}

#[test]
fn the_command_of_cargo_lambda_works_in_every_folder_of_the_workspace() {
    let line = watch_line(Path::new("/w/target/local/a b/watch.toml"), Path::new("/w"));
    let expected = "--config '/w/target/local/a b/watch.toml' --manifest-path /w/Cargo.toml";
    assert_eq!(line, format!("cargo lambda watch -A 127.0.0.1 {expected}"));
}
