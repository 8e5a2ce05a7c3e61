//! A dry run: shows the request that an append would send.

use aws_sdk_dynamodb::types::TransactWriteItem;
use ringfence_aws::{Intent, Meter};
use ringfence_core::{Append, Counts, LogError, SequencedEvent};
use ringfence_log::DryRunOn;

use crate::append::dry_run;
use crate::item::{key_of, read_type};
use crate::layout::table_layout;
use crate::log::DcbLog;
use crate::transaction::{Action, Transaction, Via};

impl DryRunOn for DcbLog {
    fn meter(&self) -> &Meter {
        Self::meter(self)
    }

    async fn dry_run<'a>(
        &'a self,
        append: Append<'a>,
    ) -> Result<(Intent, Vec<SequencedEvent>), LogError> {
        let (transaction, events) = dry_run(self, append).await?;
        Ok((intent(self, &transaction), events))
    }
}

/// Describes the effects of a transaction.
fn intent(log: &DcbLog, transaction: &Transaction) -> Intent {
    let layout = table_layout(&log.catalog);
    let mut intent = Intent::default();
    for (action, request) in transaction.actions.iter().zip(&transaction.items) {
        let said = said(action, request);
        match &request.put {
            Some(put) => intent.put(&layout, &put.item, said),
            None => intent.actions.push(said),
        }
        if let (Action::Fence { copies: copies @ 1.., .. }, Some(_)) = (action, &request.update) {
            intent.before += u64::from(*copies) + 1;
        }
    }
    intent
}

/// An action in words.
fn said(action: &Action, request: &TransactWriteItem) -> ringfence_aws::Action {
    let free = |slot: u64| Some(format!("slot {slot} is free"));
    let put = request.put.as_ref().map(|put| &put.item);
    let named = || put.map(key_of).map(|(id, position)| format!("{id} {position}"));
    let puts = || put.and_then(read_type).map(|name| format!("puts {name}"));
    let (item, does, requires) = match action {
        Action::Event { slot, is_read, .. } => {
            // An event in a partition that was not read is not a conflict.
            let or_next = if *is_read { "" } else { ", or else the next one" };
            (named(), puts(), free(*slot).map(|free| free + or_next))
        }
        Action::Copy => (named(), puts(), None),
        Action::Command => {
            let requires = "no command took effect under the key".to_owned();
            (named(), Some("records the command".to_owned()), Some(requires))
        }
        Action::Import => (named(), Some("marks the import".to_owned()), None),
        Action::Check { partition, slot } => {
            (Some(format!("{partition} {slot}")), None, free(*slot))
        }
        Action::Fence { boundary, requires, via, copies } => {
            let after = match copies {
                0 => String::new(),
                copies => format!(", after {} writes that announce it", copies + 1),
            };
            let does = request.update.is_some().then(|| format!("counts the events{after}"));
            let item = match via {
                Via::Copy(copy) => format!("copy {copy} of the fence of {boundary}"),
                Via::Fence | Via::Announced(_) => format!("the fence of {boundary}"),
            };
            (Some(item), does, counts(requires))
        }
    };
    ringfence_aws::Action { item: item.unwrap_or_default(), does, requires, bytes: 0 }
}

fn counts(counts: &Counts) -> Option<String> {
    let all: Vec<_> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    (!all.is_empty()).then(|| format!("it counts {}", all.join(", ")))
}
