//! The page of deadlines.

use std::sync::Arc;

use anyhow::Result;
use axum::extract::State;
use futures::future::try_join_all;
use maud::{Markup, html};
use ringfence_aws::Clock;
use ringfence_core::visible;
use ringfence_views::{DUE_PAGE_MAX, Definition, DueNote, DueReader, DueStanding};

use crate::frame::{self, Kind, Problem, ago, chip, slice_url, state};
use crate::site::Site;
use crate::views::UNNAMED;

/// The deadlines of each slice that are due, and why they are still there.
pub(crate) async fn page(State(site): State<Arc<Site>>) -> Result<Markup, Problem> {
    let reader = site.due().ok_or_else(|| Problem::nothing(UNNAMED))?;
    let contexts = site.lists.stack.contexts.iter();
    let dues = contexts.flat_map(|of| of.dues.iter().map(|due| (of.name, due)));
    let (names, dues): (Vec<_>, Vec<_>) =
        dues.map(|(of, due)| ((due.name, slice_url(&format!("{of}/{}", due.name))), due)).unzip();
    let now_ms = Clock::system().now_ms();
    let standing = read(&reader, &dues, now_ms).await?;
    let main = of(&names, &standing, now_ms);
    Ok(frame::page(&site, "/deadlines", "Deadlines", [reader.meter()], &main))
}

async fn read(reader: &DueReader, dues: &[&Definition], now_ms: u64) -> Result<Vec<DueStanding>> {
    Ok(try_join_all(dues.iter().map(|due| reader.standing(due, now_ms))).await?)
}

fn of(dues: &[(&str, String)], standing: &[DueStanding], now_ms: u64) -> Markup {
    html! {
        @if dues.is_empty() { p { "No slice has deadlines." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Deadlines" {
                table.figures {
                    thead { tr { @for column in ["Slice", "Due now", "Since", "Failed tries"] { th scope="col" { (column) } } }
                    }
                    tbody {
                        @for ((due, url), it) in dues.iter().zip(standing) {
                            tr {
                                th scope="row" { (chip(Kind::Reaction, due, url)) @if it.late_since(now_ms).is_some() { " " (state("wrong", "late")) } }
                                td.number { (it.rows) @if it.is_more { "+" } }
                                td { @if let Some(earliest) = it.earliest_ms { (ago(earliest)) } }
                                td.number { (it.notes.len()) }
                            }
                        }
                    }
                }
            }
            @for ((due, _), it) in dues.iter().zip(standing) {
                @for (id, DueNote { tries, next_ms, why, .. }) in it.notes.iter().take(DUE_PAGE_MAX.into()) {
                    p.note {
                        (due) " " (visible(id)) ": " (visible(why)) ". Tried " (tries) " times, again " (ago(*next_ms)) "."
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_views::DUE_LATE_MS;

    use super::*;

    #[test]
    fn a_deadline_is_late_when_the_alarm_rings_and_says_why() {
        let note =
            DueNote { cause: "e/1".to_owned(), tries: 7, next_ms: 0, why: "<no>".to_owned() };
        for (late_ms, is_wrong) in [(DUE_LATE_MS, false), (DUE_LATE_MS + 1, true)] {
            let standing = DueStanding {
                rows: 1,
                is_more: false,
                earliest_ms: Some(1_000),
                notes: vec![("a".to_owned(), note.clone())],
            };
            let page = of(&[("expire-claim", String::new())], &[standing], 1_000 + late_ms);
            let page = page.into_string();
            assert_eq!(page.contains("late</span>"), is_wrong, "{late_ms}: {page}");
            assert!(page.contains("&lt;no&gt;. Tried 7 times"), "{page}");
        }
    }
}
