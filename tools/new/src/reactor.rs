//! Adds a reactor that sends a mail or a webhook after an event: its file with a case, its binary, and its line in the
//! context. Its part of the template and its samples follow from that line.

use anyhow::{Context, Result, ensure};
use heck::{ToPascalCase, ToSnakeCase};

use crate::context::{self, Found};
use crate::declared::{Declared, declared};
use crate::due::values;
use crate::edit::{add_binary, add_member, add_module};
use crate::names::{check, check_type};
use crate::plan::{Plan, fill};
use crate::slice::check_binary;

/// What a reactor sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sends {
    Mail,
    Webhook,
}

impl Sends {
    /// The type of the program that sends.
    fn by(self) -> &'static str {
        match self {
            Self::Mail => "Mailer",
            Self::Webhook => "Webhook",
        }
    }
}

/// The types that the file of a reactor uses besides the reactor.
const OWN_NAMES: [&str; 22] = [
    "Box",
    "Consumed",
    "Data",
    "Delivery",
    "Error",
    "Failed",
    "InDoubt",
    "Mail",
    "MailAddress",
    "MailConfig",
    "Mailer",
    "Message",
    "Reactor",
    "ReactorCase",
    "Reads",
    "Result",
    "Serialize",
    "Starts",
    "String",
    "Variables",
    "Webhook",
    "WebhookConfig",
];

/// Plans a reactor to the event `on` of its own context.
pub(crate) fn add(
    plan: &mut Plan,
    context: &str,
    reactor: &str,
    on: &str,
    sends: Sends,
) -> Result<()> {
    check("the context", context)?;
    check("the reactor", reactor)?;
    let found = context::existing(plan, context)?;
    let event = declared(plan, on, "--on")?;
    ensure!(
        event.context == context,
        "--on {on}: the command writes reactors to events of their own context: name an event of {context}, or write this \
         one by hand, as docs/reactors.md of Ringfence shows"
    );
    let (name, module) = (reactor.to_pascal_case(), reactor.to_snake_case());
    let file = format!("{}/src/{module}.rs", found.folder);
    if plan.has(&file) {
        let text = plan.read(&file)?;
        let is_it = text.contains(&format!("= \"{reactor}\";"))
            && text.contains(&format!("impl Reactor for {name} "));
        ensure!(is_it, "{file} is there, but is not the reactor {reactor}: choose another name");
        let (by, event) = (sends.by(), &event.event_type);
        ensure!(
            text.contains(&format!("struct {name}({by});"))
                && text.contains(&format!("{event} {{")),
            "{file} is there, but has no `struct {name}({by})` or does not read {event}: change it by hand, or choose \
             another name"
        );
    } else {
        check_binary(plan, "the reactor", context, reactor)?;
        check_type("the reactor", reactor, &[&OWN_NAMES[..], &[&*found.name]].concat())?;
        let source = source(reactor, &found, &event, sends).with_context(|| {
            format!(
                "--on {on}: the event has no field that ends in _id, which the effect would name: write this one by hand"
            )
        })?;
        plan.create(&file, &source);
        if sends == Sends::Webhook {
            context::depend(plan, context, "serde")?;
            context::depend(plan, context, "serde_json")?;
        }
    }
    let lib = format!("{}/src/lib.rs", found.folder);
    let values = [
        ("run", "ringfence::reactor::run"),
        ("context", &*context.to_snake_case()),
        ("module", &*module),
        ("Slice", &*name),
    ];
    let main = fill(include_str!("../files/binary.rs"), &values);
    plan.create(&format!("{}/src/bin/{reactor}.rs", found.folder), &main);
    plan.edit(&format!("{}/Cargo.toml", found.folder), |text| Ok(add_binary(text, reactor)))?;
    plan.edit(&lib, |text| add_module(text, &module))?;
    plan.edit(&lib, |text| add_member(text, "reactor", &format!("{module}::{name}")))
}

/// The source of the reactor; `None` if the event has no id.
fn source(reactor: &str, found: &Found, event: &Declared, sends: Sends) -> Option<String> {
    let id = event.id.as_deref()?;
    let id_type = &event.fields.iter().find(|field| field.name == id)?.of;
    let title = event.event_type.to_snake_case();
    let about = title[..1].to_uppercase() + &title[1..].replace('_', " ");
    let article = if title.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    // A mail goes to the address in the event. Otherwise a person writes whose address it is.
    let address = event.fields.iter().find(|field| field.of.ends_with("MailAddress"));
    let (mut use_address, mut receiver, mut names) = ("", "", id.to_owned());
    let (mut field, mut to) = (String::new(), String::new());
    let mut of_case = "RECEIVER";
    match address {
        Some(address) => {
            use_address = "use ringfence::MailAddress;";
            names = format!("{id}, {}", address.name);
            field = format!("{}: MailAddress,", address.name);
            to = format!("        let to = {}.clone();", address.name);
            of_case = "\"ada@example.com\"";
        }
        None => {
            receiver = "/// Who gets it: write another address here, or read one from a view.\nconst RECEIVER: &str = \
                        \"team@example.com\";\n";
            to += "        let Ok(to) = RECEIVER.parse() else { return Vec::new() };";
        }
    }
    let values = [
        ("Reactor", &*reactor.to_pascal_case()),
        ("reactor", reactor),
        ("Context", &*found.name),
        ("Event", &*event.event_type),
        ("article", article),
        ("id", id),
        ("Id", id_type),
        ("mark", if event.in_payload { "" } else { "#[stream]" }),
        ("fields", &*values(&event.fields, id)),
        ("kind", &*title.replace('_', ".")),
        ("Title", &*about),
        ("use_address", use_address),
        ("receiver", receiver),
        ("address", &*field),
        ("names", &*names),
        ("to", &*to),
        ("of_case", of_case),
    ];
    let text = match sends {
        Sends::Mail => include_str!("../files/mail.rs"),
        Sends::Webhook => include_str!("../files/webhook.rs"),
    };
    Some(fill(text, &values))
}
