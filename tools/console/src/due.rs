//! Deadlines on the page of health.

use anyhow::Result;
use futures::future::try_join_all;
use maud::html;
use ringfence_aws::Clock;
use ringfence_core::{rfc3339, visible};
use ringfence_views::{DUE_LATE_MS, DUE_PAGE_MAX, Definition, DueNote, DueReader, DueStanding};

use crate::part::Part;
use crate::site::Site;
use crate::views::UNNAMED;

/// The deadlines of each slice that are due, and why they are still there.
pub(crate) async fn all(site: &Site) -> Part {
    let Some(reader) = site.due() else { return Part::unknown(html! { p { (UNNAMED) } }) };
    let contexts = site.lists.stack.contexts.iter();
    let dues: Vec<_> = contexts.flat_map(|context| &context.dues).collect();
    let now_ms = Clock::system().now_ms();
    match read(&reader, &dues, now_ms).await {
        Ok(standing) => {
            let names: Vec<_> = dues.iter().map(|due| due.name).collect();
            of(&names, &standing, now_ms)
        }
        Err(error) => Part::failed("what is due", &error),
    }
}

async fn read(reader: &DueReader, dues: &[&Definition], now_ms: u64) -> Result<Vec<DueStanding>> {
    Ok(try_join_all(dues.iter().map(|due| reader.standing(due, now_ms))).await?)
}

fn of(dues: &[&str], standing: &[DueStanding], now_ms: u64) -> Part {
    let is_late = |it: &DueStanding| {
        it.earliest_ms.is_some_and(|earliest| now_ms.saturating_sub(earliest) > DUE_LATE_MS)
    };
    let markup = html! {
        @if dues.is_empty() { p { "No slice has deadlines." } }
        @else {
            div.wide tabindex="0" role="region" aria-label="Deadlines" {
                table.figures {
                    thead { tr { @for column in ["Slice", "Due now", "The earliest since (UTC)", "Tried in vain"] { th scope="col" { (column) } } }
                    }
                    tbody {
                        @for (due, it) in dues.iter().zip(standing) {
                            tr {
                                th scope="row" { (due) @if is_late(it) { " " strong.bad { "late" } } }
                                td.number { (it.rows) @if it.is_more { "+" } }
                                td { @if let Some(earliest) = it.earliest_ms { time { (rfc3339(earliest)) } } }
                                td.number { (it.notes.len()) }
                            }
                        }
                    }
                }
            }
            @for (due, it) in dues.iter().zip(standing) {
                @for (id, DueNote { tries, next_ms, why, .. }) in it.notes.iter().take(DUE_PAGE_MAX.into()) {
                    p.note {
                        (due) " " (visible(id)) ": " (visible(why)) ". Tried " (tries) " times, again at " (rfc3339(*next_ms)) "."
                    }
                }
            }
        }
    };
    let late = standing.iter().filter(|it| is_late(it)).count();
    Part::of(
        markup,
        "no deadline is late",
        late,
        ["slice has a deadline that is late", "slices have deadlines that are late"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Standing;

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
            let part = of(&["expire-claim"], &[standing], 1_000 + late_ms);
            assert_eq!(matches!(part.standing, Standing::Wrong(_)), is_wrong, "{late_ms}");
            let page = part.markup.into_string();
            assert!(page.contains("&lt;no&gt;. Tried 7 times"), "{page}");
        }
    }
}
