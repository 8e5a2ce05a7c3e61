//! The data of a stack that is started with `--keep`. Its folder has the database, the buckets, the functions' logs,
//! the files in place of keys of KMS, and a file with the position of each event source mapping in its stream and the
//! messages of the queues. The next start continues from there, so new programs meet old events.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    embedded::{Embedded, Position},
    keys,
    message::Message,
    notices::Notices,
    template::{FunctionResource, Mapping, Model, TableResource},
};

/// The version of [`State`]. A program refuses a newer one.
const FORMAT: u32 = 1;

/// So many starts are kept: the first one, and the last ones.
const STARTS_MAX: usize = 100;

/// The folder of a stack's data, and the content of its file.
#[derive(Clone)]
pub(crate) struct Kept {
    folder: PathBuf,
    notices: Notices,
    state: Arc<Mutex<State>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    format: u32,
    /// By table and function.
    positions: BTreeMap<String, Position>,
    queues: BTreeMap<String, Vec<Message>>,
    /// How far the stack's clock is ahead of the machine's, in milliseconds.
    #[serde(default)]
    passed_ms: u64,
    /// When the stack was started, in milliseconds since 1970. The first one made it; 0 if it is not known.
    #[serde(default = "unknown")]
    starts: Vec<u64>,
    /// The files in place of keys of KMS. Without them nobody can read the personal data.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    keys: BTreeSet<PathBuf>,
}

/// The file can't be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}, so the next start repeats what was done since", path.display())]
struct NotKept {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

impl Kept {
    /// The data in this folder, which is created if it does not exist.
    ///
    /// # Errors
    /// They are of a newer format or of another template, or can't be read.
    pub(crate) fn open(folder: &Path, model: &Model, notices: &Notices) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = file(folder);
        let mut state = match fs::read(&path) {
            Ok(bytes) => or_out(read(&bytes).with_context(|| path.display().to_string()), folder)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                State { format: FORMAT, ..State::default() }
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let is_lost = |(queue, messages): &(&String, &Vec<Message>)| {
            !messages.is_empty() && model.queues.iter().all(|known| known.name != **queue)
        };
        if let Some((queue, _)) = state.queues.iter().find(is_lost) {
            let lost = anyhow!("messages of the queue {queue} are kept, and the template has none");
            return or_out(Err(lost), folder);
        }
        for key in model.functions.iter().flat_map(FunctionResource::key_files) {
            let name = key.file_name().map(PathBuf::from).context("a key without a file")?;
            ensure!(
                key.exists() || !state.keys.contains(&name),
                "the key of the stack, {}, is gone: restore it, or delete {} and begin with empty tables",
                key.display(),
                folder.display()
            );
            keys::make(key)?;
            state.keys.insert(name);
        }
        write(&path, &state)?;
        let (folder, notices) = (folder.to_owned(), notices.clone());
        Ok(Self { folder, notices, state: Arc::new(Mutex::new(state)) })
    }

    /// The database.
    ///
    /// # Errors
    /// Its tables do not fit the template.
    pub(crate) async fn database(&self, tables: &[TableResource]) -> Result<Embedded> {
        let file = self.folder.join("dynamodb.sqlite");
        let opened = Embedded::open(&file).await.with_context(|| file.display().to_string());
        let settled = opened.and_then(|dynamo| settle(&dynamo, tables).map(|()| dynamo));
        or_out(settled, &self.folder)
    }

    /// The folder of the buckets.
    pub(crate) fn buckets(&self) -> PathBuf {
        self.folder.join("buckets")
    }

    /// The folder of the functions' logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// The mapping's position in its stream; `None` at its first start.
    pub(crate) fn position(&self, mapping: &Mapping) -> Option<Position> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.positions.get(&name(mapping)).cloned()
    }

    /// Saves the mapping's position in its stream.
    pub(crate) fn keep_position(&self, mapping: &Mapping, position: Position) {
        self.change(|state| drop(state.positions.insert(name(mapping), position)));
    }

    /// The messages of the queues.
    pub(crate) fn queues(&self) -> BTreeMap<String, Vec<Message>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).queues.clone()
    }

    /// Saves the messages of the queues.
    pub(crate) fn keep_queues(&self, queues: BTreeMap<String, Vec<Message>>) {
        self.change(|state| state.queues = queues);
    }

    /// How far the stack's clock is ahead.
    pub(crate) fn passed_ms(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).passed_ms
    }

    /// Saves how far the stack's clock is ahead.
    pub(crate) fn keep_passed(&self, ms: u64) {
        self.change(|state| state.passed_ms = ms);
    }

    /// Saves a start of the stack. Returns the first one and the last ones.
    pub(crate) fn start(&self, at_ms: u64) -> Vec<u64> {
        let mut starts = Vec::new();
        self.change(|state| {
            state.starts.push(at_ms);
            let over = state.starts.len().saturating_sub(STARTS_MAX);
            state.starts.drain(1..=over);
            starts.clone_from(&state.starts);
        });
        starts
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if let Err(error) = write(&file(&self.folder), &state) {
            self.notices.trouble(&error);
        }
    }
}

/// The starts of data of a version that kept none.
fn unknown() -> Vec<u64> {
    vec![0]
}

fn file(folder: &Path) -> PathBuf {
    folder.join("kept.json")
}

fn name(mapping: &Mapping) -> String {
    format!("{} {}", mapping.table, mapping.function)
}

/// Adds two ways out to an error.
fn or_out<T>(result: Result<T>, folder: &Path) -> Result<T> {
    result.map_err(|error| {
        anyhow!(
            "{error:#}: use the template and the version with which these data were kept, or delete {} and begin \
             with empty tables",
            folder.display()
        )
    })
}

