//! The rules of an indexer, and its surroundings.

/// The rules of an indexer.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A page is settled before the next one is put.
    pub settles_first: bool,
    /// A page is settled before its end is remembered.
    pub remembers_settled: bool,
    /// An indexer that finds the end settles the page before it.
    pub settles_found: bool,
    /// The progress is read after the end is known.
    pub end_first: bool,
    /// A progress moves on condition that its checkpoint grows.
    pub grows: bool,
    /// A page is put on condition that there is no page in its place.
    pub place_condition: bool,
    /// An indexer that can't put a page looks for the pages of others.
    pub finds_anew: bool,
    /// It takes over all pages of others, and not only the last one.
    pub takes_all: bool,
    /// The progress of a page's last entry moves last.
    pub mark_last: bool,
    /// Images are taken without a read only if they continue the progress without a gap.
    pub images_continue: bool,
    /// Of the events that a read returns, the dense prefix after the progress is taken.
    pub dense_prefix: bool,
    /// An image is acknowledged when the progress has reached it.
    pub waits: bool,
    /// With the lease too, a page is put on condition that there is no page in its place.
    pub lease_condition: bool,
    /// The end of the lease counts only if a progress confirms it.
    pub lease_checked: bool,
    /// It is confirmed by the end that is stored with the progress of a page's last entry, and not by any progress that
    /// has come as far.
    pub lease_entry: bool,
    /// It is confirmed before the progress of the batch is read.
    pub lease_first: bool,
}

impl Rules {
    /// index-events.
    pub const FEED: Self = Self {
        settles_first: true,
        remembers_settled: true,
        settles_found: true,
        end_first: true,
        grows: true,
        place_condition: true,
        finds_anew: true,
        takes_all: true,
        mark_last: true,
        images_continue: true,
        dense_prefix: true,
        waits: true,
        lease_condition: true,
        lease_checked: true,
        lease_entry: true,
        lease_first: true,
    };
}

/// Rules that are wrong in one place, each with a name.
pub const MUTANTS: [(&str, Rules); 16] = [
    (
        "the next page put before the last one is settled",
        Rules { settles_first: false, ..Rules::FEED },
    ),
    (
        "an end remembered before its page is settled",
        Rules { remembers_settled: false, ..Rules::FEED },
    ),
    ("an end found without settling its page", Rules { settles_found: false, ..Rules::FEED }),
    ("the progress read before the end is known", Rules { end_first: false, ..Rules::FEED }),
    ("a progress that also moves back", Rules { grows: false, ..Rules::FEED }),
    ("a page without a condition on its place", Rules { place_condition: false, ..Rules::FEED }),
    ("the old end kept after a put that failed", Rules { finds_anew: false, ..Rules::FEED }),
    ("only the last page of others taken over", Rules { takes_all: false, ..Rules::FEED }),
    (
        "the progress of the last entry moved before others",
        Rules { mark_last: false, ..Rules::FEED },
    ),
    ("an image taken over a gap", Rules { images_continue: false, ..Rules::FEED }),
    ("everything taken that a read returns", Rules { dense_prefix: false, ..Rules::FEED }),
    ("an image acknowledged on sight", Rules { waits: false, ..Rules::FEED }),
    (
        "a page put without a condition by the holder of the lease",
        Rules { lease_condition: false, ..Rules::FEED },
    ),
    ("the end of the lease believed", Rules { lease_checked: false, ..Rules::FEED }),
    (
        "the end of the lease confirmed by an entry that is not the page's last",
        Rules { lease_entry: false, ..Rules::FEED },
    ),
    (
        "the progress read before the end of the lease is confirmed",
        Rules { lease_first: false, ..Rules::FEED },
    ),
];

/// The number of partitions.
pub(super) const PARTITIONS: usize = 2;
/// The most indexers.
pub(super) const INDEXERS: usize = 3;

/// The appends, and what else may happen.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// For each append, the number of its events in each partition. The events of a partition are in this order.
    pub appends: &'static [[u8; PARTITIONS]],
    /// The number of indexers, up to three.
    pub indexers: usize,
    /// How many requests can be late at the same time.
    pub late: usize,
    /// Whether reads show the events of an append one by one.
    pub torn: bool,
    /// Whether there can be too many pages of others to read, so the progress is read again.
    pub far: bool,
    /// Whether indexers may take the lease, which may say anything.
    pub leased: bool,
}

impl Scenario {
    const fn new(
        appends: &'static [[u8; PARTITIONS]],
        (indexers, late, torn): (usize, usize, bool),
    ) -> Self {
        Self { appends, indexers, late, torn, far: false, leased: false }
    }

    const fn far(self) -> Self {
        Self { far: true, ..self }
    }

    const fn leased(self) -> Self {
        Self { leased: true, ..self }
    }

    /// Scenarios in which every mutant is caught.
    pub const SMALL: [Self; 2] =
        [Self::new(&[[1, 1]], (2, 0, false)).leased(), Self::new(&[[2, 0]], (2, 0, true))];

    /// Scenarios with late requests.
    pub const FEW: [Self; 3] = [
        Self::new(&[[1, 1]], (2, 1, false)).leased(),
        Self::new(&[[2, 0]], (2, 1, true)).far(),
        Self::new(&[[1, 0], [1, 0]], (2, 1, false)),
    ];

    /// Larger scenarios.
    pub const MORE: [Self; 4] = [
        Self::new(&[[1, 1]], (2, 2, false)).far(),
        Self::new(&[[1, 1], [1, 0]], (2, 0, false)).far().leased(),
        Self::new(&[[1, 0], [2, 0]], (2, 0, true)).far(),
        Self::new(&[[1, 0], [1, 0]], (3, 0, false)).far(),
    ];
}
