//! Files for programs that a person starts on a running stack: a shell, AWS clients, and functions under `cargo lambda
//! watch`.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::outside;
use crate::template::{FunctionResource, Model, REGION};

/// Variables by name.
pub type Environment = BTreeMap<String, String>;

/// Runs a function with the variables of its file. `$0` is the folder of these files, `$1` the function's binary.
const RUNNER: &str = r#"set -a; . "$0/$(basename "$1")"; exec "$@""#;

/// The paths of the files.
pub struct Files {
    /// Variables for a shell: those that have one value in the whole stack. If functions have different values, such as
    /// their dead-letter queues, no value would be right.
    pub shell: PathBuf,
    /// A configuration for cargo that runs each function with the function's variables: `cargo lambda watch --config
    /// <file>`. Its option `--env-file` is the same for all functions.
    pub watch: PathBuf,
}

/// Writes the files into `folder`. Each function gets `common` besides its variables, and a shell gets `shell`.
///
/// # Errors
/// One can't be written.
pub(crate) fn write(
    folder: &Path,
    shell: &Environment,
    common: &Environment,
    functions: &[FunctionResource],
) -> io::Result<Files> {
    let own = folder.join("functions");
    fs::create_dir_all(&own)?;
    for function in functions {
        let all = function.environment.iter().chain(common);
        fs::write(own.join(&function.binary), assignments(all))?;
    }
    let env = folder.join("env");
    fs::write(&env, assignments(shell))?;
    let watch = folder.join("watch.toml");
    // An array of strings is written in TOML as in JSON.
    let runner = json!(["sh", "-c", RUNNER, own]);
    fs::write(&watch, format!("[target.'cfg(all())']\nrunner = {runner}\n"))?;
    Ok(Files { shell: env, watch })
}

/// The variables for a shell, or for a program that uses the whole stack: also the URL of the HTTP API, a token if the
/// API asks for one, and the folder of the functions' logs. With `RULES_ARE_OFF`, `ringfence import` knows that nothing
/// acts on events.
/// `root` is the stack's folder with the samples, and `logs` has the functions' logs.
pub(crate) fn of_shell(
    root: &Path,
    logs: &Path,
    common: &Environment,
    api: &str,
    token: Option<&str>,
    model: &Model,
) -> Environment {
    let logs = logs.display().to_string();
    let samples = root.join("events").display().to_string();
    let tools =
        [("API_URL", api.to_owned()), ("FUNCTION_LOGS", logs), ("FUNCTION_SAMPLES", samples)];
    let tools = tools.map(|(name, value)| (name.to_owned(), value));
    let agreed =
        agreed(&model.functions).chain(common).map(|(name, value)| (name.clone(), value.clone()));
    let token = token.map(|token| ("API_TOKEN".to_owned(), token.to_owned()));
    let off = model.rules_are_off.then(|| ("RULES_ARE_OFF".to_owned(), "true".to_owned()));
    agreed.chain(tools).chain(token).chain(off).collect()
}

