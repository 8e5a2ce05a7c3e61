//! `ringfence project do`, also used by `claim`. Commands are given to the stack. Without a network they go to the
//! outbox. In a local project the file is the log, and commands are carried out there.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use projects::{AgentId, Mode, ProjectId};
use ringfence_aws::Clock;
use ringfence_cli::api::{Answer, Api, IDEMPOTENCY_KEY, url, was_not_sent};
use ringfence_cli::send::text;
use ringfence_cli::{remark, say};
use ringfence_core::{Envelope, Id, Outcome, Rejected, rfc3339};
use serde_json::{Value, json};

use super::cache::Cache;
use super::command::{Advice, Draft};
use super::decide::{Slices, envelope};
use super::folder::Folder;
use super::outbox::Queued;
use super::pull::{Source, pull};
use super::standing::Standing;

/// The header of the time at which a command was given.
const EFFECTIVE_AT: &str = "effective-at";
/// How often a command is sent if it is rejected because of a value from the cache.
const TRIES: u32 = 3;
/// The status of an answer that rejects a command.
const REJECTED: u16 = 422;

/// Slices whose commands depend on the edge at the moment of their effect. So they can't wait if many agents work.
const OF_THE_MOMENT: [&str; 3] = [Draft::CLAIM, "force-release", "reopen-edge"];

/// Whether an answer leaves open whether a command took effect, as when a function runs out of time. An answer of API
/// Gateway settles that only if it rejects the request.
fn is_unknown(answer: &Answer) -> bool {
    answer.status == 504 || !answer.is_of_stack() && !(400..500).contains(&answer.status)
}

/// The agent that gives commands, and the stack.
#[derive(Args)]
pub(crate) struct Caller {
    /// The agent that gives the command; in single mode it need not be named.
    #[arg(long, env = "RINGFENCE_AGENT", value_name = "NAME")]
    pub(super) agent: Option<AgentId>,
    /// The URL of the HTTP API. A request to `https://` is signed with the credentials of the environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = url)]
    api: Option<String>,
    /// The source of a pull, if the cache is too old.
    #[command(flatten)]
    source: Source,
    /// Decides the command on the cache alone. An accepted one waits in the outbox until `push` sends it.
    #[arg(long)]
    pub(super) offline: bool,
}

#[derive(Args)]
#[command(after_help = "\
The command may leave out values that the cache knows: `claim`, the agent's current claim on the edge; `after`, the
features that the feature of a claimed edge waits for; `reachable`, all features to which a new dependency leads. In
single mode an iteration or a convergence on a free edge claims it.

Examples:
  ringfence project do init-project --agent ada --data @shop.json
  ringfence project do init-project --agent primary --data @shop.json --local
  ringfence project do complete-iteration --agent ada --data @iteration.json --offline")]
pub(crate) struct Do {
    /// The slice.
    #[arg(value_parser = PossibleValuesParser::new(Slices::all().names()), hide_possible_values = true)]
    slice: String,
    /// The command in JSON; `@<file>` reads it from a file, `@-` from standard input.
    #[arg(long, value_name = "JSON")]
    data: String,
    /// Begins a project on this machine alone: the file of its events is its log. Only the first command needs this
    /// flag.
    #[arg(long, conflicts_with = "offline")]
    local: bool,
    #[command(flatten)]
    caller: Caller,
}

/// The result of a command.
pub(super) struct Settled {
    pub(super) document: Value,
    pub(super) code: ExitCode,
}

impl Settled {
    fn rejected(rejected: Rejected) -> Self {
        let Rejected { message, rejection: mut document } = rejected;
        document["detail"] = message.into();
        Self { document, code: ExitCode::FAILURE }
    }

    pub(super) fn print(self) -> ExitCode {
        say!("{}", self.document);
        self.code
    }
}

