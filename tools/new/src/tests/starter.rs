//! A new stack is the starter under its own name.

use clap::{Parser, Subcommand};

use super::*;
use crate::marks::{Section, resealed, sections};
use crate::{Arguments, Lacking, NewCommand};

#[test]
fn a_new_stack_is_the_starter_under_its_own_name_and_can_be_added_to() {
    let source = || Source::of_checkout(&workspace_root());
    let folder = tempfile::tempdir().unwrap();
    // A copy that is named `starter` differs from the starter only by its separate workspace.
    run(folder.path(), |plan| stack::add(plan, "starter", &source(), Auth::Iam, false)).unwrap();
    let mut copied = files(folder.path());
    for of_a_workspace in [".gitignore", "Cargo.lock", "Cargo.toml", "rustfmt.toml"] {
        assert!(copied.remove(of_a_workspace).is_some(), "{of_a_workspace}");
    }
    let in_common = |(path, text): (String, String)| {
        (in_own_workspace(&path), resealed(&in_own_workspace(&text)))
    };
    let copy_of_starter = tempfile::tempdir().unwrap();
    copy(&workspace_root().join("starter"), copy_of_starter.path());
    let starter = files(copy_of_starter.path()).into_iter();
    let starter = BTreeMap::from_iter(starter.map(in_common));
    // The closing marks have hashes of the written text.
    let in_common = |(path, text): (String, String)| (path, resealed(&in_own_workspace(&text)));
    let copied = BTreeMap::from_iter(copied.into_iter().map(in_common));
    assert_eq!(
        copied.keys().collect::<Vec<_>>(),
        starter.keys().collect::<Vec<_>>(),
        "tools/new/starter has a link to each file of the starter, or to its folder"
    );
    for (path, text) in copied {
        assert_eq!(text, starter[&path], "{path}");
    }

    // With tokens, only the access to the API differs.
    let with_tokens = tempfile::tempdir().unwrap();
    run(with_tokens.path(), |plan| stack::add(plan, "starter", &source(), Auth::Jwt, false))
        .unwrap();
    let scopes = model(with_tokens.path()).routes.into_iter();
    let scopes: Vec<_> = scopes.map(|route| (route.path, route.token_scopes.unwrap())).collect();
    for (path, scopes) in scopes {
        // For queued commands, the function checks the scopes of their slice.
        let expected: &[_] = match path.split('/').nth(1) {
            Some("commands") => &[],
            Some("shop") => &["shop/write"],
            _ => &["shop/read"],
        };
        assert_eq!(scopes, expected, "{path}");
    }
    let text = fs::read_to_string(with_tokens.path().join("template.yaml")).unwrap();
    let shop = fs::read_to_string(workspace_root().join("template.yaml")).unwrap();
    let table = text.split("  Ringfence:").nth(1).unwrap().split("\n\n").next().unwrap();
    for line in table.lines().skip(1) {
        assert!(shop.contains(line), "the shop asks for tokens in the same way: {line}");
    }
    assert!(!text.contains("AWS_IAM"));
    let is_intact = |section: Section<'_>| section.block.is_none_or(|block| block.is_intact);
    assert!(sections(&text).into_iter().all(is_intact), "the marks have other hashes");

    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), |plan| stack::add(plan, "my-shop", &source(), Auth::Iam, false)).unwrap();
    crate::plan::settle_lock(folder.path());
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["update", "--workspace", "--locked", "--offline"]);
    let built = cargo.current_dir(folder.path()).output().unwrap();
    assert!(built.status.success(), "cargo would rewrite the lock file: {built:?}");
    let mut written = files(folder.path());
    written.remove("Cargo.lock");
    for (path, text) in &written {
        let left = path.contains("starter") || text.contains("starter") || text.contains("__");
        assert!(!left, "{path}: {text}");
    }
    for (path, named) in [
        ("Cargo.toml", "version = \"0.1.0+my-shop\""),
        ("README.md", "# my-shop\n"),
        ("samconfig.toml", "stack_name = \"my-shop-dev\""),
        ("template.yaml", "CodeUri: . #"),
    ] {
        assert!(written[path].contains(named), "{path}: {}", written[path]);
    }
    // The example has the form that the commands write.
    let mut plan = Plan::new(folder.path().to_owned());
    context::add(&mut plan, "shop", Log::Dcb).unwrap();
    for (name, on) in
        [("offer-product", None), ("take-order", None), ("ship-order", Some("shop/OrderTaken"))]
    {
        let begins = on.map_or(Begins::WhenSent, Begins::On);
        slice::add(&mut plan, "shop", name, begins).unwrap();
    }
    view::add(&mut plan, "shop", "orders", "shop/OrderTaken").unwrap();
    assert_eq!(plan.write().unwrap(), "Everything is there already; nothing was changed.\n");
    add_rooms(folder.path(), Log::Aggregate, "shop/OrderTaken");
    // Ringfence has a type of this name.
    run(folder.path(), |plan| context::add(plan, "members", Log::Dcb)).unwrap();
    let list = fs::read_to_string(folder.path().join("functions/stack/src/lib.rs")).unwrap();
    assert!(list.contains("context members::MembersContext;"), "{list}");
}

