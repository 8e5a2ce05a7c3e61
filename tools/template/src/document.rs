//! The tables as documents for tools that make tables.
//!
//! Each document has one output for each name and each stream. A stack that uses existing tables takes these outputs as
//! its parameters.

use std::fmt::Write;

use heck::{ToLowerCamelCase, ToSnakeCase};
use ringfence_aws::{IndexLayout, Key};
use serde_json::{Map, Value, json};

use crate::StackTable;

/// A template of CloudFormation.
#[must_use]
pub fn cloudformation(tables: &[StackTable]) -> String {
    let resource = |table: &StackTable| {
        let resource = json!({
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
            "Properties": properties(table),
        });
        (table.id.to_owned(), resource)
    };
    let outputs = tables.iter().flat_map(|table| {
        let name = (format!("{}Name", table.id), json!({ "Value": { "Ref": table.id } }));
        let arn = json!({ "Value": { "Fn::GetAtt": [table.id, "StreamArn"] } });
        let stream = table.layout.stream.as_ref().map(|_| (format!("{}StreamArn", table.id), arn));
        [name].into_iter().chain(stream)
    });
    let document = json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": tables.iter().map(resource).collect::<Map<_, _>>(),
        "Outputs": outputs.collect::<Map<_, _>>(),
    });
    serde_yaml_ng::to_string(&document).expect("JSON has a form in YAML")
}

/// The properties of a table of a stack: the layout that its log needs, protection, and restores to any time of its
/// last days.
fn properties(table: &StackTable) -> Value {
    let mut properties = table.layout.properties();
    properties["DeletionProtectionEnabled"] = json!(true);
    let recovery = &mut properties["PointInTimeRecoverySpecification"];
    *recovery = json!({ "PointInTimeRecoveryEnabled": true });
    if let Some(days) = table.recovery_days {
        recovery["RecoveryPeriodInDays"] = json!(days);
    }
    properties
}

/// A module of Terraform, in HCL. Its variable `prefix` begins the names of the tables.
#[must_use]
pub fn terraform(tables: &[StackTable]) -> String {
    let mut module = "variable \"prefix\" {\n  type        = string\n  \
                      description = \"What the names of the tables begin with.\"\n}\n"
        .to_owned();
    for table in tables {
        let name = table.id.to_snake_case();
        let place = format!("aws_dynamodb_table.{name}");
        let mut body = Hcl::default();
        let hyphened = name.replace('_', "-");
        body.set("name", &format!("\"${{var.prefix}}-{hyphened}\""));
        body.text("billing_mode", "PAY_PER_REQUEST");
        body.keys(&table.layout.keys);
        body.set("deletion_protection_enabled", "true");
        if let Some(stream) = &table.layout.stream {
            body.set("stream_enabled", "true");
            body.text("stream_view_type", stream.as_str());
        }
        for (name, kind) in table.layout.attributes() {
            body.block("attribute", |block| {
                block.text("name", name);
                block.text("type", kind.as_str());
            });
        }
        for index in &table.layout.indexes {
            body.block("global_secondary_index", |block| block.index(index));
        }
        if let Some(attribute) = table.layout.expires_at {
            body.block("ttl", |block| {
                block.text("attribute_name", attribute);
                block.set("enabled", "true");
            });
        }
        body.block("point_in_time_recovery", |block| {
            block.set("enabled", "true");
            if let Some(days) = table.recovery_days {
                block.set("recovery_period_in_days", &days.to_string());
            }
        });
        body.block("lifecycle", |block| block.set("prevent_destroy", "true"));
        let _ =
            write!(module, "\nresource \"aws_dynamodb_table\" \"{name}\" {{\n{}}}\n", body.lines());
        let stream = table.layout.stream.as_ref().map(|_| ("StreamArn", "stream_arn"));
        for (end, attribute) in [("Name", "name")].into_iter().chain(stream) {
            let _ = write!(
                module,
                "\noutput \"{}{end}\" {{\n  value = {place}.{attribute}\n}}\n",
                table.id
            );
        }
    }
    module
}

/// The lines of a block of HCL, in the form of `terraform fmt`: first attributes, then blocks.
#[derive(Default)]
struct Hcl {
    attributes: Vec<(String, String)>,
    blocks: String,
}

