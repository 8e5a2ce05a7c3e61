//! Least privilege: one role for the slices of the DCB log, one for each context on the other logs, and one for each
//! other function.
//!
//! [`check_cases`](crate::check_cases) and the checks of `readers.rs` compare a role's permissions on items with the
//! requests of the functions. Requests do not show everything, so the checks here are for the rest: the role of each
//! function, the keys and transactions that limit a role, and its permissions outside of DynamoDB.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::LogKind;
use ringfence_stack::{ContextInfo, Members, Stack};
use ringfence_template::written::table_of;
use serde_json::{Value, json};

use crate::grants::{besides_items, differences, send_spans};
use crate::lanes::IN_ORDER;
use crate::template::{arn, check_none, resources, table_arn};
use crate::variables::with_vaults;
use crate::written::Current;

/// The role of fire-deadlines.
const FIRE_DEADLINES: &str = "FireDeadlinesRole";
/// The role of run-commands. It carries out the commands of all contexts, so it may use every stream.
const RUN_COMMANDS: &str = "RunCommandsRole";

/// Panics unless each function has its role, and each role allows exactly what its functions need. The message says
/// what to write into `template.yaml`.
pub fn check_roles<M: Members>() {
    check_none(&troubles_of::<M>(&Current::of::<M>()));
}

pub(crate) fn troubles_of<M: Members>(current: &Current) -> Vec<String> {
    let (stack, template) = (&current.stack, current.json());
    let of = [
        every_function_has_the_role_of_its_log_or_context_or_its_own_role(stack, &template),
        writes_outside_of_transactions_and_streams_of_one_context_are_limited_to_keys(
            stack, &template,
        ),
        besides_items_a_role_allows_what_its_functions_need_and_no_more(
            stack,
            &template,
            &with_vaults::<M>(stack, &current.model()),
        ),
        no_statement_names_everything_and_only_rows_are_deleted(&template),
    ];
    of.concat()
}

/// The role that a function must have.
fn role_of(stack: &Stack, template: &Value, id: &str) -> String {
    let binary = &template["Resources"][id]["Metadata"]["BuildProperties"]["Binary"];
    match stack.slices().find(|(_, slice)| *binary == slice.name) {
        Some((context, _)) => role_of_slices(context),
        None => format!("{id}Role"),
    }
}

/// The role of a context's slices. On the DCB log all contexts share one: every slice may append any event to the one
/// table. On the other logs keys begin with the name of the context.
fn role_of_slices(context: &ContextInfo) -> String {
    match context.log {
        LogKind::Aggregates | LogKind::Documents => {
            let words = context.name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]);
            format!("{}Role", words.collect::<String>())
        }
        LogKind::Dcb => "DcbLogRole".to_owned(),
    }
}

/// The keys that limit a role to the items of its readers of lanes, in the table of the views.
fn keys_of_lanes(stack: &Stack, template: &Value, role: &str) -> Option<String> {
    let id = role.strip_suffix("Role")?;
    let binary = template["Resources"][id]["Metadata"]["BuildProperties"]["Binary"].as_str();
    let is_reactor = |name: &&str| stack.reactors().any(|(_, reactor)| reactor.name == *name);
    match id {
        IN_ORDER => Some("$Reactor-*".to_owned()),
        _ => binary.filter(is_reactor).map(|name| format!("$Reactor-{name}")),
    }
}

/// The partition keys, or their prefixes, that limit a role's statements about this table, and whether every statement
/// has that limit.
fn keys(stack: &Stack, role: &str, table: &str) -> (Vec<String>, bool) {
    let prefix = |context: &ContextInfo| match context.log {
        LogKind::Dcb => None,
        LogKind::Aggregates => Some(format!("{}#*", context.name)),
        LogKind::Documents => Some(format!("{}-*", context.name)),
    };
    let contexts = stack.contexts.iter();
    // fire-deadlines carries out the commands that can be due, on any log.
    let is_of_role = |context: &&ContextInfo| match role {
        FIRE_DEADLINES => !context.dues.is_empty() && table.contains(table_of(context.log)),
        _ => role_of_slices(context) == role,
    };
    let of_role = contexts.filter(is_of_role);
    let streams: Vec<_> = of_role.filter_map(prefix).collect();
    let some = |keys: &[&str]| (keys.iter().map(|key| (*key).to_owned()).collect(), false);
    match role {
        // It changes no key of the stack.
        "DestroyKeysRole" if table.contains("KeyTable") => (vec!["subject#*".to_owned()], true),
        // A key is a person's, and not of one context.
        _ if table.contains("KeyTable") => some(&[]),
        _ if !streams.is_empty() => (streams, true),
        // Checkpoints of readers, and the served generation of each view.
        "ProjectViewsRole" => some(&["$ReaderCheckpoint-*", "$View-*"]),
        // Notes on deadlines.
        FIRE_DEADLINES if table.contains("ViewTable") => some(&["$Due-*"]),
        // Answers of commands.
        RUN_COMMANDS if table.contains("ViewTable") => (vec!["$Command-*".to_owned()], true),
        _ => some(&[]),
    }
}

