//! CloudFormation's intrinsic functions, as far as the templates here use them.

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;

use super::error::TemplateError;
use crate::outside;

/// The Region of everything local; nothing leaves the machine.
pub const REGION: &str = "us-east-1";
/// The account of everything local.
pub const ACCOUNT: &str = "000000000000";
/// The ARN of a key of KMS begins like this. [`Model::with_keys_in`](super::Model) puts a file in its place.
pub(super) const KMS_KEY: &str = "arn:aws:kms:us-east-1:000000000000:key/";
/// The local stack's name, `AWS::StackName`.
pub const STACK: &str = "ringfence-local";

/// The place of a value in the template, for messages.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) resource: &'a str,
    pub(super) property: &'a str,
}

impl Place<'_> {
    fn not_understood(self, what: impl Into<String>) -> TemplateError {
        TemplateError::NotUnderstood {
            resource: self.resource.to_owned(),
            property: self.property.to_owned(),
            what: what.into(),
        }
    }
}

/// YAML's short forms (`!Ref X`, `!GetAtt X.Arn`) as JSON's long ones.
pub(super) fn long_form(yaml: Yaml) -> Result<Value, serde_json::Error> {
    Ok(match yaml {
        Yaml::Sequence(items) => {
            Value::Array(items.into_iter().map(long_form).collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let key = match key {
                    Yaml::String(key) => key,
                    other => serde_json::to_string(&other)?,
                };
                map.insert(key, long_form(value)?);
            }
            Value::Object(map)
        }
        Yaml::Tagged(tagged) => {
            let tag = tagged.tag.to_string();
            let value = long_form(tagged.value)?;
            match (tag.trim_start_matches('!'), value) {
                (name @ ("Ref" | "Condition"), value) => json!({ name: value }),
                ("GetAtt", Value::String(path)) => {
                    let (resource, attribute) = path.split_once('.').unwrap_or((&path, ""));
                    json!({ "Fn::GetAtt": [resource, attribute] })
                }
                (name, value) => json!({ format!("Fn::{name}"): value }),
            }
        }
        scalar => serde_json::to_value(scalar)?,
    })
}

/// Replaces intrinsic functions by their values on this machine.
pub(super) struct Resolver<'a> {
    pub(super) document: &'a Value,
    /// The base URL of the local SQS.
    pub(super) queues: &'a str,
}

