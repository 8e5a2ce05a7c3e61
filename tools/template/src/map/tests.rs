//! Properties of the picture, on random maps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringfence_core::prelude::*;
use ringfence_core::{Catalogs, Cause, Lane, LogKind, Name};
use ringfence_log::{BoundaryShape, Dependence};
use ringfence_stack::{ContextInfo, ReactorInfo, SliceInfo, Stack};

use super::lay_out::{Layout, Rect, lay_out};
use super::model::{Edge, EdgeKind, Map, Node, NodeKind};
use super::{Note, Svg, event_modeling, flowchart, picture, stale_map_files};

/// A generator of pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

fn node(place: usize, kind: NodeKind, context: usize) -> Node {
    let words = ["a", "place-order", "a-rather-long-name-of-a-thing"];
    Node {
        id: format!("c{context}/{place}"),
        kind,
        what: kind.class().to_owned(),
        context: format!("c{context}"),
        name: format!("{}-{place}", words[place % 3]),
        about: String::new(),
        reads: Vec::new(),
        personal: place.is_multiple_of(3),
    }
}

fn map(contexts: usize, nodes: Vec<Node>, edges: &BTreeSet<(usize, usize)>) -> Map {
    let edge = |(from, to): &(usize, usize)| {
        let [from, to] = [from, to].map(|place| nodes[*place].id.clone());
        Edge { from, to, does: EdgeKind::Reacts }
    };
    let contexts = (0..contexts).map(|context| format!("c{context}")).collect();
    Map { contexts, edges: edges.iter().map(edge).collect(), nodes }
}

/// A map with any edges between slices, views and events.
fn any(random: &mut Random) -> Map {
    let (contexts, count) = (1 + random.below(5), 1 + random.below(40));
    let kinds = [NodeKind::Command, NodeKind::Event, NodeKind::View, NodeKind::Reaction];
    let nodes: Vec<_> = (0..count)
        .map(|place| node(place, kinds[random.below(4)], random.below(contexts)))
        .collect();
    let mut edges = BTreeSet::new();
    for _ in 0..random.below(3 * count) {
        let (from, to) = (random.below(count), random.below(count));
        let is_event = |place: usize| nodes[place].kind == NodeKind::Event;
        if is_event(from) != is_event(to) {
            edges.insert((from, to));
        }
    }
    map(contexts, nodes, &edges)
}

/// A map of one context in which at most one edge leads to each node.
fn forest(random: &mut Random) -> Map {
    let count = 1 + random.below(40);
    let mut nodes = vec![node(0, NodeKind::Command, 0)];
    let mut edges = BTreeSet::new();
    for place in 1..count {
        let above = random.below(place + 1);
        let kind = match nodes.get(above).map(|node| node.kind) {
            None => NodeKind::Command,
            Some(NodeKind::Event) => NodeKind::Reaction,
            Some(_) => NodeKind::Event,
        };
        if above < place {
            edges.insert((above, place));
        }
        nodes.push(node(place, kind, 0));
    }
    map(1, nodes, &edges)
}

/// A map of a large stack. Each of its six contexts has seven commands, three automations of which one can react to
/// another context, a reactor, and two views that show most of the twelve events.
fn sixty(random: &mut Random) -> Map {
    const CONTEXTS: usize = 6;
    let kinds = [(NodeKind::Command, 7), (NodeKind::Reaction, 3), (NodeKind::Event, 12)];
    let kinds = kinds.into_iter().chain([(NodeKind::View, 2), (NodeKind::Reaction, 1)]);
    let kinds: Vec<_> = kinds.flat_map(|(kind, count)| vec![kind; count]).collect();
    let each = kinds.len();
    let mut nodes: Vec<_> =
        (0..CONTEXTS * each).map(|place| node(place, kinds[place % each], place / each)).collect();
    nodes.iter_mut().skip(each - 1).step_by(each).for_each(|it| it.what = "reactor".to_owned());
    let event = |context: usize, number: usize| context * each + 10 + number % 12;
    let mut edges = BTreeSet::new();
    for context in 0..CONTEXTS {
        let first = context * each;
        for slice in 0..10 {
            edges.insert((first + slice, event(context, slice)));
        }
        // Two slices have a second event, for example when they fail.
        edges.extend([(first, event(context, 10)), (first + 7, event(context, 11))]);
        for reaction in 7..10 {
            let of = if reaction == 9 { random.below(CONTEXTS) } else { context };
            edges.insert((event(of, random.below(7)), first + reaction));
        }
        edges.insert((event(context, random.below(7)), first + 24));
        for shown in 0..10 {
            edges.insert((event(context, shown), first + 22 + shown % 2));
        }
    }
    map(CONTEXTS, nodes, &edges)
}

