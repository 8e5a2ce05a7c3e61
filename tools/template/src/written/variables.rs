//! The permissions that a role needs for the variables of its functions: secrets, the sender of mails, buckets.

use serde_yaml_ng::{Mapping, Value};

use super::flow::flow;

/// A statement of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its Sid. A role has one statement of each.
    pub sid: String,
    /// The statement as an item of the role's list.
    pub text: String,
}

/// The statements for variables whose names end in `_PARAMETER` or `_BUCKET`, and for `MAIL_FROM`. `has_identity` says
/// whether the template has a `MailIdentity`, the identity in SES. Otherwise the identity is the sender itself.
#[must_use]
pub fn statements_of(
    variables: &Mapping,
    has_identity: bool,
    is_resource: impl Fn(&str) -> bool,
) -> Vec<Statement> {
    let mut all: Vec<Statement> = Vec::new();
    for (name, value) in variables {
        let name = name.as_str().unwrap_or_default();
        let mut add = |sid: String, action: &str, resource: String| {
            let text = format!(
                "              - {{ Sid: {sid}, Effect: Allow, Action: {action},\n                  Resource: {resource} }}\n"
            );
            all.push(Statement { sid, text });
        };
        if name == "MAIL_FROM" {
            let identity: Value = "MailIdentity".into();
            let identity = if has_identity { reference(identity) } else { value.clone() };
            // SES needs the second action for a mail that it gets as a whole.
            let actions = "[ses:SendEmail, ses:SendRawEmail]";
            add(
                "SendMail".to_owned(),
                actions,
                arn("ses:${AWS::Region}:${AWS::AccountId}:identity/", &identity, ""),
            );
        } else if name.ends_with("_PARAMETER") {
            // A value of `!Ref` begins with a slash, as names of secrets do.
            let is_bare = matches!(value, Value::String(name) if !name.starts_with('/'));
            let begin = if is_bare { "parameter/" } else { "parameter" };
            let begin = format!("ssm:${{AWS::Region}}:${{AWS::AccountId}}:{begin}");
            add(format!("Read{}", named(name, value)), "ssm:GetParameter", arn(&begin, value, ""));
        } else if name.ends_with("_BUCKET") {
            let (objects, whole) = match referred(value).filter(|id| is_resource(id)) {
                Some(id) => (format!("!Sub \"${{{id}.Arn}}/*\""), format!("!GetAtt {id}.Arn")),
                None => (arn("s3:::", value, "/*"), arn("s3:::", value, "")),
            };
            add(format!("Keep{}", named(name, value)), "[s3:GetObject, s3:PutObject]", objects);
            // Without this permission, S3 answers 403 in place of 404.
            add(format!("Find{}", named(name, value)), "s3:ListBucket", whole);
        }
    }
    all
}

fn reference(id: Value) -> Value {
    Value::Mapping([("Ref".into(), id)].into_iter().collect())
}

/// The id that `!Ref` or its long form names.
fn referred(value: &Value) -> Option<&str> {
    match value {
        Value::Tagged(tagged) if tagged.tag == "Ref" => tagged.value.as_str(),
        Value::Mapping(all) if all.len() == 1 => all.get("Ref")?.as_str(),
        _ => None,
    }
}

/// The end of a Sid: only letters and digits.
fn named(variable: &str, value: &Value) -> String {
    let name = referred(value).unwrap_or(variable);
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    if name != variable {
        return words.collect();
    }
    words.map(|word| word[..1].to_owned() + &word[1..].to_ascii_lowercase()).collect()
}

/// The ARN of the thing that a variable names, in any form that CloudFormation takes.
fn arn(begin: &str, value: &Value, end: &str) -> String {
    let begin = format!("arn:${{AWS::Partition}}:{begin}");
    match (referred(value), value) {
        (Some(id), _) => format!("!Sub \"{begin}${{{id}}}{end}\""),
        (_, Value::String(text)) if !text.contains('$') => {
            format!("!Sub {}", flow(&format!("{begin}{text}{end}").into()))
        }
        _ => format!("!Sub [\"{begin}${{name}}{end}\", {{ name: {} }}]", flow(value)),
    }
}