/// The roles with the functions that have them, by logical id.
fn roles(stack: &Stack, template: &Value) -> BTreeMap<String, BTreeMap<String, Value>> {
    let mut roles = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (id, function) in resources(template, "AWS::Serverless::Function") {
        roles.entry(role_of(stack, template, &id)).or_default().insert(id, function);
    }
    roles
}

/// The statements of a role.
fn statements(template: &Value, role: &str) -> Vec<Value> {
    // Another check finds a role that has not exactly one policy.
    let policy = &template["Resources"][role]["Properties"]["Policies"][0];
    policy["PolicyDocument"]["Statement"].as_array().cloned().unwrap_or_default()
}

fn every_function_has_the_role_of_its_log_or_context_or_its_own_role(
    stack: &Stack,
    template: &Value,
) -> Vec<String> {
    let (mut found, mut troubles) = (resources(template, "AWS::IAM::Role"), Vec::new());
    for (role, functions) in roles(stack, template) {
        for (id, function) in functions {
            if function["Role"] != arn(&role) {
                troubles.push(format!("template.yaml: {id} lacks `Role: !GetAtt {role}.Arn`"));
            }
            if function.get("Policies").is_some() {
                troubles.push(format!("template.yaml: {id}: move its Policies into {role}"));
            }
        }
        let Some(of) = found.remove(&role) else {
            troubles.push(format!("template.yaml lacks the role {role}: copy a neighbour's"));
            continue;
        };
        if of["Policies"].as_array().is_none_or(|all| all.len() != 1)
            || of.get("ManagedPolicyArns").is_some()
        {
            troubles.push(format!("template.yaml: {role}: write one policy, without managed ones"));
        }
        let assumes = json!([{
            "Effect": "Allow",
            "Principal": { "Service": "lambda.amazonaws.com" },
            "Action": "sts:AssumeRole",
        }]);
        if of["AssumeRolePolicyDocument"]["Statement"] != assumes {
            troubles.push(format!(
                "template.yaml: {role}: Lambda alone assumes it: write the Statement {assumes} in its \
                 AssumeRolePolicyDocument"
            ));
        }
    }
    troubles.extend(
        found.keys().map(|role| format!("template.yaml has {role}, which no function has")),
    );
    troubles
}

/// Whether the statement is about items of tables.
fn is_about_items(statement: &Value) -> bool {
    let is_stream = statement["Resource"].to_string().contains("StreamArn.");
    statement["Action"].to_string().contains("\"dynamodb:") && !is_stream
}

fn writes_outside_of_transactions_and_streams_of_one_context_are_limited_to_keys(
    stack: &Stack,
    template: &Value,
) -> Vec<String> {
    let mut troubles = Vec::new();
    for role in roles(stack, template).into_keys() {
        let of_lanes = keys_of_lanes(stack, template, &role);
        for statement in statements(template, &role).iter().filter(|one| is_about_items(one)) {
            let actions = statement["Action"].to_string();
            let writes = ["Put", "Update", "Delete", "Check", "Write"];
            let writes = writes.iter().any(|write| actions.contains(write));
            let (keys, all) = match &of_lanes {
                Some(lanes) if statement["Resource"] == table_arn("ViewTable") && writes => {
                    (vec![lanes.clone()], true)
                }
                _ => keys(stack, &role, &statement["Resource"].to_string()),
            };
            let condition = &statement["Condition"];
            let leading = &condition["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
            let enclosing = &condition["ForAnyValue:StringEquals"]["dynamodb:EnclosingOperation"];
            // The keys of rows begin with the name of a view.
            let other = &condition["ForAllValues:StringNotLike"]["dynamodb:LeadingKeys"];
            let is_of_rows = role == "ProjectViewsRole" && *other == json!(["$*"]);
            let is_limited = is_of_rows || *leading == json!(keys) && !keys.is_empty();
            let is_free =
                leading.is_null() && !all && (!writes || enclosing.is_array() || keys.is_empty());
            if !is_limited && !is_free {
                troubles.push(format!(
                    "template.yaml: {role}: statement {} needs `Condition: {{ \"ForAllValues:StringLike\": \
                     {{ dynamodb:LeadingKeys: {} }} }}`",
                    statement["Sid"],
                    json!(keys)
                ));
            }
        }
    }
    troubles
}

fn besides_items_a_role_allows_what_its_functions_need_and_no_more(
    stack: &Stack,
    template: &Value,
    with_vaults: &BTreeSet<String>,
) -> Vec<String> {
    let mut troubles = Vec::new();
    for (role, functions) in roles(stack, template) {
        let mut found = statements(template, &role);
        found.retain(|statement| !is_about_items(statement));
        let due = besides_items(stack, template, &functions, with_vaults);
        troubles.extend(differences(&role, &found, &due));
    }
    troubles.into_iter().map(|line| format!("template.yaml: {line}")).collect()
}

/// Every value under `key`, at any depth.
fn collect<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get(key));
            map.values().for_each(|value| collect(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, key, found)),
        _ => {}
    }
}

