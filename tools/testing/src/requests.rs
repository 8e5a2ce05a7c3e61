//! Compares the requests that functions make with what their roles allow.

use std::collections::{BTreeMap, BTreeSet};

use ringfence_core::kit::fail;
use ringfence_local::template::{Excess, LackingPermission, Template, TemplateError, excess};
use serde_json::Value;

use crate::mend;
use crate::template::check_none;

/// A function's name, and its requests: operations and bodies. The names of the tables are their logical ids.
pub(crate) type Asked = (String, Vec<(String, Value)>);

/// Panics unless the roles of the functions allow the requests, and no more. Under `UPDATE=1` it writes what is missing
/// before it looks.
pub(crate) fn check_requests(tables: &[&str], asked: &[Asked]) {
    if mend::is_asked() {
        mend::template(|text| mended(text, tables, asked));
    }
    let template = Template::of_stack()
        .map(Template::whole)
        .unwrap_or_else(|error| fail("the template", error));
    let lines = lines(&template, tables, asked);
    check_none(&lines.unwrap_or_else(|error| fail("template.yaml", error)));
}

/// What the roles lack, and what they allow and nothing asks for.
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
        lines.push(mend::HINT.to_owned());
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

/// The template with what the roles lack, and without what nothing needs.
pub(crate) fn mended(mut text: String, tables: &[&str], asked: &[Asked]) -> String {
    let look = |text: &str| {
        let template = Template::parse(text).ok()?.whole();
        compare(&template, tables, asked).ok()
    };
    let mut before = String::new();
    // One grant can allow several requests, so it looks again after each.
    while let Some((lacking, _)) = look(&text) {
        let Some(first) = lacking.first().filter(|first| first.to_string() != before) else {
            break;
        };
        let with = mend::with_access(&text, first).filter(|with| look(with).is_some());
        let Some(with) = with else { break };
        (before, text) = (first.to_string(), with);
    }
    let Some((lacking, excess)) = look(&text) else { return text };
    // What a role lacks and can't be written may be what would use a grant.
    if lacking.is_empty() {
        let mut of_statement = BTreeMap::<_, Vec<_>>::new();
        for one in &excess {
            of_statement.entry((&one.role, &one.sid)).or_default().push(one);
        }
        for excess in of_statement.values() {
            let without = mend::without_excess(&text, excess).filter(|text| look(text).is_some());
            text = without.unwrap_or(text);
        }
    }
    text
}
