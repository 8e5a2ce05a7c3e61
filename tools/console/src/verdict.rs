//! Whether all is well: the verdict that all pages show.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use ringfence_cli::verdict::{StackVerdict, VerdictSources};

use crate::frame::shown;
use crate::last_look::LastLook;
use crate::site::Site;

/// A verdict is shown for this time after the end of its look, in milliseconds. It is shorter than the 15 seconds after
/// which the script asks again, so that open pages share their looks.
pub(crate) const KEPT_MS: u64 = 14_000;

/// The verdict of at most [`KEPT_MS`] ago, and whether this call has looked.
pub(crate) async fn find(site: &Site) -> (Arc<StackVerdict>, bool) {
    // Requests that come meanwhile wait for the same look.
    let mut kept = site.verdict.lock().await;
    if let Some(verdict) = kept.as_ref().and_then(|look| look.within(KEPT_MS)) {
        return (verdict, false);
    }
    let index = site.index();
    let sources = VerdictSources {
        stack: &site.lists.stack,
        views: site.views(&index).zip(site.reactors()).zip(site.due()).map(|((a, b), c)| (a, b, c)),
        index,
        config: &site.config,
        flags: &site.flags,
    };
    let verdict = Arc::new(StackVerdict::find(&sources).await);
    *kept = Some(LastLook::new(verdict.clone()));
    (verdict, true)
}

/// The content of the link in the head of each page.
pub(crate) async fn dot(State(site): State<Arc<Site>>) -> Markup {
    shown(&of(&find(&site).await.0))
}

fn of(verdict: &StackVerdict) -> Markup {
    let class = match (verdict.is_well(), verdict.unknown.is_empty()) {
        (true, true) => "dot well",
        (true, false) => "dot",
        (false, _) => "dot wrong",
    };
    html! { span class=(class) aria-hidden="true" {} span { (verdict.sentence()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dot_has_a_text_and_a_shape_for_each_verdict() {
        let unknown = StackVerdict { unknown: vec!["logs"], ..StackVerdict::default() };
        for (verdict, class, text) in [
            (StackVerdict::default(), "dot well", "All is well<"),
            (unknown, "dot", "All is well that is known<"),
        ] {
            let dot = of(&verdict).into_string();
            assert!(dot.contains(&format!("class=\"{class}\"")) && dot.contains(text), "{dot}");
        }
    }
}
