//! The names that are not settings, and what to write in place of them.

use serde_yaml_ng::Value;

/// The attributes of a resource that are not properties.
pub(super) const OF_RESOURCE: [&str; 5] =
    ["Condition", "DeletionPolicy", "DependsOn", "Metadata", "UpdateReplacePolicy"];

/// The lists to which a setting adds, with the name of an item.
pub(super) const LISTS: [(&str, &str); 2] =
    [("AttributeDefinitions", "AttributeName"), ("GlobalSecondaryIndexes", "IndexName")];

/// The reason why a name is not a setting, and what to write in place of it. `None` if the name is a setting.
pub(super) fn way_out(section: &str, name: &str) -> Option<&'static str> {
    Some(match name {
        "<<" => "CloudFormation knows no merge keys: write the settings themselves",
        "Properties" => "write the properties without it, as in `PlaceOrder: { MemorySize: 512 }`",
        "Function" if section == "Globals" => {
            "leave it out: the settings of Globals are those of all functions"
        }
        "Type" => {
            "it follows from the list: write one of your own, by another name, below the closing mark"
        }
        "IgnoreGlobals" => {
            "functions need what Globals sets: set the property of this function itself"
        }
        "CreationPolicy" | "UpdatePolicy" => {
            "no type that is written takes it: write a resource of your own below the closing mark"
        }
        "AlarmDescription" | "Dimensions" | "Metrics" => {
            "it follows from the list: write an alarm of your own below the closing mark of Resources"
        }
        "AssumeRolePolicyDocument" => {
            "it follows from the list: write a role of your own below the closing mark of Resources"
        }
        "DashboardBody" => {
            "it follows from the list: write a dashboard of your own below the closing mark of Resources"
        }
        "Events" => {
            "it follows from the list: write a rule, a schedule or an AWS::Lambda::EventSourceMapping of your own below \
             the closing mark of Resources"
        }
        "Policies" => {
            "it follows from the list: write an AWS::IAM::RolePolicy below the closing mark of Resources"
        }
        name if section != "Resources" && OF_RESOURCE.contains(&name) => {
            "only a resource takes it: set it for each"
        }
        _ => return None,
    })
}

/// The item of this name.
pub(super) fn of_name<'v>(all: &'v [Value], key: &str, name: &Value) -> Option<&'v Value> {
    all.iter().find(|one| one.get(key) == Some(name))
}