/// Region, endpoints and credentials, the same for every function.
pub(crate) fn common(dynamo: &str, services: &str) -> Environment {
    let variables = [
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_ENDPOINT_URL_DYNAMODB", dynamo),
        ("AWS_ENDPOINT_URL_EVENTBRIDGE", services),
        ("AWS_ENDPOINT_URL_SQS", services),
        ("AWS_ENDPOINT_URL_S3", services),
        ("AWS_ENDPOINT_URL_SESV2", services),
        ("AWS_ENDPOINT_URL_SSM", services),
        ("AWS_ENDPOINT_URL_CLOUDFORMATION", services),
        ("AWS_ENDPOINT_URL_CLOUDWATCH", services),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The values of the parameters that the functions' variables name. They come from variables of this process with the
/// same names, in place of the Parameter Store on AWS. No function gets these variables.
pub(crate) fn parameters(functions: &[FunctionResource]) -> Environment {
    let variables = functions.iter().flat_map(|function| &function.environment);
    let named = variables.filter(|(name, _)| name.ends_with("_PARAMETER"));
    named
        .filter_map(|(_, name)| {
            let value = std::env::var_os(name).filter(|_| !name.is_empty());
            let value = value.and_then(|value| value.into_string().ok());
            Some((name.clone(), value.or_else(|| outside::secret(name))?))
        })
        .collect()
}

/// The functions' variables, without those that have different values in two functions.
fn agreed(functions: &[FunctionResource]) -> impl Iterator<Item = (&String, &String)> {
    let mut values = BTreeMap::<_, Option<_>>::new();
    for (name, value) in functions.iter().flat_map(|function| &function.environment) {
        let agreed = values.entry(name).or_insert(Some(value));
        *agreed = agreed.filter(|agreed| *agreed == value);
    }
    values.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

/// `NAME='value'` lines, as a shell reads them.
fn assignments<'a>(variables: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    let line = |(name, value): (&String, &String)| format!("{name}={}\n", quoted(value));
    variables.into_iter().map(line).collect()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A path as one word of a shell, with quotes if it needs them.
pub(crate) fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+".contains(c));
    if is_plain { text } else { quoted(&text) }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{process::Command, time::Duration};

    use super::*;
    use crate::template::Retries;

    pub(crate) fn function(binary: &str, variables: &[(&str, &str)]) -> FunctionResource {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        FunctionResource {
            id: String::new(),
            binary: binary.to_owned(),
            environment: variables.iter().map(owned).collect(),
            timeout: Duration::ZERO,
            concurrency_max: None,
            memory_mb: 128,
            log_level: None,
            retries: Retries { attempts_max: None, age_max: None },
            on_failure: None,
        }
    }

    fn stdout(command: &mut Command) -> String {
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn each_function_has_its_own_variables_and_a_shell_those_on_which_all_agree() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let value = "it's $HOME \"a\" \\ b";
        let functions = [
            function("one", &[("QUEUE", "one's"), ("TABLE", "events"), ("TEXT", value)]),
            function("two", &[("QUEUE", "two's"), ("TABLE", "events")]),
        ];
        let common = Environment::from([("REGION".to_owned(), "here".to_owned())]);
        let model = Model { functions: functions.into(), rules_are_off: true, ..Model::default() };
        let (folder, logs) = (root.join("its files"), root.join("its logs"));
        let shell = of_shell(root, &logs, &common, "http://a", Some("t"), &model);
        let files = write(&folder, &shell, &common, &model.functions).expect("files");

        let shell = r#"set -a; . "$0"; printf '%s|' "$API_URL" "$API_TOKEN" "$REGION" "$TABLE" "$TEXT" "${QUEUE-absent}" "$RULES_ARE_OFF""#;
        let mut sh = Command::new("sh");
        let read = stdout(sh.args(["-c", shell]).arg(&files.shell).env_remove("QUEUE"));
        assert_eq!(read, format!("http://a|t|here|events|{value}|absent|true|"));
        assert_eq!(word(Path::new("/my shop/it's")), r"'/my shop/it'\''s'");
        assert_eq!(word(Path::new("/my-shop_2/env")), "/my-shop_2/env");

        // Two functions, as cargo runs them.
        let manifest = "[package]\nname = \"two-functions\"\nedition = \"2024\"\n[workspace]\n";
        let source = r#"fn main() { print!("{}", std::env::var("QUEUE").unwrap()) }"#;
        fs::create_dir_all(root.join("src/bin")).expect("a folder");
        fs::write(root.join("Cargo.toml"), manifest).expect("a manifest");
        for name in ["one", "two"] {
            fs::write(root.join("src/bin").join(name).with_extension("rs"), source)
                .expect("a source");
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["run", "--quiet", "--offline", "--bin", name, "--config"]);
            assert_eq!(stdout(cargo.arg(&files.watch).current_dir(root)), format!("{name}'s"));
        }
    }
}