pub(crate) async fn run_do(project: Option<&ProjectId>, arguments: &Do) -> Result<ExitCode> {
    let Do { slice, data, local, caller } = arguments;
    let draft = Draft::new(slice, &text(data)?, caller.agent.as_ref())?;
    let folder = Folder::find(draft.project().or(project))?;
    let settled = match local {
        true => settle(&folder, &draft).await,
        false => caller.give(&folder, draft).await,
    };
    settled.map(Settled::print)
}

impl Caller {
    /// Gives a command to the stack. With `--offline`, or without a connection, it goes to the outbox if it is accepted
    /// here. If no answer comes, it goes there in any case. In a local project it is settled here.
    pub(super) async fn give(&self, folder: &Folder, mut draft: Draft) -> Result<Settled> {
        if folder.read()?.is_local()? {
            return settle(folder, &draft).await;
        }
        let (slices, mut key) = (Slices::all(), new_key());
        let mut cache = Cache::read(&folder.read()?, &slices).await?;
        if self.offline {
            let filled = draft.filled(&cache.standing);
            return queue(folder, &slices, &draft, filled, key, false).await;
        }
        let api = self.api.as_deref();
        let api =
            api.context("no API: name it with --api, --stack or API_URL, or give --offline")?;
        let api = Api::at(api, None).await?;
        if cache.outbox.len() > 0 {
            let waiting = cache.outbox.len();
            if let Some(edge) = &draft.about.edge
                && cache.outbox.iter().any(|queued| queued.edge().as_ref() == Some(edge))
            {
                bail!(
                    "earlier commands about {edge} wait, and this one may rest on them: send them by `ringfence \
                     project push`, or give this one with --offline, so that it waits after them"
                );
            }
            remark!("warning: commands wait ({waiting}): `ringfence project push` sends them");
        }
        if draft.lacks_claim(&cache.standing) {
            cache.standing = self.standing(folder, &slices).await?;
        }
        let mut filled = draft.filled(&cache.standing);
        draft.check(&filled)?;
        for tried in 1.. {
            let sent = post(&api, &draft.slice, &filled, &key, None).await;
            let answer = match sent {
                Ok(answer) if !is_unknown(&answer) => answer,
                unanswered => {
                    let error = unanswered.err();
                    let was_sent = !error.as_ref().is_some_and(was_not_sent);
                    let why = error.map_or(String::new(), |error| format!("{error:#}: "));
                    let so = match was_sent {
                        true => "the command may have taken effect",
                        false => "the command is decided here",
                    };
                    remark!("warning: {why}{so}");
                    let settled = queue(folder, &slices, &draft, filled, key, was_sent).await?;
                    if was_sent {
                        remark!(
                            "the command waits until `ringfence project push` sends it again under its key"
                        );
                    }
                    return Ok(settled);
                }
            };
            let advice = match answer.status {
                REJECTED if tried < TRIES => draft.advice(&filled, &answer.document),
                _ => None,
            };
            let pulled = match advice {
                Some(Advice::Pull) => self.standing(folder, &slices).await.map(Some),
                _ => Ok(None),
            };
            // If this fails, there is still the answer.
            match pulled {
                Ok(Some(pulled)) => cache.standing = pulled,
                Ok(None) => {}
                Err(error) => remark!("warning: {error:#}"),
            }
            let next = draft.filled(&cache.standing);
            if advice.is_none() || next == filled || draft.check(&next).is_err() {
                let code = answer.code();
                let document = match answer.status {
                    200..300 => draft.shown(answer.document),
                    _ => answer.document,
                };
                return Ok(Settled { document, code });
            }
            // A rejection that left events would be repeated under its key.
            (filled, key) = (next, new_key());
        }
        unreachable!("the last try has no advice")
    }

    /// The state of the project, after a pull.
    async fn standing(&self, folder: &Folder, slices: &Slices) -> Result<Standing> {
        self.pull(folder).await?;
        Ok(Cache::read(&folder.read()?, slices).await?.standing)
    }

    /// Pulls, if the caller names a source of events. Returns whether it does.
    pub(super) async fn pull(&self, folder: &Folder) -> Result<bool> {
        if folder.is_begun()? && folder.read()?.is_local()? {
            return Ok(false);
        }
        let Some(origin) = self.source.origin().await? else { return Ok(false) };
        pull(&origin, folder).await?;
        Ok(true)
    }
}

