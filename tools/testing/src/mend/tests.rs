use ringfence_local::template::{Role, Template, excess};
use serde_json::json;

use super::*;
use crate::requests::{lines, mended};

/// As a new stack has it: without an index.
const BARE: &str = r#"Resources:
  EventTable:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }, { AttributeName: position, KeyType: RANGE }]
      AttributeDefinitions:
        - { AttributeName: id, AttributeType: S }
        - { AttributeName: position, AttributeType: N }
      StreamSpecification: { StreamViewType: NEW_IMAGE } # a comment

  DcbLogRole: # for all its slices
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement:
              - Sid: Read
                Effect: Allow
                Action: dynamodb:Query
                Resource:
                  - !GetAtt EventTable.Arn
              # One event is put by itself.
              - { Sid: Append, Effect: Allow, Action: [dynamodb:GetItem, dynamodb:PutItem],
                  Resource: !GetAtt EventTable.Arn }
              - Sid: AppendTogether
                Effect: Allow
                Action: [dynamodb:ConditionCheckItem]
                Resource: !GetAtt EventTable.Arn
                Condition: { "ForAnyValue:StringEquals": { dynamodb:EnclosingOperation: [TransactWriteItems] } }

  # ---- A slice ----
  BookRoom:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: book-room } }
    Properties: { Role: !GetAtt DcbLogRole.Arn }
"#;

fn scopes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn role(text: &str) -> Role {
    let template = Template::parse(text).expect("YAML");
    template.role("book-room", &[("EventTable", "EventTable")]).expect("a role")
}

/// The requests of a slice that reads by a cross-partition tag and writes an event that has one.
fn requests() -> Vec<(&'static str, serde_json::Value)> {
    let query = |index| json!({ "TableName": "EventTable", "IndexName": index });
    let item = json!({ "TableName": "EventTable", "Key": { "id": { "S": "a" } } });
    let parts = json!([{ "Put": item }, { "ConditionCheck": item }, { "Update": item }]);
    vec![
        ("Query", json!({ "TableName": "EventTable" })),
        ("Query", query("tag_guestId")),
        ("GetItem", item.clone()),
        ("PutItem", item),
        ("TransactWriteItems", json!({ "TransactItems": parts })),
    ]
}

/// Gives the role what the requests need.
fn allowed(mut text: String, requests: &[(&str, serde_json::Value)]) -> String {
    for (operation, request) in requests {
        while let Err(refused) = role(&text).allow(operation, request) {
            text = with_access(&text, &refused).expect("it can be written");
        }
    }
    text
}

#[test]
fn a_role_gets_what_requests_need_and_loses_what_none_needs() {
    let text = allowed(BARE.to_owned(), &requests());
    let changed: Vec<_> = text.lines().filter(|line| !BARE.contains(line)).collect();
    let index = "                  - !Sub \"${EventTable.Arn}/index/tag_guestId\"";
    let together = "                Action: [dynamodb:ConditionCheckItem, dynamodb:UpdateItem]";
    assert_eq!(changed, [index, together]);

    let needed = |requests: &[(&str, serde_json::Value)]| {
        let allow = |(operation, request): &(&str, _)| role(&text).allow(operation, request);
        requests.iter().flat_map(|asked| allow(asked).expect("it is allowed")).collect()
    };
    assert_eq!(excess(&[(role(&text), needed(&requests()))]), BTreeSet::new());
    let fewer = &requests()[..1];
    let found = excess(&[(role(&text), needed(fewer))]);
    let mut text = text.clone();
    for sid in ["Read", "Append", "AppendTogether"] {
        let of_statement: Vec<_> = found.iter().filter(|one| one.sid == sid).collect();
        text = without_excess(&text, &of_statement).expect("a statement");
    }
    assert_eq!(excess(&[(role(&text), needed(fewer))]), BTreeSet::new());
    assert!(!text.contains("Append") && text.contains("# One event is put"), "{text}");
    // The statements that are gone come again.
    let again = allowed(text, &requests());
    assert!(again.contains("Sid: ConditionCheckItemWithinTransactWriteItems\n"), "{again}");
}

