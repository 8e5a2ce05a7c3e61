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

/// The most metrics that CloudWatch takes in an alarm.
const METRICS_MAX: usize = 10;

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

    /// The product of the polls of mappings, which is 0 if one has stopped. A mapping that a condition leaves out
    /// counts as 1.
    fn polls(&self, mappings: &[(&str, String)]) -> String {
        let ids = mappings.iter().map(|(_, mapping)| mapping.to_lower_camel_case());
        if mappings.iter().all(|(function, _)| self.condition(function).is_none()) {
            return format!("\"{}\"", ids.collect::<Vec<_>>().join(" * "));
        }
        let each = mappings.iter().zip(ids);
        let each = each.map(|((function, _), id)| self.unless_left_out(function, &id, "\"1\""));
        format!("!Join [\" * \", [{}]]", each.collect::<Vec<_>>().join(", "))
    }

    /// The alarms on a metric of functions: one, or several if there are more functions than fit.
    fn of_functions<'a>(
        &self,
        id: &str,
        says: &'a str,
        (name, stat, period): (&str, &str, u32),
        functions: &[String],
        expression: impl Fn(&[String]) -> (&'a str, String),
    ) -> Vec<Alarm<'a>> {
        let chunks = functions.chunks(METRICS_MAX).enumerate().map(|(n, functions)| {
            let ids: Vec<_> =
                functions.iter().map(|function| function.to_lower_camel_case()).collect();
            let metrics = functions.iter().zip(&ids).map(|(function, id)| {
                metric(id, stat, period, name, "FunctionName", &self.reference(function))
            });
            let (of, text) = expression(&ids);
            let id = if n == 0 { id.to_owned() } else { format!("{id}{}", n + 1) };
            let looks = Looks::Over(of, format!("\"{text}\""), metrics.collect());
            Alarm { id, says, looks, ..Alarm::default() }
        });
        chunks.collect()
    }

    fn of_mappings<'a>(
        &self,
        id: &str,
        says: &'a str,
        (name, stat, period): (&str, &str, u32),
        mappings: &[(&str, String)],
        (of, expression): (&'a str, String),
    ) -> Alarm<'a> {
        let metrics = mappings.iter().map(|(function, mapping)| {
            let of = self.unless_left_out(function, &format!("!Ref {mapping}"), "none");
            metric(
                &mapping.to_lower_camel_case(),
                stat,
                period,
                name,
                "EventSourceMappingUUID",
                &of,
            )
        });
        let looks = Looks::Over(of, expression, metrics.collect());
        Alarm { id: id.to_owned(), says, looks, ..Alarm::default() }
    }

    fn of_queue<'a>(&self, id: &str, says: &'a str, queue: &str) -> Alarm<'a> {
        let of = format!("{{ Name: QueueName, Value: !GetAtt {queue}.QueueName }}");
        let looks =
            Looks::At("AWS/SQS", "ApproximateNumberOfMessagesVisible", "Maximum", 300, Some(of));
        // SQS reports no data on an idle queue, even if the queue has dead letters.
        Alarm { id: id.to_owned(), says, looks, silence: "ignore", ..Alarm::default() }
    }

    fn all_alarms(&self) -> Vec<Alarm<'static>> {
        let sum = |of| move |_: &[String]| (of, "SUM(FILL(METRICS(), 0))".to_owned());
        let streams = self.streams();
        let (kept, mappings) = (self.mappings(false), self.mappings(true));
        let polls = self.polls(&mappings);
        let own =
            |id: &str, says, looks| Alarm { id: id.to_owned(), says, looks, ..Alarm::default() };
        let of_ringfence = |name, stat, period| Looks::At("Ringfence", name, stat, period, None);
        let mut alarms = self.of_functions(
            "StreamsBehind",
            "The oldest record that waits in a stream is over an hour old; a stream keeps it for 24 hours.",
            // In milliseconds. A delivery that waits out an outage reports its age once, after 15 minutes.
            ("IteratorAge", "Maximum", 1_800),
            &streams,
            |ids| {
                let late: Vec<_> = ids.iter().map(|id| format!("{id} > 3600000")).collect();
                ("late", late.join(" OR "))
            },
        );
        alarms.push(Alarm {
            comparison: "LessThanThreshold",
            threshold: "1",
            periods: 2,
            silence: "breaching",
            ..self.of_mappings(
                "MappingsStopped",
                "A mapping has not polled its stream for an hour, so it is off; a stream keeps records for 24 hours.",
                // A delivery that waits out an outage polls nothing for 15 minutes.
                ("PolledEventCount", "SampleCount", 1_800),
                &mappings,
                ("polls", polls),
            )
        });
        alarms.push(self.of_mappings(
            "BatchesGivenUp",
            "Records were given up; the FailedBatches bucket of their function keeps them.",
            ("OnFailureDestinationDeliveredEventCount", "Sum", 60),
            &kept,
            ("records", "\"SUM(FILL(METRICS(), 0))\"".to_owned()),
        ));
        // After a batch that project-views gives up, the next notification does the same work.
        let lost: Vec<_> = streams.into_iter().filter(|id| id != "ProjectViews").collect();
        alarms.extend(self.of_functions(
            "BatchesLost",
            "A batch was given up, and the FailedBatches bucket of its function did not take it.",
            ("DestinationDeliveryFailures", "Sum", 60),
            &lost,
            sum("batches"),
        ));
        let fail = self.of_functions(
            "FunctionsFail",
            "A function that is not a slice has failed for 15 minutes; its log says why.",
            ("Errors", "Sum", 300),
            &self.watched(),
            sum("errors"),
        );
        alarms.extend(fail.into_iter().map(|alarm| Alarm { periods: 3, ..alarm }));
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
            let says =
                "A command has been due for over an hour, or nothing has looked for half an hour.";
            let looks = of_ringfence("due_lag_ms", "Maximum", 300);
            let alarm = own("DeadlinesLate", says, looks);
            alarms.push(Alarm { threshold: "3600000", periods: 6, silence: "breaching", ..alarm });
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
        let mut text = "  # ---- Alarms and the dashboard ----\n  # One alarm for each kind of trouble; dashboard and runbook tell \
                        whose it is. Where metrics are added or\n  # multiplied, one that has no value counts as 0.\n"
            .to_owned();
        let alarms = self.all_alarms();
        for alarm in &alarms {
            alarm.write(&mut text);
        }
        text + "\n" + &self.dashboard(&alarms)
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
        let lost = self.streams().into_iter().filter(|id| id != "ProjectViews");
        let lost: Vec<_> = lost.filter(|id| self.condition(id).is_none()).collect();
        let lost = lost.iter().enumerate().map(|(n, id)| match n {
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
