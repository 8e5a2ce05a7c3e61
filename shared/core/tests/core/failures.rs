//! The kit's message if a case fails.

use ringfence_core::prelude::*;

use crate::orders::{After, Name, name, named, run};
use crate::shop::{Cleaned, cleaned};

fn failure(case: Case<Name>, begin: &str) -> String {
    let (_, failed) = run(case);
    let failed = failed.unwrap();
    let begin = format!("{begin} at shared/core/tests/core/failures.rs:");
    assert!(failed.starts_with(&begin), "{failed}");
    failed.split_once('\n').map_or(failed.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn the_expected_and_the_actual_result_are_shown_as_json_with_their_differences() {
    let facts = events![cleaned("r1", 1)];
    let case = case("a cleaning").given(facts).when(name(After::Last)).then(named(2));
    let expected = r#"  - expected
  + found
    {
      "events": [
        {
          "data": {
  -         "name": "2"
  +         "name": "1"
          },
          "tags": [],
          "type": "Opened"
        }
      ],
      "rejection": null
    }
"#;
    assert_eq!(failure(case, "case \"a cleaning\""), expected);
}

#[test]
fn an_error_is_shown_with_its_causes() {
    let without_shift = Cleaned { room_id: id("r1"), helper_ids: Vec::new(), shift_id: None };
    let case = given(events![without_shift]).when(name(After::Last)).then_nothing();
    let failed = failure(case, "case");
    let expected =
        "the command fails: event roomId:r1/1 can't be decoded: invalid type: null, expected u32";
    assert!(failed.ends_with(expected), "{failed}");
}
