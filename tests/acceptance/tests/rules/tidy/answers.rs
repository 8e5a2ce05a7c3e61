//! The page of answers has the problems that callers find in the OpenAPI document, and the statuses that the gateway
//! answers in place of a function.

use std::collections::BTreeSet;
use std::fs;

use ringfence_local::workspace_root;
use serde_json::Value;

/// The text in place of a problem in a row of the gateway.
const GATEWAY: &str = r#"none: the body is `{"message": …}`"#;

#[test]
fn the_page_of_answers_has_the_problems_of_the_openapi_document_and_the_answers_of_the_gateway() {
    let text = |path: &str| fs::read_to_string(workspace_root().join(path)).unwrap();
    let page = text("docs/answers.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| 200 ")).skip(1);
    let (mut of_page, mut of_gateway) = (BTreeSet::new(), BTreeSet::new());
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut columns = row.split('|').skip(1);
        let statuses = columns.next().unwrap().split(',').map(|it| it.trim().parse().unwrap());
        let statuses: Vec<u64> = statuses.collect();
        let kinds = columns.next().unwrap().trim();
        if kinds == GATEWAY {
            of_gateway.extend(statuses);
            continue;
        }
        let [status] = statuses[..] else { panic!("a problem has one status: {row}") };
        let kinds = kinds.split('`').skip(1).step_by(2);
        of_page.extend(kinds.map(|kind| (status, kind.to_owned())));
    }
    let document: Value = serde_json::from_str(&text("docs/api/openapi.json")).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let problem = |schema: &Value| {
        let members = &schema["properties"];
        Some((members["status"]["const"].as_u64()?, members["type"]["enum"].as_array()?.clone()))
    };
    let mut of_document = BTreeSet::new();
    for (status, types) in schemas.values().filter_map(problem) {
        let kind = |text: &Value| text.as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        of_document.extend(types.iter().map(|text| (status, kind(text))));
    }
    assert_eq!(of_page, of_document, "docs/answers.md (left), docs/api/openapi.json (right)");

    // The responses that have the gateway's body besides a problem, and the one that has only that body.
    let mut in_document = BTreeSet::new();
    for response in document["components"]["responses"].as_object().unwrap().values() {
        let schema = response["content"]["application/json"]["schema"]["$ref"].as_str();
        let Some(name) = schema.map(|schema| schema.rsplit('/').next().unwrap()) else { continue };
        if let Some(name) = name.strip_suffix("OrGateway") {
            in_document.extend(problem(&schemas[name]).map(|(status, _)| status));
        } else if name == "Gateway" {
            let about = response["description"].as_str().unwrap();
            let words = about.split(|c: char| !c.is_ascii_digit());
            in_document.extend(words.filter_map(|word| word.parse::<u64>().ok()));
        }
    }
    assert_eq!(
        of_gateway, in_document,
        "the gateway: docs/answers.md (left), openapi.json (right)"
    );
}
