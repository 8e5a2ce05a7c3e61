//! Where the boxes and lines of a map are.
//!
//! Contexts are lanes, one below the other. A box is in the column of its rank, the longest way that leads to it. If
//! that makes the map too wide, only ways inside of a context count, and some lines between contexts go back. In
//! its lane it is beside or below the box that leads to it, so a tree has no crossing lines. Lines go through the
//! gutters between columns and the channels between rows, so none goes through a box. Each box has its own track in a
//! gutter and in a channel, which its lines share.

use std::collections::{BTreeMap, HashMap};

use super::model::{Map, Node, NodeKind};

pub(super) const BOX_HEIGHT: i32 = 40;
const TRACK: i32 = 8;
const CORNER_SPACE: i32 = 14;
const ARROW_SPACE: i32 = 14;
const ROW_SPACE: i32 = 12;
const LANE_HEAD: i32 = 26;
const MARGIN: i32 = 12;
/// A note such as `behind or parked` is in the place of the words below a name.
const NOTE_WIDTH: i32 = 100;
/// A map has at most so many columns, unless a context needs more.
const COLUMNS_MAX: usize = 7;
/// Events to which nothing leads are in the column before this one.
const REACTION_RANK: usize = 2;
/// A line that ends in another row enters its box this far from the middle, where no line leaves.
const ENTRY: i32 = 9;

/// A box, or the band of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
}

/// The places of everything on a map, in pixels.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// By the order of the nodes.
    pub(super) boxes: Vec<Rect>,
    /// By the order of the contexts.
    pub(super) lanes: Vec<Rect>,
    /// By the order of the edges: the corners of each line.
    pub(super) lines: Vec<Vec<(i32, i32)>>,
}

/// The column, the lane and the row in the lane of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    lane: usize,
    row: usize,
    column: usize,
}

/// A line's way from the box `from` to the box `to`.
struct Way {
    from: usize,
    to: usize,
    /// Whether it goes through the channel above the row of `to`.
    is_around: bool,
}

/// The width of a text of 13 pixels in any usual font, generously.
pub(super) fn text_width(text: &str) -> i32 {
    let tenths = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | '\'' => 42,
        'f' | 't' | 'r' | '-' | ' ' => 54,
        'm' | 'w' | 'M' | 'W' => 118,
        letter if letter.is_ascii_uppercase() => 94,
        letter if letter.is_ascii() => 78,
        _ => 135,
    };
    text.chars().map(tenths).sum::<i32>() / 10
}

fn box_width(node: &Node) -> i32 {
    let also = if node.also_reacts() { 10 } else { 0 } + if node.personal { 14 } else { 0 };
    let text = text_width(&node.name).max(text_width(&node.what) * 9 / 10);
    40 + also + text.max(NOTE_WIDTH)
}

pub(super) fn lay_out(map: &Map) -> Layout {
    let places: HashMap<_, _> =
        map.nodes.iter().enumerate().map(|(place, node)| (&*node.id, place)).collect();
    let edges: Vec<_> =
        map.edges.iter().map(|edge| (places[&*edge.from], places[&*edge.to])).collect();
    let cells = cells(map, &edges);
    let ways = ways(&cells, &edges);
    Grid::of(map, &cells, &ways).layout(map, &cells, &ways)
}

/// The cells of the boxes.
fn cells(map: &Map, edges: &[(usize, usize)]) -> Vec<Cell> {
    let mut next = vec![Vec::new(); map.nodes.len()];
    let mut is_root = vec![true; map.nodes.len()];
    for (from, to) in edges {
        next[*from].push(*to);
        is_root[*to] = false;
    }
    let roots = (0..map.nodes.len()).filter(|node| is_root[*node]);
    let others = (0..map.nodes.len()).filter(|node| !is_root[*node]);
    let order = order(roots.chain(others), &mut next);
    let rank = |is_counted: &dyn Fn(usize, usize) -> bool| {
        let mut ranks: Vec<_> = map.nodes.iter().map(|node| first_rank(node.kind)).collect();
        for node in &order {
            for to in &next[*node] {
                let after = if is_counted(*node, *to) { ranks[*node] + 1 } else { REACTION_RANK };
                ranks[*to] = ranks[*to].max(after);
            }
        }
        ranks
    };
    let is_inside = |from: usize, to: usize| map.nodes[from].context == map.nodes[to].context;
    let mut ranks = rank(&|_, _| true);
    if ranks.iter().any(|rank| *rank >= COLUMNS_MAX) && map.contexts.len() > 1 {
        ranks = rank(&is_inside);
    }
    let used: BTreeMap<_, _> = ranks.iter().map(|rank| (*rank, 0)).collect();
    let columns: BTreeMap<_, _> = used.into_keys().zip(0..).collect();
    let lane = |node: &Node| map.contexts.iter().position(|context| *context == node.context);
    let cell = |(node, rank): (&Node, &usize)| Cell {
        lane: lane(node).unwrap_or_default(),
        row: 0,
        column: columns[rank],
    };
    let mut cells: Vec<_> = map.nodes.iter().zip(&ranks).map(cell).collect();
    // A box is placed directly after the box that leads to it.
    let mut free = HashMap::<_, usize>::new();
    let mut is_placed = vec![false; cells.len()];
    let first = (0..map.nodes.len()).filter(|node| is_root[*node]);
    for root in first.chain(order.iter().copied()) {
        let mut left = vec![(root, None)];
        while let Some((node, above)) = left.pop() {
            if std::mem::replace(&mut is_placed[node], true) {
                continue;
            }
            let Cell { lane, column, .. } = cells[node];
            let above: Option<Cell> = above.map(|above: usize| cells[above]);
            let beside = above.filter(|above| above.lane == lane).map_or(0, |above| above.row);
            let row = free.entry((lane, column)).or_default();
            cells[node].row = beside.max(*row);
            *row = cells[node].row + 1;
            left.extend(next[node].iter().rev().map(|to| (*to, Some(node))));
        }
    }
    cells
}

