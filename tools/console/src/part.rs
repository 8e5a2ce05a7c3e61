//! A part of the page of health.

use maud::{Markup, html};

/// A part of the page.
pub(crate) struct Part {
    pub(crate) markup: Markup,
    pub(crate) standing: Standing,
}

/// A part's summary at the top of the page.
pub(crate) enum Standing {
    /// All is well, in words.
    Well(&'static str),
    /// The fault, in words.
    Wrong(String),
    /// Unknown: it has no source.
    Unknown,
}

impl Part {
    pub(crate) fn unknown(markup: Markup) -> Self {
        Self { markup, standing: Standing::Unknown }
    }

    pub(crate) fn failed(what: &str, error: &anyhow::Error) -> Self {
        let markup = html! { p role="alert" { (format!("{error:#}")) } };
        Self { markup, standing: Standing::Wrong(format!("{what} can't be read")) }
    }

    /// A part that counts faults.
    pub(crate) fn of(markup: Markup, well: &'static str, wrong: usize, what: [&str; 2]) -> Self {
        let standing = match wrong {
            0 => Standing::Well(well),
            1 => Standing::Wrong(format!("1 {}", what[0])),
            count => Standing::Wrong(format!("{count} {}", what[1])),
        };
        Self { markup, standing }
    }
}
