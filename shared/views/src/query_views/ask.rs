//! The question in a payload.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use ringfence_core::{BOUNDARY_BYTES_MAX, BoundaryId};
use ringfence_lambda::{ApiGatewayV2httpRequest, Problem, query};
use serde_json::Value;

use crate::{ID_BYTES_MAX, LIST_DEFAULT, LIST_MAX, ListPage, Order, Wait};

/// How long an answer waits for an event by default, in milliseconds.
pub const WAIT_DEFAULT_MS: u64 = 5_000;
/// How long it waits at most, in milliseconds: well below the 30 s of an HTTP API.
pub const WAIT_MAX_MS: u64 = 10_000;

/// A question to one view.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// The view's name.
    pub view: String,
    /// The rows that are wanted.
    pub asked: Asked,
    /// The event that the answer has to show.
    pub wait: Option<Wait>,
}

/// The rows that are wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// The row with this id.
    Row(String),
    /// A page of them.
    List(ListPage),
}

/// The fields of a question that are parts of its path.
const PATH: [&str; 2] = ["view", "id"];

/// The fields of a question, by name, taken one by one.
struct Fields(BTreeMap<String, String>);

impl Ask {
    /// The question of a direct invoke.
    ///
    /// # Errors
    /// A field is missing, wrong or unknown.
    pub fn parse(payload: &Value) -> Result<Self, Problem> {
        Self::of(Fields::of_members(payload)?)
    }

    /// The question of a request of the HTTP API.
    ///
    /// # Errors
    /// A field is missing, wrong or unknown.
    pub fn of_request(request: &ApiGatewayV2httpRequest) -> Result<Self, Problem> {
        Self::of(Fields::of_request(request)?)
    }

    fn of(mut fields: Fields) -> Result<Self, Problem> {
        let view = fields.take("view").ok_or_else(|| Problem::malformed("view", "is missing"))?;
        bounded("view", &view)?;
        let wait = fields.wait()?;
        let asked = match fields.take("id") {
            Some(id) => bounded("id", &id).map(|()| Asked::Row(id))?,
            None => Asked::List(fields.page(&view)?),
        };
        match fields.0.pop_first() {
            None => Ok(Self { view, asked, wait }),
            Some((name, _)) => Err(Problem::malformed(
                &name,
                "is unknown; a row takes partition, slot and wait, a list also prefix, from, to, \
                 order, limit and after",
            )),
        }
    }
}

impl Fields {
    fn of_members(payload: &Value) -> Result<Self, Problem> {
        let field = |(name, value): (&String, &Value)| match value {
            Value::String(text) => Ok((name.clone(), text.clone())),
            Value::Number(number) => Ok((name.clone(), number.to_string())),
            _ => Err(Problem::malformed(name, "must be a string or a number")),
        };
        payload.as_object().into_iter().flatten().map(field).collect::<Result<_, _>>().map(Self)
    }

    /// An HTTP API has decoded both parts.
    fn of_request(request: &ApiGatewayV2httpRequest) -> Result<Self, Problem> {
        let mut fields: BTreeMap<_, _> = request.path_parameters.clone().into_iter().collect();
        for (name, value) in query(request) {
            if PATH.contains(&&*name) {
                return Err(Problem::malformed(&name, "belongs in the path"));
            }
            fields.insert(name, value);
        }
        Ok(Self(fields))
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    fn number(&mut self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let limit = format!("must be an integer from {least} to {most}, is {text:?}");
                Err(Problem::malformed(name, limit))
            }
        }
    }

    fn wait(&mut self) -> Result<Option<Wait>, Problem> {
        let most = self.number("wait", 0, WAIT_MAX_MS)?;
        // The document log counts from 0.
        let slot = self.number("slot", 0, u64::MAX)?;
        let (partition, slot) = match (self.take("partition"), slot) {
            (None, None) if most.is_some() => {
                let advice = "waits for an event; name its partition and slot";
                return Err(Problem::malformed("wait", advice));
            }
            (None, None) => return Ok(None),
            (Some(partition), Some(slot)) => (partition, slot),
            (None, Some(_)) => {
                return Err(Problem::malformed("partition", "is missing beside slot"));
            }
            (Some(_), None) => {
                return Err(Problem::malformed("slot", "is missing beside partition"));
            }
        };
        if partition.len() > BOUNDARY_BYTES_MAX {
            let limit =
                format!("must have at most {BOUNDARY_BYTES_MAX} bytes, has {}", partition.len());
            return Err(Problem::malformed("partition", limit));
        }
        let partition = BoundaryId::stored(partition);
        if partition.is_of_dcb_log() && partition.decode().is_none() {
            let advice = "is not a partition; take it from the command's answer";
            return Err(Problem::malformed("partition", advice));
        }
        let most = Duration::from_millis(most.unwrap_or(WAIT_DEFAULT_MS));
        Ok(Some(Wait { partition, slot, most }))
    }

    /// A string; an empty one counts as absent.
    fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).filter(|text| !text.is_empty())
    }

    fn page(&mut self, view: &str) -> Result<ListPage, Problem> {
        let limit = self.number("limit", 1, LIST_MAX.into())?;
        let limit = limit.and_then(|limit| limit.try_into().ok()).unwrap_or(LIST_DEFAULT);
        let prefix = self.text("prefix").unwrap_or_default();
        if !prefix.is_empty() {
            bounded("prefix", &prefix)?;
        }
        let mut bound = |name| match self.text(name) {
            Some(rest) => bounded(name, &format!("{prefix}{rest}")).map(|()| Some(rest)),
            None => Ok(None),
        };
        let (from, to) = (bound("from")?, bound("to")?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from > to
        {
            return Err(Problem::malformed("from", format!("is {from:?}, after `to`: {to:?}")));
        }
        let order = match self.text("order").as_deref() {
            None | Some("asc") => Order::Ascending,
            Some("desc") => Order::Descending,
            Some(other) => {
                return Err(Problem::malformed(
                    "order",
                    format!("must be asc or desc, is {other:?}"),
                ));
            }
        };
        let mut page = ListPage { prefix, from, to, order, after: None, limit };
        if let Some(after) = self.take("after") {
            let advice = "is not a token of this list; take `next` of its last answer";
            let id = page_end(view, &page, &after);
            page.after = Some(id.ok_or_else(|| Problem::malformed("after", advice))?);
        }
        Ok(page)
    }
}

