//! The functions of the contexts, with their routes, their rules and their roles.

use std::collections::BTreeSet;

use ringfence_core::LogKind;
use ringfence_stack::{ContextInfo, ReactorInfo, SliceInfo};

use super::effects::{condition_of, effects};
use super::source::{Source, has_rule, id_of, pattern, prefix, role_of, scopes, table_of};

/// A role. `note` is a comment on its first line.
fn role(id: &str, note: &str, condition: Option<&str>, policy: &str, statements: &str) -> String {
    let condition = condition.map(|it| format!("    Condition: {it}\n")).unwrap_or_default();
    format!(
        "  {id}:{note}\n    Type: AWS::IAM::Role\n{condition}    Properties:\n      AssumeRolePolicyDocument: {{ Version: \
         \"2012-10-17\", Statement: [\n        {{ Effect: Allow, Principal: {{ Service: lambda.amazonaws.com }}, Action: \
         sts:AssumeRole }}] }}\n      Policies:\n        - PolicyName: {policy}\n          PolicyDocument:\n            \
         Version: \"2012-10-17\"\n            Statement:\n              - {{ Sid: Log, Effect: Allow, Action: \
         [logs:CreateLogStream, logs:PutLogEvents], Resource: !GetAtt Logs.Arn }}\n{statements}"
    )
}

/// Whether a role carries out the commands of a slice.
pub(super) fn carries_out(role: &str, context: &ContextInfo, slice: &SliceInfo) -> bool {
    match role {
        "RunCommandsRole" => true,
        "FireDeadlinesRole" => context.dues.iter().any(|due| due.name == slice.name),
        "ReactInOrderRole" => slice.order.is_some(),
        _ => role_of(context) == role,
    }
}

/// Whether a role carries out commands of a context.
pub(super) fn asks(role: &str, context: &ContextInfo) -> bool {
    context.slices.iter().any(|slice| carries_out(role, context, slice))
}

