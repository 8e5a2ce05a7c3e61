//! The protocol as a table of switches: each mutant turns one.

/// What the slot `m` of a partition that was read is: an append puts slot m + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The end of the dense prefix: slots 1 to m were all returned.
    Dense,
    /// The largest slot that was returned.
    Largest,
    /// How many events were returned.
    Returned,
    /// How many were returned of the types that the decision consumes.
    Filtered,
}

/// What an append requires of a fence and type that its decision read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `cnt#T = :seen`: as many events as were seen.
    Counts,
    /// The newest event is the newest that was seen.
    NewestSeen,
}

/// Which events that are learned from a tail the decision folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learn {
    /// Those that match any clause.
    Matching,
    /// Those that match the clause over the partition.
    OneClause,
    /// None: the append goes to the next slot.
    Nothing,
}

/// What an append requires of the order of times under a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// `head < :first`, over all types, of every fence.
    Head,
    /// The same, but not of the fence of an event's own partition.
    NotPartitions,
    /// `head` of the types written alone.
    PerType,
    /// Nothing.
    None,
}

/// Which of the events that a decision knows a mint follows, however far ahead of the clock they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Those in boundaries that the append writes to. Of the others those that are not far ahead.
    Written,
    /// All of them.
    All,
    /// None: in the boundaries that it writes to as well those that are not far ahead.
    Near,
}

/// How an answer that appends nothing is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// By GetItem of the next slot if one partition was read, its prefix does not end within an
    /// append, and its slot is the condition; else by TransactGetItems.
    Right,
    /// By GetItem for one partition, wherever its prefix ends.
    OneGetItem,
    /// By one read for each clause, and what is validated stays so when the command decides again.
    Kept,
    /// Not at all.
    None,
}

/// What a snapshot is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The dense prefix that was folded.
    Dense,
    /// As many slots as events were folded.
    Torn,
    /// The slot of the writer's own last event.
    OwnLast,
}

/// Which commands with keys have their record in their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InEvents {
    /// Those that read each partition that they write, with a condition that fails if what they write there was not
    /// seen.
    Shown,
    /// Those that read each partition that they write.
    Read,
    /// Those that read anything.
    Written,
}

/// Which of the events that a decision knows are searched for those of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// All of them.
    All,
    /// All but those that a warm handler has read before.
    NotRecalled,
    /// All but those that were learned from a tail.
    NotTails,
}

/// All that can be chosen about the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Reading: the slot m.
    pub prefix: Prefix,
    /// Reading: a tail begins after slot m; else at slot m, and its events are added to m.
    pub tail_after: bool,
    /// Reading: counts are of the merged reads, not of each clause by itself.
    pub count_merged: bool,
    /// Snapshots: what is taken for one.
    pub snapshot: Snapshot,
    /// Snapshots: a tail that does not come last in fold order is not folded on top.
    pub snapshot_in_order: bool,
    /// Filing: exactly where it can be read; else an event of a composite counts for all of them.
    pub exact_filing: bool,
    /// Filing: an import files as a decision does.
    pub imports_file: bool,
    /// Filing: an event of a fenced type counts in the fence of its partition.
    pub count_fenced: bool,
    /// Appending: what is required of a fence.
    pub condition: Condition,
    /// Appending: a fence under which nothing was seen is conditioned too.
    pub check_empty: bool,
    /// Appending: a fence that the new events are not filed under is conditioned too.
    pub check_read_fences: bool,
    /// Appending: the next slot of a partition that is only read is conditioned.
    pub check_read_partitions: bool,
    /// Appending: the fence of a partition replaces its slot only if all consumed types are fenced.
    pub all_fenced: bool,
    /// Conflicts: what is folded of a tail.
    pub learn: Learn,
    /// Conflicts: what does not come last in fold order is not folded on top.
    pub fold_in_order: bool,
    /// Order: the guard of fences.
    pub guard: Guard,
    /// Order: a mint exceeds the writer's last, the newest seen and the cause.
    pub hybrid_clock: bool,
    /// Order: which events a mint exceeds although they are far ahead.
    pub follow: Follow,
    /// Order: a mint exceeds the last event of a partition that was not read.
    pub predecessor: bool,
    /// Order: commit order is claimed to be the order of `at` across boundaries too.
    pub claims_order_across: bool,
    /// Answers that append nothing.
    pub validation: Validation,
    /// Outcome: the own put is judged before any other condition.
    pub own_put_first: bool,
    /// Outcome: an append without an answer is sent again before anything is decided.
    pub resend_unknown: bool,
    /// Outcome: TransactionConflict judges nothing.
    pub transaction_conflict_judges: bool,
    /// Once: the append's transaction puts a command item, unless the record is in the events.
    pub command_item: bool,
    /// Once: which commands have their record in the events.
    pub in_events: InEvents,
    /// Once: where the events of an earlier run are looked for.
    pub searched: Searched,
    /// Once: the answer to a repeat is validated.
    pub validates_repeats: bool,
    /// Once: an answer that appends nothing is given after a look at the command item.
    pub item_before_rejection: bool,
}

impl Protocol {
    /// The protocol as built.
    pub const RINGFENCE: Self = Self {
        prefix: Prefix::Dense,
        tail_after: true,
        count_merged: true,
        snapshot: Snapshot::Dense,
        snapshot_in_order: true,
        exact_filing: true,
        imports_file: true,
        count_fenced: true,
        condition: Condition::Counts,
        check_empty: true,
        check_read_fences: true,
        check_read_partitions: true,
        all_fenced: true,
        learn: Learn::Matching,
        fold_in_order: true,
        guard: Guard::Head,
        hybrid_clock: true,
        follow: Follow::Written,
        predecessor: true,
        claims_order_across: false,
        validation: Validation::Right,
        own_put_first: true,
        resend_unknown: true,
        transaction_conflict_judges: false,
        command_item: true,
        in_events: InEvents::Shown,
        searched: Searched::All,
        validates_repeats: true,
        item_before_rejection: true,
    };
}