impl Resolver<'_> {
    /// The value with every function replaced; `None` is `AWS::NoValue`.
    pub(super) fn resolve(
        &self,
        place: Place<'_>,
        value: &Value,
    ) -> Result<Option<Value>, TemplateError> {
        match value {
            Value::Array(items) => {
                let mut resolved = Vec::new();
                for item in items {
                    resolved.extend(self.resolve(place, item)?);
                }
                Ok(Some(Value::Array(resolved)))
            }
            Value::Object(map) => {
                if let Some((name, argument)) = map.iter().next()
                    && map.len() == 1
                    && (name == "Ref" || name.starts_with("Fn::"))
                {
                    return self.call(place, name, argument);
                }
                let mut resolved = Map::new();
                for (key, value) in map {
                    if let Some(value) = self.resolve(place, value)? {
                        resolved.insert(key.clone(), value);
                    }
                }
                Ok(Some(Value::Object(resolved)))
            }
            scalar => Ok(Some(scalar.clone())),
        }
    }

    fn call(
        &self,
        place: Place<'_>,
        name: &str,
        argument: &Value,
    ) -> Result<Option<Value>, TemplateError> {
        let unknown = || place.not_understood(format!("{name}: {argument}"));
        match (name, argument) {
            ("Ref", Value::String(name)) => self.reference(place, name),
            ("Fn::GetAtt", Value::Array(path)) => match path.as_slice() {
                [Value::String(resource), Value::String(attribute)] => {
                    self.attribute(place, resource, attribute).map(|text| Some(json!(text)))
                }
                _ => Err(unknown()),
            },
            ("Fn::Sub", Value::String(text)) => self.substitute(place, text, &Map::new()),
            ("Fn::Sub", Value::Array(parts)) => match parts.as_slice() {
                [Value::String(text), Value::Object(names)] => self.substitute(place, text, names),
                _ => Err(unknown()),
            },
            ("Fn::Join", Value::Array(parts)) => match parts.as_slice() {
                [Value::String(separator), items] => {
                    let Some(Value::Array(items)) = self.resolve(place, items)? else {
                        return Err(unknown());
                    };
                    let items: Result<Vec<_>, _> =
                        items.iter().map(|item| self.text(place, item)).collect();
                    Ok(Some(json!(items?.join(separator))))
                }
                _ => Err(unknown()),
            },
            ("Fn::Split", Value::Array(parts)) => match parts.as_slice() {
                [Value::String(separator), text] => {
                    let text = self.text(place, text)?;
                    Ok(Some(text.split(&**separator).collect()))
                }
                _ => Err(unknown()),
            },
            ("Fn::FindInMap", Value::Array(keys)) => {
                let mut found = &self.document["Mappings"];
                for key in keys {
                    found = found.get(self.text(place, key)?).ok_or_else(unknown)?;
                }
                Ok(Some(found.clone()))
            }
            ("Fn::If", Value::Array(parts)) => match parts.as_slice() {
                [Value::String(condition), yes, no] => {
                    let condition = json!({ "Condition": condition });
                    self.resolve(place, if self.holds(place, &condition)? { yes } else { no })
                }
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }

    pub(super) fn holds(&self, place: Place<'_>, condition: &Value) -> Result<bool, TemplateError> {
        let unknown = || place.not_understood(format!("condition {condition}"));
        let (name, argument) =
            condition.as_object().and_then(|map| map.iter().next()).ok_or_else(unknown)?;
        let all = || argument.as_array().ok_or_else(unknown);
        Ok(match name.as_str() {
            "Condition" => {
                let name = argument.as_str().ok_or_else(unknown)?;
                self.holds(place, self.document["Conditions"].get(name).ok_or_else(unknown)?)?
            }
            "Fn::Equals" => match all()?.as_slice() {
                [left, right] => self.resolve(place, left)? == self.resolve(place, right)?,
                _ => return Err(unknown()),
            },
            "Fn::Not" => !self.holds(place, all()?.first().ok_or_else(unknown)?)?,
            "Fn::And" | "Fn::Or" => {
                let parts: Result<Vec<_>, _> =
                    all()?.iter().map(|part| self.holds(place, part)).collect();
                let parts = parts?;
                if name == "Fn::And" { !parts.contains(&false) } else { parts.contains(&true) }
            }
            _ => return Err(unknown()),
        })
    }

    fn substitute(
        &self,
        place: Place<'_>,
        text: &str,
        names: &Map<String, Value>,
    ) -> Result<Option<Value>, TemplateError> {
        let mut resolved = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| place.not_understood(format!("Fn::Sub: {text}")))?;
            resolved.push_str(before);
            rest = after;
            let value = match (names.get(name), name.strip_prefix('!'), name.split_once('.')) {
                (Some(value), ..) => self.text(place, value)?,
                (None, Some(literal), _) => format!("${{{literal}}}"),
                (None, None, Some((resource, attribute))) => {
                    self.attribute(place, resource, attribute)?
                }
                (None, None, None) => self.text(place, &json!({ "Ref": name }))?,
            };
            resolved.push_str(&value);
        }
        resolved.push_str(rest);
        Ok(Some(json!(resolved)))
    }

    /// The value as text, in CloudFormation's notation of numbers and booleans.
    pub(super) fn text(&self, place: Place<'_>, value: &Value) -> Result<String, TemplateError> {
        match self.resolve(place, value)? {
            Some(Value::String(text)) => Ok(text),
            Some(scalar @ (Value::Number(_) | Value::Bool(_))) => Ok(scalar.to_string()),
            _ => Err(place.not_understood(format!("{value} where a text is due"))),
        }
    }

    fn reference(&self, place: Place<'_>, name: &str) -> Result<Option<Value>, TemplateError> {
        if let Some(parameter) = self.document["Parameters"].get(name) {
            let local = self.document["Metadata"]["Local"].get(name).cloned();
            let local = local.or_else(|| Some(outside::parameter(name, self.queues)?.into()));
            let value = local.or_else(|| parameter.get("Default").cloned());
            let missing = || place.not_understood(format!("parameter {name} without a default"));
            return value.ok_or_else(missing).map(Some);
        }
        let pseudo = match name {
            "AWS::NoValue" => return Ok(None),
            "AWS::Region" => REGION,
            "AWS::AccountId" => ACCOUNT,
            "AWS::Partition" => "aws",
            "AWS::URLSuffix" => "amazonaws.com",
            "AWS::StackName" => STACK,
            _ => {
                let local = self.local_name(place, name)?;
                return Ok(Some(json!(match self.kind(place, name)? {
                    "AWS::SQS::Queue" => format!("{}/{ACCOUNT}/{local}", self.queues),
                    _ => local,
                })));
            }
        };
        Ok(Some(json!(pseudo)))
    }

    fn attribute(
        &self,
        place: Place<'_>,
        resource: &str,
        attribute: &str,
    ) -> Result<String, TemplateError> {
        if (self.kind(place, resource)?, attribute) == ("AWS::SSM::Parameter", "Value") {
            return self.text(place, &self.document["Resources"][resource]["Properties"]["Value"]);
        }
        let name = self.local_name(place, resource)?;
        let here = format!("{REGION}:{ACCOUNT}");
        Ok(match (self.kind(place, resource)?, attribute) {
            ("AWS::DynamoDB::Table", "Arn") => format!("arn:aws:dynamodb:{here}:table/{name}"),
            ("AWS::DynamoDB::Table", "StreamArn") => {
                format!("arn:aws:dynamodb:{here}:table/{name}/stream/local")
            }
            ("AWS::Events::EventBus", "Arn") => format!("arn:aws:events:{here}:event-bus/{name}"),
            ("AWS::SQS::Queue", "Arn") => format!("arn:aws:sqs:{here}:{name}"),
            ("AWS::SQS::Queue", "QueueUrl") => format!("{}/{ACCOUNT}/{name}", self.queues),
            ("AWS::KMS::Key", "Arn") => format!("{KMS_KEY}{name}"),
            ("AWS::S3::Bucket", "Arn") => format!("arn:aws:s3:::{name}"),
            ("AWS::Serverless::Function", "Arn") => {
                format!("arn:aws:lambda:{here}:function:{name}")
            }
            ("AWS::Events::EventBus", "Name") | ("AWS::SQS::Queue", "QueueName") => name,
            _ => return Err(place.not_understood(format!("Fn::GetAtt {resource}.{attribute}"))),
        })
    }

    fn kind(&self, place: Place<'_>, resource: &str) -> Result<&str, TemplateError> {
        self.document["Resources"][resource]["Type"]
            .as_str()
            .ok_or_else(|| place.not_understood(format!("a reference to {resource}")))
    }

    /// A resource's name on this machine: the template's, if it sets one. A function is named by its binary, because
    /// `cargo lambda watch` knows it by that name.
    pub(super) fn local_name(
        &self,
        place: Place<'_>,
        resource: &str,
    ) -> Result<String, TemplateError> {
        let kind = self.kind(place, resource)?;
        let body = &self.document["Resources"][resource];
        let given = match kind {
            "AWS::DynamoDB::Table" => "/Properties/TableName",
            "AWS::Events::EventBus" => "/Properties/Name",
            "AWS::SQS::Queue" => "/Properties/QueueName",
            "AWS::S3::Bucket" => "/Properties/BucketName",
            "AWS::Logs::LogGroup" => "/Properties/LogGroupName",
            "AWS::Serverless::Function" => "/Metadata/BuildProperties/Binary",
            _ => "/Properties/Name",
        };
        match body.pointer(given) {
            Some(name) => self.text(place, name),
            None => Ok(format!("{STACK}-{resource}")),
        }
    }
}
