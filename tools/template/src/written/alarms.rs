//! One alarm for each kind of trouble, over all functions or mappings that can have it, and the dashboard.

use std::fmt::Write;

use heck::ToLowerCamelCase;

use super::source::Source;

/// The metric that an alarm watches, or an expression over several metrics.
enum Looks<'a> {
    /// Namespace, name, statistic, period in seconds, and the dimension.
    At(&'a str, &'a str, &'a str, u32, Option<String>),
    /// The expression's Id and its value in YAML, and the metrics.
    Over(&'a str, String, Vec<String>),
}

struct Alarm<'a> {
    id: String,
    says: &'a str,
    looks: Looks<'a>,
    comparison: &'a str,
    threshold: &'a str,
    periods: u32,
    silence: &'a str,
}

/// The metrics of the stack alone.
const OWN: &str = "!Sub \"Ringfence/${AWS::StackName}\"";

/// A metric of Lambda in an expression.
fn metric(id: &str, stat: &str, period: u32, name: &str, dimension: &str, of: &str) -> String {
    format!(
        "        - {{ Id: {id}, ReturnData: false, MetricStat: {{ Stat: {stat}, Period: {period}, Metric: {{\n            \
         Namespace: AWS/Lambda, MetricName: {name}, Dimensions: [{{ Name: {dimension}, Value: {of} }}] }} }} }}\n"
    )
}

