//! Runs the commands in a copy of this repository, which has three stacks, in edited copies, and in a new stack.

mod starter;

use heck::ToPascalCase;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use ringfence_local::template::{Model, Template};
use ringfence_local::workspace_root;
use tempfile::TempDir;

use crate::context::{self, Log};
use crate::plan::Plan;
use crate::reactor::{self, Sends};
use crate::slice::{self, Begins};
use crate::stack::{self, Auth, Source, in_own_workspace};
use crate::view;

/// Copies a folder, without built files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == ".aws-sam" => {}
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn repository() -> TempDir {
    let root = workspace_root();
    let folder = tempfile::tempdir().unwrap();
    for name in ["functions", "events", "schemas", "projects", "starter"] {
        copy(&root.join(name), &folder.path().join(name));
    }
    for name in ["Cargo.toml", "template.yaml"] {
        fs::copy(root.join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// A new stack, for tests that do not need the three of this repository. It has a tenth of their files.
fn new_stack() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::of_checkout(&workspace_root());
    run(folder.path(), |plan| stack::add(plan, "my-shop", &source, Auth::Iam, false)).unwrap();
    folder
}

/// The texts of all files of a folder, by their paths.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        match path.is_dir() {
            true => found.extend(
                files(&path).into_iter().map(|(within, text)| (format!("{name}/{within}"), text)),
            ),
            false => drop(found.insert(name.to_owned(), fs::read_to_string(&path).unwrap())),
        }
    }
    found
}

fn run(folder: &Path, add: impl FnOnce(&mut Plan) -> Result<()>) -> Result<String> {
    let mut plan = Plan::new(folder.to_owned());
    add(&mut plan)?;
    plan.write()
}

/// The template of a stack as this machine carries it out.
fn model(folder: &Path) -> Model {
    let template = Template::load(&folder.join("template.yaml"));
    template.unwrap().model("http://127.0.0.1:1").unwrap()
}

#[test]
fn a_context_on_each_log_is_written_once_around_existing_text() {
    let folder = repository();
    let before = files(folder.path());
    let add_all = || {
        for (name, log) in
            [("rooms", Log::Dcb), ("parcels", Log::Aggregate), ("wishes", Log::Document)]
        {
            run(folder.path(), |plan| context::add(plan, name, log)).unwrap();
            run(folder.path(), |plan| {
                slice::add(plan, name, &format!("open-{name}"), Begins::WhenSent)
            })
            .unwrap();
            let on = || Begins::On("carts/CheckedOut");
            run(folder.path(), |plan| slice::add(plan, name, &format!("close-{name}"), on()))
                .unwrap();
            // A view of the context's own event, and a view of another context's event.
            let (own, of_other) =
                (format!("{name}/{}Opened", name.to_pascal_case()), "carts/CheckedOut");
            run(folder.path(), |plan| view::add(plan, name, &format!("open-{name}-each"), &own))
                .unwrap();
            run(folder.path(), |plan| view::add(plan, name, &format!("{name}-of-carts"), of_other))
                .unwrap();
        }
        let on = "ordering/OrderPlaced";
        run(folder.path(), |plan| view::add(plan, "ordering", "busy-orders", on)).unwrap();
        run(folder.path(), |plan| view::add(plan, "invoices", "orders-of-invoices", on)).unwrap();
        for context in ["carts", "customers", "catalog", "accounts"] {
            let slice = format!("audit-{context}");
            run(folder.path(), |plan| slice::add(plan, context, &slice, Begins::WhenSent)).unwrap();
        }
    };
    add_all();
    let after = files(folder.path());
    for (path, text) in &before {
        // Lines may be joined to others, so only the letters are compared, in their order.
        let mut letters = after[path].chars().filter(|c| !c.is_whitespace() && *c != ',');
        let mut kept = text.chars().filter(|c| !c.is_whitespace() && *c != ',');
        assert!(kept.all(|c| letters.any(|found| found == c)), "{path}");
    }
    // A generated slice does nothing if its command is repeated, on every log.
    let written = |path: String| &after[&path];
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
    let arm = "self.wishes_opened = true;\n                self\n";
    assert!(fold.contains(arm), "{fold}");
    add_all();
    assert_eq!(files(folder.path()), after, "a second run changes nothing");
    let text = |path: &str| fs::read_to_string(folder.path().join(path)).unwrap();
    let busy = text("functions/ordering/src/lib.rs");
    assert!(
        busy.contains("    pub mod busy_orders;\n    pub mod customer_order_counts;\n"),
        "{busy}"
    );
    assert!(busy.contains("view views::busy_orders::BusyOrders;"), "{busy}");
    let rooms = text("functions/rooms/src/lib.rs");
    let views = "    //! The read models.\n\n    pub mod open_rooms_each;\n    pub mod rooms_of_carts;\n}\n";
    assert!(rooms.contains(views), "{rooms}");
    let invoices = text("functions/invoices/src/lib.rs");
    assert!(
        invoices.contains("    view views::orders_of_invoices::OrdersOfInvoices;"),
        "{invoices}"
    );
    let of_carts = text("functions/rooms/src/views/rooms_of_carts.rs");
    assert!(of_carts.contains("STREAMS: &'static [&'static str] = &[\"carts\"]"), "{of_carts}");
    assert!(
        of_carts.contains("Consumed::CheckedOut { cart_id } => vec![cart_id.clone()]"),
        "{of_carts}"
    );
    // The text that a person writes around an event does not matter.
    let events = folder.path().join("functions/parcels/src/events.rs");
    let text = fs::read_to_string(&events).unwrap();
    let commented = text.replacen(
        "pub struct ParcelsOpened {",
        "/// It begins.\n#[allow(\n    dead_code,\n)]\npub struct ParcelsOpened {",
        1,
    );
    assert_ne!(commented, text);
    fs::write(&events, commented).unwrap();
    run(folder.path(), |plan| slice::add(plan, "parcels", "weigh-parcels", Begins::WhenSent))
        .unwrap();
    let source = folder.path().join("functions/parcels/src/weigh_parcels.rs");
    let source = fs::read_to_string(source).unwrap();
    assert!(source.contains("let other = || crate::ParcelsOpened {"), "{source}");
}