fn bounded(name: &str, id: &str) -> Result<(), Problem> {
    if (1..=ID_BYTES_MAX).contains(&id.len()) {
        Ok(())
    } else {
        let limit = format!("must have 1 to {ID_BYTES_MAX} bytes, has {}", id.len());
        Err(Problem::malformed(name, limit))
    }
}

/// The id after which a list goes on, together with the list that it belongs to, as one opaque string.
#[must_use]
pub fn token(view: &str, page: &ListPage, id: &str) -> String {
    let ListPage { prefix, from, to, order, after: _, limit: _ } = page;
    let descending = *order == Order::Descending;
    let list = serde_json::json!([view, prefix, from, to, descending, id]);
    BASE64_URL_SAFE_NO_PAD.encode(list.to_string())
}

fn page_end(view: &str, page: &ListPage, after: &str) -> Option<String> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(after).ok()?;
    let list: Vec<Value> = serde_json::from_slice(&json).ok()?;
    let id = list.last()?.as_str()?;
    let is_of_list = token(view, page, id) == after && page.holds(id);
    (is_of_list && bounded("after", id).is_ok()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use ringfence_lambda::{Sender, request};
    use serde_json::json;

    use super::*;

    fn http(path: Value, query: Value) -> Value {
        json!({
            "requestContext": { "http": { "method": "GET" } },
            "pathParameters": path,
            "queryStringParameters": query,
        })
    }

    /// Reads a payload as the function does.
    fn parsed(payload: &Value) -> Result<Ask, Problem> {
        match Sender::of(payload) {
            Sender::Http => Ask::of_request(&request(payload.clone())?),
            _ => Ask::parse(payload),
        }
    }

    #[track_caller]
    fn check(payload: &Value, expected: &Ask) {
        assert_eq!(parsed(payload).as_ref(), Ok(expected));
    }

    #[track_caller]
    fn refuse(payload: &Value, detail: &str) {
        let problem = parsed(payload).expect_err("it is refused");
        assert_eq!(problem.status, 400);
        let document = problem.document();
        assert!(document["detail"].as_str().is_some_and(|d| d.starts_with(detail)), "{document}");
    }

    #[test]
    fn both_ways_of_asking_are_understood() {
        let row = |id: &str| Ask {
            view: "course-rosters".to_owned(),
            asked: Asked::Row(id.to_owned()),
            wait: None,
        };
        check(&json!({ "view": "course-rosters", "id": "c1/s1" }), &row("c1/s1"));
        // The HTTP API has decoded the path once; `%2541` there is the id `%41`.
        for id in ["c1/s1", "c1%2Fs1", "%41", "..", "c1/.", "c1,s1"] {
            check(&http(json!({ "view": "course-rosters", "id": id }), json!(null)), &row(id));
        }
        let wait = Wait {
            partition: BoundaryId::tag("courseId", "c1"),
            slot: 3,
            most: Duration::from_millis(WAIT_DEFAULT_MS),
        };
        let query = json!({ "partition": "courseId:c1", "slot": "3" });
        let ask = Ask { wait: Some(wait), ..row("c1") };
        check(&http(json!({ "view": "course-rosters", "id": "c1" }), query), &ask);
        let [prefix, from, to] = ["o", "2,,5,", "9"].map(str::to_owned);
        let order = Order::Descending;
        let page =
            ListPage { prefix, from: Some(from), to: Some(to), order, limit: 2, after: None };
        let after = token("orders", &page, "o7");
        let page = ListPage { after: Some("o7".to_owned()), ..page };
        let list = Ask { view: "orders".to_owned(), asked: Asked::List(page), wait: None };
        let mut query = json!({
            "prefix": "o", "from": "2,,5,", "to": "9", "order": "desc", "after": after, "limit": "2",
        });
        check(&http(json!({ "view": "orders" }), query.clone()), &list);
        query["view"] = "orders".into();
        query["limit"] = 2.into();
        check(&query, &list);
    }

    #[test]
    fn a_list_without_limits_has_25_rows() {
        let page = ListPage { limit: LIST_DEFAULT, ..ListPage::default() };
        let list = Ask { view: "orders".to_owned(), asked: Asked::List(page), wait: None };
        check(&http(json!({ "view": "orders" }), json!(null)), &list);
        let empty = json!({ "prefix": "", "from": "", "to": "", "order": "" });
        check(&http(json!({ "view": "orders" }), empty), &list);
        check(&http(json!({ "view": "orders" }), json!({ "order": "asc" })), &list);
    }

    #[test]
    fn a_refusal_names_the_field_and_its_limit() {
        let list = |query: Value| http(json!({ "view": "orders" }), query);
        let at =
            |partition: &str, slot: &str| list(json!({ "partition": partition, "slot": slot }));
        refuse(&http(json!(null), json!(null)), "view: is missing");
        for limit in ["0", "101", "-1", "many", ""] {
            refuse(&list(json!({ "limit": limit })), "limit: must be an integer from 1 to 100");
        }
        refuse(&list(json!({ "order": "newest" })), "order: must be asc or desc, is \"newest\"");
        refuse(&list(json!({ "from": "b", "to": "a" })), "from: is \"b\", after `to`: \"a\"");
        let (half, rest) = ("x".repeat(1_000), "x".repeat(25));
        for bound in ["from", "to"] {
            refuse(
                &list(json!({ "prefix": half, bound: rest })),
                &format!("{bound}: must have 1 to 1024 bytes, has 1025"),
            );
        }
        refuse(&list(json!({ "color": "red" })), "color: is unknown");
        for in_path in ["view", "id"] {
            refuse(&list(json!({ in_path: "users" })), &format!("{in_path}: belongs in the path"));
        }
        refuse(&list(json!({ "wait": "5" })), "wait: waits for an event");
        refuse(&list(json!({ "wait": "10001" })), "wait: must be an integer from 0 to 10000");
        refuse(&list(json!({ "slot": "3" })), "partition: is missing");
        refuse(&list(json!({ "partition": "orderId:o1" })), "slot: is missing");
        refuse(&at("orderId:%zz", "3"), "partition: is not a partition");
        refuse(&at("orderId:o1", "yesterday"), "slot: must be an integer from 0 to");
        refuse(&json!({ "view": "orders", "id": "" }), "id: must have 1 to 1024 bytes, has 0");
        let id = "x".repeat(1_025);
        refuse(&json!({ "view": id }), "view: must have 1 to 1024 bytes, has 1025");
        let partition = format!("orderId:{}", "x".repeat(BOUNDARY_BYTES_MAX));
        refuse(&at(&partition, "3"), "partition: must have at most 2036 bytes, has 2044");
        refuse(&json!({ "view": "orders", "id": id }), "id: must have 1 to 1024 bytes, has 1025");
        refuse(&json!({ "view": "orders", "id": ["o1"] }), "id: must be a string or a number");
        refuse(&json!({ "view": "orders", "id": "o1", "limit": 3 }), "limit: is unknown");
    }

    #[test]
    fn a_token_belongs_to_its_list() {
        let list = |prefix: &str| ListPage { prefix: prefix.to_owned(), ..ListPage::default() };
        let (all, of_p) = (list(""), list("p"));
        let ask = |query: Value| http(json!({ "view": "orders" }), query);
        for after in [
            token("users", &all, "o7"),
            token("orders", &of_p, "o7"),
            token("orders", &ListPage { to: Some("o9".to_owned()), ..list("") }, "o7"),
            token("orders", &ListPage { order: Order::Descending, ..list("") }, "o7"),
            token("orders", &all, ""),
            token("orders", &all, &"o".repeat(1_025)),
            "o7".to_owned(),
            "WyJvcmRlcnMiXQ".to_owned(),
            String::new(),
        ] {
            refuse(&ask(json!({ "after": after })), "after: is not a token of this list");
        }
        let after = token("orders", &of_p, "o7");
        refuse(
            &ask(json!({ "after": after, "prefix": "p" })),
            "after: is not a token of this list",
        );
        let [from, to] = ["5", "7"].map(|bound| Some(bound.to_owned()));
        let between = ListPage { from, to, ..of_p };
        for (id, is_of_list) in [("p4", false), ("p5", true), ("p7", true), ("p71", false)] {
            let after = token("orders", &between, id);
            let query = json!({ "after": after, "prefix": "p", "from": "5", "to": "7" });
            assert_eq!(parsed(&ask(query)).is_ok(), is_of_list, "{id}");
        }
    }
}