/// The rank of a box to which nothing leads.
fn first_rank(kind: NodeKind) -> usize {
    match kind {
        NodeKind::Command | NodeKind::Reaction | NodeKind::Context => 0,
        NodeKind::Event => 1,
        NodeKind::View => REACTION_RANK,
    }
}

/// The nodes in an order in which each is before those that it leads to. Edges that close a circle are removed.
fn order(from: impl Iterator<Item = usize>, next: &mut [Vec<usize>]) -> Vec<usize> {
    let (mut is_seen, mut is_open) = (vec![false; next.len()], vec![false; next.len()]);
    let mut order = Vec::with_capacity(next.len());
    for root in from {
        let mut path = vec![(root, 0)];
        while let Some((node, edge)) = path.last_mut() {
            let node = *node;
            if *edge == 0 && std::mem::replace(&mut is_seen[node], true) && !is_open[node] {
                path.pop();
                continue;
            }
            is_open[node] = true;
            match next[node].get(*edge) {
                Some(to) if is_open[*to] => {
                    next[node].remove(*edge);
                }
                Some(to) => {
                    *edge += 1;
                    let to = *to;
                    if !is_seen[to] {
                        path.push((to, 0));
                    }
                }
                None => {
                    is_open[node] = false;
                    order.push(node);
                    path.pop();
                }
            }
        }
    }
    order.reverse();
    order
}

fn ways(cells: &[Cell], edges: &[(usize, usize)]) -> Vec<Way> {
    let taken: std::collections::BTreeSet<_> = cells.iter().copied().collect();
    let way = |(from, to): &(usize, usize)| {
        let (begin, end) = (cells[*from], cells[*to]);
        let mut between = (begin.column..end.column).map(|column| Cell { column, ..end });
        let is_free = begin.column < end.column
            && between.all(|cell| cell == begin || !taken.contains(&cell));
        let is_next = begin.column + 1 == end.column;
        Way { from: *from, to: *to, is_around: !is_free && !is_next }
    };
    edges.iter().map(way).collect()
}

/// The tracks of a gutter or of a channel: by box, the number of its track.
#[derive(Default)]
struct Tracks(BTreeMap<usize, usize>);

impl Tracks {
    /// Gives each box a track that no box with an overlapping span has. Later boxes have higher tracks there.
    fn of(spans: Vec<(usize, (i64, i64))>) -> Self {
        let mut tracks = Self::default();
        let mut given: Vec<((i64, i64), usize)> = Vec::new();
        for (node, span) in spans {
            let overlapping = given.iter().filter(|(it, _)| it.0 <= span.1 && span.0 <= it.1);
            let track = overlapping.map(|(_, track)| track + 1).max().unwrap_or(0);
            given.push((span, track));
            tracks.0.insert(node, track);
        }
        tracks
    }

    fn len(&self) -> i32 {
        self.0.values().max().map_or(0, |track| small(track + 1))
    }

    fn at(&self, node: usize) -> i32 {
        small(self.0[&node])
    }
}

fn small(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX / 1_000)
}

/// The columns, rows, gutters and channels of a map.
struct Grid {
    /// The gutter before each column, and the one after the last.
    gutters: Vec<Tracks>,
    /// By lane and row, the channel above it.
    channels: BTreeMap<(usize, usize), Tracks>,
    widths: Vec<i32>,
    /// The number of rows of each lane.
    rows: Vec<usize>,
}

