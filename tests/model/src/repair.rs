//! A repair of one fence beside writers, other repairs and reads that show items late: the rules of `verify.rs` in the
//! log on DynamoDB, explored exhaustively.
//!
//! There is one fence with one type of event. It may say anything when a repair begins. A newly declared fence is one
//! case: it does not count its older events. A writer that appends adds one to the count and needs an `at` above the
//! head, and nothing else. So its `at` may be below those of older events that the fence does not know.

use crate::{
    explore::{Machine, Next, States, explore},
    property::{Broken, Property},
};

/// How often suspects are examined.
const EXAMINATIONS_MAX: u8 = 4;
/// The largest `at`. A head of 0 stands for a fence without one.
const AT_MAX: u8 = 7;

/// The rules of a repair.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether the survey waits, between fences and events, until all committed items are visible.
    pub survey_settles: bool,
    /// Whether an examination that is neither at rest nor in order keeps the suspect.
    pub keeps_suspects: bool,
    /// Whether writers need an `at` above the head. Otherwise one above the events is enough, as the slots of a
    /// partition would require.
    pub head_guard: bool,
    /// Whether it mends. `verify` does not.
    pub mends: bool,
}

impl Rules {
    /// `ringfence repair`.
    pub const REPAIR: Self =
        Self { survey_settles: true, keeps_suspects: true, head_guard: true, mends: true };
    /// `ringfence verify`.
    pub const VERIFY: Self = Self { mends: false, ..Self::REPAIR };
}

/// The state when the repairs begin, and the writers that are active then.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The `at` of each event, one bit each.
    pub events: u8,
    /// The count of the fence.
    pub counted: u8,
    /// The fence's head.
    pub head: u8,
    /// How many events are appended meanwhile.
    pub appends: u8,
    /// How many repairs run at the same time.
    pub repairs: usize,
}

impl Scenario {
    /// Every fence beside every set of at most two older events, with at most `appends` appends and `repairs` repairs.
    pub fn all(appends: u8, repairs: usize) -> Vec<Self> {
        let mut all = Vec::new();
        for events in [0, bit(2), bit(4), bit(2) | bit(4)] {
            for (counted, head) in (0..=3).flat_map(|n| [0, 2, 3, 4, 5].map(|head| (n, head))) {
                all.push(Self { events, counted, head, appends, repairs });
            }
        }
        all
    }

    /// Whether the fence is right.
    fn is_right(self) -> bool {
        u32::from(self.counted) == self.events.count_ones() && self.head == newest(self.events)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Fence {
    count: u8,
    head: u8,
    /// Names the last repair.
    repaired: u8,
}

/// Sets of events, by their `at`.
type Events = u8;

fn bit(at: u8) -> Events {
    1 << at
}

fn newest(events: Events) -> u8 {
    u8::try_from(events.checked_ilog2().unwrap_or(0)).unwrap_or(0)
}

/// The events up to `head`.
fn cut(events: Events, head: u8) -> Events {
    events & u8::try_from((1_u16 << (head + 1)) - 1).unwrap_or(u8::MAX)
}

fn size(events: Events) -> u8 {
    u8::try_from(events.count_ones()).unwrap_or(u8::MAX)
}

/// The finding of an examination on a fence that is not known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Difference {
    found: Events,
    /// The number to add to the count, if the examination is exact.
    add: Option<i8>,
    at_rest: Option<Fence>,
    repaired: u8,
    decided: bool,
}

/// The next action of a repair. `examination` 0 is the survey; `newest` comes from an earlier scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Turn {
    ReadBefore { examination: u8, newest: u8 },
    Settle { examination: u8, newest: u8, before: Fence },
    BeginScan { examination: u8, newest: u8, before: Fence },
    EndScan { examination: u8, newest: u8, before: Fence, visible: Events },
    ReadAfter { examination: u8, newest: u8, before: Fence, found: Events },
    ReadToMend { examination: u8, difference: Difference },
    Put { examination: u8, difference: Difference, read: Fence },
    Ended { in_order: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    events: Events,
    visible: Events,
    /// Every fence over time; the last one is the present one.
    fences: Vec<Fence>,
    appends: u8,
    repairs: Vec<Turn>,
}

impl State {
    fn fence(&self) -> Fence {
        *self.fences.last().expect("the first fence is never taken away")
    }

