//! `ringfence redrive`.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use ringfence_aws::{Clock, client_of};
use serde_json::{Value, json};

use crate::Lists;
use crate::dead_letter::To;
use crate::kept::{DeadLetterBox, Receive};
use crate::machine::sdk_config;
use crate::out::{Output, serialize_as, write_line};
use crate::progress;
use crate::remark;
use crate::stack;
use crate::tables::LogTables;
use crate::work::{Does, Fate, SENT, Tried, delete, each, ensure_why};

#[derive(Args)]
#[command(after_help = "\
Remove the cause first. A message or object is deleted after its work is done. If the work fails again, it stays, and
the cause is printed. It is safe to run the command again: consumers recognize events by their id, and the index takes
each event once.

With `--stack`, `--queue` takes publish-events, index-events, automations or commands, and `--bucket` takes the name of
a function. Without it, `--queue` takes a URL, and `--bucket` the name of the bucket.

Each message contains its work. Commands go into their queue again. Events of the automations' queue go to the bus again
unchanged, so every rule that matches gets them. The output names the function and the rule that failed. While a redrive
works, its messages are hidden from others, and for 30 seconds after it is broken off. Of a group of commands, SQS
returns at most the first ten dead letters, and later ones only when these are gone. So `--dry-run` shows the first
ones, in their order, and says how many follow.

`--delete NAME --why REASON` deletes a dead letter whose work can't or needn't be done. Before, time, reason and body are
added to deleted-dead-letters.jsonl in the working directory, which only its owner may read: the store keeps nothing.

For a bucket of failed batches, give `--to bus` (publish-events) or `--to index` (index-events). Delete batches of
project-views: the next event does their work.

Examples:
  ringfence redrive --stack ringfence-prod --queue automations --dry-run
  ringfence redrive --stack ringfence-prod --queue automations
  ringfence redrive --stack ringfence-prod --bucket publish-events --to bus
  ringfence redrive --stack ringfence-prod --queue commands --delete 5f3c --why 'not a command'")]
#[group(id = "store", required = true)]
pub(crate) struct Arguments {
    /// A dead-letter queue: its URL, or its name with --stack.
    #[arg(long, group = "store", value_name = "URL|NAME", value_parser = stack::queue)]
    queue: Option<String>,
    /// A bucket of failed batches: its name, or with --stack the name of its function.
    #[arg(long, group = "store", value_name = "NAME|FUNCTION", value_parser = stack::name)]
    bucket: Option<String>,
    /// The destination of the records of failed batches.
    #[arg(long, conflicts_with = "queue", required_unless_present_any = ["queue", "delete"])]
    to: Option<To>,
    /// The bus, for events that are sent again.
    #[arg(long, env = "EVENT_BUS", value_parser = stack::name)]
    bus: Option<String>,
    #[command(flatten)]
    tables: LogTables,
    /// The table of the index, for events that are indexed again.
    #[arg(long, env = "INDEX_TABLE", value_parser = stack::name)]
    index_table: Option<String>,
    /// The URL of the command queue, for commands that are sent again.
    #[arg(long, env = "COMMAND_QUEUE_URL", value_name = "URL", value_parser = stack::name)]
    command_queue: Option<String>,
    /// Shows the dead letters with their causes, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Deletes the dead letter of this name, and does not do its work.
    #[arg(long, value_name = "NAME", requires = "why", conflicts_with = "dry_run")]
    delete: Option<String>,
    /// The reason to delete it, which is kept with its body.
    #[arg(long, requires = "delete")]
    why: Option<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn redrive(arguments: &Arguments, lists: &Lists) -> Result<ExitCode> {
    let Arguments { queue, bucket, to, bus, tables, index_table, dry_run, output, .. } = arguments;
    let config = sdk_config().await?;
    let mut store = match (queue, bucket) {
        (Some(url), _) => DeadLetterBox::queue(&config, url, Receive::Work),
        (None, Some(bucket)) => DeadLetterBox::bucket(&config, bucket, *to).await?,
        (None, None) => bail!("name a queue, or a bucket and where its records go"),
    };
    if let (Some(name), Some(why)) = (&arguments.delete, &arguments.why) {
        ensure_why(why)?;
        let kept = store.find(name).await?;
        let kept = kept.with_context(|| {
            format!("there is no dead letter {name}: --dry-run shows the names")
        })?;
        let deleted = delete(&store, &kept, why).await;
        if deleted.is_err() {
            store.show(&[kept.name]).await;
        }
        deleted?;
        return Ok(ExitCode::SUCCESS);
    }
    let does = Does::new(
        &config,
        &lists.stack.catalog,
        &tables.logs(client_of(&config), Clock::system()),
        bus.as_deref(),
        index_table.as_deref(),
        arguments.command_queue.as_deref(),
    )?;
    let (mut done, mut sent, mut left) = (0_u64, 0_u64, Vec::new());
    let show = |tried: Tried| {
        match tried.fate {
            Fate::Done => done += 1,
            Fate::Sent => sent += 1,
            Fate::Left | Fate::Stays(_) => left.push(tried),
        }
        progress::show(format_args!("{done} done, {sent} sent, {} stay", left.len()));
    };
    let more = each(&mut store, (!dry_run).then_some(&does), show).await?;
    progress::clear();
    if queue.is_some() && done + sent == 0 && left.is_empty() {
        remark!(
            "note: the dead letters of a redrive that was broken off are hidden for 30 seconds"
        );
    }
    let is_well = left.is_empty() || *dry_run;
    Ok(output.end(&Redriven { done, sent, left, more }, is_well))
}

/// The result of a redrive.
struct Redriven {
    done: u64,
    sent: u64,
    left: Vec<Tried>,
    /// How many more messages wait behind those that are left, in their groups; `None` if unknown.
    more: Option<u64>,
}

impl Display for Redriven {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { done, sent, left, more } = self;
        for Tried { name, whose, history, kept, fate } in left {
            match (fate.cause(), kept) {
                (Some(cause), Some(kept)) => {
                    write_line!(f, "stays  {name}{whose}{history}: {cause} (kept: {kept})")?;
                }
                (Some(cause), None) => write_line!(f, "stays  {name}{whose}{history}: {cause}")?,
                (None, kept) => {
                    let kept = kept.as_deref().unwrap_or("it does not say why");
                    write_line!(f, "kept   {name}{whose}{history}: {kept}")?;
                }
            }
        }
        if *more != Some(0) {
            let some = more.map_or_else(|| "some".to_owned(), |more| more.to_string());
            write_line!(
                f,
                "more   {some} may follow: SQS gives the later dead letters of a group only when the earlier ones are gone. A \
                 redrive takes all, each group in its order"
            )?;
        }
        let left = left.len();
        if *sent == 0 {
            return write_line!(f, "{done} done, {left} left");
        }
        write_line!(f, "{done} done, {sent} sent again, {left} left")?;
        write_line!(f, "{SENT}: look again with --dry-run.")
    }
}

serialize_as!(Redriven, |Redriven { done, sent, left, more }| {
    let tried = |Tried { name, whose, history, kept, fate }: &Tried| {
        json!({
            "name": name, "function": whose.function, "rule": whose.rule, "kept": kept,
            "cause": fate.cause(), "firstFailed": history.first_failed, "tries": history.tries,
        })
    };
    let left: Value = left.iter().map(tried).collect();
    json!({ "done": done, "sent": sent, "left": left, "more": more })
});