impl Source<'_> {
    /// The contexts on the DCB log, the reactors, and the contexts on the other logs.
    pub(super) fn contexts(&self) -> Vec<String> {
        let (dcb, others): (Vec<_>, Vec<_>) =
            self.stack.contexts.iter().partition(|context| context.log == LogKind::Dcb);
        let mut parts = Vec::new();
        if !dcb.is_empty() {
            parts.push("  # ---- The contexts on the DCB log ----\n".to_owned());
            let note = " # for all its slices: each may append any event to the one table";
            parts.push(self.role_of_slices("DcbLogRole", note, "dcb-log", &dcb));
            parts.extend(dcb.iter().flat_map(|context| self.slices(context)));
        }
        if self.stack.reactors().next().is_some() {
            parts.push("  # ---- The reactors: effects outside ----\n".to_owned());
            parts.extend(self.stack.reactors().flat_map(|(context, it)| self.reactor(context, it)));
        }
        for context in others {
            let log = if context.log == LogKind::Aggregates { "aggregate" } else { "document" };
            let name = context.name;
            parts.push(format!("  # ---- The {name} context, on the {log} log ----\n"));
            parts.push(self.role_of_slices(&role_of(context), "", name, &[context]));
            parts.extend(self.slices(context));
        }
        parts
    }

    fn role_of_slices(&self, id: &str, note: &str, policy: &str, of: &[&ContextInfo]) -> String {
        let mut statements = self.grants(id);
        let slices = || of.iter().flat_map(|context| &context.slices);
        if slices().any(has_rule) {
            statements += "              - { Sid: KeepFailures, Effect: Allow, Action: sqs:SendMessage,\n                  \
                           Resource: !GetAtt AutomationsDeadLetters.Arn }\n";
        }
        role(id, note, None, policy, &statements)
    }

    fn slices(&self, context: &ContextInfo) -> Vec<String> {
        context.slices.iter().map(|slice| self.slice(context, slice)).collect()
    }

    fn slice(&self, context: &ContextInfo, slice: &SliceInfo) -> String {
        let (id, name, role) = (id_of(slice.name), slice.name, role_of(context));
        let http = slice.scopes.map(|scopes| {
            let scopes = self.scopes(scopes.iter().copied().collect());
            format!(
                "Http: {{ Type: HttpApi, Properties: {{ ApiId: !Ref Api, Method: POST, Path: /{}/{name}{scopes} }} }}",
                context.name
            )
        });
        let events = match (http, has_rule(slice)) {
            (None, false) => String::new(),
            (Some(http), false) => format!("      Events: {{ {http} }}\n"),
            (http, true) => format!(
                "      EventInvokeConfig:\n        DestinationConfig: {{ OnFailure: {{ Type: SQS, Destination: !GetAtt \
                 AutomationsDeadLetters.Arn }} }}\n      Events:\n{}        Rule:\n          Type: EventBridgeRule\n          \
                 Properties:\n            EventBusName: !Ref EventTopic\n            Pattern: {}\n            \
                 DeadLetterConfig: {{ Arn: !GetAtt AutomationsDeadLetters.Arn }}\n",
                http.map(|http| format!("        {http}\n")).unwrap_or_default(),
                pattern(slice.reacts_to)
            ),
        };
        format!(
            "  {id}:\n    Type: AWS::Serverless::Function\n    Metadata: {{ BuildMethod: rust-cargolambda, BuildProperties: \
             {{ Binary: {name} }} }}\n    Properties:\n      Role: !GetAtt {role}.Arn\n{events}"
        )
    }

    /// A reactor's function and role. The function is invoked when the index has grown, and otherwise each minute.
    fn reactor(&self, context: &ContextInfo, reactor: &ReactorInfo) -> [String; 2] {
        let (id, name) = (id_of(reactor.name), reactor.name);
        let variables: Vec<_> = effects(reactor).map(|effect| effect.variables).collect();
        let environment = match &variables[..] {
            [] => String::new(),
            all => {
                format!("      Environment: {{ Variables: {{ {} }} }}\n", all.join(",\n        "))
            }
        };
        let condition = condition_of(reactor);
        let line = condition.map(|it| format!("    Condition: {it}\n")).unwrap_or_default();
        let function = include_str!("../../files/reactor.yaml")
            .replace("__Id__", &id)
            .replace("__name__", name)
            .replace("__condition__", &line)
            .replace("__environment__", &environment);
        let bodies: Vec<_> = [LogKind::Dcb, context.log]
            .into_iter()
            .filter(|log| *log != LogKind::Documents)
            .collect();
        let index = match reactor.views {
            [] => "dynamodb:Query",
            _ => "[dynamodb:GetItem, dynamodb:Query]",
        };
        let rows = match reactor.views {
            [] => "",
            _ => {
                "              - { Sid: ReadRows, Effect: Allow, Action: dynamodb:GetItem, Resource: !GetAtt ViewTableArn.Value }\n"
            }
        };
        let statements = include_str!("../../files/reactor_role.yaml")
            .replace("__name__", name)
            .replace("__index__", index)
            .replace("__bodies__\n", &self.bodies(&bodies))
            + rows
            + &self.vault(&format!("{id}Role"));
        let condition = self.condition(&id);
        [function, role(&format!("{id}Role"), "", condition.as_deref(), name, &statements)]
    }

    /// The statement by which a reader of the index gets the events from those of these logs that the stack has. A
    /// document's events are in the index.
    pub(super) fn bodies(&self, logs: &[LogKind]) -> String {
        let logs = self.logs.iter().filter(|log| logs.contains(log));
        let tables: Vec<_> =
            logs.map(|log| format!("!GetAtt {}Arn.Value", table_of(*log))).collect();
        let resource = match &tables[..] {
            [] => return String::new(),
            [one] => one.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        format!(
            "              - {{ Sid: ReadBodies, Effect: Allow, Action: [dynamodb:BatchGetItem, dynamodb:Query],\n                  Resource: \
             {resource} }}\n"
        )
    }

    /// The types to which slices react by a rule, as the beginning of a list in JSON.
    pub(super) fn caused(&self) -> String {
        let slices = self.stack.slices().map(|(_, slice)| slice);
        let ruled = slices.filter(|slice| slice.order.is_none());
        let causes: BTreeSet<_> =
            ruled.flat_map(|slice| slice.reacts_to).map(|cause| cause.event_type).collect();
        causes.iter().map(|name| format!("\"{name}\",")).collect()
    }

    /// The names of the ordered automations.
    pub(super) fn ordered(&self) -> String {
        let slices = self.stack.slices().map(|(_, slice)| slice);
        let names = slices.filter(|slice| slice.order.is_some()).map(|slice| slice.name);
        names.collect::<Vec<_>>().join(", ")
    }

    /// The scopes of a route, if the API takes tokens.
    fn scopes(&self, of: BTreeSet<&str>) -> String {
        if self.takes_tokens { scopes(&of) } else { String::new() }
    }

    /// The scopes of the route that all views share. It admits each caller who may read any view. query-views then
    /// checks the scopes of the requested view.
    pub(super) fn scopes_of_views(&self) -> String {
        let views = self.stack.views();
        match views.iter().any(|view| view.scopes.is_empty()) {
            true => String::new(),
            false => {
                self.scopes(views.iter().flat_map(|view| view.scopes.iter().copied()).collect())
            }
        }
    }

    /// The partition keys to which a role is limited in the table of a log of streams.
    pub(super) fn keys(&self, role: &str, table: &str) -> Vec<String> {
        let contexts = self.stack.contexts.iter().filter(|context| table_of(context.log) == table);
        let of_role = contexts.filter(|context| match role {
            // fire-deadlines carries out the commands that can be due, on any log.
            "FireDeadlinesRole" => !context.dues.is_empty(),
            _ => role_of(context) == role,
        });
        of_role.filter_map(prefix).collect()
    }
}
