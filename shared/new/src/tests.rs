//! In a copy of this repository, and of what a person made of it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use ringfence::Lock;
use tempfile::TempDir;

use crate::context::{self, Log};
use crate::names::pascal;
use crate::plan::Plan;
use crate::template::without_contexts;
use crate::{slice, view};

/// Copies what the commands read and change.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn repository() -> TempDir {
    let root = ringfence_local::stack_root();
    let folder = tempfile::tempdir().unwrap();
    for name in ["functions", "events", "schemas"] {
        copy(&root.join(name), &folder.path().join(name));
    }
    for name in ["Cargo.toml", "template.yaml"] {
        fs::copy(root.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// Every file with its text.
fn files(folder: &std::path::Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => {
                found.insert(path.display().to_string(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn run(folder: &TempDir, add: impl FnOnce(&mut Plan) -> Result<()>) -> Result<()> {
    let mut plan = Plan::new(folder.path().to_owned());
    add(&mut plan)?;
    plan.write(true).map(drop)
}

#[test]
fn a_context_on_each_log_with_a_slice_and_an_automation_is_written_once_around_what_is_there() {
    let folder = repository();
    let before = files(folder.path());
    let add_all = || {
        for (name, log) in
            [("rooms", Log::Dcb), ("parcels", Log::Aggregate), ("wishes", Log::Document)]
        {
            run(&folder, |plan| context::add(plan, name, log)).unwrap();
            run(&folder, |plan| slice::add(plan, name, &format!("open-{name}"), None)).unwrap();
            let on = Some("carts/CheckedOut");
            run(&folder, |plan| slice::add(plan, name, &format!("close-{name}"), on)).unwrap();
            // Of an event of its own, and, in a context without slices of its own log, of another's.
            let (own, of_other) = (format!("{name}/{}Opened", pascal(name)), "carts/CheckedOut");
            run(&folder, |plan| view::add(plan, name, &format!("open-{name}-each"), &own)).unwrap();
            run(&folder, |plan| view::add(plan, name, &format!("{name}-of-carts"), of_other))
                .unwrap();
        }
        let on = "ordering/OrderPlaced";
        run(&folder, |plan| view::add(plan, "ordering", "busy-orders", on)).unwrap();
        run(&folder, |plan| view::add(plan, "invoices", "orders-of-invoices", on)).unwrap();
        for context in ["carts", "customers", "catalog", "accounts"] {
            let slice = format!("audit-{context}");
            run(&folder, |plan| slice::add(plan, context, &slice, None)).unwrap();
        }
    };
    add_all();
    let after = files(folder.path());
    for (path, text) in &before {
        // Lines may be joined to others, so letters are compared, and they keep their order.
        let mut letters = after[path].chars().filter(|c| !c.is_whitespace() && *c != ',');
        let mut kept = text.chars().filter(|c| !c.is_whitespace() && *c != ',');
        assert!(kept.all(|c| letters.any(|found| found == c)), "{path}");
    }
    // A generated slice does nothing if its command is repeated, on every log.
    let written = |path: String| &after[&folder.path().join(path).display().to_string()];
    for context in ["rooms", "parcels", "wishes"] {
        for slice in ["open", "close"] {
            let source = written(format!("functions/{context}/src/{slice}_{context}.rs"));
            assert!(source.contains(".then_nothing(),"), "{source}");
            // The second slice of a stream is also decided after the first one's event.
            let follows = slice == "close" && context != "rooms";
            let other = source.contains("given([other()])") || source.contains("![other()]");
            assert_eq!(other, follows, "{source}");
            let manifest = written(format!("functions/{context}/Cargo.toml"));
            let program = format!("[[bin]]\nname = \"{slice}-{context}\"\ntest = false\n");
            assert!(manifest.contains(&program), "{manifest}");
        }
    }
    let fold = written("functions/wishes/src/lib.rs".to_owned());
    assert!(fold.contains("self.wishes_opened = true;"), "{fold}");
    add_all();
    assert_eq!(files(folder.path()), after, "a second run changes nothing");
    // The checks of the stack find each new type in the lock of its context.
    for (context, types) in [
        ("rooms", &["RoomsClosed", "RoomsOpened"][..]),
        ("parcels", &["ParcelsClosed", "ParcelsOpened"]),
        ("wishes", &["WishesClosed", "WishesOpened", "WishesSnapshot"]),
    ] {
        let path = folder.path().join(Lock::path(context));
        let lock: Lock = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(lock, Lock::of(types.iter().copied()));
    }
    let template = ringfence_local::template::Template::load(&folder.path().join("template.yaml"));
    let model = template.unwrap().model("http://127.0.0.1:1").unwrap();
    let text = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    let busy = text("functions/ordering/src/lib.rs");
    assert!(
        busy.contains("    pub mod busy_orders;\n    pub mod customer_order_counts;\n"),
        "{busy}"
    );
    assert!(busy.contains(".view::<views::busy_orders::BusyOrders>()"), "{busy}");
    let rooms = text("functions/rooms/src/lib.rs");
    let views = "    //! The read models.\n\n    pub mod open_rooms_each;\n    pub mod rooms_of_carts;\n}\n";
    assert!(rooms.contains(views), "{rooms}");
    let invoices = text("functions/invoices/src/lib.rs");
    assert!(invoices.contains("views::orders_of_invoices::OrdersOfInvoices>()"), "{invoices}");
    let of_carts = text("functions/rooms/src/views/rooms_of_carts.rs");
    assert!(of_carts.contains("STREAMS: &'static [&'static str] = &[\"carts\"]"), "{of_carts}");
    assert!(
        of_carts.contains("Consumed::CheckedOut { cart_id } => vec![cart_id.clone()]"),
        "{of_carts}"
    );
    for name in ["open-rooms", "close-parcels", "close-wishes", "audit-carts"] {
        assert!(model.functions.iter().any(|function| function.binary == name), "{name}");
    }
    // What a person writes around an event does not matter.
    let events = folder.path().join("functions/parcels/src/events.rs");
    let text = fs::read_to_string(&events).unwrap();
    let commented = text.replacen(
        "pub struct ParcelsOpened {",
        "/// It begins.\n#[allow(dead_code)]\npub struct ParcelsOpened {",
        1,
    );
    assert_ne!(commented, text);
    fs::write(&events, commented).unwrap();
    run(&folder, |plan| slice::add(plan, "parcels", "weigh-parcels", None)).unwrap();
    let source = folder.path().join("functions/parcels/src/weigh_parcels.rs");
    let source = fs::read_to_string(source).unwrap();
    assert!(source.contains("let other = || crate::ParcelsOpened {"), "{source}");
}

#[test]
fn what_cannot_be_added_is_refused_with_the_way_out_and_nothing_is_written() {
    let folder = repository();
    let before = files(folder.path());
    let slices = [
        ("rooms", "book-room", None, "cargo ringfence new-context rooms"),
        ("carts", "BookRoom", None, "is not in kebab case"),
        ("carts", "move", None, "is a keyword of Rust"),
        ("carts", "build", None, "cargo has a folder build"),
        ("carts", "place-order", None, "names of binaries are unique"),
        ("carts", "facts", None, "is not the slice facts"),
        ("carts", "book", Some("CheckedOut"), "such as carts/CheckedOut"),
        ("carts", "book", Some("rooms/Booked"), "there is no context rooms"),
        ("carts", "book", Some("carts/Booked"), "has no event Booked"),
        ("carts", "add-item", None, "has ItemAdded already"),
        ("carts", "event-table", None, "has a resource EventTable already"),
    ];
    for (context, name, on, said) in slices {
        let refused = run(&folder, |plan| slice::add(plan, context, name, on));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{context}/{name}: {error}");
    }
    for (context, name, on, said) in [
        ("rooms", "bookings", "carts/CheckedOut", "cargo ringfence new-context rooms"),
        ("carts", "Bookings", "carts/CheckedOut", "is not in kebab case"),
        ("carts", "bookings", "carts/Booked", "has no event Booked"),
        ("carts", "bookings", "invoices/InvoiceCreated", "has no field that ends in _id"),
    ] {
        let refused = run(&folder, |plan| view::add(plan, context, name, on));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{context}/{name}: {error}");
    }
    for (name, said) in [
        ("carts", "is there, on the document log"),
        ("stack", "is not a context"),
        ("serde", "has a dependency serde already"),
        ("core", "a crate of the name core"),
        ("tests", "a crate of the name tests"),
        ("my_rooms", "is not in kebab case"),
    ] {
        let refused = run(&folder, |plan| context::add(plan, name, Log::Dcb));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{name}: {error}");
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_stack_in_a_folder_of_a_workspace_takes_no_name_of_another_stack() {
    let folder = repository();
    let root = folder.path().join("second");
    fs::create_dir_all(root.join("functions/stack/src")).unwrap();
    for name in ["functions/stack/Cargo.toml", "functions/stack/src/lib.rs"] {
        fs::copy(folder.path().join(name), root.join(name)).unwrap();
    }
    let template = fs::read_to_string(folder.path().join("template.yaml")).unwrap();
    fs::write(root.join("template.yaml"), without_contexts(&template)).unwrap();
    let add = |add: &dyn Fn(&mut Plan) -> Result<()>| {
        let mut plan = Plan::new(root.clone());
        add(&mut plan)?;
        plan.write(true)
    };
    add(&|plan| context::add(plan, "rooms", Log::Dcb)).unwrap();
    add(&|plan| slice::add(plan, "rooms", "book-room", None)).unwrap();
    assert!(root.join("functions/rooms/src/book_room.rs").exists());
    for (said, refused) in [
        ("is of a crate carts", add(&|plan| context::add(plan, "carts", Log::Document))),
        ("has no hyphen", add(&|plan| context::add(plan, "wish-lists", Log::Document))),
        ("has a dependency serde already", add(&|plan| context::add(plan, "serde", Log::Dcb))),
        ("unique in a workspace", add(&|plan| slice::add(plan, "rooms", "check-out", None))),
    ] {
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_git_tree_with_changes_is_left_alone() {
    let folder = repository();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let ended = git.args(identity).args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "all"]);
    let add = |allow_dirty| {
        let mut plan = Plan::new(folder.path().to_owned());
        context::add(&mut plan, "rooms", Log::Dcb).unwrap();
        plan.write(allow_dirty)
    };
    fs::write(folder.path().join("note.txt"), "mine").unwrap();
    let error = add(false).unwrap_err().to_string();
    assert!(error.contains("note.txt") && error.contains("--allow-dirty"), "{error}");
    assert!(!folder.path().join("functions/rooms").exists());
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "note"]);
    add(false).unwrap();
    assert!(folder.path().join("functions/rooms/src/lib.rs").exists());
    add(false).unwrap();
}

#[test]
fn if_a_file_can_not_be_written_all_are_as_they_were() {
    let folder = repository();
    run(&folder, |plan| context::add(plan, "rooms", Log::Dcb)).unwrap();
    let before = files(folder.path());
    let mut plan = Plan::new(folder.path().to_owned());
    slice::add(&mut plan, "rooms", "book-room", None).unwrap();
    // A folder is in the place of the last file.
    plan.create("zz", "");
    fs::create_dir(folder.path().join("zz")).unwrap();
    let error = plan.write(true).unwrap_err().to_string();
    assert!(error.contains("so nothing is written"), "{error}");
    assert_eq!(files(folder.path()), before);
    run(&folder, |plan| slice::add(plan, "rooms", "book-room", None)).unwrap();
}

#[tokio::test]
async fn a_new_stack_has_its_own_functions_and_tables_and_a_context_can_be_added_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = crate::stack::Source::of_checkout(&ringfence_local::workspace_root());
    run(&folder, |plan| crate::stack::add(plan, "my-shop", &source)).unwrap();
    super::settle_lock(folder.path());
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["update", "--workspace", "--locked", "--offline"]);
    let built = cargo.current_dir(folder.path()).output().unwrap();
    assert!(built.status.success(), "cargo would rewrite the lock file: {built:?}");
    let manifest = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("version = \"0.1.0+my-shop\""), "{manifest}");
    run(&folder, |plan| context::add(plan, "rooms", Log::Aggregate)).unwrap();
    run(&folder, |plan| slice::add(plan, "rooms", "book-room", Some("shop/OrderPlaced"))).unwrap();
    let text = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    let lock: Lock = serde_json::from_str(&text(&Lock::path("shop"))).unwrap();
    let events = text("functions/shop/src/events.rs");
    let types = events.split("PartialEq, Event)]\npub struct ").skip(1);
    assert_eq!(lock, Lock::of(types.filter_map(|of_type| of_type.split(' ').next())));
    let template = ringfence_local::template::Template::load(&folder.path().join("template.yaml"));
    let model = template.unwrap().model("http://127.0.0.1:1").unwrap();
    let mut functions: Vec<_> = model.functions.iter().map(|it| it.binary.as_str()).collect();
    functions.sort_unstable();
    let serving = ["index-events", "project-views", "publish-events", "query-views"];
    let mut expected = vec!["add-product", "book-room", "place-order", "ship-order"];
    expected.extend(serving);
    expected.sort_unstable();
    assert_eq!(functions, expected);
    let dynamo = ringfence_local::embedded::Embedded::start().await.unwrap();
    for table in &model.tables {
        dynamo.create_table(&table.properties, &table.name).unwrap();
    }
    let text = fs::read_to_string(folder.path().join("template.yaml")).unwrap();
    for of_the_examples in ["carts", "customers", "tag_", ".md", "ReadyWork", " ready", "sweep"] {
        assert!(!text.contains(of_the_examples), "{of_the_examples}");
    }
    assert!(text.contains("events:source: [rooms, shop]"), "{text}");
}
