//! The page of answers has the problems that callers learn of from the OpenAPI document.

use std::collections::BTreeSet;
use std::fs;

use ringfence_local::workspace_root;
use serde_json::Value;

#[test]
fn the_page_of_answers_has_the_problems_of_the_openapi_document() {
    let text = |path: &str| fs::read_to_string(workspace_root().join(path)).unwrap();
    let page = text("docs/answers.md");
    let rows = page.lines().skip_while(|line| !line.starts_with("| 200 ")).skip(1);
    let mut of_page = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut columns = row.split('|').skip(1);
        let status: u64 = columns.next().unwrap().trim().parse().unwrap();
        let kinds = columns.next().unwrap().split('`').skip(1).step_by(2);
        of_page.extend(kinds.map(|kind| (status, kind.to_owned())));
    }
    let document: Value = serde_json::from_str(&text("docs/api/openapi.json")).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap().values();
    let problems = schemas.filter_map(|schema| {
        let members = &schema["properties"];
        Some((members["status"]["const"].as_u64()?, members["type"]["enum"].as_array()?))
    });
    let mut of_document = BTreeSet::new();
    for (status, types) in problems {
        let kind = |text: &Value| text.as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        of_document.extend(types.iter().map(|text| (status, kind(text))));
    }
    assert_eq!(of_page, of_document, "docs/answers.md (left), docs/api/openapi.json (right)");
}
