//! `--stack`: the names of tables, bus, queues and buckets, from the outputs of a stack.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use roxmltree::Document;

use crate::machine::sdk_config;

use crate::service::{Answer, CLOUDFORMATION, FORM, Service, encoded};

/// Variables of flags, each with the output that has its value.
const OUTPUTS: [(&str, &str); 15] = [
    ("API_URL", "ApiUrl"),
    ("AGGREGATE_TABLE", "AggregateTableName"),
    ("COMMAND_QUEUE_URL", "CommandQueueUrl"),
    ("DOCUMENT_TABLE", "DocumentTableName"),
    ("EVENT_BUS", "EventTopicName"),
    ("EVENT_TABLE", "EventTableName"),
    ("INDEX_TABLE", "IndexTableName"),
    ("KEY_TABLE", "KeyTableName"),
    ("LOG_GROUP", "LogGroupName"),
    ("PERSONAL_KEY", "PersonalKeyArn"),
    ("STACK_NAME", "StackName"),
    ("TOKEN_URL", "TokenUrl"),
    ("USER_POOL_CLIENT_ID", "UserPoolClientId"),
    ("USER_POOL_ID", "UserPoolId"),
    ("VIEW_TABLE", "ViewTableName"),
];
/// The names of outputs for queues and buckets end like this.
const QUEUE: &str = "DeadLettersUrl";
const BUCKET: &str = "FailedBatchesName";

/// The name of a stack on this machine.
const LOCAL: &str = "ringfence-local";

/// The outputs of a stack.
pub struct Outputs {
    stack: String,
    values: BTreeMap<String, String>,
}

/// The outputs in an answer of DescribeStacks.
fn outputs(described: &str) -> Result<BTreeMap<String, String>> {
    let document = Document::parse(described).context("the answer isn't XML")?;
    let outputs = document.descendants().filter_map(|output| {
        let text = |name| {
            let found = output.children().find(|child| child.tag_name().name() == name)?;
            found.text().map(str::to_owned)
        };
        Some((text("OutputKey")?, text("OutputValue")?))
    });
    Ok(outputs.collect())
}

/// The stack that the command line names. It is searched for first, because the rest of the command line needs the
/// stack's outputs.
pub fn named(arguments: impl IntoIterator<Item = String>) -> Option<String> {
    let mut arguments = arguments.into_iter();
    let name = loop {
        let argument = arguments.next()?;
        match argument.strip_prefix("--stack") {
            Some("") => break arguments.next()?,
            Some(value) if value.starts_with('=') => break value[1..].to_owned(),
            _ => {}
        }
    };
    // The check of the flag reports an empty name.
    Some(name).filter(|name| !name.is_empty())
}

/// Whether the command line lacks a flag that a stack or its variables would provide.
pub(crate) fn would_name(error: &clap::Error) -> bool {
    let Some(ContextValue::Strings(lacking)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    let is_of_stack = |flag: &String| {
        let name = flag.trim_start_matches("--").split(' ').next().unwrap_or_default();
        ["api", "bus"].contains(&name) || name.ends_with("table")
    };
    error.kind() == ErrorKind::MissingRequiredArgument && lacking.iter().any(is_of_stack)
}

impl Outputs {
    /// The outputs of the stack of this name.
    pub(crate) async fn of(stack: String) -> Result<Self> {
        let reading = || format!("reading the outputs of --stack {stack}");
        let service =
            Service::of(&sdk_config().await?, CLOUDFORMATION).await.with_context(reading)?;
        let name = encoded(&stack);
        let body = format!("Action=DescribeStacks&Version=2010-05-15&StackName={name}");
        let described = service.call("POST", "/", &FORM, &body).await;
        let described = described.and_then(Answer::accepted).with_context(reading)?;
        let values = outputs(&described).with_context(reading)?;
        let is_one = OUTPUTS.iter().any(|(_, output)| values.contains_key(*output));
        ensure!(
            is_one,
            "--stack {stack} has no output such as EventTableName: is it another stack?"
        );
        Ok(Self { stack, values })
    }

    /// These outputs, for the stack on this machine.
    pub fn here(values: BTreeMap<String, String>) -> Self {
        Self { stack: LOCAL.to_owned(), values }
    }

    /// The command with the outputs as defaults of its flags. The environment is ignored, because it may belong to
    /// another stack.
    pub fn fill(self: &Arc<Self>, command: Command) -> Command {
        let command = command.mut_args(|arg| self.fill_flag(arg));
        command.mut_subcommands(|command| self.fill(command))
    }

    fn fill_flag(self: &Arc<Self>, flag: Arg) -> Arg {
        let outputs = self.clone();
        match flag.get_id().as_str() {
            // The console asks what was deployed into the stack.
            "stack" => return flag.default_value(&*self.stack.clone().leak()),
            "queue" => return flag.value_parser(move |text: &str| outputs.queue(text)),
            "bucket" => return flag.value_parser(move |text: &str| outputs.bucket(text)),
            "queues" => return flag.default_values(self.named(QUEUE)),
            "buckets" => return flag.default_values(self.named(BUCKET)),
            _ => {}
        }
        let is_of = |(variable, _): &&(&str, &str)| flag.get_env() == Some(OsStr::new(variable));
        let Some((_, output)) = OUTPUTS.iter().find(is_of) else { return flag };
        let flag = flag.env(Resettable::Reset);
        match self.values.get(*output) {
            // A command is made once and lives as long as the program.
            Some(value) => flag.required(false).default_value(&*value.clone().leak()),
            None => flag,
        }
    }

    /// All queues or buckets, in the form of [`Named`].
    fn named(&self, what: &str) -> Vec<&'static str> {
        let all = self.values.iter();
        let all = all.filter_map(|(output, value)| Some((output.strip_suffix(what)?, value)));
        // A command is made once and lives as long as the program.
        all.map(|(name, value)| &*format!("{name}={value}").leak()).collect()
    }

    fn queue(&self, text: &str) -> Result<String, String> {
        queue(text).or_else(|_| self.kept(text, QUEUE))
    }

    fn bucket(&self, text: &str) -> Result<String, String> {
        let is_one = self.values.values().any(|value| value == text);
        if is_one { Ok(text.to_owned()) } else { self.kept(text, BUCKET) }
    }

    /// The queue or bucket of this name, in kebab case or as in the template.
    fn kept(&self, name: &str, what: &str) -> Result<String, String> {
        let all = self.values.iter();
        let all = all.filter_map(|(output, value)| Some((output.strip_suffix(what)?, value)));
        let wanted = name.replace('-', "");
        match all.clone().find(|(name, _)| name.eq_ignore_ascii_case(&wanted)) {
            Some((_, value)) => Ok(value.clone()),
            None => {
                let names: Vec<_> = all.map(|(name, _)| name).collect();
                let stack = &self.stack;
                Err(format!("stack {stack} has these: {}", names.join(", ")))
            }
        }
    }
}

