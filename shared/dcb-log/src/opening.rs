//! The update that opens an announcement on a fence.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, Update};
use ringfence_aws::Item;
use ringfence_core::{BoundaryId, Counts};

use crate::fence::fence_key;
use crate::item::{ANNOUNCED, ANNOUNCER, COPIES, SINCE, count_name, number, text};
use crate::log::DcbLog;

/// Others may take over an announcement after this time, in milliseconds.
pub(crate) const TAKEN_OVER_MS: u64 = 10_000;
/// And at once if it began so much later than now, in milliseconds: then a clock is wrong.
pub(crate) const AHEAD_MS: u64 = 2_000;

/// It gives the announcement a number that is `step` later than the last one.
pub(crate) struct Opening {
    names: HashMap<String, String>,
    values: Item,
    conditions: Vec<String>,
}

impl Opening {
    pub(crate) fn new(now_ms: u64, announcer: &str, step: u64) -> Self {
        let names = [
            ("#announced", ANNOUNCED),
            ("#announcer", ANNOUNCER),
            ("#since", SINCE),
            ("#copies", COPIES),
        ];
        let values =
            [(":step", number(step)), (":announcer", text(announcer)), (":now", number(now_ms))];
        Self {
            names: names.map(|(alias, name)| (alias.to_owned(), name.to_owned())).into(),
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            conditions: Vec::new(),
        }
    }

    /// Nobody else announces, or somebody has announced too long ago.
    pub(crate) fn require_free(&mut self, now_ms: u64) {
        let free = "(attribute_not_exists(#announcer) OR #announcer = :announcer OR #since <= :old \
                    OR #since > :ahead)";
        self.conditions.push(free.to_owned());
        let old = now_ms.saturating_sub(TAKEN_OVER_MS);
        self.values.insert(":old".to_owned(), number(old));
        self.values.insert(":ahead".to_owned(), number(now_ms + AHEAD_MS));
    }

    /// The fence has these counts.
    pub(crate) fn require(&mut self, counts: &Counts) {
        for (n, (event_type, seen)) in counts.iter().enumerate() {
            self.names.insert(format!("#c{n}"), count_name(event_type));
            self.conditions.push(match seen {
                0 => format!("attribute_not_exists(#c{n})"),
                seen => {
                    self.values.insert(format!(":n{n}"), number(*seen));
                    format!("#c{n} = :n{n}")
                }
            });
        }
    }

    /// Requires that the last announcement on the fence has this number, or that there was none if it is 0.
    pub(crate) fn require_last(&mut self, last: u64) {
        self.conditions.push(match last {
            0 => "attribute_not_exists(#announced)".to_owned(),
            last => {
                self.values.insert(":last".to_owned(), number(last));
                "#announced = :last".to_owned()
            }
        });
    }

    /// `copies` is the expression of how many copies the fence names from now on, with `:copies`.
    pub(crate) fn build(
        mut self,
        log: &DcbLog,
        boundary: &BoundaryId,
        copies: &str,
        number_of: u64,
    ) -> Update {
        self.values.insert(":copies".to_owned(), number(number_of));
        let sets = "SET #announcer = :announcer, #since = :now, #copies =";
        let update = Update::builder()
            .table_name(log.table.name())
            .set_key(Some(fence_key(boundary)))
            .update_expression(format!("{sets} {copies} ADD #announced :step"))
            .condition_expression(self.conditions.join(" AND "))
            .set_expression_attribute_names(Some(self.names))
            .set_expression_attribute_values(Some(self.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build();
        update.expect("table, key and expression are set")
    }
}
