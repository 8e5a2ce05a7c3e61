//! The deployments of a stack, from the events of CloudFormation: when they ended, and which functions changed.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use aws_config::SdkConfig;
use ringfence_aws::ms_of_rfc3339;
use ringfence_stack::Stack;
use roxmltree::{Document, Node};

use crate::dead_letter::Whose;
use crate::service::{Answer, CLOUDFORMATION, FORM, Service, encoded};

/// At most 20 pages are read. A page has up to 100 events, and a deployment has some 300.
const PAGES_MAX: usize = 20;
const FUNCTION: &str = "AWS::Lambda::Function";
const STACK: &str = "AWS::CloudFormation::Stack";

/// A deployment that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// When it ended, in milliseconds since 1970.
    pub at_ms: u64,
    /// `created`, `updated`, or `rolled back`.
    pub ended: &'static str,
    /// The functions that it changed, by their names in the list of the stack.
    pub functions: BTreeSet<String>,
}

impl Deployment {
    /// The deployment in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let functions = self.functions.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match (self.ended, self.functions.len()) {
            ("created", _) => "the stack was created".to_owned(),
            (ended, 0) => format!("the stack was {ended}"),
            (ended, 1) => format!("the stack was {ended}: {functions}"),
            (ended, count) => format!("the stack was {ended}, {count} functions: {functions}"),
        }
    }
}

/// The deployments into the stack of this name since a time in milliseconds since 1970, the oldest first.
///
/// # Errors
/// CloudFormation refuses, or does not answer.
pub async fn since(
    config: &SdkConfig,
    name: &str,
    stack: &Stack,
    since_ms: u64,
) -> Result<Vec<Deployment>> {
    let reading = || format!("reading the events of the stack {name}");
    let service = Service::of(config, CLOUDFORMATION).await.with_context(reading)?;
    let form = format!("Action=DescribeStackEvents&Version=2010-05-15&StackName={}", encoded(name));
    let (mut events, mut body) = (Vec::new(), form.clone());
    for _ in 0..PAGES_MAX {
        let answer = service.call("POST", "/", &FORM, &body).await;
        let text = answer.and_then(Answer::accepted).with_context(reading)?;
        let (page, next) = page(&text).with_context(reading)?;
        let is_over = page.last().is_some_and(|oldest| oldest.at_ms < since_ms);
        events.extend(page.into_iter().filter(|event| event.at_ms >= since_ms));
        let Some(next) = next.filter(|_| !is_over) else { break };
        body = format!("{form}&NextToken={}", encoded(&next));
    }
    let named = |function: &str| {
        let whose = Whose { function: Some(function.to_owned()), rule: None };
        whose.in_stack(stack).unwrap_or(function).to_owned()
    };
    Ok(deployments(&events, named))
}

/// An event of a stack.
struct StackEvent {
    at_ms: u64,
    status: String,
    /// The function; `None` if it is of the stack itself.
    function: Option<String>,
}

/// The events of functions and of the stack itself in an answer, the newest first, and the token of the next page.
fn page(answer: &str) -> Result<(Vec<StackEvent>, Option<String>)> {
    let document = Document::parse(answer).context("the answer isn't XML")?;
    let text = |node: Node<'_, '_>, name: &str| {
        let found = node.children().find(|child| child.tag_name().name() == name)?;
        found.text().map(str::to_owned)
    };
    let event = |node| {
        let own = text(node, "PhysicalResourceId");
        let function = match &*text(node, "ResourceType")? {
            FUNCTION => Some(own?),
            // A nested stack has another id.
            STACK if own == text(node, "StackId") => None,
            _ => return None,
        };
        let at_ms = ms_of_rfc3339(&text(node, "Timestamp")?)?;
        Some(StackEvent { at_ms, status: text(node, "ResourceStatus")?, function })
    };
    let events = document.descendants().filter(|node| node.tag_name().name() == "member");
    let next = document.descendants().find_map(|node| text(node, "NextToken"));
    Ok((events.filter_map(event).collect(), next))
}

