//! A copy of the repository that has all mutations, and the programs of its tests.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::list::{Mutation, Run};

/// The variable with the switch of the mutation that is on.
pub(super) const SWITCH: &str = "RINGFENCE_MUTATION";
/// The variable with the folder for a file for each switch and thread that gets to it. A test's thread has its name.
pub(super) const REACHED: &str = "RINGFENCE_MUTATIONS_REACHED";

/// What each crate with mutations has besides.
const MODULE: &str = r#"
mod mutation {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::{env, fs::File, path::PathBuf, sync::OnceLock, thread};

    static ON: OnceLock<Option<u64>> = OnceLock::new();
    static REACHED: OnceLock<Option<PathBuf>> = OnceLock::new();
    thread_local! { static NOTED: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) } }

    pub(crate) fn on(switch: u64) -> bool {
        let reached = || env::var_os("RINGFENCE_MUTATIONS_REACHED").map(PathBuf::from);
        if let Some(folder) = REACHED.get_or_init(reached)
            && NOTED.try_with(|noted| noted.borrow_mut().insert(switch)).unwrap_or(true)
        {
            let name = format!("{switch} {}", thread::current().name().unwrap_or_default());
            File::create(folder.join(name)).expect("a file for what is reached");
        }
        *ON.get_or_init(|| env::var("RINGFENCE_MUTATION").ok()?.parse().ok()) == Some(switch)
    }
}
"#;

/// The program of a test target, and the folder of its package.
pub(super) struct Program {
    pub(super) file: PathBuf,
    pub(super) package: PathBuf,
}

/// Programs by the name of their target.
pub(super) type Programs = BTreeMap<String, Program>;

/// Makes or renews the copy. A file that stays the same is not written, so that cargo need not build it again.
pub(super) fn with(root: &Path, mutations: &[Mutation]) -> Result<PathBuf, String> {
    let tree = target_folder()?.join("mutants");
    let mut of_file: BTreeMap<PathBuf, Vec<&Mutation>> = BTreeMap::new();
    for mutation in mutations {
        of_file.entry(mutation.file.clone()).or_default().push(mutation);
    }
    let crates: BTreeSet<PathBuf> = of_file.keys().filter_map(|file| library(file)).collect();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    let listed = String::from_utf8(listed.stdout).map_err(|error| format!("git: {error}"))?;
    let mut files: BTreeSet<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
    files.retain(|file| root.join(file).exists());
    for file in &files {
        let trouble = |error| format!("{}: {error}", file.display());
        // A link to a folder leads to the copy of the folder.
        if root.join(file).is_dir() {
            link(&root.join(file), &tree.join(file)).map_err(|error| trouble(error.to_string()))?;
            continue;
        }
        let mut content = fs::read(root.join(file)).map_err(|error| trouble(error.to_string()))?;
        if file.extension().is_some_and(|extension| extension == "rs") {
            let text = String::from_utf8(content).map_err(|error| trouble(error.to_string()))?;
            let here = of_file.get(file).map_or(&[][..], Vec::as_slice);
            let mut text = mutated(&text, here).map_err(trouble)?;
            if !file.starts_with("tests") {
                // Programs that are started without the environment have both variables all the same.
                let kept = format!(
                    ".env_clear().envs(std::env::vars_os().filter(|(name, _)| {{
                        name == {SWITCH:?} || name == {REACHED:?}
                    }}))"
                );
                text = text.replace(".env_clear()", &kept);
            }
            if crates.contains(file) {
                text = format!("#![allow(warnings)] {text}{MODULE}");
            }
            content = text.into_bytes();
        }
        write(&root.join(file), &tree.join(file), &content)
            .map_err(|error| trouble(error.to_string()))?;
    }
    remove_others(&tree, &tree, &files).map_err(|error| format!("{}: {error}", tree.display()))?;
    Ok(tree)
}

