//! Writes a stack: a copy of the starter, a repository with one context, which serves as an example.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::marks::{Section, resealed, sealed, sections};
use crate::names::check;
use crate::plan::{Plan, fill};
use crate::pool::UserPool;

/// Where the stack gets Ringfence from: by version from the registry, unless one of these is given.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Source {
    /// A checkout of Ringfence on this machine.
    #[arg(long, value_name = "CHECKOUT")]
    path: Option<String>,
    /// A git repository of Ringfence, with a tag for the version of this program.
    #[arg(long, value_name = "URL")]
    git: Option<String>,
}

/// Who may use the HTTP API of a new stack.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Auth {
    /// Callers sign with IAM.
    #[default]
    Iam,
    /// Callers have a token of a user pool, or of an issuer that parameters name.
    Jwt,
}

/// The version of this program and of the libraries that it writes into a stack.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The libraries that a stack depends on: their names, and their folders in a checkout.
pub(crate) const LIBRARIES: [(&str, &str); 9] = [
    ("ringfence", "shared/ringfence"),
    ("ringfence-aggregate-log", "shared/compat/aggregate-log"),
    ("ringfence-cli", "tools/cli"),
    ("ringfence-console", "tools/console"),
    ("ringfence-document-log", "shared/compat/document-log"),
    ("ringfence-local", "tools/local"),
    ("ringfence-new", "tools/new"),
    ("ringfence-services", "shared/services"),
    ("ringfence-testing", "tools/testing"),
];

impl Source {
    /// A checkout on this machine.
    #[cfg(test)]
    pub(crate) fn of_checkout(path: &Path) -> Self {
        Self { path: Some(path.display().to_string()), git: None }
    }

    /// The folder of the checkout.
    fn checkout(&self) -> Result<Option<PathBuf>> {
        let Some(path) = &self.path else { return Ok(None) };
        let found = Path::new(path).canonicalize().with_context(|| format!("--path {path}"))?;
        ensure!(
            found.join("shared/core/Cargo.toml").is_file(),
            "--path {path}: it has no shared/core, so it is not a checkout of Ringfence"
        );
        Ok(Some(found))
    }

    /// The lock file with the versions of all dependencies with which the checkout was tested.
    fn lock(&self) -> Result<Option<String>> {
        let Some(checkout) = self.checkout()? else { return Ok(None) };
        Ok(fs::read_to_string(checkout.join("Cargo.lock")).ok())
    }

    /// The folder into which the checkout builds, if it was built.
    pub(crate) fn target(&self) -> Result<Option<PathBuf>> {
        let target = self.checkout()?.map(|checkout| checkout.join("target"));
        Ok(target.filter(|target| target.is_dir()))
    }

    /// The entries of the libraries in a workspace's manifest.
    fn entries(&self) -> Result<String> {
        let checkout = self.checkout()?;
        let entry = |(name, folder): &(&str, &str)| match (&checkout, &self.git) {
            (Some(checkout), _) => {
                format!("{name} = {{ path = {:?} }}", checkout.join(folder).display().to_string())
            }
            (None, Some(url)) => format!("{name} = {{ git = {url:?}, tag = \"v{VERSION}\" }}"),
            (None, None) => format!("{name} = {VERSION:?}"),
        };
        Ok(LIBRARIES.iter().map(entry).collect::<Vec<_>>().join("\n"))
    }
}

/// The paths and the texts of the starter's files.
pub(crate) const STARTER: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/starter.rs"));

/// Plans a stack in an empty folder: the starter under the stack's name, in a separate workspace, with its example
/// unless it is to be empty.
pub(crate) fn add(
    plan: &mut Plan,
    name: &str,
    source: &Source,
    auth: Auth,
    empty: bool,
) -> Result<()> {
    check("the stack", name)?;
    for (path, text) in STARTER {
        let text = if empty { without_example(path, text) } else { Some((*text).to_owned()) };
        let Some(text) = text else { continue };
        let text = match *path {
            // People read the name in one file, and stacks on AWS have it from the other.
            "README.md" | "samconfig.toml" => text.replace("starter", name),
            "template.yaml" => {
                let text =
                    if matches!(auth, Auth::Jwt) { with_tokens(&text, empty)? } else { text };
                resealed(&in_own_workspace(&text))
            }
            _ => in_own_workspace(&text),
        };
        plan.create(&in_own_workspace(path), &text);
    }
    let values = [("name", name), ("crates", &*source.entries()?), ("profiles", &*profiles())];
    plan.create("Cargo.toml", &fill(include_str!("../files/workspace.toml"), &values));
    plan.create(".gitignore", "/target\n/.aws-sam\ndeleted-dead-letters.jsonl\n");
    if let Some(lock) = source.lock()? {
        plan.create("Cargo.lock", &lock);
    }
    Ok(())
}

/// The template of a stack without contexts, which `ringfence template` writes. The rules of the repository check it.
const EMPTY: &str = include_str!("../files/empty.yaml");