fn read(bytes: &[u8]) -> Result<State> {
    let value: Value = serde_json::from_slice(bytes).context("it is not JSON")?;
    let format = &value["format"];
    ensure!(
        format.as_u64() == Some(FORMAT.into()),
        "it has the format {format}, and this program knows {FORMAT}"
    );
    serde_json::from_value(value).context("it is not what this program writes")
}

fn write(path: &Path, state: &State) -> Result<(), NotKept> {
    let new = path.with_extension("new");
    let text = serde_json::to_vec(state).map_err(std::io::Error::from);
    let synced = |text: Vec<u8>| {
        let mut file = File::create(&new)?;
        file.write_all(&text).and_then(|()| file.sync_all())
    };
    let written = text.and_then(synced).and_then(|()| fs::rename(&new, path));
    written.map_err(|source| NotKept { path: path.to_owned(), source })
}

/// Creates missing tables and indexes, and removes indexes that the template no longer has, like an update of a
/// deployed stack. A table that a parameter names is only compared.
fn settle(dynamo: &Embedded, tables: &[TableResource]) -> Result<()> {
    let found = dynamo.tables()?;
    let is_of = |name: &&String| {
        let is_it = |table: &TableResource| {
            table.name == **name || table.instead_of.as_ref() == Some(*name)
        };
        tables.iter().any(is_it)
    };
    // Programs may have made other tables.
    if let Some(other) = found.first().filter(|_| !found.iter().any(|name| is_of(&name))) {
        bail!("the table {other} is kept, and the template has none of this name");
    }
    // Nothing changes before all tables are known to fit.
    let mut changes = Vec::new();
    for TableResource { id, name, properties, instead_of } in tables {
        if !found.contains(name) {
            ensure!(instead_of.is_none(), "{}", lacking(id, name));
            continue;
        }
        let kept = dynamo.describe(name)?;
        let way = match instead_of {
            Some(_) => format!(
                ": start without {id}Name, and `ringfence tables check` says how to mend it"
            ),
            None => String::new(),
        };
        let stream = "/StreamSpecification/StreamViewType";
        for (what, kept, now) in [
            ("key", key(&kept), key(properties)),
            ("stream", json!(kept.pointer(stream)), json!(properties.pointer(stream))),
        ] {
            ensure!(
                kept == now,
                "the table {name} is kept with the {what} {kept}, and the template has {now}{way}"
            );
        }
        let [had, has] = [&kept, properties].map(indexes);
        for (index, now) in &has {
            match had.get(index) {
                None if instead_of.is_some() => {
                    bail!("the table {name} lacks the index {index}{way}")
                }
                None => changes.push((name, properties, json!({ "Create": now }))),
                Some(kept) => {
                    for (what, kept, now) in [
                        ("key", kept["KeySchema"].clone(), now["KeySchema"].clone()),
                        ("projection", projection(kept), projection(now)),
                    ] {
                        ensure!(
                            kept == now,
                            "the index {index} of the table {name} is kept with the {what} {kept}, and the template has \
                             {now}{way}"
                        );
                    }
                }
            }
        }
        let is_extra = |index: &&String| instead_of.is_none() && !has.contains_key(*index);
        for index in had.keys().filter(is_extra) {
            changes.push((name, properties, json!({ "Delete": { "IndexName": index } })));
        }
    }
    for TableResource { name, properties, .. } in
        tables.iter().filter(|table| !found.contains(&table.name))
    {
        dynamo.create_table(properties, name)?;
    }
    for (name, properties, change) in changes {
        dynamo.change_index(name, properties, change)?;
    }
    Ok(())
}

/// The kept tables, or empty ones.
pub(crate) async fn database(kept: Option<&Kept>, tables: &[TableResource]) -> Result<Embedded> {
    if let Some(kept) = kept {
        return kept.database(tables).await;
    }
    let dynamo = Embedded::hidden().await?;
    for table in tables {
        ensure!(table.instead_of.is_none(), "{}", lacking(&table.id, &table.name));
        dynamo.create_table(&table.properties, &table.name)?;
    }
    Ok(dynamo)
}

/// Why a table that a parameter names can't be used.
fn lacking(id: &str, name: &str) -> String {
    format!(
        "the table {name}, which {id}Name names, is not there: a stack finds tables in data that are kept (--keep), where \
         programs have made them before"
    )
}

/// An index's projection: its kind and, in alphabetical order, its attributes.
fn projection(index: &Value) -> Value {
    let projection = &index["Projection"];
    let mut names = projection["NonKeyAttributes"].as_array().cloned().unwrap_or_default();
    names.sort_by_key(Value::to_string);
    json!([projection["ProjectionType"], names])
}

/// The key's attributes with their types.
fn key(table: &Value) -> Value {
    let list = |name: &str| table[name].as_array().cloned().unwrap_or_default();
    let types = list("AttributeDefinitions");
    let of = |key: &Value| {
        let typed = types.iter().find(|it| it["AttributeName"] == key["AttributeName"]);
        json!([key["AttributeName"], key["KeyType"], typed.map(|it| &it["AttributeType"])])
    };
    list("KeySchema").iter().map(of).collect()
}

fn indexes(table: &Value) -> BTreeMap<String, Value> {
    let indexes = table["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
    let named = |index: &Value| Some((index["IndexName"].as_str()?.to_owned(), index.clone()));
    indexes.filter_map(named).collect()
}

/// Removes the files of an earlier stack, whose tables are gone as well.
pub(crate) fn emptied(folder: PathBuf) -> Result<PathBuf> {
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot empty {}", folder.display()))
        }
        _ => Ok(folder),
    }
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
