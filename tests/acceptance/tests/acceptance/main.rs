//! The stacks of this repository as their users meet them. It is one target, so that tests that wait for functions or
//! for a browser run beside each other.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod binaries;
mod console;
mod contract;
mod newcomer;
mod sharing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringfence_local::{
    programs,
    stack::{RunningStack, StackOptions},
    template::Template,
    workspace_root,
};
use tokio::sync::OnceCell;

/// The folder of the shop.
const SHOP: &str = "";
/// The folder of projects.
const PROJECTS: &str = "projects";

/// The command line of the shop.
const COMMAND_LINE: &str = "ringfence";

/// The programs of both stacks, and the command line of the shop. One call of cargo builds them, because each takes seconds even if all is built.
static BUILT: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

/// A stack of the template in this folder, with its files in `data`.
async fn start(folder: &str, data: &Path, keep: Option<PathBuf>) -> RunningStack {
    let (root, data) = (workspace_root().join(folder), data.to_owned());
    let template = template_of(folder);
    let built = Some(BUILT.get_or_init(build).await.clone());
    let options = StackOptions { root, template, data, port: 0, keep, built, auth: false };
    RunningStack::start(&options).await.unwrap()
}

/// The shop, whose API asks for tokens, and its command line.
async fn start_with_tokens(data: &Path) -> (RunningStack, PathBuf) {
    let (root, data) = (workspace_root(), data.to_owned());
    let (template, built) = (template_of(SHOP), BUILT.get_or_init(build).await.clone());
    let program = built[COMMAND_LINE].clone();
    let built = Some(built);
    let options = StackOptions { root, template, data, port: 0, keep: None, built, auth: true };
    (RunningStack::start(&options).await.unwrap(), program)
}

fn template_of(folder: &str) -> Template {
    Template::load(&workspace_root().join(folder).join("template.yaml")).unwrap()
}

async fn build() -> BTreeMap<String, PathBuf> {
    let models = [SHOP, PROJECTS].map(|folder| template_of(folder).model("").unwrap());
    let functions = models.iter().flat_map(|model| &model.functions);
    let binaries = functions.map(|function| function.binary.as_str());
    programs::build(&workspace_root(), binaries.chain([COMMAND_LINE])).await.unwrap()
}

/// A folder for the files of a stack. It is where the binaries are, so that stacks link them: a copy for each stack would
/// take gigabytes.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