type Piece = ((i32, i32), (i32, i32));

fn pieces(line: &[(i32, i32)]) -> impl Iterator<Item = Piece> {
    line.windows(2).map(|ends| match ends {
        [from, to] => (*from.min(to), *from.max(to)),
        _ => panic!("windows of two"),
    })
}

fn overlap(a: Rect, b: Rect) -> bool {
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
}

/// Whether a piece goes through the inside of a box.
fn through(((x, y), (to_x, to_y)): Piece, it: Rect) -> bool {
    x < it.x + it.width && it.x < to_x && y < it.y + it.height && it.y < to_y
        || x == to_x && it.x < x && x < it.x + it.width && y < it.y + it.height && it.y < to_y
        || y == to_y && it.y < y && y < it.y + it.height && x < it.x + it.width && it.x < to_x
}

/// Whether two pieces meet inside of both.
fn cross((a, a_end): Piece, (b, b_end): Piece) -> bool {
    let one = |(across, across_end): Piece, (down, down_end): Piece| {
        across.1 == across_end.1
            && down.0 == down_end.0
            && across.0 < down.0
            && down.0 < across_end.0
            && down.1 < across.1
            && across.1 < down_end.1
    };
    one((a, a_end), (b, b_end)) || one((b, b_end), (a, a_end))
}

fn check(map: &Map) -> Layout {
    let layout = lay_out(map);
    let Layout { boxes, lanes, lines, .. } = &layout;
    for (place, it) in boxes.iter().enumerate() {
        assert!(boxes[..place].iter().all(|other| !overlap(*it, *other)), "{map:?}");
        let lane = map.contexts.iter().position(|name| *name == map.nodes[place].context);
        let lane = lanes[lane.expect("it is there")];
        assert!(lane.y <= it.y && it.y + it.height <= lane.y + lane.height, "{map:?}");
        assert!(0 <= it.x && it.x + it.width <= layout.width, "{map:?}");
    }
    for (edge, line) in map.edges.iter().zip(lines) {
        let at = |id: &str| boxes[map.nodes.iter().position(|node| node.id == id).expect("there")];
        let (from, to) = (at(&edge.from), at(&edge.to));
        let (begin, end) = (line[0], line[line.len() - 1]);
        assert_eq!(begin, (from.x + from.width, from.y + from.height / 2));
        assert!(end.0 == to.x && to.y < end.1 && end.1 < to.y + to.height, "{map:?}");
        for piece in pieces(line) {
            assert!(piece.0.0 == piece.1.0 || piece.0.1 == piece.1.1, "{line:?}");
            assert!(boxes.iter().all(|it| !through(piece, *it)), "{edge:?} {line:?} {map:?}");
            assert!(0 <= piece.0.0 && piece.1.0 <= layout.width, "{line:?} {map:?}");
        }
    }
    layout
}

#[test]
fn no_box_overlaps_another_and_no_line_goes_through_a_box() {
    let mut random = Random(1);
    for _ in 0..300 {
        let map = any(&mut random);
        let layout = check(&map);
        assert_eq!(layout, lay_out(&map));
        check(&map.of_contexts());
    }
    for _ in 0..2 {
        let map = sixty(&mut random);
        assert_eq!(map.nodes.iter().filter(|node| node.is_slice()).count(), 60);
        let of_contexts = map.contexts.iter().filter_map(|context| map.of_context(context));
        for map in of_contexts.chain([map.clone(), map.of_contexts()]) {
            let layout = check(&map);
            assert_eq!(layout, lay_out(&map));
            // On a page of 1,200 pixels, the text of 13 pixels has 8.5 or more.
            assert!(layout.width <= 1_840, "{}", layout.width);
        }
    }
}

