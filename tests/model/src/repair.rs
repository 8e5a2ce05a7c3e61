//! A repair of one fence beside writers, other repairs and reads that show items late: the rules of
//! `verify.rs` in the log on DynamoDB, explored exhaustively.
//!
//! There is one boundary with one type of event. Its fence may say anything when a repair begins; that
//! includes a boundary that is newly declared, whose older events no fence counts. Whoever appends adds
//! one to the count and needs a position above the head, and nothing else: positions may lie below those
//! of older events that the fence does not know.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;

/// How often suspects are examined.
const EXAMINATIONS_MAX: u8 = 4;
/// The largest position. 0 stands for none.
const POSITION_MAX: u8 = 7;

/// What a repair does.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether the survey waits, between fences and events, until what is committed is visible.
    pub survey_settles: bool,
    /// Whether an examination that is neither at rest nor in order keeps the suspect.
    pub keeps_suspects: bool,
    /// Whether it mends. `verify` does not.
    pub mends: bool,
}

impl Rules {
    /// `ringfence repair`.
    pub const REPAIR: Self = Self { survey_settles: true, keeps_suspects: true, mends: true };
    /// `ringfence verify`.
    pub const VERIFY: Self = Self { mends: false, ..Self::REPAIR };
}

/// What is there when the repairs begin, and who is active then.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Positions of the events, a bit each.
    pub events: u8,
    /// What the fence counts.
    pub counted: u8,
    /// The fence's head.
    pub head: u8,
    /// How many events are appended meanwhile.
    pub appends: u8,
    /// How many repairs run at once.
    pub repairs: usize,
}

impl Scenario {
    /// Every fence beside every set of at most two older events, with at most `appends` appends and
    /// `repairs` repairs.
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

/// Sets of events, by their positions.
type Events = u8;

fn bit(position: u8) -> Events {
    1 << position
}

fn newest(events: Events) -> u8 {
    u8::try_from(events.checked_ilog2().unwrap_or(0)).unwrap_or(0)
}

/// The events that are not after `head`.
fn cut(events: Events, head: u8) -> Events {
    events & u8::try_from((1_u16 << (head + 1)) - 1).unwrap_or(u8::MAX)
}

fn size(events: Events) -> u8 {
    u8::try_from(events.count_ones()).unwrap_or(u8::MAX)
}

/// What an examination says of a fence that is not known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Difference {
    found: Events,
    /// What to add to the count, if the examination is exact.
    add: Option<i8>,
    at_rest: Option<Fence>,
    repaired: u8,
    decided: bool,
}

/// What a repair does next. `examination` 0 is the survey; `newest` is what an earlier scan found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Next {
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
struct State {
    events: Events,
    visible: Events,
    /// Every fence that there was; the last is the one that there is.
    fences: Vec<Fence>,
    appends: u8,
    repairs: Vec<Next>,
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

/// How many states were visited, and the shortest way to what must not be, if there is one.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Distinct states.
    pub states: usize,
    /// The steps that lead to it, one a line.
    pub broken: Option<String>,
}

/// Explores each scenario until one breaks: how many states were visited, and that scenario with its
/// trace.
pub fn explore_all(scenarios: &[Scenario], rules: Rules) -> (usize, Option<String>) {
    let mut states = 0;
    for scenario in scenarios {
        let explored = explore(scenario, rules);
        states += explored.states;
        if let Some(trace) = explored.broken {
            return (states, Some(format!("{scenario:?}\n{trace}")));
        }
    }
    (states, None)
}

/// Explores everything that can happen. What must not be: a repair has ended in order, and the fence
/// is wrong; a repair has ended and something still differs; `verify` doubts a fence that is right.
pub fn explore(scenario: &Scenario, rules: Rules) -> Explored {
    let Scenario { events, counted: count, head, appends, repairs } = *scenario;
    let start = State {
        events,
        visible: 0,
        fences: vec![Fence { count, head, repaired: 0 }],
        appends,
        repairs: vec![Next::ReadBefore { examination: 0, newest: 0 }; repairs],
    };
    let mut parents = HashMap::from([(start.clone(), None)]);
    let mut states = vec![start];
    let mut at = 0;
    while at < states.len() {
        let state = states[at].clone();
        if breaks(&state, scenario, rules) {
            return Explored { states: states.len(), broken: Some(trace(&states, &parents, at)) };
        }
        for next in steps(&state, rules) {
            if let Entry::Vacant(unseen) = parents.entry(next) {
                states.push(unseen.key().clone());
                unseen.insert(Some(at));
            }
        }
        at += 1;
    }
    Explored { states: states.len(), broken: None }
}

fn trace(states: &[State], parents: &HashMap<State, Option<usize>>, end: usize) -> String {
    let mut path = vec![end];
    while let Some(parent) = path.last().and_then(|last| parents[&states[*last]]) {
        path.push(parent);
    }
    let mut text = String::new();
    for place in path.into_iter().rev() {
        writeln!(text, "{:?}", states[place]).expect("a String takes it");
    }
    text
}