impl Hcl {
    fn set(&mut self, name: &str, value: &str) {
        self.attributes.push((name.to_owned(), value.to_owned()));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.set(name, &json!(value).to_string());
    }

    fn keys(&mut self, keys: &[Key]) {
        for ((key, _), name) in keys.iter().zip(["hash_key", "range_key"]) {
            self.text(name, key);
        }
    }

    fn index(&mut self, index: &IndexLayout) {
        self.text("name", &index.name);
        self.keys(&index.keys);
        match index.attributes[..] {
            [] => self.text("projection_type", "KEYS_ONLY"),
            _ => {
                self.text("projection_type", "INCLUDE");
                self.list("non_key_attributes", &index.attributes);
            }
        }
    }

    fn list(&mut self, name: &str, texts: &[&str]) {
        let texts: Vec<_> = texts.iter().map(|text| json!(text).to_string()).collect();
        self.set(name, &format!("[{}]", texts.join(", ")));
    }

    fn block(&mut self, name: &str, fill: impl FnOnce(&mut Self)) {
        let mut block = Self::default();
        fill(&mut block);
        let lines: String = block.lines().lines().map(|line| format!("  {line}\n")).collect();
        let _ = write!(self.blocks, "\n  {name} {{\n{lines}  }}\n");
    }

    fn lines(self) -> String {
        let widest = self.attributes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, value): &(String, String)| format!("  {name:widest$} = {value}\n");
        self.attributes.iter().map(line).collect::<String>() + &self.blocks
    }
}

/// A construct of CDK, in TypeScript.
#[must_use]
pub fn cdk(tables: &[StackTable]) -> String {
    let mut body = String::new();
    for table in tables {
        let variable = table.id.to_lower_camel_case();
        let properties = format!("{:#}", camel(properties(table)));
        // JSON is valid TypeScript. Without quotes of keys it also looks like TypeScript.
        let unquoted = properties.lines().map(|line| match line.trim_start().strip_prefix('"') {
            Some(rest) if rest.contains("\": ") => {
                let indent = &line[..line.len() - line.trim_start().len()];
                format!("{indent}{}", rest.replacen("\": ", ": ", 1))
            }
            _ => line.to_owned(),
        });
        let properties = unquoted.collect::<Vec<_>>().join("\n    ");
        let id = table.id;
        let _ = write!(
            body,
            "\n    const {variable} = new CfnTable(this, '{id}', {properties});\n    \
             {variable}.applyRemovalPolicy(RemovalPolicy.RETAIN);\n"
        );
        let stream = table.layout.stream.as_ref().map(|_| ("StreamArn", "attrStreamArn"));
        for (end, of) in [("Name", "ref")].into_iter().chain(stream) {
            let output = format!("new CfnOutput(this, '{id}{end}', {{ value: {variable}.{of} }})");
            // Without this the construct's own id would be in the name.
            let _ = writeln!(body, "    {output}.overrideLogicalId('{id}{end}');");
        }
    }
    format!(
        "import {{ CfnOutput, RemovalPolicy }} from 'aws-cdk-lib';\n\
         import {{ CfnTable }} from 'aws-cdk-lib/aws-dynamodb';\n\
         import {{ Construct }} from 'constructs';\n\n\
         export class Tables extends Construct {{\n  \
         constructor(scope: Construct, id: string) {{\n    super(scope, id);\n{body}  }}\n}}\n"
    )
}

/// The keys of all maps as CDK has them.
fn camel(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key.to_lower_camel_case(), camel(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(camel).collect(),
        scalar => scalar,
    }
}

