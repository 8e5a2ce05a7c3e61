//! The protocol as a table of switches: each mutant turns one.

/// What an append requires of a fence and type that its decision read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `cnt#T = :seen`: as many events as were seen.
    Counts,
    /// `pos#T = :seen`: the newest one is the newest that was seen.
    NewestSeen,
    /// `pos#T <= :after`: none is newer than the newest that any clause saw.
    NotAfter,
}

/// What an append requires of the order of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// `head < :first`, over all types.
    Head,
    /// `pos#T < :first`, for the types written.
    PerType,
    /// Nothing.
    None,
}

/// How a reader that resumes at a cursor accepts a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageCheck {
    /// Query, then the fence; as long as the counts differ, query again. What is not after the
    /// fence's head is accepted when its counts are those of the fence.
    Cut,
    /// Query, then the fence; the whole page when the counts agree, else from the beginning.
    FenceAfter,
    /// As [`PageCheck::Cut`] reads, and the whole page is accepted when the counts agree.
    Whole,
    /// The fence, then the query; the whole page when the counts agree.
    FenceBefore,
    /// Every page.
    None,
}

/// All that can be chosen about the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Rule 3.
    pub condition: Condition,
    /// Rule 3: a clause that returned nothing is conditioned too.
    pub check_empty: bool,
    /// Rule 3: a cross-partition clause that the new events do not carry is conditioned too.
    pub check_read_only: bool,
    /// Rule 3 has no such gate: `attribute_not_exists(pos#T)` on produced types when nothing was read.
    pub gate_produced: bool,
    /// Rule 1: filed exactly where it can be read; else a composite is filed under its members.
    pub exact_filing: bool,
    /// Rule 8: an import files as a decision does.
    pub imports_file: bool,
    /// Rule 2: counts are of the merged reads, not of each clause by itself.
    pub count_merged: bool,
    /// Rule 4.
    pub guard: Guard,
    /// Rule 4: a mint exceeds the writer's last, the newest seen and the cause.
    pub hybrid_clock: bool,
    /// Rule 5.
    pub page_check: PageCheck,
    /// Rule 5: the fence is read in a transaction; else it can be as old as other items that a read
    /// shows.
    pub fence_in_transaction: bool,
    /// Rule 5: of the fence, the reader of a partition compares the types that are stored there,
    /// and not those that are filed there and stored elsewhere.
    pub compare_stored: bool,
    /// Rule 6: a refusal is validated against the fences.
    pub validate_refusals: bool,
    /// Rule 10: the append's transaction puts a command item.
    pub command_item: bool,
}

impl Protocol {
    /// The protocol as built.
    pub const RINGFENCE: Self = Self {
        condition: Condition::Counts,
        check_empty: true,
        check_read_only: true,
        gate_produced: false,
        exact_filing: true,
        imports_file: true,
        count_merged: true,
        guard: Guard::Head,
        hybrid_clock: true,
        page_check: PageCheck::Cut,
        fence_in_transaction: true,
        compare_stored: true,
        validate_refusals: true,
        command_item: true,
    };
}