/// A queue or a bucket with a name for people: `NAME=URL` or `FUNCTION=BUCKET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name for people.
    pub name: String,
    /// The URL of the queue, or the bucket.
    pub at: String,
}

impl FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let both = text.split_once('=').filter(|(name, at)| !name.is_empty() && !at.is_empty());
        let (name, at) = both.ok_or("write a name, =, and the queue's URL or the bucket's name")?;
        Ok(Self { name: name.to_owned(), at: at.to_owned() })
    }
}

/// The URL of a queue. Only a stack gives queues names.
pub fn queue(text: &str) -> Result<String, String> {
    let is_url = text.starts_with("https://") || text.starts_with("http://");
    let wrong = "give the URL of a queue, or its name with --stack";
    if is_url { Ok(text.to_owned()) } else { Err(wrong.to_owned()) }
}

/// A name. It is empty if the shell does not have the variable.
pub fn name(text: &str) -> Result<String, &'static str> {
    let wrong = "it is empty: give a name, or name the stack with --stack";
    if text.is_empty() { Err(wrong) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_found_wherever_it_is_named() {
        for (line, expected) in [
            ("ringfence --stack shop verify", Some("shop")),
            ("ringfence redrive --queue automations --stack shop", Some("shop")),
            ("ringfence tail --stack=shop --from 1", Some("shop")),
            ("ringfence tail --stack= --from 1", None),
            ("ringfence tail --stacks shop", None),
            ("ringfence tail --stack", None),
            ("ringfence verify", None),
        ] {
            let words = line.split(' ').map(str::to_owned);
            assert_eq!(named(words).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn an_error_says_whether_a_stack_would_provide_the_missing_flag() {
        let command = || {
            let flags = ["index-table", "sub"].map(|name| Arg::new(name).long(name).required(true));
            Command::new("x").args(flags)
        };
        for (line, expected) in [("x --sub a", true), ("x --index-table a", false), ("x -y", false)]
        {
            let error = command().try_get_matches_from(line.split(' ')).unwrap_err();
            assert_eq!(would_name(&error), expected, "{line}");
        }
    }

    #[test]
    fn outputs_are_those_that_have_a_value() {
        let described = "<Outputs><member><OutputKey>A</OutputKey><OutputValue>1&amp;2</OutputValue></member>\
                         <member><OutputKey>B</OutputKey><OutputValue/></member>\
                         <member><OutputKey>C</OutputKey><OutputValue>3</OutputValue></member></Outputs>";
        let expected = [("A", "1&2"), ("C", "3")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(outputs(described).unwrap(), BTreeMap::from(expected));
    }

    #[test]
    fn a_queue_and_a_bucket_are_found_by_name() {
        let values = [
            ("AutomationsDeadLettersUrl", "https://queue"),
            ("PublishEventsDeadLettersUrl", "https://other"),
            ("PublishEventsFailedBatchesName", "shop-bucket"),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let outputs = Outputs { stack: "shop".to_owned(), values };
        for name in ["automations", "Automations", "https://queue"] {
            assert_eq!(outputs.queue(name).as_deref(), Ok("https://queue"));
        }
        for name in ["publish-events", "PublishEvents", "shop-bucket"] {
            assert_eq!(outputs.bucket(name).as_deref(), Ok("shop-bucket"));
        }
        let wrong = outputs.queue("add-product").expect_err("it keeps nothing");
        assert_eq!(wrong, "stack shop has these: Automations, PublishEvents");
    }
}
