//! Compares the requests of functions with their roles.

use std::collections::BTreeSet;
use std::fs;

use ringfence_aws::wire::Exchange;
use ringfence_core::kit::fail;
use ringfence_local::stack_root;
use ringfence_local::template::{Excess, LackingPermission, Template, TemplateError, excess};
use ringfence_template::written::{Grant, Grants};
use serde_json::Value;

use crate::dynamo::tables;
use crate::template::{binary, check_none};
use crate::written::{self, Current};

/// A function's name, and its requests: operations and bodies. The names of the tables are their logical ids.
pub(crate) type Asked = (String, Vec<(String, Value)>);

/// Panics unless the roles of the functions allow exactly these requests.
pub(crate) fn check_requests(template: Template, asked: &[Asked]) {
    let template = template.whole();
    let lines = lines(&template, &tables(&template), asked);
    check_none(&lines.unwrap_or_else(|error| fail("template.yaml", error)));
}

/// Compares requests of a function with its role. The names of the tables are their logical ids. Panics unless the role
/// allows exactly the requests.
pub fn check_role(function: &str, asked: Vec<Exchange>) {
    let template = Template::of_stack().unwrap_or_else(|error| fail("the template", error));
    check_requests(template, &[asked_by(function, asked)]);
}

/// The requests of a function.
pub(crate) fn asked_by(function: &str, asked: Vec<Exchange>) -> Asked {
    let asked = asked.into_iter().map(|asked| (asked.operation, asked.request)).collect();
    (function.to_owned(), asked)
}

/// Compares requests with the role of a function that serves all contexts.
pub(crate) fn check_role_of(current: &Current, id: &str, asked: Vec<Exchange>) {
    let model = current.model();
    let binary = binary(&model, id).unwrap_or_else(|| panic!("template.yaml lacks {id}"));
    check_requests(current.template(), &[asked_by(binary, asked)]);
}

/// The permissions that the roles lack, and the permissions that no request needs.
pub(crate) fn lines(
    template: &Template,
    tables: &[&str],
    asked: &[Asked],
) -> Result<Vec<String>, TemplateError> {
    let (lacking, excess) = compare(template, tables, asked)?;
    let mut lines: Vec<_> = lacking.iter().map(ToString::to_string).collect();
    lines.dedup();
    lines.extend(excess.iter().map(ToString::to_string));
    if !lines.is_empty() {
        let text = fs::read_to_string(stack_root().join("template.yaml"));
        lines.push(written::hint(&text.unwrap_or_default()).to_owned());
    }
    Ok(lines)
}

type Compared = (Vec<LackingPermission>, BTreeSet<Excess>);

fn compare(
    template: &Template,
    tables: &[&str],
    asked: &[Asked],
) -> Result<Compared, TemplateError> {
    let tables: Vec<_> = tables.iter().map(|table| (*table, *table)).collect();
    let (mut lacking, mut roles) = (Vec::new(), Vec::new());
    for (function, requests) in asked {
        let (role, mut needed) = (template.role(function, &tables)?, BTreeSet::new());
        for (operation, request) in requests {
            match role.allow(operation, request) {
                Ok(allowed) => needed.extend(allowed),
                Err(refused) => lacking.push(refused),
            }
        }
        roles.push((role, needed));
    }
    Ok((lacking, excess(&roles)))
}

/// The permissions that requests to the tables of the logs need, for each role.
pub(crate) fn grants(
    template: &Template,
    tables: &[&str],
    asked: &[Asked],
) -> Result<Grants, TemplateError> {
    let tables: Vec<_> = tables.iter().map(|table| (*table, *table)).collect();
    let mut all = Grants::new();
    for (function, requests) in asked {
        let role = template.role(function, &tables)?;
        let accesses =
            requests.iter().flat_map(|(operation, request)| role.accesses(operation, request));
        let of =
            accesses.filter_map(|it| Grant::of(&it.resource, &it.action, it.enclosing.is_some()));
        all.entry(role.id().to_owned()).or_default().extend(of);
    }
    Ok(all)
}
