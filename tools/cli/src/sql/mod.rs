//! `ringfence sql`: queries an export in SQL. DuckDB reads the files. Files with older versions are
//! converted into temporary copies.

mod newest;
mod views;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::Lists;
use crate::export::folder::Folder;
use crate::out;
use crate::remark;
use crate::shown::Newest;

/// The program of DuckDB.
const PROGRAM: &str = "duckdb";

#[derive(Args)]
#[command(after_help = "\
The view `events` has all events of the export. Each type of events of this build has a view with its name, with a
column for each field of its newest version, and the columns _id, _at, _partition, _slot, _version, _principal, _data
and _meta. docs/data.md explains them. A personal value is JSON, sealed as it is stored: name->>'of'
says whose it is.

Files with older versions are first converted, in a temporary folder. An export with --newest needs no conversion.

The program `duckdb` runs the query: https://duckdb.org/install, or `pip install duckdb-cli`. Without it, the command
prints the SQL of the views, and ends with status 2.

Examples:
  ringfence sql shop-events 'SELECT type, count(*) FROM events GROUP BY type'
  ringfence sql shop-events 'DESCRIBE OrderPlaced'")]
pub(crate) struct Arguments {
    /// The folder of the export.
    folder: PathBuf,
    /// The query, such as `SELECT count(*) FROM OrderPlaced`.
    select: String,
    #[command(flatten)]
    shown: Newest<true>,
    /// Prints rows as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn sql(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let path = &arguments.folder;
    let folder = Folder::read(path)?.with_context(|| {
        format!("{} is not the folder of an export: `ringfence export` makes one", path.display())
    })?;
    ensure!(!folder.segments.is_empty(), "the export in {} has no events yet", path.display());
    ensure!(
        !arguments.select.trim().is_empty(),
        "the question is empty: give one, such as 'SELECT count(*) FROM events'"
    );
    folder.check()?;
    let statements = |files: Vec<PathBuf>| {
        let views = views::of(&files, folder.subject.form, lists)?;
        // The end has its own line, because the last line may be a comment.
        anyhow::Ok(format!("{views}{}\n;\n", arguments.select.trim().trim_end_matches(';')))
    };
    let stored = || folder.segments.iter().map(|segment| folder.file(segment)).collect();
    let form = if arguments.json { "-json" } else { "-box" };
    // A person's own settings could change the output.
    let duckdb = Command::new(PROGRAM)
        .args(["-bail", "-init", "", form])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut duckdb = match duckdb {
        Ok(duckdb) => duckdb,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            out::lines(&statements(stored())?);
            let other = match folder.other_version(lists) {
                Some(_) if arguments.shown.newest => {
                    ", after an export with --newest, because this one has older versions"
                }
                _ => "",
            };
            bail!(
                "the program {PROGRAM} is not installed, so nothing is answered. Install it, from https://duckdb.org/install \
                 or by `pip install duckdb-cli`, or give the SQL above to another DuckDB{other}"
            );
        }
        Err(error) => return Err(error).with_context(|| format!("starting {PROGRAM}")),
    };
    let mut input = duckdb.stdin.take().context("it has no input")?;
    // Deleted when the answer is there.
    let copies = tempfile::tempdir().context("making a temporary folder")?;
    let files = match arguments.shown.newest {
        true => newest::files(&folder, lists, copies.path())?,
        false => stored(),
    };
    let text = statements(files)?;
    // DuckDB may end before it has read everything, and then its error says why.
    let writer = thread::spawn(move || drop(input.write_all(text.as_bytes())));
    let answer = duckdb.wait_with_output().with_context(|| format!("running {PROGRAM}"))?;
    drop(writer.join());
    let said = String::from_utf8_lossy(&answer.stderr);
    out::lines(&String::from_utf8_lossy(&answer.stdout));
    ensure!(answer.status.success(), "{PROGRAM}: {}", said.trim());
    if !said.trim().is_empty() {
        remark!("{}", said.trim());
    }
    Ok(ExitCode::SUCCESS)
}