fn no_statement_names_everything_and_only_rows_are_deleted(template: &Value) -> Vec<String> {
    let (mut named, mut actions) = (Vec::new(), Vec::new());
    collect(&template["Resources"], "Resource", &mut named);
    collect(&template["Resources"], "Action", &mut actions);
    assert!(named.len() > 12 && actions.len() > 12, "finds no statements");
    let mut statements = Vec::new();
    collect(&template["Resources"], "Statement", &mut statements);
    let statements: Vec<_> = statements
        .iter()
        .flat_map(|list| list.as_array().expect("the shape of a template"))
        .collect();
    let known = statements.iter().filter(|statement| ***statement == send_spans()).count();
    // In the policy of a key of KMS, the star is the key.
    let of_keys = resources(template, "AWS::KMS::Key");
    let of_keys = of_keys.values().filter_map(|key| key["KeyPolicy"]["Statement"].as_array());
    let of_keys = of_keys.map(Vec::len).sum::<usize>();
    let named = named.iter().map(|resource| resource.to_string());
    // Only the objects of a bucket may be named by a star.
    let stars: Vec<_> = named.filter(|it| it.replace(".Arn}/*", "").contains('*')).collect();
    let mut troubles = Vec::new();
    if stars.len() != known + of_keys || known > 1 {
        troubles
            .push(format!("template.yaml: name resources without a star: {}", stars.join(", ")));
    }
    let actions = actions.iter().map(|action| action.to_string());
    let actions = actions.filter(|action| action.contains('*'));
    troubles.extend(
        actions.map(|action| format!("template.yaml: name actions without a star: {action}")),
    );
    // A function deletes the messages that it has handled.
    let deletes = |statement: &&&Value| statement["Action"].to_string().contains("dynamodb:Delete");
    let statements = statements.iter().filter(deletes);
    let statements = statements.filter(|statement| statement["Resource"] != table_arn("ViewTable"));
    troubles.extend(
        statements.map(|it| format!("template.yaml: only rows may be deleted, and not by {it}")),
    );
    troubles
}

#[test]
fn a_statement_that_is_not_limited_to_its_keys_is_named() {
    let context = ContextInfo {
        name: "carts",
        log: ringfence_core::LogKind::Aggregates,
        event_types: vec![],
        origins: Vec::new(),
        slices: vec![ringfence_stack::SliceInfo {
            name: "add-to-cart",
            about: "",
            reads: vec![],
            writes: vec![],
            reacts_to: &[],
            order: None,
            scopes: None,
            is_personal: false,
            depends_on: BTreeMap::new,
            has_item: || false,
        }],
        dues: vec![],
        views: vec![],
        reactors: vec![],
        functions: vec![],
    };
    let catalog = ringfence_core::Catalog::new("carts", []).expect("nothing contradicts nothing");
    let catalogs = ringfence_core::Catalogs::default();
    let (name, sources) = ("", Default::default());
    let stack = Stack { name, catalog, catalogs, sources, contexts: vec![context] };
    let check = |id: &str, binary: &str, action: &str, condition: Value, is_named: bool| {
        let mut statement = crate::grants::allow("Items", json!([action]), table_arn("SomeTable"));
        statement["Condition"] = condition;
        let mut template = json!({ "Resources": {
            id: {
                "Type": "AWS::Serverless::Function",
                "Metadata": { "BuildProperties": { "Binary": binary } },
                "Properties": {},
            },
        }});
        let role = role_of(&stack, &template, id);
        template["Resources"][&role]["Properties"]["Policies"] =
            json!([{ "PolicyDocument": { "Statement": [statement] } }]);
        let named = writes_outside_of_transactions_and_streams_of_one_context_are_limited_to_keys(
            &stack, &template,
        );
        let begin = format!("template.yaml: {role}: statement \"Items\" needs ");
        assert_eq!(named.iter().any(|line| line.starts_with(&begin)), is_named, "{template:#}");
    };
    let leading =
        |keys: &[&str]| json!({ "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys } });
    let within = json!({ "ForAnyValue:StringEquals": { "dynamodb:EnclosingOperation": ["TransactWriteItems"] } });
    for (action, condition, is_named) in [
        ("dynamodb:Query", Value::Null, false),
        ("dynamodb:PutItem", Value::Null, true),
        ("dynamodb:PutItem", within.clone(), false),
        ("dynamodb:PutItem", leading(&["$ReaderCheckpoint-*", "$View-*"]), false),
        ("dynamodb:PutItem", leading(&["$View-*"]), true),
        (
            "dynamodb:PutItem",
            json!({ "ForAllValues:StringNotLike": { "dynamodb:LeadingKeys": ["$*"] } }),
            false,
        ),
    ] {
        check("ProjectViews", "project-views", action, condition, is_named);
    }
    // A context's slices may only use the context's streams.
    for (action, condition, is_named) in [
        ("dynamodb:Query", Value::Null, true),
        ("dynamodb:PutItem", within, true),
        ("dynamodb:Query", leading(&["carts#*"]), false),
        ("dynamodb:Query", leading(&["orders#*"]), true),
    ] {
        check("AddToCart", "add-to-cart", action, condition, is_named);
    }
}
