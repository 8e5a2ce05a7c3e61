//! Which rows a list has.

use aws_sdk_dynamodb::operation::query::builders::QueryInputBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::row::{ID, ID_BYTES_MAX, VIEW, key};

/// Most rows of one list.
pub const LIST_MAX: u16 = 100;
/// Rows of a list without a limit.
pub const LIST_DEFAULT: u16 = 25;

/// Which rows to list. Ids are compared byte by byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The beginning of their ids.
    pub prefix: String,
    /// The least string that follows the prefix.
    pub from: Option<String>,
    /// The greatest string that follows the prefix; not less than `from`.
    pub to: Option<String>,
    /// The order of their ids.
    pub order: Order,
    /// Only rows whose ids come after this one, in this order.
    pub after: Option<String>,
    /// At most this many rows; a page also ends at 1 MB.
    pub limit: u16,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The least id first.
    #[default]
    Ascending,
    /// The greatest id first.
    Descending,
}

impl ListPage {
    /// Whether the list can have a row with this id, on any page.
    pub(crate) fn holds(&self, id: &str) -> bool {
        id.strip_prefix(&*self.prefix).is_some_and(|rest| {
            self.from.as_deref().is_none_or(|from| from <= rest)
                && self.to.as_deref().is_none_or(|to| rest <= to)
        })
    }

    /// The least and the greatest id that the list can have. A key can't be empty, so there may be no bound.
    fn bounds(&self) -> (Option<String>, Option<String>) {
        let id = |rest: &str| Some(format!("{}{rest}", self.prefix)).filter(|id| !id.is_empty());
        let last = || (!self.prefix.is_empty()).then(|| greatest(&self.prefix));
        (id(self.from.as_deref().unwrap_or_default()), self.to.as_deref().map_or_else(last, id))
    }
}

/// The greatest id that begins with `prefix`.
fn greatest(prefix: &str) -> String {
    let mut id = prefix.to_owned();
    for last in ['\u{10FFFF}', '\u{FFFF}', '\u{7FF}', '\u{7F}'] {
        while id.len() + last.len_utf8() <= ID_BYTES_MAX {
            id.push(last);
        }
    }
    id
}

pub(crate) fn of_list(query: QueryInputBuilder, rows: &str, page: &ListPage) -> QueryInputBuilder {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut condition = "#view = :view".to_owned();
    let mut query = query
        .expression_attribute_names("#view", VIEW)
        .expression_attribute_values(":view", text(rows))
        .set_exclusive_start_key(page.after.as_ref().map(|after| key(rows, after)))
        .scan_index_forward(page.order == Order::Ascending)
        .limit(page.limit.into());
    let (least, greatest) = page.bounds();
    condition.push_str(match (&least, &greatest) {
        (None, None) => "",
        (Some(_), None) => " AND #id >= :least",
        (None, Some(_)) => " AND #id <= :greatest",
        (Some(_), Some(_)) => " AND #id BETWEEN :least AND :greatest",
    });
    for (name, bound) in [(":least", least), (":greatest", greatest)] {
        if let Some(bound) = bound {
            query = query
                .expression_attribute_names("#id", ID)
                .expression_attribute_values(name, text(&bound));
        }
    }
    query.key_condition_expression(condition)
}