/// A file of the starter without its example; `None` if it belongs to the example.
fn without_example(path: &str, text: &str) -> Option<String> {
    let of_functions = ["events/starter-", "functions/stack/", "functions/tools/"];
    let is_of_stack = of_functions.iter().any(|folder| path.starts_with(folder));
    let folders = ["docs/", "events/", "functions/", "schemas/"];
    if !is_of_stack && folders.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    Some(match path {
        "functions/stack/src/lib.rs" => text.replace("    context shop::Shop;\n", ""),
        "functions/stack/Cargo.toml" => text.replace("shop.path = \"../shop\"\n", ""),
        "template.yaml" => EMPTY.to_owned(),
        "README.md" => {
            let text = text.split("\n## The example\n").next().unwrap_or_default();
            text.replace("cargo test -p shop", "cargo test -p <context>")
        }
        _ => text.to_owned(),
    })
}

/// The setting of the API in a stack with tokens.
const AUTH: &str = "      Auth: # callers send a token of the issuer; a route names the scopes of which a token needs one
        Authorizers:
          Jwt:
            JwtConfiguration:
              issuer: !If [MakesUserPool, !Sub \"https://cognito-idp.${AWS::Region}.${AWS::URLSuffix}/${UserPool}\", !Ref JwtIssuer]
              audience: !If [MakesUserPool, [!Ref UserPoolClient], !Split [\",\", !Ref JwtAudience]]
            IdentitySource: $request.header.Authorization
        DefaultAuthorizer: Jwt
";
/// The same setting in one line.
const AUTH_FLOW: &str = "      Auth: { Authorizers: { Jwt: { JwtConfiguration: { issuer: !If [MakesUserPool, !Sub \
    \"https://cognito-idp.${AWS::Region}.${AWS::URLSuffix}/${UserPool}\", !Ref JwtIssuer], audience: !If [MakesUserPool, \
    [!Ref UserPoolClient], !Split [\",\", !Ref JwtAudience]] }, IdentitySource: $request.header.Authorization } }, \
    DefaultAuthorizer: Jwt }\n";

/// The starter's template with an API that asks for tokens, and with the scopes of its slices and its view, as
/// `ringfence template` writes it.
fn with_tokens(template: &str, empty: bool) -> Result<String> {
    let of_iam = "      Auth: # callers sign with SigV4 and need execute-api:Invoke\n        EnableIamAuthorizer: true\n        \
                  DefaultAuthorizer: AWS_IAM\n";
    let routes = ["/shop/offer-product", "/shop/take-order"];
    let routes = routes.map(|path| (path, "shop/write"));
    let views = ["\"/{view}\"", "\"/{view}/{id+}\""].map(|path| (path, "shop/read"));
    let scopes = routes.into_iter().chain(views).filter(|_| !empty).map(|(path, scope)| {
        let route = format!("Path: {path} }}");
        (route, format!("Path: {path}, Auth: {{ AuthorizationScopes: [{scope}] }} }}"))
    });
    let settings = format!(
        "Metadata:\n  Ringfence: # settings of what is written below, by logical id\n    Api:\n{AUTH}\nParameters:\n"
    );
    let of_stack: &[&str] = if empty { &[] } else { &["shop/read", "shop/write"] };
    let pool = UserPool::of(&of_stack.iter().copied().collect()).expect("scopes with a slash");
    let next = "\n  # ---- The way out: the EventTopic ----\n";
    let changes = [
        (of_iam.to_owned(), AUTH_FLOW.to_owned()),
        ("Parameters:\n".to_owned(), settings),
        ("JWT_ISSUERS: !Ref JwtIssuers".to_owned(), format!("JWT_ISSUERS: {}", UserPool::ISSUERS)),
        (next.to_owned(), pool.part("Resources") + next),
    ];
    let text =
        changes.into_iter().chain(scopes).try_fold(template.to_owned(), |text, (from, to)| {
            ensure!(
                text.matches(&from).count() == 1,
                "the starter's template has no single {from:?}"
            );
            Ok::<_, anyhow::Error>(text.replace(&from, &to))
        })?;
    let with_pool = sections(&text).into_iter().map(|Section { name, before, block, after }| {
        let more = if name == "Resources" { String::new() } else { pool.part(name) };
        let block =
            block.map_or_else(String::new, |block| sealed(&(block.body.to_owned() + &more)));
        format!("{before}{block}{after}")
    });
    Ok(with_pool.collect())
}

/// A path or a text of the starter, as a stack in a separate workspace has it. Here the starter shares a workspace, so
/// its crates and programs have a prefix, and cargo builds into the folder above.
pub(crate) fn in_own_workspace(text: &str) -> String {
    text.replace("starter-", "").replace("starter_", "").replace("CodeUri: ..", "CodeUri: .")
}

/// The profiles of Ringfence's own workspace: how its tests and its functions are built.
pub(crate) fn profiles() -> String {
    let paragraphs = include_str!("../files/profiles.toml").split("\n\n");
    let profiles = paragraphs.filter(|it| it.contains("[profile.") && !it.contains("ringfence-"));
    profiles.collect::<Vec<_>>().join("\n\n")
}