    fn is_right(&self) -> bool {
        let fence = self.fence();
        fence.count == size(self.events) && fence.head >= newest(self.events)
    }
}

/// Explores each scenario until one breaks. Returns how many states were visited, and that scenario with its trace.
/// Faults are: a repair has ended in order, and the fence is wrong; a repair has ended and something still differs;
/// `verify` doubts a right fence.
pub fn explore_all(scenarios: &[Scenario], rules: Rules) -> (u64, Option<String>) {
    let (mut states, mut visited) = (0, States::default());
    for &scenario in scenarios {
        let model = Model { scenario, rules };
        let mut explored =
            explore(&model, Property::RightFence.when(true), usize::MAX, &mut visited);
        states += explored.states;
        if let Some(trace) = explored.broken.remove(&Property::RightFence) {
            return (states, Some(format!("{scenario:?}\n{}", trace.join("\n"))));
        }
    }
    (states, None)
}

struct Model {
    scenario: Scenario,
    rules: Rules,
}

impl Machine for Model {
    type State = State;
    type Step = ();

    fn start(&self) -> (State, Broken) {
        let Scenario { events, counted: count, head, appends, repairs } = self.scenario;
        let start = State {
            events,
            visible: 0,
            fences: vec![Fence { count, head, repaired: 0 }],
            appends,
            repairs: vec![Turn::ReadBefore { examination: 0, newest: 0 }; repairs],
        };
        (start, 0)
    }

    fn next(&self, state: &State, next: &mut Vec<Next<(), State>>) {
        next.extend(steps(state, self.rules).into_iter().map(|after| {
            let broken = Property::RightFence.when(breaks(&after, &self.scenario, self.rules));
            Next { step: (), state: after, broken }
        }));
    }

