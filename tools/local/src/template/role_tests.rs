use serde_json::json;

use super::*;

const SHOP: &str = r##"
Resources:
  Events:
    Type: AWS::DynamoDB::Table
    Properties:
      KeySchema: [{ AttributeName: id, KeyType: HASH }, { AttributeName: position, KeyType: RANGE }]
      GlobalSecondaryIndexes:
        - IndexName: by_customer
          KeySchema: [{ AttributeName: customer, KeyType: HASH }]
        - IndexName: by_student
          KeySchema: [{ AttributeName: student, KeyType: HASH }]
  PlaceOrder:
    Type: AWS::Serverless::Function
    Metadata: { BuildProperties: { Binary: place-order } }
    Properties: { Role: !GetAtt PlaceOrderRole.Arn }
  PlaceOrderRole:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement:
              - { Sid: Log, Effect: Allow, Action: logs:PutLogEvents, Resource: !GetAtt Logs.Arn }
              - Sid: Read
                Effect: Allow
                Action: dynamodb:Query
                Resource: [!GetAtt Events.Arn, !Sub "${Events.Arn}/index/by_customer"]
              - Sid: Append
                Effect: Allow
                Action: [dynamodb:PutItem, dynamodb:ConditionCheckItem]
                Resource: !GetAtt Events.Arn
                Condition:
                  ForAnyValue:StringEquals: { dynamodb:EnclosingOperation: [TransactWriteItems] }
              - Sid: Record
                Effect: Allow
                Action: dynamodb:PutItem
                Resource: !GetAtt Events.Arn
                Condition:
                  ForAllValues:StringLike: { dynamodb:LeadingKeys: ["command#place-order#*"] }
"##;

fn role() -> Role {
    let template = Template::parse(SHOP).expect("YAML");
    template.role("place-order", &[("Events", "events")]).expect("a role")
}

fn query(index: Option<&str>) -> Value {
    let mut query = json!({
        "TableName": "events",
        "KeyConditionExpression": "#from > :from AND #key = :key",
        "ExpressionAttributeNames": { "#key": "id", "#from": "position" },
        "ExpressionAttributeValues": { ":key": { "S": "orderId:1" }, ":from": { "S": "0" } },
    });
    if let Some(index) = index {
        query["IndexName"] = index.into();
        query["ExpressionAttributeNames"]["#key"] = "customer".into();
    }
    query
}

fn put(id: &str) -> Value {
    json!({ "TableName": "events", "Item": { "id": { "S": id }, "position": { "S": "1" } } })
}

fn key() -> Value {
    json!({ "TableName": "events", "Key": { "id": { "S": "f" } } })
}

#[track_caller]
fn check_refused(operation: &str, request: &Value, expected: &str) {
    let refused = role().allow(operation, request).expect_err("it is refused");
    assert_eq!(refused.to_string(), format!("PlaceOrderRole does not allow {expected}"));
}

#[test]
fn a_read_needs_its_table_or_its_index() {
    let access = |resource: &str, key: &str| Permission {
        action: "dynamodb:Query".to_owned(),
        resource: resource.to_owned(),
        arn: "Events.Arn".to_owned(),
        key: Some(key.to_owned()),
        enclosing: None,
    };
    let allowed = role().allow("Query", &query(None)).expect("it is allowed");
    assert_eq!(allowed, [access("Events", "orderId:1")]);
    let allowed = role().allow("Query", &query(Some("by_customer"))).expect("it is allowed");
    assert_eq!(allowed, [access("Events/index/by_customer", "orderId:1")]);
    check_refused(
        "Query",
        &query(Some("by_student")),
        "dynamodb:Query on Events/index/by_student: \
         add `- !Sub \"${Events.Arn}/index/by_student\"` to the resources of its statement Read",
    );
    check_refused(
        "Scan",
        &json!({ "TableName": "events" }),
        "dynamodb:Scan on Events: \
         add a statement with `Action: dynamodb:Scan` and `Resource: !GetAtt Events.Arn`",
    );
    check_refused(
        "BatchGetItem",
        &json!({ "RequestItems": { "events": { "Keys": [] } } }),
        "dynamodb:BatchGetItem on Events: \
         add a statement with `Action: dynamodb:BatchGetItem` and `Resource: !GetAtt Events.Arn`",
    );
}

/// A parameter of Systems Manager has the ARN of the table, or of the one in its place.
#[test]
fn a_table_may_be_named_by_a_parameter_that_has_its_arn() {
    let parameter = "  EventsArn:
    Type: AWS::SSM::Parameter
    Properties: { Type: String, Value: !If [Makes, !GetAtt Events.Arn, !Ref Other] }
  PlaceOrder:";
    let text = SHOP.replace("Events.Arn", "EventsArn.Value").replace("  PlaceOrder:", parameter);
    let role = Template::parse(&text).expect("YAML").role("place-order", &[("Events", "events")]);
    let role = role.expect("a role");
    for index in [None, Some("by_customer")] {
        let allowed = role.allow("Query", &query(index)).expect("it is allowed");
        assert_eq!(allowed[0].arn, "EventsArn.Value");
    }
    let refused = role.allow("Query", &query(Some("by_student"))).expect_err("no grant");
    let fix = "add `- !Sub \"${EventsArn.Value}/index/by_student\"` to the resources of its statement Read";
    assert!(refused.to_string().ends_with(fix), "{refused}");
    assert!(
        excess(&[(role, BTreeSet::new())]).iter().any(|one| one.to_string().contains("on Events "))
    );
}

