//! The rules of an indexer, and its surroundings.

/// The rules of an indexer.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// An indexer that finds the end reads the pages before the last one that may not be settled.
    pub reads_unsettled: bool,
    /// The progress is taken together with the pages that may not be settled.
    pub takes_unsettled: bool,
    /// An indexer remembers an end together with the pages before it that may not be settled.
    pub remembers_unsettled: bool,
    /// A page says that the pages before a place are settled only if they are.
    pub says_settled: bool,
    /// A page counts as settled when the progress of each of its partitions has moved, and not of one of them.
    pub settles_whole: bool,
    /// A page is put only if few pages before it may not be settled.
    pub few_unsettled: bool,
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
    /// Images are taken without a read only if they continue the progress without a gap.
    pub images_continue: bool,
    /// Of the events that a read returns, the dense prefix after the progress is taken.
    pub dense_prefix: bool,
    /// An image is acknowledged after it is indexed.
    pub waits: bool,
    /// It is acknowledged when the progress has reached it.
    pub waits_for_progress: bool,
    /// With the lease too, a page is put on condition that there is no page in its place.
    pub lease_condition: bool,
    /// The end of the lease says only where to read.
    pub lease_read: bool,
}

impl Rules {
    /// index-events.
    pub const FEED: Self = Self {
        reads_unsettled: true,
        takes_unsettled: true,
        remembers_unsettled: true,
        says_settled: true,
        settles_whole: true,
        few_unsettled: true,
        end_first: true,
        grows: true,
        place_condition: true,
        finds_anew: true,
        takes_all: true,
        images_continue: true,
        dense_prefix: true,
        waits: true,
        waits_for_progress: true,
        lease_condition: true,
        lease_read: true,
    };
}

/// Rules that are wrong in one place, each with a name.
pub const MUTANTS: [(&str, Rules); 17] = [
    (
        "a page put before the pages are read that may not be settled",
        Rules { reads_unsettled: false, ..Rules::FEED },
    ),
    (
        "the progress taken without the pages that may not be settled",
        Rules { takes_unsettled: false, ..Rules::FEED },
    ),
    (
        "an end remembered without the pages that may not be settled",
        Rules { remembers_unsettled: false, ..Rules::FEED },
    ),
    (
        "a page that says that the pages before it are settled while they are not",
        Rules { says_settled: false, ..Rules::FEED },
    ),
    (
        "a page that counts as settled before all its partitions have moved",
        Rules { settles_whole: false, ..Rules::FEED },
    ),
    (
        "a page put although too many pages before it may not be settled",
        Rules { few_unsettled: false, ..Rules::FEED },
    ),
    ("the progress read before the end is known", Rules { end_first: false, ..Rules::FEED }),
    ("a progress that also moves back", Rules { grows: false, ..Rules::FEED }),
    ("a page without a condition on its place", Rules { place_condition: false, ..Rules::FEED }),
    ("the old end kept after a put that failed", Rules { finds_anew: false, ..Rules::FEED }),
    ("only the last page of others taken over", Rules { takes_all: false, ..Rules::FEED }),
    ("an image taken over a gap", Rules { images_continue: false, ..Rules::FEED }),
    ("everything taken that a read returns", Rules { dense_prefix: false, ..Rules::FEED }),
    ("an image acknowledged on sight", Rules { waits: false, ..Rules::FEED }),
    (
        "an image acknowledged before the progress has reached it",
        Rules { waits_for_progress: false, ..Rules::FEED },
    ),
    (
        "a page put without a condition by the holder of the lease",
        Rules { lease_condition: false, ..Rules::FEED },
    ),
    ("the end of the lease believed", Rules { lease_read: false, ..Rules::FEED }),
];

/// The number of partitions.
pub(super) const PARTITIONS: usize = 2;
/// The most indexers.
pub(super) const INDEXERS: usize = 3;
/// The most pages at the end that may not be settled.
pub(super) const UNSETTLED_MAX: usize = 2;

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
    pub const SMALL: [Self; 3] = [
        Self::new(&[[1, 1]], (2, 0, false)).leased(),
        Self::new(&[[2, 0]], (2, 0, true)),
        Self::new(&[[2, 1]], (1, 0, false)),
    ];

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