    fn line(&self, _: &State, (): &(), after: &State) -> String {
        format!("{after:?}")
    }
}

fn breaks(state: &State, scenario: &Scenario, rules: Rules) -> bool {
    let ended = |expected| state.repairs.contains(&Turn::Ended { in_order: expected });
    let doubted = ended(false) && (rules.mends || scenario.is_right());
    (ended(true) && !state.is_right()) || doubted
}

fn steps(state: &State, rules: Rules) -> Vec<State> {
    let mut next = Vec::new();
    let hidden = state.events & !state.visible;
    for at in (1..=AT_MAX).filter(|at| hidden & bit(*at) != 0) {
        next.push(State { visible: state.visible | bit(at), ..state.clone() });
    }
    let fence = state.fence();
    let above = if rules.head_guard { fence.head } else { newest(state.events) };
    let free = (above + 1..=AT_MAX).filter(|at| state.events & bit(*at) == 0);
    for at in free.filter(|_| state.appends > 0) {
        let mut after = State { appends: state.appends - 1, ..state.clone() };
        after.events |= bit(at);
        after.fences.push(Fence { count: fence.count + 1, head: at, ..fence });
        next.push(after);
    }
    for repair in 0..state.repairs.len() {
        act(state, repair, rules, &mut next);
    }
    next
}

/// The possible next steps of a repair.
fn act(state: &State, repair: usize, rules: Rules, next: &mut Vec<State>) {
    let turn = |turn| {
        let mut after = state.clone();
        after.repairs[repair] = turn;
        after
    };
    match state.repairs[repair] {
        Turn::ReadBefore { examination, newest } => {
            // The survey scans the fences, and may read old ones.
            let oldest = if examination == 0 { 0 } else { state.fences.len() - 1 };
            next.extend(state.fences[oldest..].iter().map(|before| {
                let before = *before;
                match examination == 0 && !rules.survey_settles {
                    true => turn(Turn::BeginScan { examination, newest, before }),
                    false => turn(Turn::Settle { examination, newest, before }),
                }
            }));
        }
        Turn::Settle { examination, newest, before } => {
            let after = turn(Turn::BeginScan { examination, newest, before });
            next.push(State { visible: state.events, ..after });
        }
        Turn::BeginScan { examination, newest, before } => {
            let visible = state.visible;
            next.push(turn(Turn::EndScan { examination, newest, before, visible }));
        }
        Turn::EndScan { examination, newest, before, visible } => {
            // It has found any part of the items that became visible since the scan began.
            let since = state.visible & !visible;
            let parts = (0..=since).filter(|part| part & !since == 0);
            next.extend(parts.map(|part| {
                let found = visible | part;
                turn(surveyed(examination, newest, before, found, rules))
            }));
        }
        Turn::ReadAfter { examination, newest, before, found } => {
            let judged = judge(examination, newest, before, state.fence(), found, rules);
            next.push(turn(decided(examination, judged, rules)));
        }
        Turn::ReadToMend { examination, difference } => {
            let read = state.fence();
            let done = read.repaired != difference.repaired || mended(difference, read) == read;
            next.push(turn(match done {
                true => again(examination, difference),
                false => Turn::Put { examination, difference, read },
            }));
        }
        Turn::Put { examination, difference, read } => {
            let now = state.fence();
            if (now.head, now.repaired) != (read.head, read.repaired) {
                return next.push(turn(Turn::ReadToMend { examination, difference }));
            }
            let name = u8::try_from(repair).unwrap_or(0) * EXAMINATIONS_MAX + examination;
            let mut after = turn(again(examination, difference));
            after.fences.push(Fence { repaired: name, ..mended(difference, read) });
            next.push(after);
        }
        Turn::Ended { .. } => {}
    }
}

/// After a scan: a survey has ended, or the fence is read again.
fn surveyed(
    examination: u8,
    before_newest: u8,
    before: Fence,
    found: Events,
    rules: Rules,
) -> Turn {
    if examination > 0 || !rules.keeps_suspects {
        return Turn::ReadAfter { examination, newest: before_newest, before, found };
    }
    match (before.count, before.head) == (size(found), newest(found)) {
        true => Turn::Ended { in_order: true },
        false => Turn::ReadBefore { examination: 1, newest: newest(found) },
    }
}

/// The finding of an examination; `None` if the fence is right.
fn judge(
    examination: u8,
    earlier: u8,
    before: Fence,
    after: Fence,
    found: Events,
    rules: Rules,
) -> Option<Difference> {
    let rest = before == after;
    let ordered = examination > 0 && before.head >= earlier;
    let exact = rest || (ordered && before.repaired == after.repaired);
    let (all, until_head) = (size(found), size(cut(found, before.head)));
    let guess = !rules.keeps_suspects && all <= after.count && before.repaired == after.repaired;
    let (counted, count) = match (rest, exact || guess) {
        (true, _) => (before.count, all),
        (false, true) => (before.count, until_head),
        (false, false) => (after.count, all.max(after.count)),
    };
    let newest = newest(found);
    let decided = counted != count || newest > after.head || (rest && newest != after.head);
    (decided || (!exact && rules.keeps_suspects)).then(|| Difference {
        found,
        add: exact.then(|| count.cast_signed() - counted.cast_signed()),
        at_rest: rest.then_some(before),
        repaired: after.repaired,
        decided,
    })
}

/// After an examination.
fn decided(examination: u8, judged: Option<Difference>, rules: Rules) -> Turn {
    let Some(difference) = judged else { return Turn::Ended { in_order: true } };
    let goes_on = rules.mends || !difference.decided;
    match (examination < EXAMINATIONS_MAX && goes_on, rules.mends && difference.decided) {
        (false, _) => Turn::Ended { in_order: false },
        (true, true) if examination > 0 => Turn::ReadToMend { examination, difference },
        (true, _) => again(examination, difference),
    }
}

/// The next examination.
fn again(examination: u8, difference: Difference) -> Turn {
    Turn::ReadBefore { examination: examination + 1, newest: newest(difference.found) }
}

/// The right value of a fence that says `now`.
fn mended(difference: Difference, now: Fence) -> Fence {
    let newest = newest(difference.found);
    if difference.at_rest == Some(now) {
        return Fence { count: size(difference.found), head: newest, ..now };
    }
    let count = now.count.saturating_add_signed(difference.add.unwrap_or(0));
    Fence { count, head: now.head.max(newest), ..now }
}
