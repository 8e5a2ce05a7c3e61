//! Adds a slice: its file with its cases, its binary, its line in the context, the sample of the event it reacts to.

use anyhow::{Result, ensure};
use heck::{ToKebabCase, ToLowerCamelCase, ToPascalCase, ToSnakeCase};

use crate::context::{self, Found, Log};
use crate::declared::{Declared, declared};
use crate::due::{After, Begin};
use crate::edit::{add_arm, add_binary, add_entry, add_member, add_module, append, names};
use crate::ids::check_id;
use crate::names::{Deed, TYPES, check, check_target, check_type, id_type};
use crate::plan::{Plan, fill};

/// The declaration of an order.
const ORDER: &str = "const ORDER: Option<Lane> = Some(Lane::Partition);";

/// An event that a slice reacts to.
struct Cause {
    context: String,
    event_type: String,
    /// The field of the event that names the thing of the command.
    field: String,
    /// Whether the payload has the field. Otherwise the event's stream has the id.
    in_payload: bool,
    /// The partition of the event in the sample.
    partition: String,
}

/// The source of a slice's command besides callers.
pub(crate) enum Begins<'a> {
    /// Only callers.
    WhenSent,
    /// This event, `<context>/<Type>`.
    On(&'a str),
    /// This event, lane by lane.
    InOrder(&'a str),
    /// A time after this event.
    After(After, &'a str),
}

/// Plans a slice.
pub(crate) fn add(plan: &mut Plan, context: &str, slice: &str, begins: Begins<'_>) -> Result<()> {
    check("the context", context)?;
    check("the slice", slice)?;
    let found = context::existing(plan, context)?;
    let (name, module) = (slice.to_pascal_case(), slice.to_snake_case());
    let mut deed = Deed::of(context, slice);
    let mut id = format!("{}-id", deed.noun).to_snake_case();
    let mut id_name = deed.noun.to_pascal_case() + "Id";
    let order = if matches!(begins, Begins::InOrder(_)) { ORDER } else { "" };
    let (mut on, mut begin) = (None, None);
    match begins {
        Begins::WhenSent => {}
        Begins::On(event) | Begins::InOrder(event) => {
            let event = declared(plan, event, "--on")?;
            let text = plan.read(&format!("{}/src/events.rs", found.folder))?;
            // If the slice's name names no thing that the context knows, its command is about the thing of the event.
            if let Some(of_event) = event.id.as_deref().filter(|_| !names(&text, &id_name)) {
                deed.noun = of_event.trim_end_matches("_id").to_kebab_case();
                (id, id_name) = (of_event.to_owned(), of_event.to_pascal_case());
            }
            on = Some(cause(event, &id));
        }
        Begins::After(after, of) => {
            let of = Begin::of(plan, context, after, of)?;
            (id, id_name) = (of.id.clone(), of.id_type.clone());
            begin = Some(of);
        }
    }
    let cause = on;
    let values = [
        ("run", "ringfence::run"),
        ("name", context),
        ("slice", slice),
        ("Slice", &*name),
        ("module", &*module),
        ("context", &*context.to_snake_case()),
        ("Context", &*found.name),
        ("Event", &*deed.event),
        ("id", &*id),
        ("Id", &*id_name),
        ("summary", &*slice.replace('-', " ")),
    ];

    let other = other_event(plan, &found, &deed, &values)?;
    let file = format!("{}/src/{module}.rs", found.folder);
    if plan.has(&file) {
        let text = plan.read(&file)?;
        let is_it = text.contains(&format!("= \"{slice}\";"))
            && text.contains(&format!("impl Slice for {name} "));
        ensure!(is_it, "{file} is there, but is not the slice {slice}: choose another name");
        ensure!(
            begin.is_none() || plan.read(&file)?.contains(&format!("impl Due for {name} ")),
            "{file} is there, but has no `impl Due for {name}`: write it by hand, as docs/deadlines.md of Ringfence shows, \
             or choose another name"
        );
        if let Some(Cause { event_type, .. }) = &cause {
            let names = [format!("\"{event_type}\""), format!("{event_type}>(")];
            ensure!(
                names.iter().any(|name| text.contains(name)),
                "{file} is there, but does not react to {event_type}: write `REACTS_TO` and `react` by hand, as \
                 docs/slices.md of Ringfence shows, or choose another name"
            );
        }
        ensure!(
            order.is_empty() || text.contains("const ORDER:"),
            "{file} is there without an order, which stays so: to give it one, write `{order}` into `impl Slice for {name}`"
        );
        if let Some(begin) = &begin {
            begin.check_there(&plan.read(&file)?, &file)?;
        }
    } else {
        check_binary(plan, "the slice", context, slice)?;
        check_type("the slice", slice, &[&TYPES[..], &[&*found.name]].concat())?;
        match &begin {
            Some(begin) => begin.write_source(plan, &found, &deed, &values, &file)?,
            None => {
                let because = cause.as_ref().map(|cause| (cause, order));
                write_source(plan, &found, &deed, &values, because, other.as_deref(), &file)?;
            }
        }
    }
    let lib = format!("{}/src/lib.rs", found.folder);
    let binary = format!("{}/src/bin/{slice}.rs", found.folder);
    plan.create(&binary, &fill(include_str!("../files/binary.rs"), &values));
    plan.edit(&format!("{}/Cargo.toml", found.folder), |text| Ok(add_binary(text, slice)))?;
    plan.edit(&lib, |text| add_module(text, &module))?;
    let member = format!("{module}::{name}");
    plan.edit(&lib, |text| add_member(text, "slice", &member))?;
    if begin.is_some() {
        plan.edit(&lib, |text| add_member(text, "due", &member))?;
    }
    if let Some(cause) = &cause {
        write_sample(plan, slice, cause);
    }
    Ok(())
}

/// Fails if the name of a function's binary or its id in the template is taken. Cargo builds all binaries into one
/// folder.
pub(crate) fn check_binary(plan: &Plan, what: &str, context: &str, slice: &str) -> Result<()> {
    check_target(what, slice)?;
    check_id(what, slice, &slice.to_pascal_case())?;
    ensure!(
        !slice.ends_with("-role"),
        "{what} {slice}: the ids of roles in template.yaml end in Role: choose another name"
    );
    let text = plan.read("template.yaml")?;
    ensure!(
        !text.contains(&format!("Binary: {slice} ")),
        "template.yaml has a function of a binary {slice}, which {context} does not have: names of binaries are \
         unique in a stack, so choose another name"
    );
    let id = slice.to_pascal_case();
    ensure!(
        !text.contains(&format!("\n  {id}:")),
        "template.yaml has a resource {id} already, so choose another name than {slice}"
    );
    for (manifest, text) in plan.manifests() {
        ensure!(
            !text.contains(&format!("[[bin]]\nname = \"{slice}\"\n")),
            "{} has a binary {slice}: names of binaries are unique in a workspace, so choose another name",
            manifest.display()
        );
    }
    Ok(())
}

/// The event that a slice reacts to. For an event without an id, the field is the command's id.
fn cause(event: Declared, id: &str) -> Cause {
    let Declared { context, log, event_type, id: found, in_payload, .. } = event;
    let field = found.as_deref().unwrap_or(id).to_lower_camel_case();
    let partition = match log {
        Log::Dcb => format!("{field}:one"),
        Log::Aggregate => format!("{context}#one"),
        Log::Document => format!("{context}-one"),
    };
    Cause { context, event_type, field, in_payload, partition }
}

/// Another event of the same streams, for a case. It has only the id, so a person need not add fields.
fn other_event(
    plan: &Plan,
    found: &Found,
    deed: &Deed,
    values: &[(&str, &str)],
) -> Result<Option<String>> {
    let text = plan.read(&format!("{}/src/events.rs", found.folder))?;
    let fields = fill("{__id__:__Id__", values);
    let event = |body: &str| {
        let is_code = |line: &&str| !line.trim_start().starts_with("//") && !line.contains("#[");
        let words = body.lines().filter(is_code).flat_map(str::split_whitespace);
        let body: String = words.filter(|word| !["pub", "struct"].contains(word)).collect();
        let event = body.trim_end_matches(',').strip_suffix(&fields)?;
        event.rsplit([',', '{', ';', ']']).next().map(str::to_owned)
    };
    let mut events = text.split('}').filter_map(event);
    Ok(events.find(|event| found.log != Log::Dcb && *event != deed.event))
}

/// Plans the slice's own file and its event.
fn write_source(
    plan: &mut Plan,
    found: &Found,
    deed: &Deed,
    values: &[(&str, &str)],
    because: Option<(&Cause, &str)>,
    other: Option<&str>,
    file: &str,
) -> Result<()> {
    let events = format!("{}/src/events.rs", found.folder);
    let text = plan.read(&events)?;
    ensure!(
        !names(&text, &deed.event),
        "{events} has {} already, which is the name that new-slice gives the slice's event: choose another name \
         for the slice",
        deed.event
    );
    if !names(&text, value(values, "Id")) {
        plan.edit(&events, |text| Ok(append(text, &id_type(&deed.noun))))?;
    }
    let lib = format!("{}/src/lib.rs", found.folder);
    // A state that `new-context` wrote has a field for each event. A state that a person wrote may have any form.
    let state = format!("struct {}State", found.name);
    let field = deed.field();
    let event = "\n#[derive(Clone, Debug, PartialEq, ringfence::Event)]\npub struct __Event__ {\n    \
                 #[tag(partition)]\n    pub __id__: __Id__,\n}\n";
    plan.edit(&events, |text| Ok(append(text, &fill(event, values))))?;
    let has_own_state = found.log != Log::Document;
    let is_folded = has_own_state || plan.read(&lib)?.contains(&format!("pub {state} {{"));
    if !has_own_state && is_folded {
        let (reads, entry) = (format!("{}Event", found.name), format!("pub {field}: bool,"));
        plan.edit(&lib, |text| add_entry(text, &state, &entry))?;
        let variant = format!("{},", deed.event);
        plan.edit(&lib, |text| add_entry(text, &format!("enum {reads}"), &variant))?;
        let pattern = format!("{reads}::{}", deed.event);
        plan.edit(&lib, |text| add_arm(text, &pattern, &field))?;
    }
    let own = if has_own_state { include_str!("../files/own_state.rs") } else { "" };
    let (state, uses) = match &found.state {
        Some(path) => {
            let name = path.rsplit("::").next().unwrap_or_default();
            (name.to_owned(), format!("__Event__, __Id__, __Context__, {path}"))
        }
        None => ("__Slice__State".to_owned(), "__Event__, __Id__, __Context__".to_owned()),
    };
    let (mut done, mut repeated) = (String::new(), "");
    if is_folded {
        let field = if has_own_state { "done" } else { &field };
        done = format!("        if state.{field} {{\n            return Ok(vec![]);\n        }}");
        repeated = "            given(events![event(\"one\")]).when(command()).then_nothing(),";
    }
    let (mut before, mut after_other) = (String::new(), "");
    if let Some(other) = other {
        before = format!("        let other = || crate::{other} {{ __id__: id(\"one\") }};");
        after_other = "            given(events![other()]).when(command()).then([event(\"one\")]),";
    }
    let (mut reacts, mut react, mut declared) = (String::new(), String::new(), String::new());
    if let Some((Cause { context, event_type, field, in_payload, .. }, order)) = because {
        reacts = format!(
            "    const REACTS_TO: &'static [Cause] =\n        \
             &[Cause::named(\"{context}\", \"{event_type}\")];\n    \
             const CALLERS: Callers = Callers::Nobody;\n    {order}"
        );
        let command = if *in_payload {
            declared = format!(
                "\n/// What this context reads of {event_type}.\n#[derive(Deserialize)]\nstruct Heard {{\n    \
                 #[serde(rename = \"{field}\")]\n    __id__: __Id__,\n}}"
            );
            context::depend(plan, value(values, "name"), "serde")?;
            "let Heard { __id__ } = Heard::deserialize(&event.data)?;\n        Ok(vec![Self { __id__ }])"
        } else {
            "Ok(vec![Self { __id__: event.stream_id()? }])"
        };
        react = format!(
            "\n    fn react(event: &Current<'_, TopicEvent>) -> Result<Vec<Self>, serde_json::Error> {{\n        \
             {command}\n    }}"
        );
        context::depend(plan, value(values, "name"), "serde_json")?;
    }
    let serde = if declared.is_empty() { "" } else { "use serde::Deserialize;" };
    let given = if done.is_empty() { "_state" } else { "state" };
    let pieces = [
        ("use_serde", serde),
        ("uses", &*uses),
        ("own_state", own),
        ("State", &*state),
        ("reacts_to", &*reacts),
        ("react", &*react),
        ("cause", &*declared),
        ("state", given),
        ("done", &*done),
        ("repeated", repeated),
        ("other", &*before),
        ("after_other", after_other),
    ];
    let source = fill(include_str!("../files/slice.rs"), &pieces);
    plan.create(file, &fill(&source, values));
    Ok(())
}

fn value<'v>(values: &[(&str, &'v str)], name: &str) -> &'v str {
    values.iter().find(|(found, _)| *found == name).map(|(_, value)| *value).unwrap_or_default()
}

/// Plans the sample of the event. The checks of the stack write the samples of the command.
fn write_sample(plan: &mut Plan, slice: &str, cause: &Cause) {
    let Cause { context, event_type, field, in_payload, partition } = cause;
    let field =
        if *in_payload { format!("\n      \"{field}\": \"one\"\n    ") } else { String::new() };
    let values = [
        ("Cause", &**event_type),
        ("source", &**context),
        ("data", &*field),
        ("partition", &**partition),
    ];
    let sample = fill(include_str!("../files/eventbridge.json"), &values);
    plan.create(&format!("events/{slice}/eventbridge.json"), &sample);
}
