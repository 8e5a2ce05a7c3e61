//! Mistakes of a log, or of decisions on it. Each must be noticed, or the oracle sees nothing.

use ringfence_aws::wire::{Edit, Fault};
use serde_json::Value;

use crate::Subject;

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Appends without any condition on what was read.
    NoCondition,
    /// Appends without conditions on boundaries in which nothing was seen.
    EmptyReadUnchecked,
    /// Appends without conditions on slots and fences that it only read.
    ReadOnlyUnchecked,
    /// Answers without events and without another look at what it has seen.
    NoVerify,
    /// Decides again after a lost answer instead of sending again.
    DecidesAgain,
    /// Appends without an item of the command.
    NoItem,
    /// Rejects a command without reading its item.
    ItemUnread,
    /// Ignores the keys in events.
    MarksUnread,
    /// Appends without regard to the heads of the fences.
    NoHeadGuard,
    /// Accepts the claim of a command of work as the one that holds the edge.
    ClaimUnchecked,
    /// Gives every claim of an edge the epoch 1.
    EpochRestarts,
    /// Handles events in the lane of another tag.
    WrongLane,
    /// Moves the checkpoint of a reactor although another run has begun.
    OvertakenAdvances,
    /// Writes a receipt over a newer one.
    ReceiptOverwrites,
    /// Does what a person asked for, even after a newer request.
    LateAsk,
    /// Writes a note on a queued command over its answer.
    AnswerOverwrites,
    /// Ignores the time in the store's answers.
    StoreTimeUnheard,
}

impl Mutant {
    /// Every one.
    pub const ALL: [Self; 17] = [
        Self::NoCondition,
        Self::EmptyReadUnchecked,
        Self::ReadOnlyUnchecked,
        Self::NoVerify,
        Self::DecidesAgain,
        Self::NoItem,
        Self::ItemUnread,
        Self::MarksUnread,
        Self::NoHeadGuard,
        Self::ClaimUnchecked,
        Self::EpochRestarts,
        Self::WrongLane,
        Self::OvertakenAdvances,
        Self::ReceiptOverwrites,
        Self::LateAsk,
        Self::AnswerOverwrites,
        Self::StoreTimeUnheard,
    ];

    /// The subject of the schedules that notice it.
    #[must_use]
    pub fn subject(self) -> Subject {
        match self {
            Self::WrongLane | Self::OvertakenAdvances | Self::ReceiptOverwrites | Self::LateAsk => {
                Subject::Lanes
            }
            Self::AnswerOverwrites => Subject::Queue,
            Self::StoreTimeUnheard => Subject::Clocks,
            _ => Subject::Commands,
        }
    }

    /// Changes a request of lanes, queue or dues on its way.
    pub(crate) fn edit(self, request: &Value) -> Option<Fault> {
        let has = |name: &str, text: &str| request[name].to_string().contains(text);
        let is_loosened = match self {
            Self::OvertakenAdvances => {
                has("UpdateExpression", "#checkpoint = :to")
                    && !has("UpdateExpression", "#sentBack")
            }
            Self::ReceiptOverwrites => has("Item", "LANE#"),
            Self::LateAsk => has("UpdateExpression", "#ask = :ask"),
            Self::AnswerOverwrites => has("Item", "$Command-"),
            _ => false,
        };
        is_loosened.then(|| {
            Fault::Request(Edit::new(|request| {
                if let Some(Value::String(condition)) = request.get_mut("ConditionExpression") {
                    *condition = always(condition);
                }
            }))
        })
    }

    /// The fault that changes a transaction on its way.
    pub(crate) fn fault(self) -> Option<Fault> {
        let (action, loosened): (_, fn(&str) -> bool) = match self {
            Self::EmptyReadUnchecked => ("Update", |term| term.starts_with("attribute_not_exists")),
            Self::ReadOnlyUnchecked => ("ConditionCheck", |_| true),
            Self::NoHeadGuard => ("Update", |term| term.contains("#head")),
            _ => return None,
        };
        Some(Fault::Request(Edit::new(move |request| {
            for item in request["TransactItems"].as_array_mut().into_iter().flatten() {
                let condition = item.pointer_mut(&format!("/{action}/ConditionExpression"));
                if let Some(Value::String(condition)) = condition {
                    let terms = condition.split(" AND ");
                    let terms =
                        terms.map(|term| if loosened(term) { always(term) } else { term.into() });
                    *condition = terms.collect::<Vec<_>>().join(" AND ");
                }
            }
        })))
    }
}

/// Makes the term always true. DynamoDB refuses names and values that no expression uses, so all of them stay.
fn always(term: &str) -> String {
    let alias: String = term
        .chars()
        .skip_while(|c| *c != '#')
        .take_while(|c| *c == '#' || c.is_ascii_alphanumeric())
        .collect();
    format!("({term} OR attribute_exists({alias}) OR attribute_not_exists({alias}))")
}
