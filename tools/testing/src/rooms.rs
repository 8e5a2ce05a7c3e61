//! Checks the folders: a context has a crate, and a slice has a file and a binary of its name.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ringfence_core::kit::fail;
use ringfence_core::{Context, Slice};
use ringfence_local::stack_root;
use ringfence_log::Log;
use ringfence_reactors::Reactor;
use ringfence_services::personal_data::PersonalData;
#[cfg(test)]
use ringfence_stack::FunctionInfo;
use ringfence_stack::{ContextInfo, Function, MemberList, Members, Stack, Visitor};

use crate::listed::{entries, serving};
use crate::template::{check_none, differences};

/// The folders of `functions` that are not contexts.
const NO_CONTEXTS: [&str; 2] = ["stack", "tools"];

/// Panics unless the stack lists every context in `functions`, and each context lists its slices, views and functions.
/// Every slice needs a file and a binary of its name, and every binary a function, which it runs. No slice may use
/// another. The message says what to write.
pub fn check_rooms<M: Members>() {
    let stack = Stack::of::<M>().unwrap_or_else(|error| fail("the stack", error));
    let lines = [
        every_context_is_in_the_list_of_the_stack(&stack),
        every_binary_is_of_a_function(&stack),
        every_function_has_a_binary_that_runs_it::<M>(),
        a_slice_uses_no_other_slice(&stack),
        every_member_of_a_context_is_in_its_list(&stack),
    ];
    check_none(&lines.concat());
}

/// The contexts whose code is in the stack's rooms: all but the one for personal data.
fn own(stack: &Stack) -> impl Iterator<Item = &ContextInfo> {
    stack.contexts.iter().filter(|context| context.name != PersonalData::NAME)
}

fn every_context_is_in_the_list_of_the_stack(stack: &Stack) -> Vec<String> {
    let folders = entries(&stack_root().join("functions"));
    let contexts = own(stack).map(|context| context.name);
    let expected = contexts.chain(NO_CONTEXTS).map(str::to_owned).collect();
    differences(
        &folders,
        &expected,
        |name| format!("functions/{name} is missing, the crate of the context {name}"),
        |name| {
            format!(
                "functions/stack/src/lib.rs lacks `context …;` for functions/{name}, and its Cargo.toml \
                 `{name}.path = \"../{name}\"`"
            )
        },
    )
}

fn every_binary_is_of_a_function(stack: &Stack) -> Vec<String> {
    let slices = stack.slices().map(|(context, slice)| (context.name, slice.name));
    let others = stack.functions().map(|(context, function)| (context.name, function.name));
    let reactors = stack.reactors().map(|(context, reactor)| (context.name, reactor.name));
    let serving = serving().map(|(_, name, _)| binary("stack", &name));
    let all = slices.chain(others).chain(reactors);
    let expected: BTreeSet<_> =
        all.map(|(folder, name)| binary(folder, name)).chain(serving).collect();
    let folders = entries(&stack_root().join("functions"));
    let folders = folders.iter().filter(|folder| *folder != "tools");
    let binaries = folders.flat_map(|folder| {
        let bin = stack_root().join("functions").join(folder).join("src/bin");
        let names = if bin.exists() { entries(&bin) } else { BTreeSet::new() };
        names.into_iter().map(move |file| format!("functions/{folder}/src/bin/{file}"))
    });
    let extra = binaries.filter(|path| !expected.contains(path));
    let line = |path| {
        format!(
            "{path} belongs to no function: the context's src/lib.rs lacks the function's `pub mod` and its line \
             `slice …;`, `reactor …;` or `function …;`"
        )
    };
    extra.map(line).collect()
}

/// The lines that run the functions of the contexts, by the functions' names.
#[derive(Default)]
struct Mains {
    context: &'static str,
    all: BTreeMap<&'static str, (&'static str, String)>,
}

impl Mains {
    fn add<T>(&mut self, name: &'static str, library: &str, argument: &str) {
        let main = format!("{library}::run::<{}>({argument})", type_name::<T>());
        self.all.insert(name, (self.context, main));
    }
}

impl Visitor for Mains {
    fn context<C: Context<Log: ringfence_log::Sourced>>(&mut self) {
        self.context = C::NAME;
    }

    fn slice<S: Slice<Context: Context<Log: Log<S>>>>(&mut self) {
        self.add::<S>(S::NAME, "ringfence", "");
    }

