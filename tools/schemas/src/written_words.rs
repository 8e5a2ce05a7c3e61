//! The findings about what is converted and what is written, in words.

use crate::Mismatch;
use crate::finding::{Audience, Finding};
use crate::words::finding;

/// An upcast that does not make the next version of a sample.
pub(crate) fn upcast_wrong(
    context: &str,
    (name, number): (&str, u32),
    sample: &str,
    why: &str,
) -> Finding {
    let next = number + 1;
    let change = format!("the upcast of sample {sample} does not make version {next}: {why}");
    finding(context, format!("{name} version {number}"), vec![change])
        .breaks(
            Audience::Log,
            format!("events of version {number} are stored, and nothing could read them"),
        )
        .mend(format!(
            "mend the function at `{number} = …` of `#[upcast(…)]`: from a payload of version {number} it makes exactly one \
             of version {next}, without any other field"
        ))
}

/// A downcast that loses something of a sample, or gives its readers another value.
pub(crate) fn downcast_wrong(
    context: &str,
    (name, number, written): (&str, u32, u32),
    sample: &str,
    why: &str,
) -> Finding {
    let change = format!("sample {sample} can't be written as version {written}: {why}");
    finding(context, format!("{name} version {number}"), vec![change])
        .breaks(
            Audience::Log,
            format!(
                "new events are stored in version {written}, so they would not be what was decided"
            ),
        )
        .mend(format!("mend the function of `#[write({written} = …)]`"))
        .mend(format!(
            "or write version {} at once, as after a field became personal: `cargo new-version {context}/{name} \
             --write` takes `#[write(…)]` away",
            number.max(written + 1)
        ))
}

/// A version that is written, and that the base does not know. `is_personal` says whether a field became personal.
pub(crate) fn written_unread(
    context: &str,
    name: &str,
    (written, known): (u32, u32),
    is_personal: bool,
) -> Finding {
    let change = format!("is written, and the base knows the versions up to {known}");
    finding(context, format!("{name} version {written}"), vec![change])
        .breaks(
            Audience::Log,
            "in the middle of a deploy, and after a roll-back, functions of the base leave such events waiting: \
             commands that read them get 503, and views stop",
        )
        .mend(match is_personal {
            true => format!(
                "version {known} can't hold a sealed value, so this takes one deploy: choose a time with few commands. \
                 They are answered, and views go on, when all functions are replaced"
            ),
            false => format!(
                "take two deploys: the first one reads version {written}, and writes version {known} by \
                 `#[write({known} = …)]`"
            ),
        })
}

/// A sample that a reader of the base can't read.
pub(crate) fn two_deploys(
    context: &str,
    (name, number): (&str, u32),
    is_public: bool,
    (sample, why): (usize, Mismatch),
) -> Finding {
    let change = format!("the base can't read sample {sample}: {why}");
    let found = finding(context, format!("{name} version {number}"), vec![change]).breaks(
        Audience::Log,
        "in the middle of a deploy, and after a roll-back, functions of the base fail on such events",
    );
    let found = match is_public {
        true => found.breaks(Audience::Bus, "consumers outside of the stack fail on them, too"),
        false => found,
    };
    found.mend("take two deploys: first the readers, then the writers")
}
