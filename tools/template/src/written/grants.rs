//! The permissions that the roles of slices have in the tables of the logs. They follow from the requests of the
//! slices' cases, which the checks of a stack run. Without a run, they stay as the template has them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One thing that a function does with a table of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The table's logical id.
    pub table: String,
    /// The index that it queries.
    pub index: Option<String>,
    /// The action, such as `dynamodb:Query`.
    pub action: String,
    /// Whether it is a part of a transaction.
    pub together: bool,
}

/// The grants of each role, by its logical id.
pub type Grants = BTreeMap<String, BTreeSet<Grant>>;

/// The tables of the logs.
pub(super) const TABLES: [&str; 3] = ["EventTable", "AggregateTable", "DocumentTable"];

/// The actions of slices on these tables. Other actions in a role are a person's.
const ACTIONS: [&str; 5] = ["ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"];

impl Grant {
    /// `resource` is a table's logical id, or with an index: `EventTable/index/tag_customerId`. `None` if it is not a
    /// table of a log.
    #[must_use]
    pub fn of(resource: &str, action: &str, together: bool) -> Option<Self> {
        let (table, index) = match resource.split_once("/index/") {
            Some((table, index)) => (table, Some(index.to_owned())),
            None => (resource, None),
        };
        let (table, action) = (table.to_owned(), action.to_owned());
        TABLES.contains(&&*table).then_some(Self { table, index, action, together })
    }
}

/// The grants of a role in the template.
pub(super) fn of_role(template: &Value, role: &str) -> BTreeSet<Grant> {
    let policies = template["Resources"][role]["Properties"]["Policies"].as_array();
    let statements = policies.into_iter().flatten();
    let statements =
        statements.filter_map(|policy| policy["PolicyDocument"]["Statement"].as_array());
    let mut grants = BTreeSet::new();
    for statement in statements.flatten().filter(|statement| statement["Effect"] == "Allow") {
        let together = !statement["Condition"]["ForAnyValue:StringEquals"].is_null();
        // With another condition it allows less.
        if statement["Condition"].as_object().is_some_and(|all| all.len() > usize::from(together)) {
            continue;
        }
        for resource in each(&statement["Resource"]) {
            let named = resource["!GetAtt"].as_str().or(resource["!Sub"].as_str());
            let named = named.unwrap_or_default().replace(['$', '{', '}'], "");
            let named = named.replacen("Arn.Value", "", 1).replacen(".Arn", "", 1);
            let actions = each(&statement["Action"]).filter_map(Value::as_str);
            let actions = actions.filter(|action| {
                action.strip_prefix("dynamodb:").is_some_and(|action| ACTIONS.contains(&action))
            });
            grants.extend(actions.filter_map(|action| Grant::of(&named, action, together)));
        }
    }
    grants
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

/// All grants that slices on these tables can need. They are used until the cases show the needed ones. `indexes` are
/// the indexes of the event table.
pub(super) fn all(tables: &BTreeSet<&str>, indexes: &[&str]) -> BTreeSet<Grant> {
    let each = tables.iter().flat_map(|table| {
        let (alone, together): (&[&str], &[&str]) = match *table {
            "EventTable" => {
                (&["GetItem", "PutItem", "Query", "UpdateItem"], &["ConditionCheckItem"])
            }
            "AggregateTable" => (&["GetItem", "PutItem", "Query"], &[]),
            _ => (&["GetItem", "PutItem", "Query", "UpdateItem"], &[]),
        };
        let queried = indexes.iter().filter(|_| *table == "EventTable");
        let queried = queried.filter_map(move |index| {
            Grant::of(&format!("{table}/index/{index}"), "dynamodb:Query", false)
        });
        let of = move |(action, together): (&&str, bool)| {
            Grant::of(table, &format!("dynamodb:{action}"), together)
        };
        let alone = alone.iter().map(|action| (action, false));
        alone.chain(together.iter().map(|action| (action, true))).filter_map(of).chain(queried)
    });
    each.collect()
}

/// The statements for grants. `keys` returns the partition keys to which a role is limited in a table.
pub(super) fn statements(grants: &BTreeSet<Grant>, keys: impl Fn(&str) -> Vec<String>) -> String {
    let mut text = String::new();
    for table in TABLES {
        let of = || grants.iter().filter(|grant| grant.table == table);
        let actions = |together: bool| {
            let of = of().filter(|grant| grant.index.is_none() && grant.together == together);
            of.map(|grant| &*grant.action).collect::<BTreeSet<_>>()
        };
        let (mut alone, mut together) = (actions(false), actions(true));
        let arn = format!("!GetAtt {table}Arn.Value");
        if table != "EventTable" {
            // In the tables of streams, all actions of a slice are limited to the keys of its context.
            alone.append(&mut together);
            let sid = table.replace("Table", "s");
            let keys = keys(table);
            let condition = (!keys.is_empty()).then(|| {
                let keys: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
                format!(
                    "\"ForAllValues:StringLike\": {{ dynamodb:LeadingKeys: [{}] }}",
                    keys.join(", ")
                )
            });
            text += &statement(&sid, &alone, &arn, condition.as_deref());
            continue;
        }
        let indexes = of().filter_map(|grant| grant.index.as_ref());
        let indexes: BTreeSet<_> = indexes.collect();
        let table_itself = alone.remove("dynamodb:Query").then(|| arn.clone());
        let indexes =
            indexes.iter().map(|index| format!("!Sub \"${{{table}Arn.Value}}/index/{index}\""));
        let read: Vec<_> = table_itself.into_iter().chain(indexes).collect();
        let read = match &read[..] {
            [one] => one.clone(),
            all => all.iter().map(|one| format!("\n                  - {one}")).collect(),
        };
        let query = if read.is_empty() { BTreeSet::new() } else { ["dynamodb:Query"].into() };
        together.retain(|action| !alone.contains(action));
        let enclosed =
            "\"ForAnyValue:StringEquals\": { dynamodb:EnclosingOperation: [TransactWriteItems] }";
        text += &statement("ReadEvents", &query, &read, None);
        text += &statement("Append", &alone, &arn, None);
        text += &statement("AppendTogether", &together, &arn, Some(enclosed));
    }
    text
}

fn statement(
    sid: &str,
    actions: &BTreeSet<&str>,
    resource: &str,
    condition: Option<&str>,
) -> String {
    let actions: Vec<_> = actions.iter().copied().collect();
    let action = match actions[..] {
        [] => return String::new(),
        [one] => one.to_owned(),
        _ => format!("[{}]", actions.join(", ")),
    };
    let space = if resource.starts_with('\n') { "" } else { " " };
    let condition = condition.map(|it| format!("                Condition: {{ {it} }}\n"));
    format!(
        "              - Sid: {sid}\n                Effect: Allow\n                Action: {action}\n                \
         Resource:{space}{resource}\n{}",
        condition.unwrap_or_default()
    )
}