/// The lines of an index.
pub(crate) fn index_yaml(index: &IndexLayout) -> String {
    let [hash, range] = index.keys.each_ref().map(|(name, _)| name);
    let projection = match index.attributes[..] {
        [] => "ProjectionType: KEYS_ONLY".to_owned(),
        _ => {
            format!("ProjectionType: INCLUDE, NonKeyAttributes: [{}]", index.attributes.join(", "))
        }
    };
    format!(
        "        - IndexName: {}\n          KeySchema: [{{ AttributeName: {hash}, KeyType: HASH }}, \
         {{ AttributeName: {range}, KeyType: RANGE }}]\n          Projection: {{ {projection} }}\n",
        index.name
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use ringfence_core::prelude::*;

    use super::*;
    use crate::{legacy_table, tables_of};

    #[derive(Clone, Debug, PartialEq, Event)]
    struct RoomBooked {
        #[tag(partition)]
        room_id: String,
        #[tag(cross_partition)]
        guest_id: String,
    }

    /// A guest books rooms: `guestId` is read across partitions.
    pub(crate) fn catalog() -> Catalog {
        Catalog::new("rooms", [RoomBooked::SCHEMA]).expect("no contradiction")
    }

    fn tables() -> Vec<StackTable> {
        tables_of(&[ringfence_dcb_log::SOURCE].into(), &catalog(), true)
    }

    #[test]
    fn a_template_has_each_table_whole_and_outputs_that_are_parameters_of_a_stack() {
        let document = cloudformation(&tables());
        let document: Value = serde_yaml_ng::from_str(&document).expect("YAML");
        for table in tables() {
            let resource = &document["Resources"][table.id];
            assert_eq!(resource["Properties"], properties(&table));
            let name = &document["Outputs"][format!("{}Name", table.id)]["Value"];
            assert_eq!(*name, json!({ "Ref": table.id }));
            let stream = &document["Outputs"][format!("{}StreamArn", table.id)];
            assert_eq!(stream.is_object(), table.layout.stream.is_some(), "{}", table.id);
        }
    }

    #[test]
    fn terraform_and_cdk_have_what_the_template_has() {
        let mut tables = tables();
        tables.remove(1);
        let module = terraform(&tables);
        let expected = "resource \"aws_dynamodb_table\" \"event_table\" {
  name                        = \"${var.prefix}-event-table\"
  billing_mode                = \"PAY_PER_REQUEST\"
  hash_key                    = \"id\"
  range_key                   = \"position\"
  deletion_protection_enabled = true
  stream_enabled              = true
  stream_view_type            = \"NEW_IMAGE\"

  attribute {
    name = \"at\"
    type = \"N\"
  }
";
        assert!(module.contains(expected), "{module}");
        let index = "
  global_secondary_index {
    name               = \"tag_guestId\"
    hash_key           = \"tag_guestId\"
    range_key          = \"at\"
    projection_type    = \"INCLUDE\"
    non_key_attributes = [\"event\", \"data\", \"tags\"]
  }

  ttl {
    attribute_name = \"expiresAt\"
    enabled        = true
  }
";
        assert!(module.contains(index), "{module}");
        let outputs: Vec<_> = module.lines().filter(|line| line.starts_with("output")).collect();
        let names = ["EventTableName", "EventTableStreamArn", "ViewTableName", "KeyTableName"];
        assert_eq!(outputs, names.map(|name| format!("output \"{name}\" {{")));

        // Keys of forgotten persons are soon in no backup. The table has one key, no index and no stream.
        let keys = "
  attribute {
    name = \"p\"
    type = \"S\"
  }

  point_in_time_recovery {
    enabled                 = true
    recovery_period_in_days = 7
  }
";
        assert!(module.contains(keys), "{module}");

        // Only the index of Castore's older layout differs, and nothing reads its stream.
        let legacy = terraform(&[legacy_table()]);
        let index = "    hash_key        = \"isInitialEvent\"
    range_key       = \"timestamp\"
    projection_type = \"KEYS_ONLY\"
";
        let attribute = "    name = \"isInitialEvent\"\n    type = \"N\"\n";
        assert!(legacy.contains(index) && legacy.contains(attribute), "{legacy}");
        assert!(!legacy.contains("stream"), "{legacy}");

        let construct = cdk(&tables);
        for line in [
            "    const eventTable = new CfnTable(this, 'EventTable', {",
            "      billingMode: \"PAY_PER_REQUEST\",",
            "      pointInTimeRecoverySpecification: {",
            "        pointInTimeRecoveryEnabled: true",
            "          indexName: \"tag_guestId\",",
            "    eventTable.applyRemovalPolicy(RemovalPolicy.RETAIN);",
            "    new CfnOutput(this, 'ViewTableName', { value: viewTable.ref }).overrideLogicalId('ViewTableName');",
        ] {
            assert!(construct.lines().any(|found| found == line), "{line}: {construct}");
        }
    }
}