    fn reactor<R: Reactor>(&mut self) {
        self.add::<R>(R::NAME, "ringfence::reactor", "");
    }

    fn function<F: Function>(&mut self) {
        self.add::<F>(F::NAME, "ringfence::function", "()");
    }
}

/// On one machine a function is a process of the stack's program. So only this check shows that the deployed binary
/// runs the same function.
fn every_function_has_a_binary_that_runs_it<M: Members>() -> Vec<String> {
    let mut mains = Mains::default();
    MemberList::walk::<M>(&mut mains);
    let of_contexts =
        mains.all.into_iter().map(|(name, (context, main))| (context, name.to_owned(), main));
    // Such a function has the logical id of its type.
    let of_stack = serving().map(|(id, name, _)| ("stack", name, format!("{id}>(")));
    let wrong = of_contexts.chain(of_stack).filter_map(|(folder, name, main)| {
        let path = binary(folder, &name);
        match fs::read_to_string(stack_root().join(&path)) {
            Err(_) if folder == "stack" => Some(format!("{path} is missing: copy a neighbour's")),
            Err(_) => Some(format!(
                "{path} is missing: write\nfn main() -> std::process::ExitCode {{\n    {main}\n}}\nand into \
                 functions/{}/Cargo.toml\n[[bin]]\nname = \"{name}\"\ntest = false", folder_of(folder)
            )),
            Ok(text) => {
                (!runs(&text, &main)).then(|| format!("{path}: does not run `{main}`: write it there"))
            }
        }
    });
    wrong.collect()
}

/// Whether a binary has this line, however it is broken.
fn runs(text: &str, main: &str) -> bool {
    let text: String = text.split_whitespace().collect();
    text.replace(",>", ">").contains(main) && text.matches("::run::<").count() == 1
}

fn binary(context: &str, name: &str) -> String {
    format!("functions/{}/src/bin/{name}.rs", folder_of(context))
}

/// The folder of a context's binaries. Those of the context for personal data are beside those that serve all contexts.
fn folder_of(context: &str) -> &str {
    if context == PersonalData::NAME { "stack" } else { context }
}

fn a_slice_uses_no_other_slice(stack: &Stack) -> Vec<String> {
    let module = |name: &str| name.replace('-', "_");
    let modules: BTreeSet<String> = stack.slices().map(|(_, slice)| module(slice.name)).collect();
    let mut lines = Vec::new();
    for (context, slice) in own(stack).flat_map(|of| of.slices.iter().map(move |it| (of, it))) {
        let own = module(slice.name);
        let path = format!("functions/{}/src/{own}.rs", context.name);
        let Ok(source) = fs::read_to_string(stack_root().join(Path::new(&path))) else {
            lines.push(format!("{path} is missing: a slice's file has the slice's name"));
            continue;
        };
        let others = used(&source).filter(|used| modules.contains(*used) && *used != own);
        lines.extend(others.map(|other| {
            format!(
                "{path}: uses the slice {other}, but slices stand alone: move what both need to events.rs or another module \
                 of the context. To let one command follow from the other, let its slice react to the other's event"
            )
        }));
    }
    lines
}

/// The names before `::` in a file, without its tests.
fn used(source: &str) -> impl Iterator<Item = &str> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.split("::").filter_map(move |part| part.rsplit(|c| !is_of_name(c)).next())
}

/// An unlisted slice or view compiles, and nothing else would notice that it is missing.
fn every_member_of_a_context_is_in_its_list(stack: &Stack) -> Vec<String> {
    let of = |context: &ContextInfo| {
        let sources = sources(&format!("functions/{}/src", context.name)).into_iter();
        sources.flat_map(|(path, source)| unlisted(context, &path, &source)).collect::<Vec<_>>()
    };
    own(stack).flat_map(of).collect()
}

/// A line for each slice, view, reactor and function of this file that its context does not list.
fn unlisted(context: &ContextInfo, path: &str, source: &str) -> Vec<String> {
    let listed = |kind: &str, name: &str| match kind {
        "Slice" => context.slices.iter().any(|slice| slice.name == name),
        "Due" => context.dues.iter().any(|due| due.name == name),
        "View" => context.views.iter().any(|view| view.name == name),
        "Reactor" => context.reactors.iter().any(|reactor| reactor.name == name),
        _ => context.functions.iter().any(|function| function.name == name),
    };
    let unlisted = members(source).into_iter().filter(|(kind, _, name)| !listed(kind, name));
    let line = |(kind, member, name): (&str, &str, &str)| {
        let (kind, context) = (kind.to_lowercase(), context.name);
        format!(
            "{path}: the {kind} {name} is in no list: functions/{context}/src/lib.rs lacks its line \
             `{kind} …::{member};`"
        )
    };
    unlisted.map(line).collect()
}

