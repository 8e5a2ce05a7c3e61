//! The permissions that a function's role gives, and those that a request to DynamoDB needs: the part of IAM that the
//! template uses.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::access::{Excess, Fix, LackingPermission, Part, Permission};
use super::arn::{Resource, arn_of, resource};
use super::build::not_understood;
use super::document::{Template, View};
use super::error::TemplateError;
use super::intrinsics::Resolver;

/// The permissions of a function on DynamoDB, by its role in the template.
pub struct Role {
    id: String,
    statements: Vec<Statement>,
    /// The tables of the template, by their names in requests.
    tables: BTreeMap<String, Table>,
}

/// A statement that allows something.
struct Statement {
    sid: String,
    actions: Vec<String>,
    resources: Vec<Resource>,
    conditions: Conditions,
}

/// The conditions that the template uses. Any other is an error.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Conditions {
    #[serde(rename = "ForAnyValue:StringEquals")]
    any_equals: Enclosing,
    #[serde(rename = "ForAllValues:StringLike")]
    all_like: Leading,
    #[serde(rename = "ForAllValues:StringNotLike")]
    none_like: Leading,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Enclosing {
    #[serde(rename = "dynamodb:EnclosingOperation")]
    operations: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Leading {
    #[serde(rename = "dynamodb:LeadingKeys")]
    keys: Option<Vec<String>>,
}

/// A table, and the partition keys of the table and of its indexes.
struct Table {
    id: String,
    /// As in [`Permission::arn`].
    arn: String,
    key: String,
    index_keys: BTreeMap<String, String>,
}

impl Template {
    /// The role of the function with this binary. `names` are logical ids of tables, each with the table's name in
    /// requests.
    ///
    /// # Errors
    /// There is no such function or table, or a part of its role is not understood.
    pub fn role(&self, binary: &str, names: &[(&str, &str)]) -> Result<Role, TemplateError> {
        let view = View { resolver: Resolver { document: &self.document, queues: "" } };
        let is_function = |(_, body): &(&str, &Value)| {
            body["Metadata"]["BuildProperties"]["Binary"].as_str() == Some(binary)
        };
        let functions = view.resources("AWS::Serverless::Function")?;
        let function = functions.into_iter().find(is_function);
        let (function, body) = function
            .ok_or_else(|| not_understood(binary, "Binary", "no function is built from it"))?;
        let id = body.pointer("/Properties/Role/Fn::GetAtt/0").and_then(Value::as_str);
        let id = id.ok_or_else(|| {
            not_understood(function, "Role", "it must name a role of the template")
        })?;
        let policies = &self.document["Resources"][id]["Properties"]["Policies"];
        let listed = policies.as_array().into_iter().flatten();
        let listed = listed.flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array());
        let statements = listed.flatten().filter(|statement| {
            statement["Action"].to_string().contains("\"dynamodb:") // other services have other conditions
        });
        let statements = statements.map(|statement| Statement::new(&self.document, id, statement));
        let tables = names.iter().map(|(table, name)| {
            let arn = arn_of(&self.document, table);
            Ok(((*name).to_owned(), Table::new(table, arn, &self.table(table)?)))
        });
        Ok(Role {
            id: id.to_owned(),
            statements: statements.collect::<Result<_, _>>()?,
            tables: tables.collect::<Result<_, TemplateError>>()?,
        })
    }
}

/// The permissions of roles that nothing needs. Each role comes with the permissions that its functions need together.
#[must_use]
pub fn excess<'a>(
    all: impl IntoIterator<Item = &'a (Role, BTreeSet<Permission>)>,
) -> BTreeSet<Excess> {
    let mut roles: BTreeMap<&str, (&Role, BTreeSet<Permission>)> = BTreeMap::new();
    for (role, needed) in all {
        let (_, together) = roles.entry(&role.id).or_insert((role, BTreeSet::new()));
        together.extend(needed.iter().cloned());
    }
    roles.values().flat_map(|(role, needed)| role.excess(needed)).collect()
}

impl Role {
    /// Its logical id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The permissions that the request needs, if the role gives them.
    ///
    /// # Errors
    /// The first permission that the role lacks, and the change of the template that would add it.
    pub fn allow(
        &self,
        operation: &str,
        request: &Value,
    ) -> Result<Vec<Permission>, LackingPermission> {
        let accesses = self.accesses(operation, request);
        match accesses.iter().find(|access| !self.allows(access)) {
            None => Ok(accesses),
            Some(access) => Err(LackingPermission {
                role: self.id.clone(),
                fix: self.fix(access),
                access: Box::new(access.clone()),
            }),
        }
    }

