//! `ringfence subjects forget`, and `allow`.
//!
//! The steps are an event, a fence in the place of the key, and a look at a value that was sealed with this key. Each
//! can be repeated, so the same command goes on wherever an earlier one has stopped.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use ringfence_aws::Clock;
use ringfence_core::personal::{Form, MARKED, OF, form};
use ringfence_core::{
    BoundaryId, Consistency, Context as _, Envelope, Event, EventLog, OnLog, Outcome,
    SequencedEvent, Slice, Vault, rfc3339,
};
use ringfence_feed::Entry;
use ringfence_lambda::Issuers;
use ringfence_log::StackLogs;
use ringfence_services::personal_data::{ForgetSubject, PersonalData, SubjectForgotten};
use ringfence_subjects::{Fence, KeyTable, READABLE_MS, Standing};
use ringfence_template::KEY_RECOVERY_DAYS;
use serde_json::{Value, json};

use super::show::{id, of_subject};
use crate::Lists;
use crate::boundary::partition_plan;
use crate::machine::dynamo_client;
use crate::out::{Output, serialize_as, write_line};
use crate::tables::{FeedTables, KeyFlags, dcb};
use crate::{remark, say};

/// The key of the metadata with the value that was sealed before the key is destroyed.
const PROOF: &str = "proof";

#[derive(Args)]
#[command(after_help = "\
First it appends the event SubjectForgotten. With it goes a value that is sealed with the person's key. Then it puts a
fence in the place of the key. Functions may keep the key for five minutes more. Run the same command after that time:
it opens the value, and ends with status 0 if that is forgotten. If the event was written by the slice, it has no such
value, and the newest one in the index takes its place. If a run was broken off, the next one goes on there.
Backups by point-in-time recovery have the key for seven days more, if the table keeps them so long, as the template
says. Delete other backups of the table of keys yourself, and the table that a restore has replaced.

Examples:
  ringfence subjects forget ada --why 'asked for it'
  ringfence subjects forget ada --why 'asked for it' --stack ringfence-prod --json")]
