//! Runs the steps for newcomers in README.md and docs/slices.md as they are written.

use std::{
    fs::{self, DirEntry},
    net::Ipv4Addr,
    path::Path,
};

use futures::future::join;
use ringfence_aws::wire::Wire;
use ringfence_core::kit::assert_same;
use ringfence_local::{template::Template, workspace_root};
use serde_json::Value;
use tokio::process::Command;

use crate::binaries::answers_every_sample;
use crate::contract::check_client;
use crate::{PROJECTS, SHOP, start};

fn text(path: &str) -> String {
    let path = workspace_root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sample(folder: &str, function: &str, name: &str) -> Value {
    let path = Path::new(folder).join(format!("events/{function}/{name}.json"));
    serde_json::from_str(&text(path.to_str().unwrap())).unwrap()
}

/// The stacks, each with the page that has the order of its samples.
const SAMPLES: [(&str, &str); 2] = [(SHOP, "docs/slices.md"), (PROJECTS, "projects/README.md")];

/// The functions whose samples are sent: first the functions in the page's list, in its order.
fn order_of_samples(folder: &str, page: &str) -> Vec<String> {
    let page = text(page);
    let (_, rest) = page.split_once("<!-- order of samples").unwrap();
    let (order, _) = rest.split_once("<!-- end of order of samples -->").unwrap();
    let (_, order) = order.split_once("-->\n").unwrap();
    let mut order: Vec<_> = order.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let mut others: Vec<_> = slices(folder).filter(|slice| !order.contains(slice)).collect();
    others.sort();
    order.extend(others);
    order
}

/// The slices, by their samples: `direct.json` and `http.json`.
fn slices(folder: &str) -> impl Iterator<Item = String> {
    let events = workspace_root().join(folder).join("events");
    let folders = fs::read_dir(events).unwrap().map(Result::unwrap);
    let has_both = |folder: &DirEntry| {
        let name = |name| folder.path().join(name).exists();
        name("direct.json") && name("http.json") && folder.file_name() != "query-views"
    };
    folders.filter(has_both).map(|folder| folder.file_name().into_string().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_in_the_pages_order_then_the_walk_then_each_sample_then_a_client() {
    let [shop, projects] = SAMPLES.map(async |(folder, page)| {
        let data = crate::folder();
        let stack = start(folder, data.path(), None).await;
        let mut function = String::new();
        for named in order_of_samples(folder, page) {
            let name = named.strip_suffix(".json").unwrap_or_else(|| {
                function.clone_from(&named);
                "direct"
            });
            let answer = stack.invoke(&function, &sample(folder, &function, name)).await.unwrap();
            assert_eq!(answer["accepted"], true, "{function}/{name}.json: {answer}");
        }
        (stack, data)
    });
    let ((stack, _data), (projects, _data_of_projects)) = join(shop, projects).await;

    let mut walk = Command::new(workspace_root().join("scripts/walk"));
    let output = walk.arg(stack.api()).env("no_proxy", "127.0.0.1").output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let answers = String::from_utf8(output.stdout).unwrap();
    // Each answer ends with a line break, so a shell's prompt and the next answer begin a line.
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(answers.last().unwrap()["row"]["customerId"], "eve", "{answers:?}");

    join(answers_every_sample(SHOP, &stack), answers_every_sample(PROJECTS, &projects)).await;
    check_client(stack.api()).await;
}

#[test]
fn the_readme_has_the_lines_of_the_walk() {
    let walk = text("scripts/walk");
    let (_, lines) = walk.split_once("\n\n").unwrap();
    let block = format!("```sh\napi=http://127.0.0.1:3000\n{lines}```\n");
    assert!(text("README.md").contains(&block), "README.md lacks:\n{block}");
}

#[test]
fn http_and_direct_are_the_same_command() {
    let of = |folder| slices(folder).map(move |slice| (folder, slice));
    for (folder, function) in of(SHOP).chain(of(PROJECTS)) {
        let sample = |name| sample(folder, &function, name);
        let body = sample("http")["body"].as_str().unwrap().to_owned();
        let command: Value = serde_json::from_str(&body).unwrap();
        let what = format!("events/{function}: the command of direct.json (-) and http.json (+)");
        assert_same(what, &sample("direct"), &command);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_that_run_at_once_keep_their_files_apart_and_kept_events_outlive_theirs() {
    let folder = crate::folder();
    let kept = folder.path().join("kept");
    let one = start(SHOP, folder.path(), Some(kept.clone())).await;
    let product = sample(SHOP, "add-product", "direct");
    assert_eq!(one.invoke("add-product", &product).await.unwrap()["accepted"], true);
    let files = one.write_environment().unwrap();
    let before = fs::read_to_string(&files.shell).unwrap();
    let two = start(SHOP, folder.path(), None).await;
    assert_ne!(two.write_environment().unwrap().shell, files.shell);
    assert_eq!(fs::read_to_string(&files.shell).unwrap(), before);
    assert!(before.contains(one.dynamo()), "{before}");

    drop(one);
    let again = start(SHOP, folder.path(), Some(kept)).await;
    let rename = sample(SHOP, "change-product-name", "direct");
    let renamed = again.invoke("change-product-name", &rename).await.unwrap();
    assert_eq!(renamed["accepted"], true, "the product is known: {renamed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_template_for_sam_local_uses_the_stacks_tables_and_is_deleted_with_the_stack() {
    let folder = crate::folder();
    let mut stack = start(SHOP, folder.path(), None).await;
    let template = Template::of_stack().unwrap();
    let path = stack.serve_containers(&template, Ipv4Addr::LOCALHOST).unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let variable = |part: &Value, name: &str| {
        part["Environment"]["Variables"][name].as_str().expect(name).to_owned()
    };

    let common = &written["Globals"]["Function"];
    assert_ne!(variable(common, "AWS_ENDPOINT_URL_SQS"), stack.services());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let got = client.get(variable(common, "AWS_ENDPOINT_URL_SQS")).send().await.unwrap();
    assert_eq!(got.status(), 405, "the services answer, to POST alone");
    assert_ne!(variable(common, "AWS_ENDPOINT_URL_DYNAMODB"), stack.dynamo());
    let dynamo = Wire::default().client(&variable(common, "AWS_ENDPOINT_URL_DYNAMODB"));
    let tables = dynamo.list_tables().send().await.unwrap().table_names.unwrap();

    for (id, function) in written["Resources"].as_object().unwrap() {
        let properties = &function["Properties"];
        let code = path.with_file_name(properties["CodeUri"].as_str().unwrap());
        assert!(code.join("bootstrap").is_file(), "{id}");
        if properties["Environment"]["Variables"].get("EVENT_TABLE").is_some() {
            let table = variable(properties, "EVENT_TABLE");
            assert!(tables.contains(&table), "{id}");
        }
    }
    drop(stack);
    assert!(!path.exists(), "nothing could run from it any more");
}