/// The deployments in these events. The first event is the newest.
fn deployments(events: &[StackEvent], named: impl Fn(&str) -> String) -> Vec<Deployment> {
    let (mut deployments, mut functions) = (Vec::new(), BTreeSet::new());
    for StackEvent { at_ms, status, function } in events.iter().rev() {
        let ended = match (&**status, function) {
            ("CREATE_COMPLETE" | "UPDATE_COMPLETE", Some(function)) => {
                functions.insert(named(function));
                continue;
            }
            ("CREATE_COMPLETE", None) => "created",
            ("UPDATE_COMPLETE", None) => "updated",
            ("UPDATE_ROLLBACK_COMPLETE", None) => "rolled back",
            _ => continue,
        };
        let functions = std::mem::take(&mut functions);
        deployments.push(Deployment { at_ms: *at_ms, ended, functions });
    }
    deployments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event in the shape of an answer of DescribeStackEvents.
    fn event(minute: u64, of: &str, id: &str, status: &str) -> String {
        format!(
            "<member><EventId>e-{minute}</EventId><StackId>arn:stack/shop/1</StackId><StackName>shop</StackName>\
             <LogicalResourceId>Any</LogicalResourceId><PhysicalResourceId>{id}</PhysicalResourceId>\
             <ResourceType>{of}</ResourceType><Timestamp>2026-01-01T00:{minute:02}:00.500Z</Timestamp>\
             <ResourceStatus>{status}</ResourceStatus><ResourceProperties>{{&quot;A&quot;:1}}</ResourceProperties></member>"
        )
    }

    #[test]
    fn a_deployment_is_when_the_stack_itself_is_done_and_has_the_functions_before_it() {
        let own = "arn:stack/shop/1";
        let events = [
            event(1, STACK, own, "CREATE_IN_PROGRESS"),
            event(2, FUNCTION, "shop-Lend-1", "CREATE_COMPLETE"),
            event(3, STACK, own, "CREATE_COMPLETE"),
            event(10, STACK, own, "UPDATE_IN_PROGRESS"),
            event(11, FUNCTION, "shop-Lend-1", "UPDATE_IN_PROGRESS"),
            event(12, FUNCTION, "shop-Lend-1", "UPDATE_COMPLETE"),
            event(13, STACK, "arn:stack/nested/1", "UPDATE_COMPLETE"),
            event(14, "AWS::SQS::Queue", "queue", "UPDATE_COMPLETE"),
            event(15, STACK, own, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
            event(16, STACK, own, "UPDATE_COMPLETE"),
            event(20, FUNCTION, "shop-Return-1", "UPDATE_FAILED"),
            event(21, STACK, own, "UPDATE_ROLLBACK_IN_PROGRESS"),
            event(22, FUNCTION, "shop-Return-1", "UPDATE_COMPLETE"),
            event(23, STACK, own, "UPDATE_ROLLBACK_COMPLETE"),
            event(30, STACK, own, "UPDATE_COMPLETE"),
        ];
        let newest_first: String = events.into_iter().rev().collect();
        let answer = format!(
            "<DescribeStackEventsResponse xmlns=\"http://cloudformation.amazonaws.com/doc/2010-05-15/\">\
             <DescribeStackEventsResult><StackEvents>{newest_first}</StackEvents><NextToken>a+b</NextToken>\
             </DescribeStackEventsResult></DescribeStackEventsResponse>"
        );
        let (events, next) = page(&answer).expect("a page");
        assert_eq!(next.as_deref(), Some("a+b"));
        let found = deployments(&events, str::to_lowercase);
        let minute = |at_ms: u64| (at_ms / 60_000) % 60;
        let lines: Vec<_> = found.iter().map(|it| (minute(it.at_ms), it.line())).collect();
        let expected = [
            (3, "the stack was created"),
            (16, "the stack was updated: shop-lend-1"),
            (23, "the stack was rolled back: shop-return-1"),
            (30, "the stack was updated"),
        ];
        assert_eq!(lines, expected.map(|(minute, line)| (minute, line.to_owned())));
        assert!(page("no XML").is_err());
    }
}
