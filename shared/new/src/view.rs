//! Adds a view: its file with a test, and its line in the context.

use anyhow::{Context, Result, bail, ensure};

use crate::context::{self, Log};
use crate::declared::declared;
use crate::edit::{add_member, add_view_module};
use crate::names::{camel, check, pascal, snake};
use crate::plan::{Plan, fill};

/// The types that each view's file uses beside its own.
const OWN_NAMES: [&str; 3] = ["Row", "View", "Consumed"];

/// The facts of the view's test, if the payload of the event says which row it is about.
const OF_PAYLOAD: &str = "    let event = |of: &str| NewEvent {
        event_type: \"__Event__\".into(),
        tags: vec![],
        data: json!({ \"__idJson__\": of }),
    };
    given([event(\"a\"), event(\"b\"), event(\"a\")])";
/// The same, if the event's stream says it.
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
    let Some(found) = context::find(plan, context)? else {
        bail!(
            "there is no context {context} in functions/: make it first, with \
             `cargo ringfence new-context {context} --log dcb`, or with another log"
        );
    };
    ensure!(
        !OWN_NAMES.contains(&&*pascal(view)),
        "the view {view}: its file has another type {}: choose another name",
        pascal(view)
    );
    let event = declared(plan, on, "--on")?;
    let id = event.id.with_context(|| {
        format!(
            "--on {on}: the event has no field that ends in _id, which would name the rows: write the view by hand"
        )
    })?;
    let (name, module) = (pascal(view), snake(view));
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
        ("view", view),
        ("View", &*name),
        ("Event", &*event.event_type),
        ("id", &*id),
        ("idJson", &*camel(&id)),
    ];
    let file = format!("{}/src/views/{module}.rs", found.folder);
    if plan.has(&file) {
        let is_it = plan.read(&file)?.contains(&format!("= \"{view}\";"));
        ensure!(is_it, "{file} is there, but is not the view {view}: choose another name");
    }
    plan.create(&file, &fill(include_str!("../files/view.rs"), &values));
    let lib = format!("{}/src/lib.rs", found.folder);
    plan.edit(&lib, |text| add_view_module(text, &module))?;
    plan.edit(&lib, |text| add_member(text, "view", &format!("views::{module}::{name}")))?;
    for library in ["ringfence-views", "serde", "serde_json"] {
        context::depend(plan, context, library)?;
    }
    Ok(())
}