impl Source<'_> {
    /// A reference to a function, with another value in its place if a condition leaves it out.
    fn reference(&self, id: &str) -> String {
        self.unless_left_out(id, &format!("!Ref {id}"), "none")
    }

    /// A value that needs a function, or another one if a condition leaves the function out.
    fn unless_left_out(&self, id: &str, value: &str, other: &str) -> String {
        match self.condition(id) {
            Some(condition) => format!("!If [{condition}, {value}, {other}]"),
            None => value.to_owned(),
        }
    }

    /// The UUIDs of the mappings, as a list in JSON that `!Sub` fills in. One that a condition leaves out is another one
    /// twice.
    fn mappings_as_json(&self) -> String {
        let mappings = self.mappings();
        let ids = mappings.iter().map(|(_, mapping)| format!("\"${{{mapping}}}\""));
        let json = format!("'[{}]'", ids.collect::<Vec<_>>().join(", "));
        let others: Vec<_> = mappings
            .iter()
            .filter(|(function, _)| self.condition(function).is_some())
            .map(|(function, mapping)| {
                let other = format!("!Ref {}", mappings[0].1);
                format!(
                    "{mapping}: {}",
                    self.unless_left_out(function, &format!("!Ref {mapping}"), &other)
                )
            })
            .collect();
        match others.is_empty() {
            true => json,
            false => format!("[{json}, {{ {} }}]", others.join(", ")),
        }
    }

    /// The ARNs of the mappings, a line each.
    fn arns_of_mappings(&self) -> String {
        let arns = self.mappings().into_iter().map(|(function, mapping)| {
            let arn = format!(
                "!Sub \"arn:${{AWS::Partition}}:lambda:${{AWS::Region}}:${{AWS::AccountId}}:event-source-mapping:${{{mapping}}}\""
            );
            let arn = self.unless_left_out(function, &arn, "!Ref \"AWS::NoValue\"");
            format!("                - {arn}\n")
        });
        arns.collect()
    }

    /// The functions whose batches are lost if their bucket does not take them. After a batch that project-views gives
    /// up, the next notification does the same work.
    fn losing(&self) -> Vec<String> {
        self.streams().into_iter().filter(|id| id != "ProjectViews").collect()
    }

    fn of_queue<'a>(&self, id: &str, says: &'a str, queue: &str) -> Alarm<'a> {
        let of = format!("{{ Name: QueueName, Value: !GetAtt {queue}.QueueName }}");
        let looks =
            Looks::At("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 300, Some(of));
        // SQS reports no data on an idle queue, even if the queue has dead letters.
        Alarm { id: id.to_owned(), says, looks, silence: "ignore", ..Alarm::default() }
    }

    fn all_alarms(&self) -> Vec<Alarm<'static>> {
        let own =
            |id: &str, says, looks| Alarm { id: id.to_owned(), says, looks, ..Alarm::default() };
        let of_ringfence = |name, stat, period| Looks::At("Ringfence", name, stat, period, None);
        let says = "The oldest record that waits in a stream is over an hour old; a stream keeps it for 24 hours.";
        // It is sent after an hour. A delivery that waits out an outage sends it once, and lasts 15 minutes.
        let looks = Looks::At(OWN, "stream_lag_ms", "Maximum", 1_800, None);
        let behind = own("StreamsBehind", says, looks);
        let says = "For an hour, no look found that every mapping reads its stream. So one is off, or nothing looks; a stream \
                    keeps records for 24 hours.";
        let of = Some("{ Name: StateMachineArn, Value: !Ref LookAtMappings }".to_owned());
        let looks = Looks::At("AWS/States", "ExecutionsSucceeded", "Sum", 1_800, of);
        let stopped = Alarm {
            comparison: "LessThanThreshold",
            threshold: "1",
            periods: 2,
            silence: "breaching",
            ..own("MappingsStopped", says, looks)
        };
        let says = "Records were given up; the FailedBatches bucket of their function keeps them.";
        let of = Some("{ Name: RuleName, Value: !Ref BatchesKept }".to_owned());
        let looks = Looks::At("AWS/Events", "MatchedEvents", "Sum", 60, of);
        let given_up = own("BatchesGivenUp", says, looks);
        let says =
            "A batch was given up, and the FailedBatches bucket of its function did not take it.";
        let of = self.losing().into_iter().map(|function| {
            let id = function.to_lower_camel_case();
            let of = self.reference(&function);
            metric(&id, "Sum", 60, "DestinationDeliveryFailures", "FunctionName", &of)
        });
        let sum = "\"SUM(FILL(METRICS(), 0))\"".to_owned();
        let lost = own("BatchesLost", says, Looks::Over("batches", sum, of.collect()));
        let says = "In each of three times five minutes a function that is not a slice has failed, or any function has \
                    crashed or run out of time or memory; the log says which one, and why.";
        let looks = Looks::At(OWN, "failed", "Sum", 300, None);
        let fail = Alarm { periods: 3, ..own("FunctionsFail", says, looks) };
        let mut alarms = vec![behind, stopped, given_up, lost, fail];
        for (id, says, queue) in [
            (
                "PublishEventsHasDeadLetters",
                "A record can never be published; the dead letter has the cause.",
                "PublishEventsDeadLetters",
            ),
            (
                "IndexEventsHasDeadLetters",
                "A partition can't be indexed; the dead letter has the cause.",
                "IndexEventsDeadLetters",
            ),
        ] {
            alarms.push(self.of_queue(id, says, queue));
        }
        if self.has("rules") {
            let says =
                "An automation could not handle an event; the dead letter says which one, and why.";
            alarms.push(self.of_queue(
                "AutomationsHaveDeadLetters",
                says,
                "AutomationsDeadLetters",
            ));
        }
        if self.has("slices") {
            let says = "A command of the queue had no answer after eight tries; the dead letter has the cause.";
            alarms.push(self.of_queue("CommandsHaveDeadLetters", says, "CommandsDeadLetters"));
            let of = Some("{ Name: QueueName, Value: !GetAtt CommandQueue.QueueName }".to_owned());
            let looks = Looks::At("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", 300, of);
            let says = "A command has waited in the queue for over ten minutes: it is tried again, or nobody takes it.";
            alarms.push(Alarm { threshold: "600", ..own("CommandsWait", says, looks) });
        }
        alarms.push(self.commands_fail());
        let says =
            "Commands give up because others keep changing what they read; a boundary is too hot.";
        let looks = of_ringfence("contention", "Sum", 300);
        alarms.push(Alarm { threshold: "10", periods: 3, ..own("CommandsContend", says, looks) });
        if self.has("rows") {
            let says = "The oldest event that a view does not show yet is over five minutes old.";
            let looks = of_ringfence("view_lag", "Maximum", 60);
            alarms.push(Alarm {
                threshold: "300000",
                periods: 3,
                ..own("ViewsBehind", says, looks)
            });
            let says = "A view could not write a row, which is served as an error, or not read an event. The view goes on.";
            let looks = of_ringfence("rows_parked", "Maximum", 60);
            alarms.push(Alarm { silence: "ignore", ..own("RowsParked", says, looks) });
        }
        if self.has("lanes") {
            let says = "A reactor has parked a lane: an event failed for good, or may have had its effect; a person decides.";
            let looks = of_ringfence("lanes_parked", "Maximum", 60);
            alarms.push(Alarm { silence: "ignore", ..own("LanesParked", says, looks) });
        }
        if self.has("dues") {
            let says = "A command has been due for over an hour.";
            let looks = of_ringfence("due_lag_ms", "Maximum", 300);
            let alarm = own("DeadlinesLate", says, looks);
            alarms.push(Alarm { threshold: "3600000", periods: 6, ..alarm });
            let says = "Nothing has looked for half an hour which commands are due.";
            let of = self.reference("FireDeadlines");
            let of = Some(format!("{{ Name: FunctionName, Value: {of} }}"));
            let looks = Looks::At("AWS/Lambda", "Invocations", "Sum", 300, of);
            alarms.push(Alarm {
                comparison: "LessThanThreshold",
                threshold: "1",
                periods: 6,
                silence: "breaching",
                ..own("DeadlinesStopped", says, looks)
            });
        }
        alarms
    }

    /// Answers about views that are behind or being built have separate alarms.
    fn commands_fail(&self) -> Alarm<'static> {
        let readers = self.readers();
        let less = readers.iter().map(|id| format!(" - FILL({}, 0)", id.to_lower_camel_case()));
        let expression = format!("\"answers{}\"", less.collect::<String>());
        let answers = "        - { Id: answers, ReturnData: false, MetricStat: { Stat: Sum, Period: 300, Metric: {\n            \
                       Namespace: AWS/ApiGateway, MetricName: 5xx, Dimensions: [{ Name: ApiId, Value: !Ref Api }] } } }\n";
        let readers = readers.iter().map(|id| {
            let of = metric(
                &id.to_lower_camel_case(),
                "Sum",
                300,
                "views_not_ready",
                "function",
                &self.reference(id),
            );
            of.replace("AWS/Lambda", "Ringfence")
        });
        let metrics = [answers.to_owned()].into_iter().chain(readers).collect();
        Alarm {
            id: "CommandsFail".to_owned(),
            says: "Callers get answers with status 500 or above. Answers about views that are behind or being built, and \
                   about parked rows, are not counted: ViewsBehind and RowsParked tell of those.",
            looks: Looks::Over("failures", expression, metrics),
            threshold: "5",
            periods: 2,
            ..Alarm::default()
        }
    }

    /// The alarms and the dashboard.
    pub(super) fn alarms(&self) -> String {
        let mut text = "  # ---- Alarms and the dashboard ----\n  # One alarm for each kind of trouble; the runbook tells whose it \
                        is. Where metrics are added, one\n  # that has no value counts as 0.\n"
            .to_owned();
        let alarms = self.all_alarms();
        for alarm in &alarms {
            alarm.write(&mut text);
        }
        let buckets = self.streams().into_iter().map(|id| format!("!Ref {id}FailedBatches"));
        let counted = include_str!("../../files/alarms.yaml")
            .replace("__buckets__", &buckets.collect::<Vec<_>>().join(", "))
            .replace("__arns__", &self.arns_of_mappings())
            .replace("__mappings__", &self.mappings_as_json());
        counted + "\n" + &text + "\n" + &self.dashboard(&alarms)
    }

    fn dashboard(&self, alarms: &[Alarm<'_>]) -> String {
        let functions = |ids: &[String]| {
            let on = ids.iter().filter(|id| self.condition(id).is_none());
            let each = on.enumerate().map(|(n, id)| match n {
                0 => format!("\"FunctionName\", \"${{{id}}}\"]"),
                _ => format!("[\"...\", \"${{{id}}}\"]"),
            });
            each.collect::<Vec<_>>().join(",\n              ")
        };
        let lost = self.losing().into_iter().filter(|id| self.condition(id).is_none());
        let lost = lost.enumerate().map(|(n, id)| match n {
            0 => format!("[\".\", \"DestinationDeliveryFailures\", \".\", \"${{{id}}}\"]"),
            _ => format!("[\"...\", \"${{{id}}}\"]"),
        });
        let queues = ["PublishEventsDeadLetters", "IndexEventsDeadLetters"].into_iter();
        let queues = queues.chain(self.has("rules").then_some("AutomationsDeadLetters"));
        let queues = queues.chain(self.has("slices").then_some("CommandsDeadLetters")).skip(1);
        let queues =
            queues.map(|queue| format!(",\n              [\"...\", \"${{{queue}.QueueName}}\"]"));
        let tables = self.tables();
        let units = |of: &str| {
            let each = tables.iter().enumerate().map(|(n, table)| match n {
                0 => format!("[{of}, \"${{{table}}}\"]"),
                _ => format!("[\"...\", \"${{{table}}}\"]"),
            });
            each.collect::<Vec<_>>().join(", ")
        };
        let on = alarms.iter().filter(|alarm| self.condition(&alarm.id).is_none());
        let arns = on.map(|alarm| format!("\"${{{}.Arn}}\"", alarm.id));
        let arns =
            arns.collect::<Vec<_>>().chunks(4).map(|line| line.join(", ")).collect::<Vec<_>>();
        let named = tables
            .iter()
            .map(|table| format!("{table}: !If [Makes{table}, !Ref {table}, !Ref {table}Name]"));
        include_str!("../../files/dashboard.yaml")
            .replace("__ages__", &functions(&self.streams()))
            .replace("__errors__", &functions(&self.watched()))
            .replace("__lost__", &lost.collect::<Vec<_>>().join(", "))
            .replace("__queues__", &queues.collect::<String>())
            .replace(
                "__writes__",
                &units("\"AWS/DynamoDB\", \"ConsumedWriteCapacityUnits\", \"TableName\""),
            )
            .replace("__reads__", &units("\".\", \"ConsumedReadCapacityUnits\", \".\""))
            .replace("__alarms__", &arns.join(",\n            "))
            .replace("__tables__", &named.collect::<Vec<_>>().join(",\n          "))
    }
}