#[test]
fn a_wrong_addition_is_refused_with_the_way_out_and_nothing_is_written() {
    let folder = repository();
    let before = files(folder.path());
    let slices = [
        ("rooms", "book-room", None, "cargo new-context rooms"),
        ("carts", "BookRoom", None, "is not in kebab case"),
        ("carts", "move", None, "is a keyword of Rust"),
        ("carts", "build", None, "cargo has a folder build"),
        ("carts", "place-order", None, "names of binaries are unique"),
        ("carts", "facts", None, "is not the slice facts"),
        ("carts", "book", Some("CheckedOut"), "such as carts/CheckedOut"),
        ("cart", "book", None, "; did you mean carts? Name one of them, or make this one"),
        ("carts", "book", Some("rooms/Booked"), "no context rooms: its contexts are accounts, "),
        ("carts", "book", Some("carts/Booked"), "has no event Booked"),
        ("carts", "add-item", None, "has ItemAdded already"),
        ("carts", "event-table", None, "writes something else of the id EventTable"),
        ("carts", "functions-fail", None, "writes something else of the id FunctionsFail"),
        ("carts", "carts-role", None, "the ids of roles in template.yaml end in Role"),
        ("ordering", "confirm-order", None, "is not the slice confirm-order: choose another name"),
        ("carts", "views", None, "choose another name in kebab case, such as show-views"),
        ("carts", "command", None, "has another type Command"),
        ("carts", "carts", None, "has another type Carts"),
    ];
    for (context, name, on, said) in slices {
        let begins = on.map_or(Begins::WhenSent, Begins::On);
        let refused = run(folder.path(), |plan| slice::add(plan, context, name, begins));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{context}/{name}: {error}");
    }
    for (of, said) in [
        ("carts/CheckedOut", "write this one by hand"),
        ("invoices/InvoiceCreated", "has no field that ends in _id"),
        ("invoices/Paid", "--of invoices/Paid: functions/invoices/src/events.rs has no event Paid"),
    ] {
        let (context, _) = of.split_once('/').unwrap();
        let begins = Begins::After("15m".parse().unwrap(), of);
        let refused = run(folder.path(), |plan| slice::add(plan, context, "lapse-it", begins));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{of}: {error}");
    }
    for (context, name, on, said) in [
        ("rooms", "bookings", "carts/CheckedOut", "cargo new-context rooms"),
        ("carts", "Bookings", "carts/CheckedOut", "is not in kebab case"),
        ("carts", "view", "carts/CheckedOut", "its file has another type View"),
        (
            "carts",
            "bookings",
            "carts/ChekedOut",
            "has no event ChekedOut; did you mean CheckedOut?",
        ),
        ("carts", "commands", "carts/CheckedOut", "the path /commands is that of queued commands"),
        (
            "carts",
            "orders",
            "carts/CheckedOut",
            "functions/ordering/src/views/orders.rs is a view orders",
        ),
        ("carts", "bookings", "invoices/InvoiceCreated", "has no field that ends in _id"),
    ] {
        let refused = run(folder.path(), |plan| view::add(plan, context, name, on));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{context}/{name}: {error}");
    }
    let refused = run(folder.path(), |plan| context::add(plan, "dcb-log", Log::Aggregate));
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("writes something else of the id DcbLogRole"), "{error}");
    for (name, said) in [
        ("carts", "is there, on the document log"),
        ("stack", "is not a context"),
        ("serde", "has a dependency serde already"),
        ("core", "a crate of the name core"),
        ("tests", "a crate of the name tests"),
        ("my_rooms", "is not in kebab case"),
        ("commands", "the path /commands is that of queued commands"),
    ] {
        let refused = run(folder.path(), |plan| context::add(plan, name, Log::Dcb));
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{name}: {error}");
    }
    assert_eq!(files(folder.path()), before);
}