impl Grid {
    fn of(map: &Map, cells: &[Cell], ways: &[Way]) -> Self {
        let columns = cells.iter().map(|cell| cell.column + 1).max().unwrap_or(0);
        let mut widths = vec![0; columns];
        let mut rows = vec![0; map.contexts.len()];
        for (cell, node) in cells.iter().zip(&map.nodes) {
            widths[cell.column] = box_width(node).max(widths[cell.column]);
            rows[cell.lane] = rows[cell.lane].max(cell.row + 1);
        }
        // A row is three steps high: its channel, and both halves of its boxes.
        let before: Vec<_> =
            rows.iter().scan(0, |sum, rows| Some(std::mem::replace(sum, *sum + rows))).collect();
        let height = |cell: Cell| i64::from(small(before[cell.lane] + cell.row)) * 3 + 1;
        let mut gutters = vec![BTreeMap::<usize, (i64, Vec<i64>)>::new(); columns + 1];
        let mut channels = BTreeMap::<_, BTreeMap<usize, (i64, i64)>>::new();
        for Way { from, to, is_around } in ways {
            let (begin, end) = (cells[*from], cells[*to]);
            let (out, channel) = (height(begin), height(end) - 1);
            let mut through = |gutter: usize, at: i64, to: i64| {
                gutters[gutter].entry(*from).or_insert((at, Vec::new())).1.extend([at, to]);
            };
            if *is_around {
                through(begin.column + 1, out, channel);
                through(end.column, channel, height(end));
                let span = [begin.column + 1, end.column].map(|it| i64::from(small(it)));
                let (low, high) = (span[0].min(span[1]), span[0].max(span[1]));
                let channel = channels.entry((end.lane, end.row)).or_default();
                let span = channel.entry(*from).or_insert((low, high));
                *span = (span.0.min(low), span.1.max(high));
            } else {
                through(begin.column + 1, out, height(end));
            }
        }
        let gutter = |spans: BTreeMap<usize, (i64, Vec<i64>)>| {
            let spans = spans.into_iter().map(|(node, (at, ends))| {
                let low = ends.iter().copied().min().unwrap_or(at);
                let high = ends.iter().copied().max().unwrap_or(at);
                (node, at, (low, high))
            });
            let (mut down, mut up): (Vec<_>, Vec<_>) =
                spans.partition(|(_, at, (low, high))| high - at >= at - low);
            // A line that goes down is to the right of those that begin below it, so they do not cross.
            down.sort_by_key(|(_, at, _)| -at);
            up.sort_by_key(|(_, at, _)| *at);
            let spans = up.into_iter().chain(down);
            Tracks::of(spans.map(|(node, _, span)| (node, span)).collect())
        };
        Self {
            gutters: gutters.into_iter().map(gutter).collect(),
            channels: channels
                .into_iter()
                .map(|(row, spans)| (row, Tracks::of(spans.into_iter().collect())))
                .collect(),
            widths,
            rows,
        }
    }

    fn layout(&self, map: &Map, cells: &[Cell], ways: &[Way]) -> Layout {
        let mut x = MARGIN;
        let (mut gutters, mut columns) = (Vec::new(), Vec::new());
        for (column, tracks) in self.gutters.iter().enumerate() {
            gutters.push(x + CORNER_SPACE);
            let is_between = column > 0 && column < self.widths.len();
            if tracks.len() > 0 || is_between {
                x += CORNER_SPACE + TRACK * tracks.len() + ARROW_SPACE;
            }
            columns.push(x);
            x += self.widths.get(column).copied().unwrap_or(0);
        }
        let width = x + MARGIN;
        let mut y = 0;
        let (mut lanes, mut rows) = (Vec::new(), HashMap::new());
        for (lane, context) in map.contexts.iter().enumerate() {
            let top = y;
            y += if context.is_empty() { 0 } else { LANE_HEAD };
            for row in 0..self.rows[lane] {
                let tracks = self.channels.get(&(lane, row)).map_or(0, Tracks::len);
                let channel = y + ROW_SPACE / 2;
                y += ROW_SPACE + TRACK * tracks;
                rows.insert((lane, row), (channel, y));
                y += BOX_HEIGHT;
            }
            y += ROW_SPACE;
            lanes.push(Rect { x: 0, y: top, width, height: y - top });
        }
        let place = |(cell, node): (&Cell, &Node)| Rect {
            x: columns[cell.column],
            y: rows[&(cell.lane, cell.row)].1,
            width: box_width(node),
            height: BOX_HEIGHT,
        };
        let boxes: Vec<_> = cells.iter().zip(&map.nodes).map(place).collect();
        let track = |gutter: usize, node| gutters[gutter] + TRACK * self.gutters[gutter].at(node);
        let line = |Way { from, to, is_around }: &Way| {
            let (begin, end) = (boxes[*from], boxes[*to]);
            let (out, middle) = (begin.y + BOX_HEIGHT / 2, end.y + BOX_HEIGHT / 2);
            let first = track(cells[*from].column + 1, *from);
            let mut line = vec![(begin.x + begin.width, out), (first, out)];
            let enter = match middle.cmp(&out) {
                _ if *is_around => middle - ENTRY,
                std::cmp::Ordering::Equal => middle,
                std::cmp::Ordering::Greater => middle - ENTRY,
                std::cmp::Ordering::Less => middle + ENTRY,
            };
            if *is_around {
                let row = (cells[*to].lane, cells[*to].row);
                let channel = rows[&row].0 + TRACK * self.channels[&row].at(*from);
                let last = track(cells[*to].column, *from);
                line.extend([(first, channel), (last, channel), (last, enter)]);
            } else {
                line.push((first, enter));
            }
            line.push((end.x, enter));
            line.dedup();
            line
        };
        let lines = ways.iter().map(line).collect();
        Layout { width, height: y, boxes, lanes, lines }
    }
}
