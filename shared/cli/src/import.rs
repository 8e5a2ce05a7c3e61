//! `ringfence import`: one list of the sources, each with a file of its own.

mod arguments;
mod castore_legacy;
mod jsonl;
mod logs;
mod propulsion_index;
mod report;
mod reventless;

use std::process::ExitCode;

use anyhow::Result;

use crate::Lists;
pub(crate) use arguments::Arguments;
use arguments::Origin;
use report::Done;

pub(crate) async fn import(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let report = match arguments.from {
        Origin::Jsonl => jsonl::import(arguments, lists).await?,
        Origin::Reventless => reventless::import(arguments, lists).await?,
        Origin::CastoreLegacy => castore_legacy::import(arguments, lists).await?,
        Origin::PropulsionIndex => propulsion_index::import(arguments, lists).await?,
    };
    let is_well = report.broken.is_empty();
    Ok(arguments.output.end(&Done { report, is_dry_run: arguments.dry_run }, is_well))
}