#[test]
fn a_check_names_what_is_lacking_and_what_is_in_excess_until_it_has_written_it() {
    let asked = |requests: &[(&str, serde_json::Value)]| {
        let owned =
            requests.iter().map(|(operation, body)| ((*operation).to_owned(), body.clone()));
        [("book-room".to_owned(), owned.collect::<Vec<_>>())]
    };
    let tables = &["EventTable"];
    let requests = requests();
    let mut text = BARE.to_owned();
    let lacking = (&requests[..], "DcbLogRole does not allow ");
    for (some, begin) in [lacking, (&requests[..1], "DcbLogRole: its statement ")] {
        let lines = |text: &str| lines(&Template::parse(text).expect("YAML"), tables, &asked(some));
        let named = lines(&text).expect("a role");
        assert!(named.len() > 1 && named[0].starts_with(begin), "{named:?}");
        assert_eq!(named.last().map(String::as_str), Some(HINT));
        text = mended(text, tables, &asked(some));
        assert_eq!(lines(&text).expect("a role"), [""; 0]);
    }
}

#[test]
fn a_statement_with_comments_is_left_to_a_person() {
    let query = "                Action: dynamodb:Query\n";
    let list = "                Action:\n                  - dynamodb:Query # by room\n";
    let excess = |sid: &str| {
        let of_role = excess(&[(role(BARE), BTreeSet::new())]);
        of_role.into_iter().filter(|one| one.sid == sid).collect::<Vec<_>>()
    };
    let mended = |text: &str, sid: &str| {
        let excess = excess(sid);
        without_excess(text, &excess.iter().collect::<Vec<_>>())
    };
    assert!(mended(BARE, "Read").is_some());
    assert_eq!(mended(&BARE.replace(query, list), "Read"), None);
    let resource = "                  - !GetAtt EventTable.Arn\n";
    let why = format!("                  # The rooms.\n{resource}");
    assert_eq!(mended(&BARE.replace(resource, &why), "Read"), None);
    let one_line = "Resource: !GetAtt EventTable.Arn }";
    assert_eq!(
        mended(&BARE.replace(one_line, "# it\n Resource: !GetAtt EventTable.Arn }"), "Append"),
        None
    );
}

#[test]
fn a_statement_from_which_nothing_can_go_is_as_it_was() {
    let part = Part::LeadingKey("rooms-*".to_owned());
    let one = Excess { role: "DcbLogRole".to_owned(), sid: "Read".to_owned(), part };
    assert_eq!(without_excess(BARE, &[&one]), None);
}

#[test]
fn the_scopes_of_a_route_are_written_changed_and_removed() {
    let route = |path: &str, auth: &str| {
        format!(
            "      Events: {{ Http: {{ Properties: {{ Method: POST, Path: {path}{auth} }} }} }}\n"
        )
    };
    let text = |auth: &str| {
        [
            route("/rooms/book", ", Auth: { Authorizer: NONE }"),
            route("/rooms/bo", auth),
            route("\"/{view}\"", auth),
        ]
        .concat()
    };
    let one = ", Auth: { AuthorizationScopes: [a/b] }";
    let two = ", Auth: { AuthorizationScopes: [a/b, c] }";
    for (before, wanted, after) in
        [("", &["a/b"][..], one), (one, &["a/b", "c"], two), (two, &[], ""), ("", &[], "")]
    {
        let mut found = text(before);
        for path in ["/rooms/bo", "/{view}"] {
            found = with_scopes(&found, path, &scopes(wanted)).expect("it can be written");
        }
        assert_eq!(found, text(after));
    }
    assert_eq!(with_scopes(&text(""), "/rooms/book", &scopes(&["a"])), None);
    assert_eq!(with_scopes(&text(""), "/rooms", &scopes(&["a"])), None);
}