/// Adds a context with a slice, and with an automation and a view of the event `on` of another context.
fn add_rooms(folder: &Path, log: Log, on: &str) {
    let booked = "rooms/RoomBooked";
    let add = || {
        run(folder, |plan| context::add(plan, "rooms", log)).unwrap();
        run(folder, |plan| slice::add(plan, "rooms", "book-room", Begins::WhenSent)).unwrap();
        run(folder, |plan| slice::add(plan, "rooms", "clean-room", Begins::On(on))).unwrap();
        run(folder, |plan| slice::add(plan, "rooms", "tidy-room", Begins::InOrder(on))).unwrap();
        for (reactor, sends) in [("mail-guest", Sends::Mail), ("tell-partner", Sends::Webhook)] {
            run(folder, |plan| reactor::add(plan, "rooms", reactor, booked, sends)).unwrap();
        }
        if log != Log::Document {
            let begins = Begins::After("15m".parse().unwrap(), booked);
            run(folder, |plan| slice::add(plan, "rooms", "free-room", begins)).unwrap();
        }
        run(folder, |plan| view::add(plan, "rooms", "bookings", booked)).unwrap()
    };
    add();
    let after = files(folder);
    for file in ["views/bookings.rs", "tidy_room.rs", "mail_guest.rs", "tell_partner.rs"] {
        let source = &after[&format!("functions/rooms/src/{file}")];
        assert!(!source.contains("__"), "{source}");
        // The slice reacts to an event of another context.
        let is_slice = file == "tidy_room.rs";
        assert_eq!(source.contains("#[stream]"), !is_slice && log != Log::Dcb, "{source}");
        let has_order = source.contains("const ORDER: Option<Lane> = Some(Lane::Partition);");
        assert_eq!(has_order, is_slice, "{source}");
    }
    // A filter by the context finds it among the tests of all.
    let view = &after["functions/rooms/src/views/bookings.rs"];
    assert!(view.contains("\nfn a_row_of_rooms_counts_its_events() {"), "{view}");
    let list = &after["functions/rooms/src/lib.rs"];
    let reactors = "    reactor mail_guest::MailGuest;\n    reactor tell_partner::TellPartner;\n";
    assert!(list.contains(reactors), "{list}");
    let main = &after["functions/rooms/src/bin/mail-guest.rs"];
    assert!(main.contains("ringfence::reactor::run::<rooms::mail_guest::MailGuest>()"), "{main}");
    if log != Log::Document {
        let due = &after["functions/rooms/src/free_room.rs"];
        assert!(due.contains("const AFTER_MS: u64 = 15 * 60 * 1_000;"), "{due}");
        assert!(due.contains("crate::RoomBooked { room_id: id(\"one\") }"), "{due}");
        assert_eq!(due.contains("#[stream]"), log == Log::Aggregate, "{due}");
        assert!(!due.contains("__"), "{due}");
        let list = &after["functions/rooms/src/lib.rs"];
        assert!(list.contains("due free_room::FreeRoom;"), "{list}");
    }
    let list = &after["functions/stack/src/lib.rs"];
    assert!(list.contains("context rooms::Rooms;"), "{list}");
    assert_eq!(add(), "Everything is there already; nothing was changed.\n");
    let add_slice = |name, begins| run(folder, |plan| slice::add(plan, "rooms", name, begins));
    let add_reactor =
        |name, on, sends| run(folder, |plan| reactor::add(plan, "rooms", name, on, sends));
    let mut all = vec![
        (add_slice("clean-room", Begins::InOrder(on)), "write `const ORDER: Option<Lane> = Some("),
        (add_slice("clean-room", Begins::On(booked)), "does not react to RoomBooked"),
        (add_reactor("tell-boss", on, Sends::Mail), "name an event of rooms"),
        (add_reactor("mail-guest", booked, Sends::Webhook), "no `struct MailGuest(Webhook)`"),
    ];
    if log != Log::Document {
        let after = |after: &str| Begins::After(after.parse().unwrap(), booked);
        all.push((add_slice("book-room", after("15m")), "has no `impl Due for BookRoom`"));
        all.push((add_slice("free-room", after("20m")), "write `const AFTER_MS: u64 = 20 * 60 *"));
    }
    for (refused, said) in all {
        let error = format!("{:#}", refused.unwrap_err());
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(files(folder), after, "a second run changes nothing");
}

#[test]
fn a_stack_in_a_workspace_is_added_to_and_takes_no_name_of_another() {
    for (name, log, on) in [
        ("projects", Log::Dcb, "projects/FeatureCreated"),
        ("starter", Log::Document, "shop/OrderTaken"),
    ] {
        let folder = repository();
        let of_others = || {
            let mut files = files(folder.path());
            files.retain(|path, _| !path.starts_with(name));
            files
        };
        let (root, before) = (folder.path().join(name), of_others());
        add_rooms(&root, log, on);
        for (said, refused) in [
            ("is of a crate carts", run(&root, |it| context::add(it, "carts", Log::Document))),
            ("has no hyphen", run(&root, |it| context::add(it, "wish-lists", Log::Document))),
            ("has a dependency serde already", run(&root, |it| context::add(it, "serde", log))),
            (
                "unique in a workspace",
                run(&root, |it| slice::add(it, "rooms", "check-out", Begins::WhenSent)),
            ),
        ] {
            let error = format!("{:#}", refused.unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(of_others(), before);
    }
}

#[test]
fn a_file_keeps_its_line_ends_and_views_may_have_their_own_file() {
    let folder = new_stack();
    let path = |file: &str| folder.path().join("functions/shop/src").join(file);
    let lib = fs::read_to_string(path("lib.rs")).unwrap();
    let (before, views) = lib.split_once("pub mod views {\n").unwrap();
    let (views, after) = views.split_once("\n}\n").unwrap();
    fs::write(path("views.rs"), views.replace("    ", "") + "\n").unwrap();
    let lib = format!("{before}pub mod views;\n{after}").replace('\n', "\r\n");
    fs::write(path("lib.rs"), lib).unwrap();
    run(folder.path(), |plan| {
        slice::add(plan, "shop", "pack-order", Begins::WhenSent)?;
        view::add(plan, "shop", "packed", "shop/OrderPacked")
    })
    .unwrap();
    let lib = fs::read_to_string(path("lib.rs")).unwrap();
    assert!(lib.contains("\r\n    slice pack_order::PackOrder;\r\n"), "{lib}");
    assert_eq!(lib.matches('\n').count(), lib.matches("\r\n").count());
    let views = fs::read_to_string(path("views.rs")).unwrap();
    assert!(views.contains("pub mod orders;\npub mod packed;\n"), "{views}");
}

#[test]
fn if_a_file_can_not_be_written_all_are_as_they_were() {
    let folder = new_stack();
    run(folder.path(), |plan| context::add(plan, "rooms", Log::Dcb)).unwrap();
    let before = files(folder.path());
    let mut plan = Plan::new(folder.path().to_owned());
    slice::add(&mut plan, "rooms", "book-room", Begins::WhenSent).unwrap();
    // A folder is in the place of the last file, so writing fails.
    plan.create("zz", "");
    fs::create_dir(folder.path().join("zz")).unwrap();
    let error = plan.write().unwrap_err().to_string();
    assert!(error.contains("so nothing is written"), "{error}");
    assert_eq!(files(folder.path()), before);
    run(folder.path(), |plan| slice::add(plan, "rooms", "book-room", Begins::WhenSent)).unwrap();
}
