//! The stacks of this repository, for the acceptance tests in `tests/`.

use std::path::PathBuf;

use ringfence_local::template::{Model, Template};
use ringfence_local::workspace_root;
use ringfence_stack::Stack;

/// A stack of this repository.
pub struct Application {
    pub root: PathBuf,
    pub stack: Stack,
}

/// The stacks of this repository. Prints the folder of each before it is tested, which shows where a test has failed.
pub fn applications() -> impl Iterator<Item = Application> {
    let stacks = [
        ("", stack::stack()),
        ("projects", projects_stack::stack()),
        ("starter", starter_stack::stack()),
    ];
    stacks.into_iter().map(|(folder, stack)| {
        let root = workspace_root().join(folder);
        eprintln!("in {}:", root.display());
        Application { root, stack }
    })
}

impl Application {
    /// The template as this machine runs it.
    ///
    /// # Panics
    /// It is not understood.
    #[must_use]
    pub fn model(&self) -> Model {
        let template = Template::load(&self.root.join("template.yaml")).map(Template::whole);
        template.and_then(|template| template.model("http://127.0.0.1:1")).expect("a template")
    }
}