/// Decides a command on the cache. If it is accepted, it waits in the outbox. A command that was sent waits without
/// being decided: it may have taken effect, and the cache may lack facts that it depends on. In multi mode, a command
/// that depends on the edge's current state does not wait.
async fn queue(
    folder: &Folder,
    slices: &Slices,
    draft: &Draft,
    data: Value,
    key: Id,
    was_sent: bool,
) -> Result<Settled> {
    // Otherwise a command that was sent would be lost, with its key.
    let folder = if was_sent { folder.write_at_last() } else { folder.write() }?;
    let mut cache = Cache::read(&folder, slices).await?;
    draft.check(&data)?;
    if let (true, Some(edge)) = (OF_THE_MOMENT.contains(&&*draft.slice), &draft.about.edge) {
        let (slice, mode) = (&draft.slice, cache.mode(edge));
        ensure!(
            !was_sent || mode == Some(Mode::Single),
            "{slice} does not wait, because {edge} may be another agent's when the stack gets it later. It may have \
             taken effect{}: `ringfence project pull` and `claims` show it",
            draft.claim().map_or_else(String::new, |claim| format!(", as claim {claim}"))
        );
        ensure!(
            mode != Some(Mode::Multi),
            "{slice} can be given without the stack only in single mode: where many agents work, the edge may be \
             another agent's when the stack gets the command"
        );
    }
    let (slice, effective_at) = (draft.slice.clone(), rfc3339(Clock::system().now_ms()));
    let queued = Queued { slice, data, key, effective_at };
    let mut document = json!({ "queued": queued.key });
    if !was_sent {
        let decided = cache.try_out(slices, &queued).await?;
        match decided.context("deciding the command here")?.outcome {
            Outcome::Rejected { rejected, .. } => return Ok(Settled::rejected(rejected)),
            Outcome::Accepted(events) => draft.note(&mut document, &json!(events)),
        }
    }
    cache.outbox.add(&folder, queued)?;
    Ok(Settled { document: draft.shown(document), code: ExitCode::SUCCESS })
}

/// Carries a command out on the log of a local project, or of one that begins with it.
async fn settle(folder: &Folder, draft: &Draft) -> Result<Settled> {
    let (slices, folder) = (Slices::all(), folder.write()?);
    let cache = Cache::read(&folder, &slices).await?;
    let data = draft.filled(&cache.standing);
    draft.check(&data)?;
    let mut log = cache.file_log(&folder, &slices)?;
    // The answer is not lost on the way, so the command needs no key.
    let envelope = Envelope {
        idempotency_key: None,
        ..envelope(new_key().as_str(), Clock::system().now_ms(), None, None)
    };
    let decided = slices.decide(&log.memory, &draft.slice, data, &envelope).await?;
    log.keep()?;
    Ok(match decided.outcome {
        Outcome::Rejected { rejected, events } => {
            let mut settled = Settled::rejected(rejected);
            if !events.is_empty() {
                settled.document["events"] = json!(events);
            }
            settled
        }
        Outcome::Accepted(events) => Settled {
            document: draft.shown(json!({ "accepted": true, "events": events })),
            code: ExitCode::SUCCESS,
        },
    })
}

/// Sends a command.
///
/// # Errors
/// There is no answer. The command may have taken effect. If it [was not sent](was_not_sent), it has not.
pub(crate) async fn post(
    api: &Api,
    slice: &str,
    data: &Value,
    key: &Id,
    effective_at: Option<&str>,
) -> Result<Answer> {
    let headers = [(IDEMPOTENCY_KEY, Some(key.as_str())), (EFFECTIVE_AT, effective_at)];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let headers: Vec<_> = headers.collect();
    api.post(&format!("projects/{slice}"), &data.to_string(), &headers).await
}

fn new_key() -> Id {
    Clock::system().uuid().to_string().try_into().expect("a UUID is an id")
}
