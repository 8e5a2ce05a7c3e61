//! The command line of the stack that the tests use. A stack of one's own makes its command line in the same way.

#[path = "../tests/cli/shop.rs"]
mod shop;

fn main() -> std::process::ExitCode {
    ringfence_cli::run::<shop::Shop>()
}
