//! The HTTP API of a stack as a document of OpenAPI 3.1.

use heck::ToPascalCase;
use ringfence_core::BOUNDARY_BYTES_MAX;
use ringfence_core::personal::KEYWORD;
use ringfence_stack::{FunctionInfo, SliceInfo};
use ringfence_views::query_views::{WAIT_DEFAULT_MS, WAIT_MAX_MS};
use ringfence_views::{Definition, ID_BYTES_MAX, LIST_DEFAULT, LIST_MAX};
use serde_json::{Map, Value, json};

use crate::document::{object, open, reference};
use crate::named::{add_types, named};
use crate::problems;
use crate::queued;
use crate::{Contract, LockedCommand, Shape};

impl Contract {
    /// The requests and answers of the HTTP API, as a document of OpenAPI 3.1: commands by POST, views and other
    /// functions by GET.
    #[must_use]
    pub fn openapi(&self) -> Value {
        let views = self.stack.views();
        let slices = self.stack.slices().filter_map(|(_, slice)| slice.scopes);
        let has_scopes =
            slices.chain(views.iter().map(|view| view.scopes)).any(|it| !it.is_empty());
        let schemas = problems::schemas(self.stack.is_personal());
        let mut document = Document { paths: Map::new(), schemas, has_scopes };
        document.schemas.extend(common_schemas());
        for (context, slice) in self.stack.slices() {
            let Some(scopes) = slice.scopes else { continue };
            let command =
                self.locks.get(context.name).and_then(|lock| lock.commands.get(slice.name));
            document.command(context.name, slice, scopes, command);
        }
        for context in &self.stack.contexts {
            for view in &context.views {
                document.view(context.name, view, &self.rows[view.name]);
            }
        }
        for (context, function) in self.stack.functions() {
            document.function(context.name, function);
        }
        document.schemas.extend([queued::schema(), problems::any()]);
        let headers = HEADERS.map(|(name, ..)| reference("parameters", name));
        document.paths.extend(queued::paths(&headers, has_scopes));
        document.whole(self.stack.contexts.iter().map(|context| context.name).collect())
    }
}

const ABOUT: &str = "A command is posted to `/<context>/<slice>`. With the header `Idempotency-Key` it takes effect \
                     once. A view answers GET at `/<view>` and `/<view>/<id>`. To see there what a command did, add \
                     `partition` and `slot` of an event in its answer. Every answer that is not a success is a problem \
                     document (RFC 9457), unless the gateway gives it. Objects in answers can get more members. \
                     `maxLength` counts bytes of UTF-8. A value can break a rule that no word of a schema says, such as one \
                     between two fields: the answer 400 names it.";

const OF_PERSONAL: &str = "A value with `x-personal` is about a person, and is stored sealed. In a row it is null once \
                           the person is forgotten. Then a command with such a value of this person is answered 422, with \
                           the code `SubjectForgotten`.";

fn servers() -> Value {
    let variable = |value: &str, about: &str| json!({ "default": value, "description": about });
    json!([
        { "url": "http://127.0.0.1:3000", "description": "The stack on this machine, `cargo local`" },
        {
            "url": "https://{api}.execute-api.{region}.amazonaws.com",
            "description": "The stack on AWS: its output `ApiUrl`",
            "variables": {
                "api": variable("api", "The id of the HTTP API."),
                "region": variable("us-east-1", "The Region of the stack."),
            },
        },
    ])
}

/// A document under construction.
struct Document {
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
    /// Whether any operation asks tokens for scopes. Then the document names tokens too.
    has_scopes: bool,
}