pub(crate) struct Arguments {
    /// The person's id, as in the field that is marked `#[subject]`.
    #[arg(value_parser = id)]
    subject: String,
    /// Why. It stays in the log for ever, so write no personal data.
    #[arg(long)]
    why: String,
    /// Forgets a person who was forgotten before, and known again since.
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    feed: FeedTables,
    #[command(flatten)]
    keys: KeyFlags,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  ringfence subjects allow ada")]
pub(crate) struct Allow {
    /// The person's id.
    #[arg(value_parser = id)]
    subject: String,
    #[command(flatten)]
    keys: KeyFlags,
}

pub(crate) async fn forget(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { subject, why, again, feed, keys, output } = arguments;
    ensure!(
        lists.stack.context(PersonalData::NAME).is_some(),
        "this stack can forget nobody: list the context ringfence_services::personal_data::PersonalData in it"
    );
    let logs = feed.logs.logs(dynamo_client().await?, Clock::system());
    let (table, vault) = (keys.table(&logs.client)?, keys.vault(&logs).await?);
    let standing = standing(&table, subject).await?;
    let event = match last(&logs, lists, subject).await? {
        Some(event) if !is_known_since(&event, standing.as_ref()) => event,
        Some(event) if !again => bail!(
            "{subject} was forgotten at {}, and may be known again since; to forget the new values too, add --again",
            rfc3339(event.at)
        ),
        _ => {
            let proof = match standing.is_some_and(|it| it.has_key()) {
                true => Some(sealed(&vault, subject).await?),
                false => None,
            };
            append(&logs, subject, why, proof).await?;
            last(&logs, lists, subject).await?.context("the log has lost the event")?
        }
    };
    let fence = table.forget(subject, event.at, event.data["why"].as_str().unwrap_or(why)).await?;
    let shown = match logs.clock.now_ms() >= fence.put_at_ms + READABLE_MS {
        true => match kept(&event, feed, &logs, subject).await? {
            Some(value) => look(value, &vault, &event).await?,
            None => Shown::NoValue,
        },
        false => Shown::Waits,
    };
    let is_over = shown == Shown::Unreadable;
    Ok(output.end(&Forgotten { subject: subject.clone(), fence, shown }, is_over))
}

pub(crate) async fn allow(arguments: &Allow) -> Result<ExitCode> {
    let Allow { subject, keys } = arguments;
    keys.table(&dynamo_client().await?)?.allow_again(subject).await?;
    say!("new personal data of {subject} can be stored; the old ones stay forgotten");
    Ok(ExitCode::SUCCESS)
}

async fn standing(table: &KeyTable, subject: &str) -> Result<Option<Standing>> {
    Ok(table.standings(&[subject].into()).await?.remove(subject))
}

/// Whether a person who was forgotten by this event has, or may have, a key again.
fn is_known_since(event: &SequencedEvent, standing: Option<&Standing>) -> bool {
    let fence = standing.and_then(|it| Some((it, it.fence()?)));
    fence.is_some_and(|(standing, fence)| {
        fence.forgotten_at_ms >= event.at && (standing.has_key() || fence.again)
    })
}

/// The last event about the person.
async fn last(logs: &StackLogs, lists: &Lists, subject: &str) -> Result<Option<SequencedEvent>> {
    let log = dcb(logs, &lists.stack.catalog)?;
    let plan = partition_plan(lists, BoundaryId::tag("subject", subject));
    let envelope = Envelope::default();
    let events = log.read(&plan, Consistency::Strong, &envelope);
    let newest = events.try_fold(None, |last, event| async {
        // A team's own events may have the same partition.
        Ok(if event.event_type == SubjectForgotten::NAME { Some(event) } else { last })
    });
    Ok(newest.await?)
}

/// A value of the person, sealed with the key that the table has.
async fn sealed(vault: &impl Vault, subject: &str) -> Result<Value> {
    let mut proof = json!({ MARKED: true, OF: subject });
    vault.seal(vec![&mut proof]).await?;
    Ok(proof)
}

async fn append(logs: &StackLogs, subject: &str, why: &str, proof: Option<Value>) -> Result<()> {
    let payload = json!({ "subjectId": subject, "why": why }).to_string();
    let issuers = Issuers::default();
    let read = ringfence_lambda::slice::read::<ForgetSubject>(&payload, &issuers, &logs.clock);
    let read = read.map_err(|problem| anyhow!("{}", problem.detail()))?;
    let (on, _) = logs.open::<ForgetSubject>(0).map_err(|error| anyhow!(error))?;
    for (command, mut envelope) in read {
        if let Some(proof) = &proof {
            envelope.metadata.insert(PROOF, proof.to_string())?;
        }
        if let Outcome::Rejected { rejected, .. } = on.handle(&command, &envelope).await?.outcome {
            bail!("{} rejects it: {}", ForgetSubject::NAME, rejected.message);
        }
    }
    Ok(())
}

/// A sealed value of the person: the one beside the event, or the newest one in the index.
async fn kept(
    event: &SequencedEvent,
    feed: &FeedTables,
    logs: &StackLogs,
    subject: &str,
) -> Result<Option<Value>> {
    if let Some(proof) = event.metadata.text(PROOF) {
        return Ok(Some(serde_json::from_str(proof)?));
    }
    remark!(
        "the event has no value to try, so the index is read back to one: half a read unit for each 4 KB of events"
    );
    let index = feed.index(logs.client.clone()).await?;
    let mut entries = index.read_back(index.end().await?);
    while let Some(entry) = entries.next().await {
        let (mut entry, _) = Entry::or_known(entry)?;
        if let Some(value) = of_subject(&mut entry.event.data, subject).next() {
            return Ok(Some(value.take()));
        }
    }
    Ok(None)
}

/// Opens a sealed value.
async fn look(mut value: Value, vault: &impl Vault, event: &SequencedEvent) -> Result<Shown> {
    vault.open(vec![&mut value]).await?;
    ensure!(
        form(&value) == Form::Forgotten,
        "a value that was sealed before {} can still be opened: is --key-table the table of this stack?",
        event.id()
    );
    Ok(Shown::Unreadable)
}

/// A person who is forgotten.
struct Forgotten {
    subject: String,
    fence: Fence,
    shown: Shown,
}

/// Whether it is shown that the stack can't read the values.
#[derive(PartialEq)]
enum Shown {
    /// Functions may still have the key.
    Waits,
    /// A value that was sealed with the key does not open.
    Unreadable,
    /// No event has a value of the person.
    NoValue,
}

impl Forgotten {
    /// From when on no function can read the values, and no backup.
    fn unreadable(&self) -> [String; 2] {
        let days_ms = u64::from(KEY_RECOVERY_DAYS) * 24 * 60 * 60 * 1_000;
        [READABLE_MS, days_ms].map(|ms| rfc3339(self.fence.put_at_ms + ms))
    }

    /// Whether the table had a key. Without one, the id may be wrong.
    fn had_key(&self) -> bool {
        !self.fence.fingerprints.is_empty()
    }
}

impl Display for Forgotten {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { subject, fence, shown } = self;
        let since = rfc3339(fence.forgotten_at_ms);
        write_line!(f, "{subject} is forgotten since {since}: {}", fence.why)?;
        if !self.had_key() {
            write_line!(
                f,
                "the table had no key of {subject}: the id is wrong, a restore has lost it, or all values are from \
                 before their fields were marked"
            )?;
        }
        let [by_stack, from_backups] = self.unreadable();
        let how = match shown {
            Shown::Waits => "run the same command then to see it",
            Shown::Unreadable => "a value that was sealed with the key does not open",
            Shown::NoValue => "no event has a sealed value to try it",
        };
        write_line!(f, "unreadable by the stack from {by_stack}: {how}")?;
        write_line!(f, "unreadable from backups of seven days from {from_backups}")?;
        write_line!(
            f,
            "values from before a field was marked stay: `ringfence subjects show {subject}` shows them"
        )
    }
}

serialize_as!(Forgotten, |forgotten| {
    let Forgotten { subject, fence, shown } = forgotten;
    let [by_stack, from_backups] = forgotten.unreadable();
    json!({
        "subject": subject, "forgottenAt": rfc3339(fence.forgotten_at_ms), "why": fence.why,
        "hadKey": forgotten.had_key(), "isShown": *shown == Shown::Unreadable,
        "unreadableByStack": by_stack, "unreadableFromBackups": from_backups,
    })
});