#[test]
fn an_empty_stack_has_nothing_of_the_example_and_can_be_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::of_checkout(&workspace_root());
    run(folder.path(), |plan| stack::add(plan, "clinic", &source, Auth::Iam, true)).unwrap();
    // The samples of functions that serve all contexts have payloads of the example.
    let found = files(folder.path()).into_iter().filter(|(path, _)| !path.starts_with("events/"));
    for (path, text) in found.filter(|(path, _)| path != "Cargo.lock") {
        let words = [
            "shop\"",
            "shop:",
            "shop/",
            "-p shop",
            "Shop",
            "OrderTaken",
            "take-order",
            "starter",
            "test -p rooms",
            "__",
        ];
        let left = words.iter().find(|word| path.contains(**word) || text.contains(**word));
        assert_eq!(left, None, "{path}");
    }
    crate::plan::settle_lock(folder.path());
    assert!(model(folder.path()).routes.iter().all(|route| route.path.starts_with("/commands")));
    run(folder.path(), |plan| context::add(plan, "rooms", Log::Dcb)).unwrap();
    run(folder.path(), |plan| slice::add(plan, "rooms", "book-room", Begins::WhenSent)).unwrap();
    let list = fs::read_to_string(folder.path().join("functions/stack/src/lib.rs")).unwrap();
    assert!(list.contains("    pub Contexts;\n    context rooms::Rooms;\n"), "{list}");
}

#[test]
fn a_new_stack_has_libraries_of_one_version_and_an_alias_for_each_command() {
    let parse = |words: &[&str]| Arguments::try_parse_from([&["ringfence-new"], words].concat());
    assert!(parse(&["new-slice", "rooms/book-room"]).unwrap().command.is_some());
    assert!(parse(&[]).is_err());
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("new-shop");
    let line = ["--git", "https://example.com/ringfence", root.to_str().unwrap()];
    parse(&line).unwrap().stack.write().unwrap();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let manifest = read("Cargo.toml");
    let version = env!("CARGO_PKG_VERSION");
    let entry = |version: &str| {
        format!("ringfence = {{ git = \"https://example.com/ringfence\", tag = \"v{version}\" }}\n")
    };
    assert!(manifest.contains(&entry(version)), "{manifest}");
    let others = || Lacking::of(&root).unwrap().other_versions().unwrap();
    assert_eq!(others(), [""; 0]);
    let older = manifest.replace(&entry(version), &entry("0.0.9"));
    fs::write(root.join("Cargo.toml"), older).unwrap();
    assert_eq!(others(), [entry("0.0.9").trim_end()]);

    let aliases = read(".cargo/config.toml");
    for command in NewCommand::augment_subcommands(clap::Command::new("")).get_subcommands() {
        let name = command.get_name();
        let alias = format!("{name} = \"run --bin ringfence-new -- {name}\"\n");
        assert!(aliases.contains(&alias), "starter/.cargo/config.toml lacks {name}: {aliases}");
    }
}