impl Default for Alarm<'_> {
    fn default() -> Self {
        Self {
            id: String::new(),
            says: "",
            looks: Looks::At("", "", "", 0, None),
            comparison: "GreaterThanThreshold",
            threshold: "0",
            periods: 1,
            silence: "notBreaching",
        }
    }
}

impl Alarm<'_> {
    fn write(&self, text: &mut String) {
        let Self { id, says, looks, comparison, threshold, periods, silence } = self;
        let looks = match looks {
            Looks::At(namespace, name, stat, period, dimension) => {
                let of = dimension.as_ref().map(|of| format!("      Dimensions: [{of}]\n"));
                format!(
                    "      Namespace: {namespace}\n      MetricName: {name}\n      Statistic: {stat}\n      Period: {period}\n{}",
                    of.unwrap_or_default()
                )
            }
            Looks::Over(id, expression, metrics) => format!(
                "      Metrics:\n        - {{ Id: {id}, Expression: {expression} }}\n{}",
                metrics.concat()
            ),
        };
        let action = "!If [HasAlarmTopic, [!Ref AlarmTopicArn], !Ref \"AWS::NoValue\"]";
        let _ = write!(
            text,
            "\n  {id}:\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmDescription: \"{says}\"\n{looks}      \
             ComparisonOperator: {comparison}\n      Threshold: {threshold}\n      EvaluationPeriods: {periods}\n      \
             TreatMissingData: {silence}\n      AlarmActions: {action}\n      OKActions: {action}\n"
        );
    }
}