/// The nodes to which edges lead from these, or from which they lead to these.
fn near(map: &Map, ids: &BTreeSet<String>, is_back: bool) -> BTreeSet<String> {
    let ends = map.edges.iter().map(|Edge { from, to, .. }| match is_back {
        true => (to, from),
        false => (from, to),
    });
    ends.filter(|(near, _)| ids.contains(*near)).map(|(_, far)| far.clone()).collect()
}

#[test]
fn a_part_of_a_map_has_all_of_its_neighbours_and_no_others() {
    let mut random = Random(4);
    let ids = |map: &Map| map.nodes.iter().map(|node| node.id.clone()).collect::<BTreeSet<_>>();
    for _ in 0..50 {
        let map = any(&mut random);
        assert!(map.of_contexts().edges.iter().all(|edge| edge.from != edge.to), "{map:?}");
        for context in &map.contexts {
            let own = map.nodes.iter().filter(|node| node.context == *context);
            let own: BTreeSet<_> = own.map(|node| node.id.clone()).collect();
            let mut all = own.clone();
            all.extend([false, true].into_iter().flat_map(|is_back| near(&map, &own, is_back)));
            assert_eq!(map.of_context(context).map(|part| ids(&part)).unwrap_or_default(), all);
        }
        for slice in map.nodes.iter().filter(|node| node.is_slice()) {
            let mut all = BTreeSet::from([slice.id.clone()]);
            for is_back in [false, true] {
                let first = near(&map, &BTreeSet::from([slice.id.clone()]), is_back);
                all.extend(near(&map, &first, is_back).into_iter().chain(first));
            }
            assert_eq!(map.of_slice(&slice.id).map(|part| ids(&part)), Some(all), "{map:?}");
        }
    }
}

#[test]
fn the_lines_of_a_tree_do_not_cross() {
    let mut random = Random(2);
    for _ in 0..300 {
        let map = forest(&mut random);
        let layout = check(&map);
        let lines: Vec<_> =
            layout.lines.iter().flat_map(|line| pieces(line).collect::<Vec<_>>()).collect();
        for (place, piece) in lines.iter().enumerate() {
            let other = lines[..place].iter().find(|other| cross(*piece, **other));
            assert_eq!(other, None, "{piece:?} {map:?}");
        }
    }
}

/// A type of events in two contexts.
#[derive(Event)]
struct Moved {
    #[tag(partition)]
    thing_id: String,
}

