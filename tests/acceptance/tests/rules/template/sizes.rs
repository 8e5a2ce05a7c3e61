//! The template stays short enough to be read.

use std::collections::BTreeMap;
use std::fs;

use ringfence_acceptance::{Application, applications};
use ringfence_testing::template::check_none;

/// Most lines of a slice's function.
const SLICE_LINES_MAX: usize = 10;
/// Most lines of the function of a slice that reacts to events.
const AUTOMATION_LINES_MAX: usize = 18;
/// Most lines of the function of a reactor and of its role.
const REACTOR_LINES_MAX: usize = 55;
/// Most lines of the template besides the functions of slices and reactors.
const COMMON_LINES_MAX: usize = 1_350;

/// The lines of each resource by its logical id, without the empty ones and the comments between resources.
fn resources(template: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut resources = BTreeMap::<_, Vec<_>>::new();
    let mut current = None;
    let lines = template.lines().skip_while(|line| *line != "Resources:").skip(1);
    for line in lines.take_while(|line| line.is_empty() || line.starts_with("  ")) {
        if !line.is_empty() && !line.starts_with("   ") {
            current = line.trim().strip_suffix(':').filter(|id| !id.starts_with('#'));
        }
        if let Some(id) = current.filter(|_| !line.is_empty()) {
            resources.entry(id).or_default().push(line);
        }
    }
    resources
}

#[test]
fn a_slice_has_few_lines_an_automation_some_more_and_the_rest_can_be_read() {
    for Application { root, stack } in applications() {
        let template = fs::read_to_string(root.join("template.yaml")).unwrap();
        let (mut slices, mut of_slices) = (0, 0);
        let mut long = Vec::new();
        let resources = resources(&template);
        for (_, reactor) in stack.reactors() {
            let binary = format!("Binary: {} }}", reactor.name);
            let is_reactor = |lines: &&str| lines.contains(&binary);
            let found = resources.iter().find(|(_, lines)| lines.iter().any(&is_reactor));
            let (id, function) = found.expect("the function of a reactor");
            let count = function.len() + resources[&*format!("{id}Role")].len();
            of_slices += count + 2;
            if count > REACTOR_LINES_MAX {
                let most = REACTOR_LINES_MAX;
                long.push(format!(
                    "template.yaml: {id} has {count} lines with its role, at most {most}"
                ));
            }
        }
        for (id, lines) in resources {
            let has = |text: &str| lines.iter().any(|line| line.contains(text));
            // run-commands takes the commands of all slices.
            if !has("Binary: ") || !has("Method: POST") || id == "RunCommands" {
                continue;
            }
            slices += 1;
            of_slices += lines.len() + 1; // and an empty one
            let most = if has("EventBridgeRule") { AUTOMATION_LINES_MAX } else { SLICE_LINES_MAX };
            if lines.len() > most {
                long.push(format!("template.yaml: {id} has {} lines, at most {most}", lines.len()));
            }
        }
        assert_eq!(slices, stack.slices().count(), "the form of functions has changed");
        let common = template.lines().count() - of_slices;
        if common > COMMON_LINES_MAX {
            let most = COMMON_LINES_MAX;
            long.push(format!(
                "template.yaml has {common} lines besides slices and reactors, at most {most}"
            ));
        }
        check_none(&long);
    }
}