fn breaks(state: &State, scenario: &Scenario, rules: Rules) -> bool {
    let ended = |expected| state.repairs.contains(&Next::Ended { in_order: expected });
    let doubted = ended(false) && (rules.mends || scenario.is_right());
    (ended(true) && !state.is_right()) || doubted
}

fn steps(state: &State, rules: Rules) -> Vec<State> {
    let mut next = Vec::new();
    let hidden = state.events & !state.visible;
    for position in (1..=POSITION_MAX).filter(|position| hidden & bit(*position) != 0) {
        next.push(State { visible: state.visible | bit(position), ..state.clone() });
    }
    let fence = state.fence();
    let free = (fence.head + 1..=POSITION_MAX).filter(|at| state.events & bit(*at) == 0);
    for position in free.filter(|_| state.appends > 0) {
        let mut after = State { appends: state.appends - 1, ..state.clone() };
        after.events |= bit(position);
        after.fences.push(Fence { count: fence.count + 1, head: position, ..fence });
        next.push(after);
    }
    for repair in 0..state.repairs.len() {
        act(state, repair, rules, &mut next);
    }
    next
}

/// What a repair can do next.
fn act(state: &State, repair: usize, rules: Rules, next: &mut Vec<State>) {
    let turn = |turn| {
        let mut after = state.clone();
        after.repairs[repair] = turn;
        after
    };
    match state.repairs[repair] {
        Next::ReadBefore { examination, newest } => {
            // The survey scans the fences, and may read old ones.
            let oldest = if examination == 0 { 0 } else { state.fences.len() - 1 };
            next.extend(state.fences[oldest..].iter().map(|before| {
                let before = *before;
                match examination == 0 && !rules.survey_settles {
                    true => turn(Next::BeginScan { examination, newest, before }),
                    false => turn(Next::Settle { examination, newest, before }),
                }
            }));
        }
        Next::Settle { examination, newest, before } => {
            let after = turn(Next::BeginScan { examination, newest, before });
            next.push(State { visible: state.events, ..after });
        }
        Next::BeginScan { examination, newest, before } => {
            let visible = state.visible;
            next.push(turn(Next::EndScan { examination, newest, before, visible }));
        }
        Next::EndScan { examination, newest, before, visible } => {
            // Of what has become visible since the scan began, it has found any part.
            let since = state.visible & !visible;
            let parts = (0..=since).filter(|part| part & !since == 0);
            next.extend(parts.map(|part| {
                let found = visible | part;
                turn(surveyed(examination, newest, before, found, rules))
            }));
        }
        Next::ReadAfter { examination, newest, before, found } => {
            let judged = judge(examination, newest, before, state.fence(), found, rules);
            next.push(turn(decided(examination, judged, rules)));
        }
        Next::ReadToMend { examination, difference } => {
            let read = state.fence();
            let done = read.repaired != difference.repaired || mended(difference, read) == read;
            next.push(turn(match done {
                true => again(examination, difference),
                false => Next::Put { examination, difference, read },
            }));
        }
        Next::Put { examination, difference, read } => {
            let now = state.fence();
            if (now.head, now.repaired) != (read.head, read.repaired) {
                return next.push(turn(Next::ReadToMend { examination, difference }));
            }
            let name = u8::try_from(repair).unwrap_or(0) * EXAMINATIONS_MAX + examination;
            let mut after = turn(again(examination, difference));
            after.fences.push(Fence { repaired: name, ..mended(difference, read) });
            next.push(after);
        }
        Next::Ended { .. } => {}
    }
}

/// After a scan: a survey has ended, or the fence is read again.
fn surveyed(
    examination: u8,
    before_newest: u8,
    before: Fence,
    found: Events,
    rules: Rules,
) -> Next {
    if examination > 0 || !rules.keeps_suspects {
        return Next::ReadAfter { examination, newest: before_newest, before, found };
    }
    match (before.count, before.head) == (size(found), newest(found)) {
        true => Next::Ended { in_order: true },
        false => Next::ReadBefore { examination: 1, newest: newest(found) },
    }
}

/// What an examination says; `None` if the fence is right.
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
fn decided(examination: u8, judged: Option<Difference>, rules: Rules) -> Next {
    let Some(difference) = judged else { return Next::Ended { in_order: true } };
    let goes_on = rules.mends || !difference.decided;
    match (examination < EXAMINATIONS_MAX && goes_on, rules.mends && difference.decided) {
        (false, _) => Next::Ended { in_order: false },
        (true, true) if examination > 0 => Next::ReadToMend { examination, difference },
        (true, _) => again(examination, difference),
    }
}

/// The next examination.
fn again(examination: u8, difference: Difference) -> Next {
    Next::ReadBefore { examination: examination + 1, newest: newest(difference.found) }
}

/// What a fence that says `now` has to say.
fn mended(difference: Difference, now: Fence) -> Fence {
    let newest = newest(difference.found);
    if difference.at_rest == Some(now) {
        return Fence { count: size(difference.found), head: newest, ..now };
    }
    let count = now.count.saturating_add_signed(difference.add.unwrap_or(0));
    Fence { count, head: now.head.max(newest), ..now }
}
