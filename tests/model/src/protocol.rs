//! The protocol as a table of switches. Each mutant turns one.

/// The meaning of the slot `m` of a read partition. An append puts slot m + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The end of the dense prefix: slots 1 to m were all returned.
    Dense,
    /// The largest slot that was returned.
    Largest,
    /// How many events were returned.
    Returned,
    /// The number of returned events with types that the decision consumes.
    Filtered,
}

/// The condition of an append on a fence and type that its decision read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `cnt#T = :seen`: as many events as were seen.
    Counts,
    /// The newest event is the newest that was seen.
    NewestSeen,
}

/// The events of a tail that the decision folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learn {
    /// Those that match any clause.
    Matching,
    /// Those that match the clause over the partition.
    OneClause,
    /// None: the append goes to the next slot.
    Nothing,
}

/// The condition of an append on the order of times under a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// `head < :first`, over all types, on every fence.
    Head,
    /// The same, but not on the fence of an event's own partition.
    NotPartitions,
    /// Only `head` of the types that are written.
    PerType,
    /// Nothing.
    None,
}

/// The known events that a mint follows, however far they are ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// Events in boundaries that the append writes to. In others only events that are not far ahead.
    Written,
    /// All of them.
    All,
    /// No events: also in the boundaries that it writes to, only events that are not far ahead.
    Near,
}

/// The validation of an answer that appends nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// By GetItem of the next slot if one partition was read, its prefix does not end within an append, and its slot is
    /// the condition; otherwise by TransactGetItems.
    Right,
    /// By GetItem for one partition, wherever its prefix ends.
    OneGetItem,
    /// By one read for each clause. A validated clause stays validated when the command decides again.
    Kept,
    /// Not at all.
    None,
}

/// The meaning of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The dense prefix that was folded.
    Dense,
    /// As many slots as events were folded.
    Torn,
    /// The slot of the writer's own last event.
    OwnLast,
}

/// The commands with keys that have their record in their events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InEvents {
    /// Commands that read each partition that they write, with a condition that fails if their events there were not
    /// seen.
    Shown,
    /// Commands that read each partition that they write.
    Read,
    /// Commands that read anything.
    Written,
}

/// The known events that are searched for those of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched {
    /// All of them.
    All,
    /// All except those that a warm handler has read before.
    NotRecalled,
    /// All except those of a tail.
    NotTails,
}

/// All choices of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Reading: the slot m.
    pub prefix: Prefix,
    /// Reading: a tail begins after slot m. Otherwise at slot m, and its events are added to m.
    pub tail_after: bool,
    /// Reading: counts come from the merged reads, not from each clause.
    pub count_merged: bool,
    /// Snapshots: their meaning.
    pub snapshot: Snapshot,
    /// Snapshots: a tail that is not last in fold order is not folded on top.
    pub snapshot_in_order: bool,
    /// Filing: exactly under the boundaries by which it can be read. Otherwise an event of a composite counts for all
    /// of them.
    pub exact_filing: bool,
    /// Filing: an import files as a decision does.
    pub imports_file: bool,
    /// Filing: an event of a fenced type counts in the fence of its partition.
    pub count_fenced: bool,
    /// Appending: the condition on a fence.
    pub condition: Condition,
    /// Appending: there is also a condition on a fence under which nothing was seen.
    pub check_empty: bool,
    /// Appending: there is also a condition on a fence under which the new events are not filed.
    pub check_read_fences: bool,
    /// Appending: there is a condition on the next slot of a partition that is only read.
    pub check_read_partitions: bool,
    /// Appending: the fence of a partition replaces its slot only if all consumed types are fenced.
    pub all_fenced: bool,
    /// Conflicts: the events of a tail that are folded.
    pub learn: Learn,
    /// Conflicts: events that are not last in fold order are not folded on top.
    pub fold_in_order: bool,
    /// Order: the guard of fences.
    pub guard: Guard,
    /// Order: a mint exceeds the writer's last, the newest seen and the cause.
    pub hybrid_clock: bool,
    /// Order: the events that a mint exceeds although they are far ahead.
    pub follow: Follow,
    /// Order: a mint exceeds the last event of a partition that was not read.
    pub predecessor: bool,
    /// Order: claims that commit order is the order of `at` across boundaries too.
    pub claims_order_across: bool,
    /// Answers that append nothing.
    pub validation: Validation,
    /// Outcome: the own put is judged before any other condition.
    pub own_put_first: bool,
    /// Outcome: an append without an answer is sent again before anything is decided.
    pub resend_unknown: bool,
    /// Outcome: TransactionConflict says nothing about our conditions.
    pub transaction_conflict_judges: bool,
    /// Once: the append's transaction puts a command item, unless the record is in the events.
    pub command_item: bool,
    /// Once: the commands that have their record in the events.
    pub in_events: InEvents,
    /// Once: the events that are searched for those of an earlier run.
    pub searched: Searched,
    /// Once: the answer to a repeat is validated.
    pub validates_repeats: bool,
    /// Once: before an answer that appends nothing, the command item is read.
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
