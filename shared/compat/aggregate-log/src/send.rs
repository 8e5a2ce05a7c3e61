//! Sends a push as one conditional put or one transaction.

use aws_sdk_dynamodb::types::{
    ConditionCheck, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use ringfence_aws::{Failure, Item, Judged};

use crate::item::VERSION;
use crate::push::{Entry, Prepared, Verdict};
use crate::{AggregateError, AggregateTable};

impl AggregateTable {
    /// Sends until the outcome is known.
    pub(crate) async fn send(&self, prepared: &Prepared<'_>) -> Result<(), AggregateError> {
        match self.judged(prepared).await? {
            Verdict::Committed => Ok(()),
            Verdict::Conflicts(mut conflicts) => {
                Err(AggregateError::Conflict(conflicts.swap_remove(0)))
            }
        }
    }

    /// Sends until the outcome is known, to the tables that the entries name. A taken version is a verdict here, not an
    /// error.
    pub(crate) async fn judged(&self, prepared: &Prepared<'_>) -> Result<Verdict, AggregateError> {
        let send = || async move {
            match prepared.entries.as_slice() {
                // A single event needs no transaction, which would cost twice as much.
                [entry @ Entry { item: Some(item), .. }] => match entry.forced {
                    // As in Castore, a forced event replaces whatever is there.
                    true => self.dynamo.overwrite(entry.put(item)).await?,
                    false => self.dynamo.put(entry.put(item)).await?,
                },
                entries => {
                    let actions = entries.iter().map(Entry::action).collect();
                    self.dynamo.transact(actions, &prepared.push_id).await?;
                }
            }
            Ok::<_, Failure>(Verdict::Committed)
        };
        let judge = |failure, sent_before| {
            Ok(match prepared.verdict(&failure) {
                Some(_) if sent_before && !prepared.judges(&failure) => Judged::Held(failure),
                Some(verdict) => Judged::Known(verdict),
                None => Judged::Failed(failure),
            })
        };
        self.retry.write().judged("pushing events", send, judge).await
    }
}

impl Entry<'_> {
    fn action(&self) -> TransactWriteItem {
        let action = TransactWriteItem::builder();
        match &self.item {
            Some(item) => action.put(self.put(item)).build(),
            None => {
                let check = ConditionCheck::builder()
                    .table_name(self.table.dynamo.name())
                    .set_key(Some(self.table.stores.key_of(&self.key, self.version)))
                    .condition_expression(IS_FREE)
                    .expression_attribute_names("#version", VERSION)
                    .return_values_on_condition_check_failure(
                        ReturnValuesOnConditionCheckFailure::AllOld,
                    );
                let check = check.build().expect("table, key and condition are set");
                action.condition_check(check).build()
            }
        }
    }

    fn put(&self, item: &Item) -> Put {
        let item = self.table.stores.written(&self.key, item.clone());
        let put = Put::builder().table_name(self.table.dynamo.name()).set_item(Some(item));
        let put = match self.forced {
            true => put,
            false => put
                .condition_expression(IS_FREE)
                .expression_attribute_names("#version", VERSION)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                ),
        };
        put.build().expect("table and item are set")
    }
}

/// No event has this version yet.
const IS_FREE: &str = "attribute_not_exists(#version)";
