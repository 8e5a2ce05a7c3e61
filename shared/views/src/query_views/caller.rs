//! The part of a view that a caller sees.

use ringfence_core::Principal;
use ringfence_lambda::Problem;

use crate::{Content, Definition, ListPage, Listed, Shown, ViewError, ViewRead, ViewReader, Wait};

/// The most queries of a list from which rows are left out. It may then have fewer rows than its limit, and goes on at
/// `next`.
const QUERIES_MAX: usize = 4;

/// A caller of the HTTP API who is known; all others see everything.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a>(pub(super) Option<&'a Principal>);

impl Caller<'_> {
    /// Fails if the view has scopes and the caller's token lacks them all.
    pub(super) fn check(self, view: Option<&Definition>) -> Result<(), Problem> {
        match (self.0, view) {
            (Some(principal), Some(view)) if !principal.may_use(view.scopes) => {
                Err(Problem::scope_missing(view.scopes))
            }
            _ => Ok(()),
        }
    }

    fn sees(self, view: &Definition, row: &Shown) -> bool {
        let content = match &row.content {
            Content::Row(row) => Some(row),
            Content::Parked(_) => None,
        };
        self.0.is_none_or(|principal| view.sees(principal, &row.id, content))
    }

    /// The row, if the caller sees it.
    pub(super) fn row(self, view: Option<&Definition>, row: Option<Shown>) -> Option<Shown> {
        row.filter(|row| view.is_none_or(|view| self.sees(view, row)))
    }

    /// A page of the rows that the caller sees. It reads as many rows as are wanted, and again as many as were left out.
    pub(super) async fn list(
        self,
        reader: &ViewReader,
        view: &str,
        page: &ListPage,
        wait: Option<&Wait>,
    ) -> Result<ViewRead<Listed>, ViewError> {
        let mut found = reader.list(view, page, wait).await?;
        let (ViewRead::Found(listed), Some(definition)) = (&mut found, reader.view(view)) else {
            return Ok(found);
        };
        listed.rows.retain(|row| self.sees(definition, row));
        for _ in 1..QUERIES_MAX {
            let left = usize::from(page.limit).saturating_sub(listed.rows.len());
            let (true, Ok(limit @ 1..)) = (definition.has_rule, u16::try_from(left)) else { break };
            let Some(after) = listed.next.take() else { break };
            let page = ListPage { after: Some(after), limit, ..page.clone() };
            let more = match reader.list(view, &page, wait).await? {
                ViewRead::Found(more) => more,
                other => return Ok(other),
            };
            listed.rows.extend(more.rows.into_iter().filter(|row| self.sees(definition, row)));
            listed.next = more.next;
        }
        Ok(found)
    }
}