/// A condition on keys or transactions limits every table of the statement.
#[test]
fn a_statement_whose_conditions_do_not_hold_gets_no_further_table() {
    let others = "  Others:
    Type: AWS::DynamoDB::Table
    Properties: { KeySchema: [{ AttributeName: id, KeyType: HASH }] }
  PlaceOrder:";
    let text = SHOP.replacen("  PlaceOrder:", others, 1);
    let tables = [("Events", "events"), ("Others", "others")];
    let role = Template::parse(&text).expect("YAML").role("place-order", &tables);
    let put = json!({ "TableName": "others", "Item": { "id": { "S": "o" } } });
    let refused = role.expect("a role").allow("PutItem", &put).expect_err("no grant");
    assert_eq!(refused.fix, Fix::Statement, "{refused}");
}

#[test]
fn a_grant_that_nothing_needs_is_excess() {
    let check = |needed: &[Vec<Permission>], expected: &[&str]| {
        // Each permission is needed by another function of the role.
        let all: Vec<_> =
            needed.iter().map(|one| (role(), one.iter().cloned().collect())).collect();
        let found = excess(&all);
        let text =
            |part: &&str| format!("PlaceOrderRole: its statement {part}, which nothing needs");
        let found: BTreeSet<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected.iter().map(text).collect());
    };
    let allowed = |operation, request| role().allow(operation, &request).expect("it is allowed");
    let read = [None, Some("by_customer")].map(|index| allowed("Query", query(index))).concat();
    let part =
        |item| json!({ "TransactItems": [{ "Put": put(item) }, { "ConditionCheck": key() }] });
    let append = allowed("TransactWriteItems", part("orderId:1"));
    let record = allowed("PutItem", put("command#place-order#1"));
    check(&[read.clone(), append.clone(), record.clone()], &[]);
    check(
        &[read[..1].to_vec(), append],
        &[
            "Read allows dynamodb:Query on Events/index/by_customer outside of transactions",
            "Record allows dynamodb:PutItem on Events outside of transactions",
            "Record allows the leading key command#place-order#*",
        ],
    );
    // A put within a transaction needs no statement that allows it alone.
    let recorded = allowed("TransactWriteItems", part("command#place-order#1"));
    check(
        &[read, recorded],
        &[
            "Record allows dynamodb:PutItem on Events outside of transactions",
            "Record allows the leading key command#place-order#*",
        ],
    );
}

#[test]
fn each_part_of_a_transaction_needs_its_own_action() {
    let transaction = |parts: &[Value]| json!({ "TransactItems": parts });
    let parts = [json!({ "Put": put("orderId:1") }), json!({ "ConditionCheck": key() })];
    let allowed = role().allow("TransactWriteItems", &transaction(&parts)).expect("allowed");
    let actions: Vec<_> = allowed.iter().map(|access| &*access.action).collect();
    assert_eq!(actions, ["dynamodb:PutItem", "dynamodb:ConditionCheckItem"]);
    let update = json!({ "Update": key() });
    check_refused(
        "TransactWriteItems",
        &transaction(&[update]),
        "dynamodb:UpdateItem on Events, key f, within TransactWriteItems: \
         add `dynamodb:UpdateItem` to the actions of its statement Append",
    );
}

#[test]
fn conditions_limit_a_statement_to_transactions_and_to_keys() {
    assert!(role().allow("PutItem", &put("command#place-order#1")).is_ok());
    check_refused(
        "PutItem",
        &put("orderId:1"),
        "dynamodb:PutItem on Events, key orderId:1: \
         the conditions of its statement Append do not hold",
    );
}

#[test]
fn a_role_that_is_not_understood_is_an_error() {
    let denies = SHOP.replacen(
        "Sid: Read\n                Effect: Allow",
        "Sid: Read\n                Effect: Deny",
        1,
    );
    let other = SHOP.replacen("StringLike", "StringEquals", 1);
    for (text, expected) in [
        (denies, "PlaceOrderRole: statement Read: not understood: only `Effect: Allow` is"),
        (other, "PlaceOrderRole: statement Record: not understood: its condition: unknown field"),
    ] {
        let template = Template::parse(&text).expect("YAML");
        let error = template.role("place-order", &[]).err().expect("it is refused").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Template::parse(SHOP).expect("YAML").role("cancel-order", &[]);
    let error = error.err().expect("no function").to_string();
    assert_eq!(error, "cancel-order: Binary: not understood: no function is built from it");
}
