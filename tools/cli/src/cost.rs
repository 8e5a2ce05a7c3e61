//! `ringfence cost`: what the stack costs a month.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ringfence_template::cost::{BillLine, Known, PRICES_OF, bill, dollars};

use crate::{Lists, out};

/// A hundred thousand commands a second, which no stack carries.
const COMMANDS_MAX: u64 = 8_640_000_000;

#[derive(Args)]
#[command(after_help = "\
It reads template.yaml, and takes the defaults of its parameters. The page docs/costs.md has the prices, and what a
command is here. Free tiers and discounts are not counted.

Examples:
  ringfence cost
  ringfence cost --commands-per-day 1000")]
pub(crate) struct Arguments {
    /// Commands a day. Without any, the stack is at rest.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=COMMANDS_MAX))]
    commands_per_day: u64,
}

pub(crate) fn cost(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let path = ringfence_new::root()?.join("template.yaml");
    let reading = || format!("reading {}", path.display());
    let text = fs::read_to_string(&path).with_context(reading)?;
    #[allow(clippy::cast_precision_loss, reason = "such numbers are exact")]
    let commands = arguments.commands_per_day as f64;
    let items = bill(&text, &lists.stack, commands).with_context(reading)?;
    let sum: f64 = items.iter().map(|item| item.dollars).sum();
    out::line(&format!("dollars a month, at {PRICES_OF}:"));
    for BillLine { what, dollars: of, known } in &items {
        let known = match known {
            Known::Counted => "counted",
            Known::Modelled => "modelled",
        };
        out::line(&format!("{:>12}  {what} ({known})", dollars(*of)));
    }
    out::line(&format!("{:>12}  in all", dollars(sum)));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        of: Arguments,
    }

    #[test]
    fn a_number_of_commands_is_whole_and_not_beyond_what_any_stack_carries() {
        let parse = |given: &str| Line::try_parse_from(["cost", "--commands-per-day", given]);
        assert_eq!(parse("1000").ok().map(|line| line.of.commands_per_day), Some(1_000));
        for (given, why) in [
            ("many", "invalid value 'many' for '--commands-per-day <N>': invalid digit"),
            ("1.5", "invalid value '1.5' for '--commands-per-day <N>': invalid digit"),
            ("8640000001", "8640000001 is not in 0..=8640000000"),
        ] {
            let error = parse(given).err().expect("it is refused").to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