#[test]
fn an_older_stack_gets_what_a_new_one_has_and_keeps_what_a_person_wrote() {
    for stack in ["", "projects", "starter"] {
        let lacking = Lacking::of(&workspace_root().join(stack)).unwrap();
        assert_eq!(lacking.parts(), [""; 0], "{stack}");
    }
    let folder = new_stack();
    assert_eq!(Lacking::of(folder.path()).unwrap().parts(), [""; 0]);
    let own = |path: &str, from: &str, to: &str| {
        let path = folder.path().join(path);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{}: {from}", path.display());
        fs::write(path, text.replace(from, to)).unwrap();
    };
    own("Cargo.toml", "opt-level = \"s\"", "opt-level = \"z\"");
    // Without the comments, which only a new stack has.
    let all = || {
        let mut all = files(folder.path());
        all.remove("Cargo.lock");
        let manifest = all.get_mut("functions/shop/Cargo.toml").unwrap();
        let kept = manifest.lines().filter(|line| !line.starts_with("# "));
        *manifest = kept.collect::<Vec<_>>().join("\n");
        all
    };
    let with = all();

    fs::remove_dir_all(folder.path().join("functions/tools/new")).unwrap();
    own("Cargo.toml", ", \"functions/tools/new\"", "");
    own("Cargo.toml", "\nringfence-new = ", "\n# ringfence-new = ");
    let commented = fs::read_to_string(folder.path().join("Cargo.toml")).unwrap();
    let comment = commented.lines().find(|line| line.starts_with("# ringfence-new")).unwrap();
    own("Cargo.toml", &format!("{comment}\n"), "");
    own("Cargo.toml", "sha2.opt-level = 1\n", "");
    own(".cargo/config.toml", "new-view = \"run --bin ringfence-new -- new-view\"\n", "");
    let manifest = fs::read_to_string(folder.path().join("functions/shop/Cargo.toml")).unwrap();
    let begin = manifest.find("[dev-dependencies]").unwrap();
    let end = manifest.find("[[bin]]").unwrap();
    own("functions/shop/Cargo.toml", &manifest[begin..end], "");

    let lacking = Lacking::of(folder.path()).unwrap();
    let expected = [
        "functions/tools/new: the program of `cargo new-…`",
        ".cargo/config.toml: new-view in [alias]",
        "Cargo.toml: ringfence-new in [workspace.dependencies]",
        "Cargo.toml: sha2.opt-level in [profile.dev.package]",
        "functions/shop/Cargo.toml: ringfence-testing in [dev-dependencies]",
    ];
    assert_eq!(lacking.parts(), expected);
    lacking.write().unwrap();
    assert_eq!(all(), with);
    assert_eq!(Lacking::of(folder.path()).unwrap().parts(), [""; 0]);
}

/// Such a name is `begin-use`: there is no use with an id.
#[test]
fn a_slice_that_names_no_thing_of_its_context_is_about_that_of_its_event() {
    let folder = new_stack();
    let write = |context: &str, slice: &str, on: &str| {
        run(folder.path(), |plan| slice::add(plan, context, slice, Begins::On(on))).unwrap();
        let source = |file: &str| {
            let path = format!("functions/{context}/src/{file}.rs");
            fs::read_to_string(folder.path().join(path)).unwrap()
        };
        (source(&slice.replace('-', "_")), source("events"))
    };
    run(folder.path(), |plan| context::add(plan, "rooms", Log::Dcb)).unwrap();
    run(folder.path(), |plan| slice::add(plan, "rooms", "book-room", Begins::WhenSent)).unwrap();
    for (slice, on, id, of) in [
        ("begin-use", "rooms/RoomBooked", "room_id", "RoomId"),
        ("reserve-space", "shop/OrderTaken", "order_id", "OrderId"),
        ("clean-room", "shop/OrderTaken", "room_id", "RoomId"),
    ] {
        let (source, events) = write("rooms", slice, on);
        assert!(source.contains(&format!("    pub {id}: {of},\n")), "{source}");
        assert_eq!(events.matches(&format!("id_type!({of}, ")).count(), 1, "{events}");
        assert!(!events.contains("UseId") && !events.contains("SpaceId"), "{events}");
    }
}