impl Document {
    fn whole(mut self, contexts: Vec<&str>) -> Value {
        let mut schemes = json!({ "sigv4": {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "x-amazon-apigateway-authtype": "awsSigv4",
            "description": "A signature of AWS, version 4, of a caller who may `execute-api:Invoke`. The stack on \
                            one machine asks for none.",
        } });
        let mut security = json!([{ "sigv4": [] }]);
        let mut responses = problems::responses();
        if self.has_scopes {
            let (schemas, response) = problems::scope_missing();
            self.schemas.extend(schemas);
            responses.insert(problems::SCOPE_MISSING.to_owned(), response);
            schemes["jwt"] = json!({
                "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                "description": "A token of the API's issuer. It needs one of the scopes that an operation names. The \
                                authorizer of the API says whether it takes tokens or signatures. The stack on one \
                                machine asks for tokens if it is started with `--auth`.",
            });
            security = json!([{ "sigv4": [] }, { "jwt": [] }]);
        }
        let tags = contexts.iter().map(|name| json!({ "name": name }));
        let tags: Vec<_> = tags.chain([queued::tag()]).collect();
        let schemas = named(self.schemas);
        let is_personal = |schema: &Value| schema.to_string().contains(KEYWORD);
        let about = match schemas.values().any(is_personal) {
            true => format!("{ABOUT} {OF_PERSONAL}"),
            false => ABOUT.to_owned(),
        };
        let mut whole = json!({
            "openapi": "3.1.0",
            "info": {
                "title": format!("Commands and views: {}", contexts.join(", ")),
                "version": "1.0.0",
                "description": about,
            },
            "servers": servers(),
            "tags": tags,
            "security": security,
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "parameters": parameters(),
                "responses": responses,
                "securitySchemes": schemes,
            },
        });
        add_types(&mut whole);
        whole
    }

    fn command(
        &mut self,
        context: &str,
        slice: &SliceInfo,
        scopes: &[&str],
        locked: Option<&LockedCommand>,
    ) {
        let name = slice.name.to_pascal_case();
        let (command, rejection) = (format!("{name}Command"), format!("{name}Rejection"));
        let shape = locked.map_or(Shape::Any, |locked| locked.shape.clone());
        self.schemas.insert(command.clone(), shape.schema());
        let codes = locked.into_iter().flat_map(|locked| &locked.rejections).map(String::as_str);
        self.schemas.insert(rejection.clone(), problems::rejection(codes, slice.is_personal));
        let mut responses = problems::of_commands();
        responses.insert("200".to_owned(), ok(&accepts(slice), &reference("schemas", "Accepted")));
        let about =
            "The slice rejects the command, or the idempotency key belongs to another command.";
        responses
            .insert("422".to_owned(), problems::response(about, &reference("schemas", &rejection)));
        let path = format!("/{context}/{}", slice.name);
        let mut operation = json!({
            "operationId": slice.name,
            "tags": [context],
            "parameters": HEADERS.map(|(name, ..)| reference("parameters", name)),
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": reference("schemas", &command) } },
            },
            "responses": responses,
        });
        if !slice.about.is_empty() {
            operation["summary"] = slice.about.into();
        }
        secure(&mut operation, scopes);
        self.paths.insert(path, json!({ "post": operation }));
    }

    fn view(&mut self, context: &str, definition: &Definition, row: &Value) {
        let view = definition.name;
        let name = view.to_pascal_case();
        let [row_name, shown_name, item_name, list_name] =
            ["Row", "Shown", "ListItem", "List"].map(|of| format!("{name}{of}"));
        self.schemas.insert(row_name.clone(), open(row.clone()));
        let shown = json!({
            "id": row_id(),
            "row": reference("schemas", &row_name),
            "asOf": reference("schemas", "Checkpoint"),
        });
        self.schemas.insert(shown_name.clone(), object(&shown, &[]));
        let item = [reference("schemas", &shown_name), reference("schemas", "ParkedRow")];
        self.schemas.insert(item_name.clone(), json!({ "anyOf": item }));
        let of_list = json!({
            "items": { "type": "array", "items": reference("schemas", &item_name) },
            "next": { "type": "string", "description": "What `after` takes for the next page; absent after the last." },
            "asOf": reference("schemas", "Checkpoint"),
        });
        self.schemas.insert(list_name.clone(), object(&of_list, &["next", "asOf"]));
        let waits = WAITS.map(|(name, _)| reference("parameters", name));
        let id = json!({
            "name": "id", "in": "path", "required": true,
            "schema": row_id(),
            "description": "The id of the row. It may contain `/`.",
        });
        let of_row = [&[id][..], &waits].concat();
        let with = |shown: &str| {
            let mut responses = problems::of_views();
            responses
                .insert("200".to_owned(), ok("What the view shows.", &reference("schemas", shown)));
            responses
        };
        let mut row = json!({
            "operationId": format!("get-{view}-row"),
            "tags": [context],
            "summary": format!("A row of the view {view}."),
            "parameters": of_row,
            "responses": with(&shown_name),
        });
        let of_list = [&LISTS.map(|(name, _)| reference("parameters", name))[..], &waits].concat();
        let mut list = json!({
            "operationId": format!("list-{view}"),
            "tags": [context],
            "summary": format!("A page of rows of the view {view}."),
            "parameters": of_list,
            "responses": with(&list_name),
        });
        for operation in [&mut row, &mut list] {
            secure(operation, definition.scopes);
        }
        self.paths.insert(format!("/{view}/{{id}}"), json!({ "get": row }));
        self.paths.insert(format!("/{view}"), json!({ "get": list }));
    }

    fn function(&mut self, context: &str, function: &FunctionInfo) {
        let Some(path) = function.get else { return };
        let of_path = path.split('{').skip(1).filter_map(|part| part.split_once('}'));
        let of_path = of_path.map(|(name, _)| (name, "path"));
        let of_query = function.query.iter().map(|name| (*name, "query"));
        let parameter = |(name, place)| {
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": place, "required": place == "path", "schema": schema })
        };
        let parameters: Vec<_> = of_path.chain(of_query).map(parameter).collect();
        let mut responses = problems::of_views();
        responses.insert("200".to_owned(), ok("What the function answers.", &json!({})));
        self.paths.insert(
            path.to_owned(),
            json!({ "get": {
            "operationId": function.name,
            "tags": [context],
            "parameters": parameters,
            "responses": responses,
        } }),
        );
    }
}