    fn excess(&self, needed: &BTreeSet<Permission>) -> impl Iterator<Item = Excess> {
        let (role, statements) = (&self.id, self.statements.iter());
        statements.flat_map(|statement| {
            let of = |part| Excess { role: role.clone(), sid: statement.sid.clone(), part };
            statement.excess(needed).into_iter().map(of)
        })
    }

    fn allows(&self, access: &Permission) -> bool {
        self.statements
            .iter()
            .any(|statement| statement.is_of(access) && statement.conditions.hold(access))
    }

    /// The permissions that the request needs. A part of a transaction needs the permission that its request would need
    /// alone.
    #[must_use]
    pub fn accesses(&self, operation: &str, request: &Value) -> Vec<Permission> {
        let (parts, enclosing) = match operation {
            "TransactWriteItems" | "TransactGetItems" => {
                let parts = request["TransactItems"].as_array().into_iter().flatten();
                (parts.filter_map(Value::as_object).flatten().collect::<Vec<_>>(), Some(operation))
            }
            _ => return self.alone(operation, request),
        };
        let access = |(part, request): (&String, &Value)| {
            let action = match part.as_str() {
                "ConditionCheck" => "ConditionCheckItem".to_owned(),
                part => format!("{part}Item"),
            };
            let enclosing = enclosing.map(str::to_owned);
            Permission { enclosing, ..self.access(&action, request["TableName"].as_str(), request) }
        };
        parts.into_iter().map(access).collect()
    }

    fn alone(&self, operation: &str, request: &Value) -> Vec<Permission> {
        match request["RequestItems"].as_object() {
            Some(tables) => tables
                .keys()
                .map(|table| self.access(operation, Some(table), &Value::Null))
                .collect(),
            None => vec![self.access(operation, request["TableName"].as_str(), request)],
        }
    }

    fn access(&self, action: &str, table: Option<&str>, request: &Value) -> Permission {
        let name = table.unwrap_or_default();
        let index = request["IndexName"].as_str();
        let known = self.tables.get(name);
        let id = known.map_or(name, |table| &table.id);
        let arn = known.map_or_else(|| format!("{name}.Arn"), |table| table.arn.clone());
        let key = known.and_then(|table| match index {
            None => Some(&table.key),
            Some(index) => table.index_keys.get(index),
        });
        Permission {
            action: format!("dynamodb:{action}"),
            resource: index.map_or_else(|| id.to_owned(), |index| format!("{id}/index/{index}")),
            arn,
            key: key.and_then(|key| key_of(request, key)),
            enclosing: None,
        }
    }

    /// The change that would make the role allow it.
    fn fix(&self, access: &Permission) -> Fix {
        let Permission { action, resource, .. } = access;
        // An addition to a statement is under its conditions too.
        let is_alike = |statement: &&Statement| {
            let conditions = &statement.conditions;
            conditions.all_enclosed() == access.enclosing.is_some() && conditions.hold(access)
        };
        let mut of_action =
            self.statements.iter().filter(is_alike).filter(|it| it.actions.contains(action));
        let mut of_resource = self.statements.iter().filter(is_alike).filter(|statement| {
            let is_only = matches!(&statement.resources[..], [one] if one.name == *resource);
            is_only && (statement.conditions.all_like.keys.is_none() || access.key.is_some())
        });
        if let Some(statement) = self.statements.iter().find(|s| s.is_of(access)) {
            Fix::Conditions { sid: statement.sid.clone() }
        } else if let Some(statement) = of_action.next() {
            Fix::Resource { sid: statement.sid.clone() }
        } else if let Some(statement) = of_resource.next() {
            Fix::Action { sid: statement.sid.clone() }
        } else {
            Fix::Statement
        }
    }
}

impl Statement {
    fn new(document: &Value, role: &str, statement: &Value) -> Result<Self, TemplateError> {
        let sid = statement["Sid"].as_str().unwrap_or("without a Sid").to_owned();
        let wrong = |what: &str| not_understood(role, &format!("statement {sid}"), what);
        if statement["Effect"] != "Allow" {
            return Err(wrong("only `Effect: Allow` is"));
        }
        let actions = each(&statement["Action"]).map(|action| action.as_str().map(str::to_owned));
        let actions: Option<Vec<String>> = actions.collect();
        let resources = each(&statement["Resource"]).map(|value| resource(document, value));
        let resources: Option<Vec<_>> = resources.collect();
        let conditions = match statement.get("Condition") {
            None => Conditions::default(),
            Some(condition) => serde_json::from_value(condition.clone())
                .map_err(|error| wrong(&format!("its condition: {error}")))?,
        };
        Ok(Self {
            actions: actions.ok_or_else(|| wrong("an action is not a string"))?,
            resources: resources
                .ok_or_else(|| wrong("a resource is neither a table nor an index"))?,
            sid,
            conditions,
        })
    }