#[test]
fn a_decision_reads_the_type_of_its_own_context_and_not_the_same_name_elsewhere() {
    let moves = || {
        let types = [Name::Borrowed(Moved::NAME)].into();
        let of = Dependence { by: String::new(), types };
        [(BoundaryShape::Stream("carts".to_owned()), of)].into()
    };
    let slice = SliceInfo {
        name: "move",
        about: "",
        reads: vec![Moved::NAME.into()],
        writes: vec![Moved::NAME.into()],
        reacts_to: const { &[Cause::of::<Moved>("carts")] },
        order: None,
        is_personal: false,
        scopes: None,
        depends_on: moves,
        has_item: || false,
    };
    let context = |name| ContextInfo {
        name,
        log: LogKind::Aggregates,
        event_types: vec![Moved::NAME.into()],
        origins: Vec::new(),
        slices: vec![slice.clone()],
        dues: Vec::new(),
        views: Vec::new(),
        reactors: vec![ReactorInfo {
            name: "tell",
            lane: Lane::Partition,
            reads: &[Moved::NAME],
            views: &[],
            is_personal: true,
            variables: Default::default,
            plan: |_| Ok(Vec::new()),
        }],
        functions: Vec::new(),
    };
    let names = ["carts", "parcels"];
    let catalog = |name| Catalog::of_streams(name, [Moved::SCHEMA]).expect("no contradiction");
    let stack = Stack {
        name: "",
        catalog: Catalog::new("none", []).expect("no contradiction"),
        catalogs: Catalogs(names.map(catalog).into()),
        sources: [].into(),
        contexts: names.map(context).into(),
    };
    let map = Map::of(&stack);
    let crossing = map.crossing().map(|(from, to, edge)| (from, to, edge.does, &*edge.to));
    assert!(crossing.eq([("carts", "parcels", EdgeKind::Reacts, "parcels/move")]), "{map:?}");
    let followers = map.followers("carts/move").into_iter().map(|node| &*node.id);
    assert!(followers.eq(["carts/move", "carts/reactor:tell", "parcels/move"]), "{map:?}");
    let personal = map.nodes.iter().filter(|node| node.personal).map(|node| &*node.id);
    assert!(personal.eq(["carts/reactor:tell", "parcels/reactor:tell"]), "{map:?}");
    let twice = map.edges.iter().filter(|it| it.from == "carts/Moved" && it.to == "carts/move");
    assert!(twice.map(|edge| edge.does).eq([EdgeKind::Reacts, EdgeKind::Reads]), "{map:?}");
    let (url, none) = (|node: &Node| Some(node.id.clone()), BTreeMap::new());
    let (lane_url, rates) = (&|_: &str| None, &BTreeMap::new());
    let svg = Svg { map: &map, title: "", url: &url, lane_url, notes: &none, rates };
    let svg = svg.markup().into_string();
    for name in names {
        let reads = format!(r#"data-id="{name}/move" data-reads="{name}/Moved""#);
        assert!(svg.contains(&reads), "{reads}: {svg}");
        assert_eq!(
            map.get(&format!("{name}/move")).expect("it is there").reads[0].names(),
            "Moved"
        );
    }
}

#[test]
fn texts_of_a_map_are_escaped_and_its_diagrams_name_every_node() {
    let mut random = Random(3);
    let mut map = any(&mut random);
    map.nodes[0].about = "<script>&\"".to_owned();
    let svg = picture(&map);
    assert!(svg.contains("&lt;script&gt;&amp;&quot;") && !svg.contains("<script"), "{svg}");
    let stale = stale_map_files(&map, Path::new("/nowhere"));
    assert_eq!(stale.iter().filter(|(_, text)| text.is_some()).count(), 2, "both are missing");
    assert_eq!(stale_map_files(&Map::default(), Path::new("/nowhere")), [], "it needs none");
    let flow = flowchart(&map);
    let label = |node: &Node| match node.personal {
        true => format!("\"{} (personal data)\"", node.name),
        false => format!("\"{}\"", node.name),
    };
    assert!(map.nodes.iter().all(|node| flow.contains(&label(node))), "{flow}");
    // A mark on each box, and one in the legend.
    let marks = 1 + map.nodes.iter().filter(|node| node.personal).count();
    assert_eq!(svg.matches(r#"<path class="icon""#).count(), marks);
    let model = event_modeling(&map, "c0");
    let number = |line: &str| line.split(' ').nth(1)?.parse::<usize>().ok();
    let numbers: Vec<_> = model.lines().filter_map(number).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len()), "{model}");
}

#[test]
fn a_picture_has_the_width_of_each_line_and_marks_what_is_wrong() {
    let nodes = vec![node(0, NodeKind::Command, 0), node(1, NodeKind::Event, 0)];
    let map = map(1, nodes, &[(0, 1)].into());
    let wrong = Note { text: "failing".to_owned(), is_wrong: true, ..Note::default() };
    let notes = [("c0/0".to_owned(), wrong)].into();
    for (rate, class) in
        [(0, "wide-0"), (1, "wide-1"), (9, "wide-1"), (10, "wide-2"), (1 << 40, "wide-5")]
    {
        let rates = BTreeMap::from([(("c0/0".to_owned(), "c0/1".to_owned()), rate)]);
        let (url, lane_url) = (&|_: &Node| None, &|_: &str| None);
        let svg = Svg { map: &map, title: "", url, lane_url, notes: &notes, rates: &rates };
        let svg = svg.markup().into_string();
        assert!(svg.contains(&format!("class=\"line {class}\"")), "{class}: {svg}");
        assert_eq!(svg.contains(&format!("{rate} in the last hour")), rate > 0, "{svg}");
        assert!(svg.contains("node command wrong") && svg.contains(">failing<"), "{svg}");
    }
}
