//! `ringfence-local demo` walks the shop and ends; `ringfence-local up` stays.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use ringfence_local::{
    demo,
    notices::Notice,
    stack::{Options, Stack},
    template::Template,
    workspace_root,
};
use tokio::sync::broadcast::error::RecvError;

/// Ringfence on one machine.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Starts the stack, walks the shop, verifies each step, and ends.
    Demo,
    /// Starts the stack and keeps it until Ctrl-C.
    Up {
        /// Port of the HTTP API.
        #[arg(long, default_value_t = 3000)]
        port: u16,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stays = matches!(arguments.command, Command::Up { .. });
    // Dropping the future ends the stack with all its processes.
    let ended = tokio::select! {
        ended = run(arguments.command) => ended,
        () = interrupted() => match stays {
            true => {
                println!("stopped");
                Ok(())
            }
            false => Err(anyhow::anyhow!("interrupted")),
        },
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    let root = workspace_root();
    let template = Template::load(&root.join("template.yaml"))?;
    // A folder each: a walk beside a stack that stays must not write into its logs.
    let (data, port) = match command {
        Command::Demo => (root.join("target/demo"), 0),
        Command::Up { port } => (root.join("target/local"), port),
    };
    let stack = Stack::start(&Options { root, template, data: data.clone(), port }).await?;
    match command {
        Command::Demo => {
            let walked = demo::walk(&stack).await;
            if walked.is_err() {
                eprintln!("\nlogs: {}", data.join("logs").display());
            }
            walked?;
            println!("\nAll of it happened.");
            Ok(())
        }
        Command::Up { .. } => {
            let file = data.join("env");
            stack.write_environment(&file)?;
            describe(&stack, &file);
            follow(&stack).await;
            Ok(())
        }
    }
}

fn describe(stack: &Stack, file: &std::path::Path) {
    println!("\nHTTP API    {}", stack.api());
    let mut routes: Vec<_> = stack.routes().iter().map(|r| (&r.path, &r.method)).collect();
    routes.sort();
    for (path, method) in routes {
        println!("            {method} {path}");
    }
    println!("Lambda      {}", stack.lambda());
    println!("Page        {} (events, trouble, dead letters, routes)", stack.services());
    println!("DynamoDB    {} (empty at each start)", stack.dynamo());
    for table in stack.tables() {
        println!("            {}", table.name);
    }
    println!("Kept        dead letters in queues, failed batches in buckets:");
    for queue in stack.queues().keys() {
        println!("            {}", stack.queue_url(queue));
    }
    for bucket in stack.buckets().names() {
        println!("            s3://{bucket}");
    }
    println!("\nTry, in this order:");
    for (path, command) in [
        (
            "/catalog/add-product",
            r#"{"productId":"lamp","name":"Lamp","description":"","price":{"amount":1250,"currency":"EUR"}}"#,
        ),
        (
            "/ordering/place-order",
            r#"{"orderId":"ord-1","customerId":"c-1","productIds":["lamp"]}"#,
        ),
        (
            "/customers/register-customer",
            r#"{"customerId":"ada","name":"Ada","email":"ada@example.com"}"#,
        ),
        ("/carts/add-to-cart", r#"{"cartId":"cart-1","productId":"lamp","quantity":2}"#),
        ("/carts/check-out", r#"{"cartId":"cart-1","customerId":"ada"}"#),
    ] {
        println!("  curl {}{path} -d '{command}'", stack.api());
    }
    println!("\nFor `ringfence` and AWS clients, in another shell:");
    println!("  set -a; . {}; set +a", file.display());
    println!("  cargo ringfence verify --table \"$EVENT_TABLE\"");
    let cargo_lambda = stack.cargo_lambda().display();
    println!("\nHot reload of the functions, beside this stack (which keeps what was built at its");
    println!("start) and on its data; then invoke one:");
    println!("  {cargo_lambda} lambda watch -A 127.0.0.1 --env-file {}", file.display());
    println!("  {cargo_lambda} lambda invoke -A 127.0.0.1 add-product \\");
    println!("    --data-file events/add-product/direct.json");
    println!("\nCtrl-C ends it.\n");
}

/// Prints what happens, for as long as the stack runs.
async fn follow(stack: &Stack) {
    let mut topic = stack.watch();
    loop {
        match topic.recv().await {
            Ok(Notice::Event(event)) => {
                let kind = event["detail-type"].as_str().unwrap_or_default();
                println!("topic: {kind} {}", event["detail"]["data"]);
            }
            Ok(Notice::Trouble(text)) => eprintln!("trouble: {text}"),
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
        // Without handlers a signal ends the process at once.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
