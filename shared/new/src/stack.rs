//! Writes a stack: a repository with one context, which serves as an example.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::context::{self, Log};
use crate::names::check;
use crate::plan::{Plan, fill};
use crate::{slice, template};

/// Where the stack gets Ringfence from: by version from the registry, unless one of these is given.
#[derive(Args)]
#[group(multiple = false)]
pub(crate) struct Source {
    /// A checkout of Ringfence on this machine.
    #[arg(long, value_name = "CHECKOUT")]
    path: Option<String>,
    /// A git repository of Ringfence.
    #[arg(long, value_name = "URL")]
    git: Option<String>,
}

/// The libraries that a stack depends on: the ends of their names, and their folders in a checkout.
const LIBRARIES: [&str; 15] = [
    "aggregate-log",
    "cli",
    "console",
    "core",
    "dcb-log",
    "document-log",
    "feed",
    "function",
    "lambda",
    "local",
    "stack",
    "testing",
    "topic",
    "views",
    "dynamo",
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

    /// The versions of all dependencies that the checkout was tested with.
    fn lock(&self) -> Result<Option<String>> {
        let Some(checkout) = self.checkout()? else { return Ok(None) };
        Ok(fs::read_to_string(checkout.join("Cargo.lock")).ok())
    }

    /// Where the checkout builds, if it has.
    pub(crate) fn target(&self) -> Result<Option<PathBuf>> {
        let target = self.checkout()?.map(|checkout| checkout.join("target"));
        Ok(target.filter(|target| target.is_dir()))
    }

    /// The entries of the libraries in a workspace's manifest.
    fn entries(&self) -> Result<String> {
        let checkout = self.checkout()?;
        let mut entries: Vec<_> = LIBRARIES
            .iter()
            .map(|library| {
                let name = match *library {
                    "core" => "ringfence".to_owned(),
                    other => format!("ringfence-{other}"),
                };
                let version = env!("CARGO_PKG_VERSION");
                match (&checkout, &self.git) {
                    (Some(folder), _) => {
                        let path = folder.join("shared").join(library);
                        format!("{name} = {{ path = {:?} }}", path.display().to_string())
                    }
                    (None, Some(url)) => format!("{name} = {{ git = {url:?} }}"),
                    (None, None) => format!("{name} = \"{version}\""),
                }
            })
            .collect();
        entries.sort();
        Ok(entries.join("\n"))
    }
}

/// The files that are the same in every stack.
const FILES: [(&str, &str); 29] = [
    (".cargo/config.toml", include_str!("../files/stack/cargo_config.toml")),
    (".gitignore", "/target\n/.aws-sam\n"),
    ("rustfmt.toml", include_str!("../files/rustfmt.toml")),
    ("functions/stack/Cargo.toml", include_str!("../files/stack/stack.toml")),
    ("functions/stack/src/lib.rs", include_str!("../files/stack/stack_lib.rs")),
    ("functions/stack/src/bin/index-events.rs", include_str!("../files/stack/bin/index-events.rs")),
    (
        "functions/stack/src/bin/project-views.rs",
        include_str!("../files/stack/bin/project-views.rs"),
    ),
    (
        "functions/stack/src/bin/publish-events.rs",
        include_str!("../files/stack/bin/publish-events.rs"),
    ),
    ("functions/stack/src/bin/query-views.rs", include_str!("../files/stack/bin/query-views.rs")),
    ("functions/tools/Cargo.toml", include_str!("../files/stack/tools.toml")),
    ("functions/tools/src/bin/ringfence.rs", include_str!("../files/stack/ringfence.rs")),
    (
        "functions/tools/src/bin/ringfence-local.rs",
        include_str!("../files/stack/ringfence-local.rs"),
    ),
    ("functions/shop/src/lib.rs", include_str!("../files/stack/shop_lib.rs")),
    ("functions/shop/src/events.rs", include_str!("../files/stack/shop_events.rs")),
    ("functions/shop/src/add_product.rs", include_str!("../files/stack/add_product.rs")),
    ("functions/shop/src/place_order.rs", include_str!("../files/stack/place_order.rs")),
    ("functions/shop/src/ship_order.rs", include_str!("../files/stack/ship_order.rs")),
    ("functions/shop/src/views/orders.rs", include_str!("../files/stack/orders.rs")),
    ("schemas/shop.json", include_str!("../files/stack/schemas.json")),
    ("tests/Cargo.toml", include_str!("../files/stack/tests.toml")),
    ("tests/lib.rs", "//! The checks are in `checks.rs`.\n"),
    ("tests/checks.rs", include_str!("../files/stack/checks.rs")),
    ("events/add-product/direct.json", "{\n  \"productId\": \"mug\",\n  \"name\": \"Mug\"\n}\n"),
    (
        "events/place-order/direct.json",
        "{\n  \"orderId\": \"one\",\n  \"productIds\": [\"mug\"]\n}\n",
    ),
    ("events/index-events/stream.json", include_str!("../files/stack/stream.json")),
    ("events/publish-events/stream.json", include_str!("../files/stack/stream.json")),
    ("events/project-views/stream.json", include_str!("../files/stack/pages.json")),
    ("events/query-views/http.json", include_str!("../files/stack/row.json")),
    ("events/query-views/list.json", include_str!("../files/stack/rows.json")),
];

/// Plans a stack in an empty folder.
pub(crate) fn add(plan: &mut Plan, name: &str, source: &Source) -> Result<()> {
    check("the stack", name)?;
    let values = [("name", name), ("crates", &*source.entries()?), ("profiles", &*profiles())];
    plan.create("Cargo.toml", &fill(include_str!("../files/stack/workspace.toml"), &values));
    plan.create("README.md", &fill(include_str!("../files/stack/README.md"), &values));
    let bare = template::without_contexts(include_str!("../files/template.yaml"));
    plan.create("template.yaml", &bare);
    let samconfig =
        include_str!("../files/samconfig.toml").replace("ringfence-", &format!("{name}-"));
    plan.create("samconfig.toml", &samconfig);
    if let Some(lock) = source.lock()? {
        plan.create("Cargo.lock", &lock);
    }
    for (path, text) in FILES {
        plan.create(path, text);
    }
    context::add(plan, "shop", Log::Dcb)?;
    for library in ["ringfence-views", "serde_json"] {
        context::depend(plan, "shop", library)?;
    }
    slice::add(plan, "shop", "add-product", None)?;
    slice::add(plan, "shop", "place-order", None)?;
    slice::add(plan, "shop", "ship-order", Some("shop/OrderPlaced"))
}

/// The profiles of Ringfence's own workspace: how its tests and its functions are built.
fn profiles() -> String {
    let paragraphs = include_str!("../files/workspace.toml").split("\n\n");
    let profiles = paragraphs.filter(|it| it.contains("[profile.") && !it.contains("ringfence-"));
    profiles.collect::<Vec<_>>().join("\n\n")
}
