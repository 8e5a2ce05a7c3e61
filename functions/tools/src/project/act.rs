//! `ringfence project do` and `claim`. They give commands to the stack. Without a network they put them into the outbox.
//! In a local project the file is the log, and commands are carried out there.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use projects::{AgentId, EdgeRef, Mode, ProjectId, ready};
use ringfence::{Envelope, Id, Outcome, Refusal, rfc3339};
use ringfence_cli::{Answer, Api, Dynamo, IDEMPOTENCY_KEY, text, url, was_not_sent};
use ringfence_dynamo::Clock;
use ringfence_feed::Index;
use serde_json::{Value, json};

use super::cache::{Cache, Folded};
use super::command::{Advice, Draft};
use super::decide::{Slices, envelope};
use super::folder::Folder;
use super::outbox::Queued;
use super::pull::pull;

/// The header of the time at which a command was given.
const EFFECTIVE_AT: &str = "effective-at";
/// How often a command is sent that is refused for what the cache has added to it.
const TRIES: u32 = 3;
/// The status of an answer that refuses a command.
const REFUSED: u16 = 422;

/// The beginning of each type of problem that a function answers.
const PROBLEM: &str = "urn:ringfence:problem:";
/// Slices whose commands act on the edge as it is when they take effect. So they can't wait where many agents work.
const OF_THE_MOMENT: [&str; 3] = [Draft::CLAIM, "force-release", "reopen-edge"];

/// Whether an answer leaves open what became of a command. A function answers so if it ran out of time, and the gateway
/// if the function did not answer it.
fn is_unknown(answer: &Answer) -> bool {
    let problem = answer.document["type"].as_str().unwrap_or_default();
    answer.status == 504 || answer.status >= 500 && !problem.starts_with(PROBLEM)
}

/// Who gives commands, and where the stack is.
#[derive(Args)]
pub(crate) struct Caller {
    /// The agent that gives the command.
    #[arg(long, env = "RINGFENCE_AGENT", value_name = "NAME")]
    agent: Option<AgentId>,
    /// The URL of the HTTP API. A request to `https://` is signed with the credentials of the environment.
    #[arg(long, env = "API_URL", value_name = "URL", value_parser = url)]
    api: Option<String>,
    /// The table of the index, from which the cache is pulled where it is too old.
    #[arg(long, env = "INDEX_TABLE", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    index_table: Option<String>,
    #[command(flatten)]
    dynamo: Dynamo,
    /// Decides the command on the cache alone. An accepted one waits in the outbox until `push` sends it.
    #[arg(long)]
    offline: bool,
}

#[derive(Args)]
#[command(after_help = "\
What the cache knows need not be in the command: `claim`, the current claim of the agent on the edge; `after`, what
the feature of a claimed edge waits for; `reachable`, what a new dependency waits for.

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
    /// Begins a project that no stack knows: the file of its events is its log. Later commands need not say so.
    #[arg(long, conflicts_with = "offline")]
    local: bool,
    #[command(flatten)]
    caller: Caller,
}

#[derive(Args)]
pub(crate) struct Claim {
    /// The edge, as `<project>/<feature>/<edge>`.
    #[arg(required_unless_present = "next")]
    edge: Option<EdgeRef>,
    /// Claims the first edge that is ready and that no other agent gets before, in the order of `ready`.
    #[arg(long, conflicts_with = "edge")]
    next: bool,
    #[command(flatten)]
    caller: Caller,
}

/// What became of a command.
struct Settled {
    document: Value,
    code: ExitCode,
}

impl Settled {
    fn refused(refusal: Refusal) -> Self {
        let Refusal { message, rejection: mut document } = refusal;
        document["detail"] = message.into();
        Self { document, code: ExitCode::FAILURE }
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
    let Settled { document, code } = settled?;
    println!("{document}");
    Ok(code)
}

pub(crate) async fn run_claim(project: Option<&ProjectId>, arguments: &Claim) -> Result<ExitCode> {
    let Claim { edge, caller, .. } = arguments;
    let settled = match edge {
        Some(edge) => caller.claim(edge).await,
        None => caller.claim_next(&Folder::find(project)?).await,
    };
    let Settled { document, code } = settled?;
    println!("{document}");
    Ok(code)
}

impl Caller {
    /// Claims an edge. The document says the id of the claim.
    async fn claim(&self, edge: &EdgeRef) -> Result<Settled> {
        let data = json!({ "edge": edge }).to_string();
        let draft = Draft::new(Draft::CLAIM, &data, self.agent.as_ref())?;
        self.give(&Folder::of(&edge.feature.project), draft).await
    }

    /// Claims the ready edges in turn, until one is granted.
    async fn claim_next(&self, folder: &Folder) -> Result<Settled> {
        if !self.offline
            && let Err(error) = self.pull(folder).await
        {
            eprintln!("warning: {error:#}");
        }
        let cache = Cache::read(&folder.read()?, &Slices::all()).await?;
        let mut document =
            json!({ "code": "NothingReady", "detail": "no edge is ready for this agent" });
        for ready in ready(&cache.standing.features, Clock::system().now_ms()) {
            let Settled { document: mut answer, code } = match self.claim(&ready.edge).await {
                Err(error) if error.is::<Folded>() => {
                    let detail = error.to_string();
                    document["lastRefusal"] = json!({ "edge": ready.edge, "detail": detail });
                    continue;
                }
                settled => settled?,
            };
            // It refuses the agent and not the edge, so it would refuse the other edges too.
            if code == ExitCode::FAILURE && answer["code"] == "SingleMode" {
                return Ok(Settled { document: answer, code });
            }
            answer["edge"] = json!(ready.edge);
            if code != ExitCode::FAILURE {
                return Ok(Settled { document: answer, code });
            }
            document["lastRefusal"] = answer;
        }
        Ok(Settled { document, code: ExitCode::FAILURE })
    }

