//! The stacks of this repository as their users see them. It is one target, so tests that wait for functions or for a
//! browser run in parallel.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests fail by panicking")]

mod binaries;
mod console;
mod contract;
mod newcomer;
mod sharing;
mod tables;

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
/// Functions of the shop that run as deployed, by their own programs: one of each kind.
const DEPLOYED: [&str; 3] = ["place-order", "confirm-order", "publish-events"];
/// The programs of all other functions, each with the folder of its stack.
const OF_ALL: [(&str, &str); 2] =
    [("ringfence-local", SHOP), ("projects-ringfence-local", PROJECTS)];

/// The program of each function of both stacks, with the programs above. One call of cargo builds them, because each
/// call takes seconds even if all is built.
static BUILT: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

/// A stack of the template in this folder, with its files in `data`.
async fn start(folder: &str, data: &Path, keep: Option<PathBuf>) -> RunningStack {
    let (root, data) = (workspace_root().join(folder), data.to_owned());
    let template = template_of(folder);
    let programs = BUILT.get_or_init(build).await.clone();
    let (auth, limits) = (false, None);
    let options = StackOptions { root, template, data, port: 0, keep, programs, auth, limits };
    RunningStack::start(&options).await.unwrap()
}

/// The shop, whose API asks for tokens, and its command line.
async fn start_with_tokens(data: &Path) -> (RunningStack, PathBuf) {
    let (root, data) = (workspace_root(), data.to_owned());
    let (template, programs) = (template_of(SHOP), BUILT.get_or_init(build).await.clone());
    let program = programs[COMMAND_LINE].clone();
    let (keep, auth, limits) = (None, true, None);
    let options = StackOptions { root, template, data, port: 0, keep, programs, auth, limits };
    (RunningStack::start(&options).await.unwrap(), program)
}

fn template_of(folder: &str) -> Template {
    Template::load(&workspace_root().join(folder).join("template.yaml")).unwrap()
}

async fn build() -> BTreeMap<String, PathBuf> {
    let binaries = OF_ALL.map(|(program, _)| program).into_iter().chain(DEPLOYED);
    let built = programs::build(&workspace_root(), binaries.chain([COMMAND_LINE])).await;
    let mut programs = built.unwrap();
    for (program, folder) in OF_ALL {
        let program = programs[program].clone();
        for function in template_of(folder).model("").unwrap().functions {
            programs.entry(function.binary).or_insert_with(|| program.clone());
        }
    }
    programs
}

/// A folder for the files of a stack. It is on the file system of the binaries, so stacks link them: a copy for each
/// stack would take gigabytes.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
