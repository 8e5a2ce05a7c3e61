//! Adds a view: its file with a test, and its line in the context.

use anyhow::{Context, Result, ensure};
use heck::{ToLowerCamelCase, ToPascalCase, ToSnakeCase};

use crate::context::{self, Log};
use crate::declared::declared;
use crate::edit::{Views, add_member, add_module, add_view_module};
use crate::names::{check, check_path, check_type};
use crate::plan::{Plan, fill};

/// The types that each view's file uses besides the view.
const OWN_NAMES: [&str; 3] = ["Row", "View", "Consumed"];

/// The facts of the view's test, if the payload of the event has the row's id.
const OF_PAYLOAD: &str = "    let event = |of: &str| NewEvent {
        event_type: \"__Event__\".into(),
        tags: vec![],
        data: json!({ \"__idJson__\": of }),
    };
    given([event(\"a\"), event(\"b\"), event(\"a\")])";
/// The same, if the event's stream has the row's id.
const OF_STREAM: &str = "    let event = || NewEvent {
        event_type: \"__Event__\".into(),
        tags: vec![],
        data: json!({}),
    };
    given([])
        .stored(\"__stream__a\", [event()])
        .stored(\"__stream__b\", [event()])
        .stored(\"__stream__a\", [event()])";

/// Plans a view of the event `on`.
pub(crate) fn add(plan: &mut Plan, context: &str, view: &str, on: &str) -> Result<()> {
    check("the context", context)?;
    check("the view", view)?;
    check_path("the view", view)?;
    check_type("the view", view, &OWN_NAMES)?;
    let found = context::existing(plan, context)?;
    let event = declared(plan, on, "--on")?;
    let id = event.id.with_context(|| {
        format!(
            "--on {on}: the event has no field that ends in _id, which would name the rows: write the view by hand"
        )
    })?;
    let (name, module) = (view.to_pascal_case(), view.to_snake_case());
    let streams = match event.log {
        Log::Dcb => String::new(),
        _ => format!("    const STREAMS: &'static [&'static str] = &[\"{}\"];", event.context),
    };
    let (mark, test) = match event.in_payload {
        true => ("", OF_PAYLOAD),
        false => ("#[stream] ", OF_STREAM),
    };
    let stream = match event.log {
        Log::Document => format!("{}-", event.context),
        _ => format!("{}#", event.context),
    };
    let values = [
        ("streams", &*streams),
        ("mark", mark),
        ("test", test),
        ("stream", &*stream), // the test names it
        ("context", &*context.to_snake_case()),
        ("view", view),
        ("View", &*name),
        ("Event", &*event.event_type),
        ("id", &*id),
        ("idJson", &*id.to_lower_camel_case()),
    ];
    let file = format!("{}/src/views/{module}.rs", found.folder);
    if plan.has(&file) {
        let is_it = plan.read(&file)?.contains(&format!("= \"{view}\";"));
        ensure!(is_it, "{file} is there, but is not the view {view}: choose another name");
    }
    for other in context::all(plan).iter().filter(|other| *other != context) {
        let its = format!("functions/{other}/src/views/{module}.rs");
        ensure!(
            !plan.has(&its),
            "{its} is a view {view}: names of views are unique in a stack, so choose another name"
        );
    }
    plan.create(&file, &fill(include_str!("../files/view.rs"), &values));
    let lib = format!("{}/src/lib.rs", found.folder);
    match add_view_module(&plan.read(&lib)?, &module).with_context(|| lib.clone())? {
        Views::Here(text) => plan.edit(&lib, |_| Ok(text))?,
        Views::InFile => {
            let files =
                ["views.rs", "views/mod.rs"].map(|file| format!("{}/src/{file}", found.folder));
            let file = files.iter().find(|file| plan.has(file));
            let file = file.with_context(|| format!("finds neither {}", files.join(" nor ")))?;
            plan.edit(file, |text| add_module(text, &module))?;
        }
    }
    plan.edit(&lib, |text| add_member(text, "view", &format!("views::{module}::{name}")))?;
    context::depend(plan, context, "serde_json")
}