    fn is_of(&self, access: &Permission) -> bool {
        let is_of = |resource: &Resource| resource.name == access.resource;
        self.actions.contains(&access.action) && self.resources.iter().any(is_of)
    }

    /// The permissions of the statement that `needed` does not contain. Parts of transactions do not need a statement
    /// that also allows them alone. Lambda reads streams with the role; no request of the function shows that, so it is
    /// not checked.
    fn excess(&self, needed: &BTreeSet<Permission>) -> Vec<Part> {
        let is_enclosed = self.conditions.all_enclosed();
        let used = needed.iter().filter(|access| {
            let is_alike = access.enclosing.is_some() == is_enclosed;
            is_alike && self.is_of(access) && self.conditions.hold(access)
        });
        let used: Vec<_> = used.collect();
        let mut excess = Vec::new();
        for Resource { name, arn } in
            self.resources.iter().filter(|resource| !resource.name.ends_with(".StreamArn"))
        {
            let is_used = |action: &String| {
                used.iter().any(|used| used.action == *action && used.resource == *name)
            };
            let unused = self.actions.iter().filter(|action| !is_used(action));
            excess.extend(unused.map(|action| Part::Access {
                action: action.clone(),
                resource: name.clone(),
                arn: arn.clone(),
                alone: !is_enclosed,
            }));
        }
        let keys = || used.iter().filter_map(|used| used.key.as_ref());
        let patterns = self.conditions.all_like.keys.iter().flatten();
        let unused = patterns.filter(|like| !keys().any(|key| is_like(key, like)));
        excess.extend(unused.map(|like| Part::LeadingKey(like.clone())));
        excess
    }
}

impl Conditions {
    /// Whether they hold only within transactions.
    fn all_enclosed(&self) -> bool {
        self.any_equals.operations.is_some()
    }

    /// Whether they hold, by the rules of IAM: a request without a key matches every list of keys, and an action
    /// outside of a transaction matches no list of transactions.
    fn hold(&self, access: &Permission) -> bool {
        let enclosed = self.any_equals.operations.as_ref().is_none_or(|operations| {
            access.enclosing.as_ref().is_some_and(|operation| operations.contains(operation))
        });
        let leads = self.all_like.keys.as_ref().is_none_or(|patterns| {
            access.key.as_ref().is_none_or(|key| patterns.iter().any(|like| is_like(key, like)))
        });
        let is_excluded = self.none_like.keys.as_ref().is_some_and(|patterns| {
            access.key.as_ref().is_some_and(|key| patterns.iter().any(|like| is_like(key, like)))
        });
        enclosed && leads && !is_excluded
    }
}

impl Table {
    fn new(id: &str, arn: String, properties: &Value) -> Self {
        let key = |schema: &Value| {
            let mut keys = schema["KeySchema"].as_array().into_iter().flatten();
            let hash = keys.find(|key| key["KeyType"] == "HASH");
            hash.and_then(|key| key["AttributeName"].as_str()).unwrap_or_default().to_owned()
        };
        let indexes = properties["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
        let index_keys = indexes
            .map(|index| (index["IndexName"].as_str().unwrap_or_default().to_owned(), key(index)));
        Self { id: id.to_owned(), arn, key: key(properties), index_keys: index_keys.collect() }
    }
}

/// The items of a list, or the single value in its place.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice).iter()
}

/// IAM's `StringLike` with a star at the end, as the template uses it.
fn is_like(text: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => text.starts_with(begin),
        None => text == pattern,
    }
}

/// The value of the partition key that a request names.
fn key_of(request: &Value, key: &str) -> Option<String> {
    let item = request.get("Key").or_else(|| request.get("Item"));
    let value = match item {
        Some(item) => item.get(key)?,
        None => {
            let terms = request["KeyConditionExpression"].as_str()?.split(" AND ");
            let mut equals = terms.filter_map(|term| term.split_once('='));
            let named = |name: &str| match request["ExpressionAttributeNames"].get(name) {
                Some(resolved) => resolved.as_str() == Some(key),
                None => name == key,
            };
            let (_, value) = equals.find(|(name, _)| named(name.trim()))?;
            request["ExpressionAttributeValues"].get(value.trim())?
        }
    };
    value.as_object()?.values().next()?.as_str().map(str::to_owned)
}

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
