//! The resources of roles: tables, their streams and their indexes, by their ARNs in the template.

use serde_json::{Value, json};

/// A table, its stream or an index, in a statement.
pub(super) struct Resource {
    /// As in [`Permission::resource`]; for a stream `EventTable.StreamArn`.
    pub(super) name: String,
    /// As in [`Permission::arn`].
    pub(super) arn: String,
}

/// The resource of a value such as `!GetAtt EventTable.Arn` or `!Sub "${EventTableArn.Value}/index/tag_customerId"`.
pub(super) fn resource(document: &Value, value: &Value) -> Option<Resource> {
    if let Some(path) = value.pointer("/Fn::GetAtt") {
        let (of, attribute) = (path[0].as_str()?, path[1].as_str()?);
        let arn = format!("{of}.{attribute}");
        return Some(Resource { name: meant(document, of, attribute)?, arn });
    }
    let (arn, rest) = value.pointer("/Fn::Sub")?.as_str()?.strip_prefix("${")?.split_once('}')?;
    let (of, attribute) = arn.split_once('.')?;
    Some(Resource { name: meant(document, of, attribute)? + rest, arn: arn.to_owned() })
}

/// The resource behind an attribute: a table, or its stream. It may be a parameter of Systems Manager with the ARN of
/// the stack's table, or of the table in its place.
fn meant(document: &Value, of: &str, attribute: &str) -> Option<String> {
    Some(match attribute {
        "Arn" => of.to_owned(),
        "Value" => {
            let own = stands_for(&document["Resources"][of])?;
            meant(document, own[0].as_str()?, own[1].as_str()?)?
        }
        other => format!("{of}.{other}"),
    })
}

/// The resource and the attribute in a parameter of Systems Manager, unless another table is used in its place.
fn stands_for(resource: &Value) -> Option<&Value> {
    let is_parameter = resource["Type"] == "AWS::SSM::Parameter";
    resource.pointer("/Properties/Value/Fn::If/1/Fn::GetAtt").filter(|_| is_parameter)
}

/// The template's expression for the ARN of a table.
pub(super) fn arn_of(document: &Value, table: &str) -> String {
    let resources = document["Resources"].as_object().into_iter().flatten();
    let arn = json!([table, "Arn"]);
    let mut parameters = resources.filter(|(_, resource)| stands_for(resource) == Some(&arn));
    let own = || format!("{table}.Arn");
    parameters.next().map_or_else(own, |(id, _)| format!("{id}.Value"))
}