/// Builds the programs of the tests. What they depend on is the repository's own: the build folder is the same, and
/// only the members are built.
pub(super) fn build(root: &Path, tree: &Path, runs: &[&Run]) -> Result<Programs, String> {
    let mut cargo = ringfence_local::programs::cargo();
    cargo.args(["test", "--no-run", "--message-format", "json-render-diagnostics", "--lib"]);
    let targets: BTreeSet<&str> = runs.iter().map(|run| &*run.target).collect();
    for target in targets.iter().filter(|target| !target.contains('.')) {
        cargo.args(["--test", target]);
    }
    cargo.current_dir(tree).envs(variables(tree)?).stdout(Stdio::piped());
    let output = cargo.spawn().and_then(std::process::Child::wait_with_output);
    let output = output.map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("the copy of {} with the mutations does not build", root.display()));
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').map(serde_json::from_slice::<Value>);
    let programs: Programs = messages.flatten().filter_map(|message| program(&message)).collect();
    match targets.iter().find(|target| !programs.contains_key(**target)) {
        None => Ok(programs),
        Some(unknown) => Err(format!("cargo knows no test target {unknown}")),
    }
}

/// The variables with which cargo and the tests find what is built.
pub(super) fn variables(tree: &Path) -> Result<[(&'static str, PathBuf); 2], String> {
    Ok([("CARGO_BUILD_BUILD_DIR", target_folder()?), ("CARGO_TARGET_DIR", tree.join("target"))])
}

/// The folder that this program was built in.
fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("this program's file: {error}"))?;
    program.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| "no target folder".to_owned())
}

/// The `lib.rs` of the crate of a file.
fn library(file: &Path) -> Option<PathBuf> {
    file.ancestors().find(|folder| folder.ends_with("src")).map(|src| src.join("lib.rs"))
}

fn write(from: &Path, to: &Path, content: &[u8]) -> std::io::Result<()> {
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::write(to, content)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}

/// Makes the same link, unless it is there.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    if fs::read_link(to).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

/// Removes files that the repository has no more.
fn remove_others(tree: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path == tree.join("target") {
            continue;
        } else if path.is_dir() && !path.is_symlink() {
            remove_others(tree, &path, files)?;
        } else if path.strip_prefix(tree).is_ok_and(|file| !files.contains(file)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The test program that a message of cargo names.
fn program(message: &Value) -> Option<(String, Program)> {
    let file = message["executable"].as_str()?.into();
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    if message["profile"]["test"] != true {
        return None;
    }
    let target = match message["target"]["kind"][0].as_str()? {
        "test" => message["target"]["name"].as_str()?.to_owned(),
        // Several applications have a folder of one name.
        "lib" if package.parent()?.ends_with("shared") => {
            format!("{}.lib", package.file_name()?.to_str()?)
        }
        "lib" => format!("{}.lib", message["target"]["name"].as_str()?.replace('_', "-")),
        _ => return None,
    };
    Some((target, Program { file, package }))
}

/// The source of a file with its mutations, each behind its switch.
pub fn mutated(source: &str, mutations: &[&Mutation]) -> Result<String, String> {
    let mut places: Vec<(Range<usize>, Vec<&Mutation>)> = Vec::new();
    for mutation in mutations {
        let place = mutation.text.find(source)?;
        match places
            .iter_mut()
            .find(|(other, _)| other.start < place.end && place.start < other.end)
        {
            None => places.push((place, vec![mutation])),
            Some((other, same)) if *other == place => same.push(mutation),
            Some((_, others)) => {
                return Err(format!(
                    "`{}` and `{}` overlap",
                    others[0].text.marked(),
                    mutation.text.marked()
                ));
            }
        }
    }
    places.sort_by_key(|(place, _)| place.start);
    let mut written = source.to_owned();
    for (place, mutations) in places.into_iter().rev() {
        let original = &source[place.clone()];
        let branch = |mutation: &&Mutation| {
            let Mutation { switch, replacement, .. } = mutation;
            format!("if crate::mutation::on({switch}) {{ {replacement} }} else ")
        };
        let branches: String = mutations.iter().map(branch).collect();
        let statement = original.ends_with([';', '}']);
        let [open, close] = if statement { ["", ""] } else { ["(", ")"] };
        written.replace_range(place, &format!("{open}{branches}{{ {original} }}{close}"));
    }
    Ok(written)
}
