//! Compares the documents of the API with the schemas of OpenAPI and AsyncAPI, and samples and answers with the
//! documents. Also makes clients in TypeScript and Python from one document. `scripts/go-client-check` makes one in Go.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use ringfence_core::{Slice, personal};
use ringfence_harness::{Driver, NodeProgram, PipProgram};
use ringfence_local::workspace_root;
use ringfence_stack::{MemberList, Members, Visitor};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, OnceCell};

use crate::{PROJECTS, SHOP};

const STARTER: &str = "starter";

static NODE: NodeProgram = NodeProgram::new(
    "the checks of the API's documents, of the state machine, of accessibility and of diagrams",
    concat!(env!("CARGO_MANIFEST_DIR"), "/client"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/client"),
);

static PYTHON: PipProgram = PipProgram {
    tests: "a client in Python",
    packages: &[
        "openapi-python-client==0.29.1",
        "annotated-doc==0.0.7",
        "annotated-types==0.8.0",
        "anyio==4.16.0",
        "attrs==26.1.0",
        "certifi==2026.10.19.post1",
        "h11==0.16.0",
        "httpcore==1.0.9",
        "httpx==0.28.1",
        "idna==3.20",
        "Jinja2==3.1.6",
        "markdown-it-py==4.3.0",
        "MarkupSafe==3.0.4",
        "mdurl==0.1.2",
        "pydantic==2.14.4",
        "pydantic_core==2.50.5",
        "Pygments==2.21.0",
        "rich==15.0.0",
        "ruamel.yaml==0.19.1",
        "shellingham==1.5.4",
        "typer==0.27.3",
        "typing_extensions==4.16.0",
        "typing-inspection==0.4.5",
    ],
    file: "bin/openapi-python-client",
    required: "RINGFENCE_REQUIRE_PYTHON",
    folder: env!("CARGO_TARGET_TMPDIR"),
};

/// A document of the stack in this folder.
fn document(folder: &str, name: &str) -> PathBuf {
    workspace_root().join(folder).join(format!("docs/api/{name}.json"))
}

fn json_of(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The program's runtime. It outlives the runtime of the first test.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
/// One process for all tests, because it takes half a second to start.
static DRIVER: OnceCell<Option<Mutex<Driver>>> = OnceCell::const_new();

/// The program's answer; `None` on a machine without Node.js.
async fn ask(operation: &'static str, input: Value) -> Option<Value> {
    let asked = RUNTIME.spawn(async move {
        let driver = DRIVER.get_or_init(async || NODE.start(&[]).await.map(Mutex::new)).await;
        Some(driver.as_ref()?.lock().await.ask(operation, input).await)
    });
    let mut answer = asked.await.unwrap()?;
    assert!(answer.get("ok").is_some(), "{operation}: {answer}");
    Some(answer["ok"].take())
}

/// Panics if a check names a fault.
async fn check(operation: &'static str, input: Value) {
    let wrong = ask(operation, input.clone()).await;
    assert!(
        wrong.as_ref().is_none_or(|wrong| *wrong == json!([])),
        "{operation} of {input:#}: {wrong:#?}"
    );
}

/// Panics unless the OpenAPI document of the stack in this folder has these answers: method, path, status, content type
/// and body of each.
pub(crate) async fn check_answers(folder: &str, answers: Vec<Value>) {
    assert!(!answers.is_empty());
    check("answers", json!({ "file": document(folder, "openapi"), "answers": answers })).await;
}

/// A script of a package of npm, for a page. `None` on a machine without Node.js.
pub(crate) async fn script(file: &str) -> Option<String> {
    let script = ask("script", json!({ "file": file })).await;
    script.map(|script| script.as_str().unwrap().to_owned())
}

/// Runs the state machine of projects with these functions as its tasks, by the names of their resources. Returns how
/// it failed, if it did, and which tasks it tried. `None` on a machine without Node.js.
pub(crate) async fn run_machine(
    lambda: &str,
    functions: &Value,
    execution: &str,
    input: &Value,
) -> Option<(Value, Vec<Value>)> {
    let file = workspace_root().join(PROJECTS).join("machines/share-work.asl.json");
    let asked = json!({
        "file": file, "functions": functions, "lambda": lambda, "execution": execution, "input": input,
    });
    let mut ran = ask("machine", asked).await?;
    let tried = ran["tried"].as_array().unwrap().clone();
    Some((ran["ended"].take(), tried))
}

/// Compiles the client of the shop, and lets it send commands to this API and read a view.
pub(crate) async fn check_client(api: &str) {
    check("compile", json!({ "file": document(SHOP, "openapi") })).await;
    let expected = json!({
        "event": "OrderPlaced",
        "repeated": true,
        "code": "OrderAlreadyPlaced",
        "products": ["cup"],
        "fields": ["productIds"],
    });
    let came = ask("run", json!({ "api": api })).await;
    assert!(came.as_ref().is_none_or(|came| *came == expected), "{came:#?}");
}

/// Makes a client of the shop in Python, which sends commands of eve to this API and reads each kind of answer. It gets
/// a token with the scopes of orders, and one without a scope. The API knows the product `p-1`.
pub(crate) fn check_python(api: &str, token: &str, weak_token: &str) {
    let Some(program) = PYTHON.path() else { return };
    let folder = tempfile::tempdir().unwrap();
    let packages = [program.ancestors().nth(2).unwrap(), folder.path()];
    let packages = env::join_paths(packages).unwrap();
    let python = |arguments: &[&OsStr]| {
        let mut python = Command::new("python3");
        let python =
            python.args(arguments).env("PYTHONPATH", &packages).env("no_proxy", "127.0.0.1");
        let output = python.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output.stdout
    };
    let (document, made) = (document(SHOP, "openapi"), folder.path().join("shop"));
    let generate = ["-m", "openapi_python_client", "generate", "--meta", "none", "--path"];
    let to = ["--output-path".as_ref(), made.as_os_str()];
    python(&[&generate.map(OsStr::new)[..], &[document.as_os_str()], &to].concat());
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("client");
    let read = python(&[
        client.join("client.py").as_os_str(),
        api.as_ref(),
        token.as_ref(),
        weak_token.as_ref(),
    ]);
    let read: Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(read, json_of(&client.join("answers.json")));
}

/// The page of the API has Swagger UI. For a newer one, change `package.json` and the lock file, and run this with
/// `UPDATE=1`.
#[tokio::test]
async fn the_copy_of_swagger_ui_is_the_package() {
    let update = env::var_os("UPDATE").is_some();
    let folder = workspace_root().join("tools/schemas/swagger-ui");
    check("copy", json!({ "package": "swagger-ui-dist", "folder": folder, "update": update }))
        .await;
}

#[tokio::test]
async fn the_documents_are_what_their_specifications_ask_for() {
    for folder in [SHOP, PROJECTS, STARTER] {
        for name in ["openapi", "asyncapi"] {
            check(name, json!({ "file": document(folder, name) })).await;
        }
    }
}

#[tokio::test]
async fn every_lock_has_schemas_that_take_the_commands_of_cases_and_the_samples() {
    let stacks = [
        of::<stack::Shop>(SHOP),
        of::<projects_stack::SharedProjects>(PROJECTS),
        of::<starter_stack::Contexts>(STARTER),
    ];
    for Shapes { folder, values } in stacks {
        assert!(values.len() > 5, "{}: {}", folder.display(), values.len());
        for (schema, values) in values {
            check("values", json!({ "schema": schema, "values": values })).await;
        }
    }
}

/// The schemas of the locks of a stack, each with values.
struct Shapes {
    folder: PathBuf,
    values: Vec<(Value, Vec<Value>)>,
}

fn of<M: Members>(folder: &str) -> Shapes {
    let folder = workspace_root().join(folder);
    let mut shapes = Shapes { folder, values: Vec::new() };
    MemberList::walk::<M>(&mut shapes);
    shapes
}

impl Shapes {
    fn lock(&self, context: &str) -> Value {
        json_of(&self.folder.join(format!("schemas/{context}.json")))
    }
}

impl Visitor for Shapes {
    fn context<C: ringfence_core::Context<Log: ringfence_log::Sourced>>(&mut self) {
        let lock = self.lock(C::NAME);
        for event in lock["events"].as_object().unwrap().values() {
            for version in event["versions"].as_object().unwrap().values() {
                let samples = version["samples"].as_array().unwrap().clone();
                self.values.push((version["shape"].clone(), samples));
            }
        }
    }

    fn slice<S: Slice>(&mut self) {
        let lock = self.lock(<S::Context as ringfence_core::Context>::NAME);
        let schema = lock["commands"][S::NAME]["shape"].clone();
        let cases = S::cases();
        let commands = cases.iter().map(|case| serde_json::to_value(case.command()).unwrap());
        let mut commands: Vec<_> = commands.collect();
        commands.iter_mut().for_each(personal::show);
        let samples = self.folder.join("events").join(S::NAME);
        for sample in fs::read_dir(samples).unwrap() {
            let mut sample = json_of(&sample.unwrap().path());
            if sample.get("detail").is_some() {
                continue;
            }
            commands.push(match sample["body"].as_str() {
                Some(body) => serde_json::from_str(body).unwrap(),
                None if sample.get("command").is_some() => sample["command"].take(),
                None => sample,
            });
        }
        self.values.push((schema, commands));
    }
}