    /// Gives a command to the stack. With `--offline`, or without a connection, it goes to the outbox if it is accepted
    /// here; without an answer, in any case. In a local project it is settled here.
    async fn give(&self, folder: &Folder, mut draft: Draft) -> Result<Settled> {
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
        let api = Api::at(api).await?;
        if cache.outbox.len() > 0 {
            let waiting = cache.outbox.len();
            if let Some(edge) = &draft.about.edge
                && cache.outbox.iter().any(|queued| queued.edge().as_ref() == Some(edge))
            {
                bail!(
                    "earlier commands about {edge} wait, and this one may rest on them: send them by `ringfence \
                     project push`, or give this one with --offline, behind them"
                );
            }
            eprintln!("warning: commands wait ({waiting}): `ringfence project push` sends them");
        }
        if draft.lacks_claim(&cache.standing) {
            self.pull(folder).await?;
            cache = Cache::read(&folder.read()?, &slices).await?;
        }
        for tried in 1.. {
            let filled = draft.filled(&cache.standing);
            draft.check(&filled)?;
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
                    eprintln!("warning: {why}{so}");
                    let settled = queue(folder, &slices, &draft, filled, key, was_sent).await?;
                    if was_sent {
                        eprintln!(
                            "the command waits until `ringfence project push` sends it again under its key"
                        );
                    }
                    return Ok(settled);
                }
            };
            let advice = match answer.status {
                REFUSED if tried < TRIES => draft.advice(&filled, &answer.document),
                _ => None,
            };
            if let Some(Advice::Pull) = advice {
                self.pull(folder).await?;
                cache = Cache::read(&folder.read()?, &slices).await?;
            }
            if advice.is_none() || draft.filled(&cache.standing) == filled {
                let code = answer.code();
                let document = match answer.status {
                    200..300 => draft.shown(answer.document),
                    _ => answer.document,
                };
                return Ok(Settled { document, code });
            }
            // A refusal that left events would be repeated under its key.
            key = new_key();
        }
        unreachable!("the last try has no advice")
    }

    async fn pull(&self, folder: &Folder) -> Result<()> {
        if let Some(table) = &self.index_table
            && !folder.read()?.is_local()?
        {
            let index = Index::new(self.dynamo.client().await, table);
            pull(&index, &folder.write()?).await?;
        }
        Ok(())
    }
}

/// Decides a command on the cache. If it is accepted, it waits in the outbox. One that was sent waits without being
/// decided: it may have taken effect, and the cache may be older than what it rests on. One that means the edge of the
/// moment does not wait where many agents work.
async fn queue(
    folder: &Folder,
    slices: &Slices,
    draft: &Draft,
    data: Value,
    key: Id,
    was_sent: bool,
) -> Result<Settled> {
    // A command that was sent would be lost, and its key with it.
    let folder = if was_sent { folder.write_at_last() } else { folder.write() }?;
    let mut cache = Cache::read(&folder, slices).await?;
    draft.check(&data)?;
    if let (true, Some(edge)) = (OF_THE_MOMENT.contains(&&*draft.slice), &draft.about.edge) {
        let (slice, mode) = (&draft.slice, cache.mode(edge));
        let shown = match was_sent {
            true => ". It may have taken effect: `ringfence project pull` shows it",
            false => "",
        };
        ensure!(
            mode != Some(Mode::Multi),
            "{slice} can be given without the stack only in single mode: where many agents work, the edge may be \
             another agent's when the stack gets the command{shown}"
        );
        ensure!(
            mode.is_some() || !was_sent,
            "{edge} is not known here, so {slice} does not wait{shown}"
        );
    }
    let (slice, effective_at) = (draft.slice.clone(), rfc3339(Clock::system().now_ms()));
    let queued = Queued { slice, data, key, effective_at };
    if !was_sent {
        let decided = cache.try_out(slices, &queued).await?;
        let outcome = decided.context("deciding the command here")?.outcome;
        if let Outcome::Rejected { refusal, .. } = outcome {
            return Ok(Settled::refused(refusal));
        }
    }
    let document = json!({ "queued": queued.key });
    cache.outbox.add(&folder, queued)?;
    Ok(Settled { document: draft.shown(document), code: ExitCode::SUCCESS })
}

/// Carries a command out on the log of a local project, or of one that begins with it.
async fn settle(folder: &Folder, draft: &Draft) -> Result<Settled> {
    let (slices, folder) = (Slices::all(), folder.write()?);
    let cache = Cache::read(&folder, &slices).await?;
    let data = draft.filled(&cache.standing);
    draft.check(&data)?;
    let log = cache.file_log(&folder, &slices)?;
    // The answer is not lost on the way, so the command needs no key.
    let envelope = Envelope {
        idempotency_key: None,
        ..envelope(new_key().as_str(), Clock::system().now_ms(), None, None)
    };
    Ok(match slices.decide(&log, &draft.slice, data, &envelope).await?.outcome {
        Outcome::Rejected { refusal, events } => {
            let mut settled = Settled::refused(refusal);
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