/// The parameters of commands: the name in the document, the header, its schema, and its description.
const HEADERS: [(&str, &str, Option<&str>, &str); 4] = [
    (
        "IdempotencyKey",
        "Idempotency-Key",
        Some("^[!-.0-~]{1,128}$"),
        "Makes the command take effect once: a repeat gets the events of the first run. A UUID is a good one.",
    ),
    (
        "CorrelationId",
        "X-Correlation-Id",
        Some("^[!-~]{1,128}$"),
        "Names the flow of which the command is a part. Its events have it, and so have those that follow from them.",
    ),
    (
        "Traceparent",
        "Traceparent",
        None,
        "The span of the caller, as the W3C's Trace Context writes it. The span of the command is its child. A malformed \
         one is ignored.",
    ),
    (
        "EffectiveAt",
        "Effective-At",
        Some("^[!-~]{1,128}$"),
        "When it was made, if the command is sent later: a time of RFC 3339 from 1970 to 9999. It decides nothing.",
    ),
];

/// The parameters that let an answer of a view wait for an event.
const WAITS: [(&str, &str); 3] = [
    (
        "partition",
        "The partition of an event that the answer has to show, from the answer of a command. `slot` has to be beside it.",
    ),
    ("slot", "The slot of that event. `partition` has to be beside it."),
    (
        "wait",
        "How long the answer may wait for that event, in milliseconds. Only beside `partition` and `slot`.",
    ),
];

/// The parameters of a list.
const LISTS: [(&str, &str); 6] = [
    ("limit", "The most rows."),
    ("after", "`next` of the last page, for the page that follows."),
    ("prefix", "The beginning of the ids."),
    ("from", "The least text that follows the prefix in an id; at most `to`."),
    ("to", "The greatest text that follows the prefix in an id."),
    ("order", "Whether the least id or the greatest is the first one."),
];

fn parameters() -> Map<String, Value> {
    let headers = HEADERS.map(|(key, name, pattern, about)| {
        let mut schema = json!({ "type": "string" });
        if let Some(pattern) = pattern {
            schema["pattern"] = pattern.into();
            schema["maxLength"] = queued::ID_CHARS_MAX.into();
        }
        (key, json!({ "name": name, "in": "header", "schema": schema, "description": about }))
    });
    let of_query = WAITS.iter().chain(&LISTS).map(|(name, about)| {
        let text = json!({ "type": "string" });
        let whole = |min: u64, max: u64, default: u64| json!({ "type": "integer", "minimum": min, "maximum": max, "default": default });
        let schema = match *name {
            "limit" => whole(1, LIST_MAX.into(), LIST_DEFAULT.into()),
            "wait" => whole(0, WAIT_MAX_MS, WAIT_DEFAULT_MS),
            "slot" => slot(),
            "partition" => partition(),
            "prefix" | "from" | "to" => json!({ "type": "string", "maxLength": ID_BYTES_MAX }),
            "order" => reference("schemas", "Order"),
            _ => text,
        };
        (*name, json!({ "name": name, "in": "query", "schema": schema, "description": about }))
    });
    let all = headers.into_iter().chain(of_query);
    all.map(|(key, parameter)| (key.to_owned(), parameter)).collect()
}

fn partition() -> Value {
    json!({ "type": "string", "maxLength": BOUNDARY_BYTES_MAX })
}

fn slot() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
}

fn row_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": ID_BYTES_MAX })
}

fn common_schemas() -> Map<String, Value> {
    let event = json!({ "type": { "type": "string" }, "partition": partition(), "slot": slot() });
    let accepted = json!({
        "accepted": { "const": true },
        "events": { "type": "array", "items": reference("schemas", "EventRef") },
        "repeated": {
            "const": true,
            "description": "The idempotency key has been used: these are the events of the first run.",
        },
    });
    let about = "A place in the order of all events. Events before it are shown.";
    let checkpoint = json!({ "type": "integer", "minimum": 0, "description": about });
    let parked = json!({
        "id": row_id(),
        "problem": reference("schemas", "RowProblem"),
        "asOf": reference("schemas", "Checkpoint"),
    });
    let schemas = [
        ("EventRef", object(&event, &[])),
        ("Accepted", object(&accepted, &["repeated"])),
        ("Checkpoint", checkpoint),
        ("ParkedRow", object(&parked, &[])),
        ("Order", json!({ "enum": ["asc", "desc"], "default": "asc" })),
    ];
    schemas.map(|(name, schema)| (name.to_owned(), schema)).into_iter().collect()
}

/// An operation whose tokens need one of these scopes.
fn secure(operation: &mut Value, scopes: &[&str]) {
    if scopes.is_empty() {
        return;
    }
    let of_tokens = scopes.iter().map(|scope| json!({ "jwt": [scope] }));
    operation["security"] = [json!({ "sigv4": [] })].into_iter().chain(of_tokens).collect();
    operation["responses"]["403"] = reference("responses", problems::SCOPE_MISSING);
}

/// The effect of an accepted command, in words.
fn accepts(slice: &SliceInfo) -> String {
    let types: Vec<_> = slice.writes.iter().map(|name| format!("`{name}`")).collect();
    format!(
        "The command is accepted. It writes {}, or nothing if nothing has to change.",
        types.join(", ")
    )
}

fn ok(about: &str, schema: &Value) -> Value {
    json!({ "description": about, "content": { "application/json": { "schema": schema } } })
}
