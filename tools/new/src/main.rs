//! `ringfence-new`: creates a new stack where no stack exists, and so no `ringfence` program of one.

use std::process::ExitCode;

use clap::Parser;
use ringfence_core::visible_lines;
use ringfence_new::NewStack;

#[derive(Parser)]
#[command(name = "ringfence-new", version)]
/// Creates a new stack with one example context.
struct Arguments {
    #[command(flatten)]
    stack: NewStack,
}

fn main() -> ExitCode {
    match Arguments::parse().stack.write() {
        Ok(written) => {
            print!("{}", visible_lines(&written));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}", visible_lines(&format!("error: {error:#}")));
            ExitCode::from(2)
        }
    }
}