/// The sources below a folder, by their paths.
fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in entries(&stack_root().join(folder)) {
        let path = format!("{folder}/{name}");
        let file = stack_root().join(&path);
        if file.is_dir() {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") {
            let source = fs::read_to_string(file).unwrap_or_else(|error| fail(&path, error));
            found.push((path, source));
        }
    }
    found
}

/// The slices, dues, views, reactors and functions that a file implements, without its tests: the trait, the type, and
/// the name.
fn members(source: &str) -> Vec<(&str, &str, &str)> {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let all = || code.split("\nimpl").skip(1).filter_map(implemented);
    let of_member = |(kind, member, body)| {
        // A due has the name of its slice, which is in the same file.
        let slice = || all().find(|it| it.0 == "Slice" && it.1 == member);
        let body = if kind == "Due" { slice()?.2 } else { body };
        let (_, name) = body.split_once("const NAME: &'static str = \"")?;
        let is_kind = ["Slice", "Due", "View", "Reactor", "Function"].contains(&kind);
        is_kind.then_some((kind, member, name.split('"').next()?))
    };
    all().filter_map(of_member).collect()
}

/// The trait, the type and the rest of an `impl`.
fn implemented(text: &str) -> Option<(&str, &str, &str)> {
    let (head, body) = text.split_once('{')?;
    let (of, member) = head.split_once(" for ")?;
    Some((of.rsplit([' ', ':']).next()?, member.trim(), body))
}

#[test]
fn a_slice_a_due_a_view_and_a_function_that_no_list_has_are_named() {
    let source = "\nimpl Context for Rooms {\n    const NAME: &'static str = \"rooms\";\n}\n\
                  \nimpl ringfence::view::View for Rows {\n    const NAME: &'static str = \"rows\";\n}\n\
                  \nimpl Slice for BookRoom {\n    const NAME: &'static str = \"book-room\";\n}\n\
                  \nimpl Due for BookRoom {\n}\n\
                  \nimpl Function for Sweep {\n    const NAME: &'static str = \"sweep\";\n}\n";
    let mut context = ContextInfo {
        name: "rooms",
        log: ringfence_core::LogKind::Dcb,
        event_types: vec![],
        origins: Vec::new(),
        slices: vec![],
        dues: vec![],
        views: vec![],
        reactors: vec![],
        functions: vec![],
    };
    let lines = |context: &ContextInfo| unlisted(context, "rows.rs", source);
    let all = lines(&context);
    assert_eq!(
        all[0],
        "rows.rs: the view rows is in no list: functions/rooms/src/lib.rs lacks its line `view …::Rows;`"
    );
    assert!(all[2].contains("the due book-room is in no list"), "{all:?}");
    assert_eq!(all.len(), 4, "{all:?}");
    context.functions.push(FunctionInfo { name: "sweep", get: None, query: &[] });
    assert_eq!(lines(&context), all[..3]);
}

#[test]
fn a_binary_runs_one_function_and_the_name_of_another_is_not_it() {
    let main = "ringfence::run::<rooms::book_room::BookRoom>()";
    let of = |function: &str| format!("fn main() -> ExitCode {{\n    {function}\n}}\n");
    let broken = "ringfence::run::<\n        rooms::book_room::BookRoom,\n    >()";
    assert!(runs(&of(main), main) && runs(&of(broken), main));
    let other = "ringfence::run::<rooms::clean_room::CleanRoom>()";
    assert!(!runs(&of(other), main));
    assert!(!runs(&of(&format!("{other};\n    {main}")), main));
}

#[test]
fn a_name_in_a_path_is_used_and_a_name_in_a_test_is_not() {
    let source =
        "use crate::{cancel_order::X, events};\n#[cfg(test)]\nmod tests { place_order::Y }";
    let used: Vec<_> = used(source).collect();
    assert!(used.contains(&"cancel_order") && !used.contains(&"place_order"), "{used:?}");
}
