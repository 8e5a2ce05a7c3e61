//! The tables of functions and views in the documentation.

use std::path::Path;
use std::{env, fs};

use ringfence_acceptance::{Application, applications};
use ringfence_local::{template::Rule, workspace_root};
use ringfence_testing::template::differences;

use crate::tidy::{Function, functions};

#[test]
fn the_page_of_slices_lists_the_functions() {
    for (application, page) in applications().zip(["docs/slices.md", "projects/README.md"]) {
        let row = |name: &str, woken: Option<String>, function: &Function| {
            let (link, summary) = (link(page, &function.source), function.summary());
            let woken = woken.map_or_else(String::new, |woken| format!(" {woken} |"));
            format!("| [`{name}`]({link}) |{woken} {summary} |\n")
        };
        let model = application.model();
        let functions = functions(&application, &model);
        let (slices, others): (Vec<_>, Vec<_>) = functions.iter().partition(|f| f.is_slice);
        let slices = slices.iter().map(|slice| row(&slice.path(), None, slice));
        let woken = |function: &Function| {
            let table = |name| &model.tables.iter().find(|table| table.name == name).unwrap().id;
            let mappings =
                model.mappings.iter().filter(|mapping| mapping.function == function.name);
            let streams =
                mappings.map(|mapping| format!("the stream of `{}`", table(&*mapping.table)));
            let routes = model.routes.iter().filter(|route| route.function == function.name);
            let routes = routes.map(|route| format!("`{} {}`", route.method, route.path));
            let schedules = model.schedules.iter().filter(|it| it.target.function == function.name);
            let schedules = schedules.map(|schedule| format!("`{}`", schedule.expression));
            let queues = model.queue_mappings.iter().filter(|it| it.function == function.name);
            let queues = queues.filter_map(|it| it.queue.rsplit('-').next());
            let queues = queues.map(|queue| format!("the queue `{queue}`"));
            let is_target =
                |rule: &&Rule| rule.targets.iter().any(|it| it.function == function.name);
            let notified = model.rules.iter().find(is_target).map(|_| "notifications".to_owned());
            let woken = streams.chain(queues).chain(routes).chain(notified).chain(schedules);
            let woken: Vec<_> = woken.collect();
            // The only other source is a subscription of the logs, which the stack on one machine does not have.
            if woken.is_empty() { "lines of the log".to_owned() } else { woken.join(", ") }
        };
        // The page of the shop lists once the functions that serve every stack.
        let others = others.iter().filter(|it| it.context != "stack" || page == "docs/slices.md");
        let others = others.map(|function| row(&function.name, Some(woken(function)), function));
        check_table(page, "slices", "slice | what it does", slices.collect());
        check_table(page, "functions", "function | woken by | what it does", others.collect());
    }
}

/// A link from a page to a file, both in folders of the repository.
fn link(page: &str, file: &Path) -> String {
    let folder = workspace_root().join(page).parent().unwrap().to_owned();
    match file.strip_prefix(folder) {
        Ok(path) => path.display().to_string(),
        Err(_) => format!("../{}", file.strip_prefix(workspace_root()).unwrap().display()),
    }
}

#[test]
fn the_page_of_views_lists_the_views() {
    for (Application { root, stack }, page) in
        applications().zip(["docs/views.md", "projects/README.md"])
    {
        let views = stack.contexts.iter().flat_map(|context| {
            context.views.iter().map(|view| {
                let file = view.name.replace('-', "_");
                let source = root.join(format!("functions/{}/src/views/{file}.rs", context.name));
                let text = fs::read_to_string(&source).unwrap();
                let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
                let summary = lines.collect::<Vec<_>>().join(" ");
                let (name, summary) = summary.split_once(": ").unwrap();
                assert_eq!(name, view.name, "{}", source.display());
                format!("| [`{name}`]({}) | `GET /{name}` | {summary} |\n", link(page, &source))
            })
        });
        check_table(page, "views", "view | path | what it shows", views.collect());
    }
}

/// Compares a table of a page, between its marks, with the expected one, or writes it.
pub(super) fn check_table(page: &str, name: &str, columns: &str, rows: String) {
    let path = workspace_root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let begin = text.find(&format!("<!-- {name}:")).expect("the page has the table");
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = text[begin..].find(&format!("<!-- end of {name} -->")).expect("the table ends");
    let end = begin + end;
    let line = "---|".repeat(columns.split('|').count());
    let table = format!("| {columns} |\n|{line}\n{rows}");
    if text[begin..end] == table {
        // Other tests read the page meanwhile, so it is not written again.
    } else if env::var_os("UPDATE").is_some() {
        fs::write(&path, format!("{}{table}{}", &text[..begin], &text[end..])).unwrap();
    } else {
        let lines = |table: &str| table.lines().map(str::to_owned).collect();
        let lines = differences(
            &lines(&text[begin..end]),
            &lines(&table),
            |row| format!("{page} lacks the row {row}"),
            |row| format!("{page} has the row {row}"),
        );
        let write = "`UPDATE=1 cargo test --test rules` writes the table";
        panic!("\n{}\n{write}", lines.join("\n"));
    }
}
