//! Decides commands on a log of this machine, by the same slices as the stack.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::LocalBoxFuture;
use projects::Projects;
use ringfence_aws::Clock;
use ringfence_core::{
    Catalog, CommandContext, Context, Decisions, Envelope, EventLog, HandleError, Handled,
    Metadata, Principal, Slice, handle,
};
use ringfence_lambda::{Issuers, Problem};
use ringfence_stack::{MemberList, Visitor};
use serde_json::{Value, json};

type Decide =
    for<'a> fn(&'a dyn EventLog, &'a Catalog, Value, &'a Envelope) -> LocalBoxFuture<'a, Decided>;

/// The result of a command.
pub type Decided = Result<Handled, Undecided>;

/// Why a command has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum Undecided {
    /// The context has no slice of this name.
    #[error("there is no slice {0}")]
    Unknown(String),
    /// The command does not have the shape of the slice's.
    #[error("the command is malformed: {}", .0.detail())]
    Malformed(Problem),
    /// The log failed, or the key belongs to another command.
    #[error(transparent)]
    Handle(#[from] HandleError),
}

/// The slices of the context, by name.
pub struct Slices {
    decide: BTreeMap<&'static str, Decide>,
    catalog: Catalog,
}

/// Reads a command as the stack does, so both find the same mistakes in it.
fn command<S: Slice>(data: &Value) -> Result<S, Undecided> {
    let payload = json!({ "command": data }).to_string();
    let commands = ringfence_lambda::slice::read(&payload, &Issuers::default(), &Clock::system());
    let (command, _) = commands.map_err(Undecided::Malformed)?.remove(0);
    Ok(command)
}

impl Visitor for Slices {
    fn slice<S: Slice>(&mut self) {
        self.decide.insert(S::NAME, |log, catalog, data, envelope| {
            async move {
                let command = command::<S>(&data)?;
                Ok(handle(log, catalog, &Decisions::<S>::new(0), &command, envelope).await?)
            }
            .boxed_local()
        });
    }
}

impl Slices {
    /// All of them.
    ///
    /// # Panics
    /// The catalog contradicts itself, which a test of the context shows.
    #[must_use]
    pub fn all() -> Self {
        let catalog = Projects::catalog().expect("a test composes it");
        let mut slices = Self { decide: BTreeMap::new(), catalog };
        MemberList::walk::<Projects>(&mut slices);
        slices
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.decide.keys().copied()
    }

    /// The catalog of a log's events.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Decides a command of a slice on a log.
    ///
    /// # Errors
    /// It is not settled.
    pub async fn decide(
        &self,
        log: &dyn EventLog,
        slice: &str,
        data: Value,
        envelope: &Envelope,
    ) -> Decided {
        let decide = self.decide.get(slice).ok_or_else(|| Undecided::Unknown(slice.to_owned()))?;
        decide(log, &self.catalog, data, envelope).await
    }
}

/// The surroundings of a command as the stack makes them.
#[must_use]
pub fn envelope(
    key: &str,
    now_ms: u64,
    principal: Option<String>,
    effective_at: Option<&str>,
) -> Envelope {
    let mut metadata = Metadata::default();
    let entries = [
        ("commandId", Some(key)),
        (Metadata::PRINCIPAL, principal.as_deref()),
        ("effectiveAt", effective_at),
    ];
    for (name, text) in entries.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        metadata.insert(name, text).expect("none of these keys is the log's own");
    }
    let principal = principal.as_deref().map(Principal::from);
    Envelope {
        context: CommandContext {
            now_ms,
            command_id: key.to_owned(),
            principal,
            is_of_stack: false,
        },
        metadata,
        idempotency_key: Some(key.to_owned()),
        cause_ms: None,
        deadline_ms: None,
    }
}
