//! The parts of a new stack, beside its template, that an older one lacks: the program of `cargo new-…`, the aliases,
//! the libraries, the profiles, and the dependency with which a context's tests share the build of the others.
//!
//! A part that is there stays as it is, even if a person has changed it.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::context;
use crate::edit::{add_to_section, section};
use crate::plan::{Plan, settle_lock};
use crate::stack::{LIBRARIES, STARTER, VERSION, profiles};

/// The folder of the program of `cargo new-…`.
const PROGRAM: &str = "functions/tools/new";
const ALIASES: &str = ".cargo/config.toml";

/// What a stack lacks.
pub struct Lacking {
    plan: Plan,
    /// The manifest of its workspace.
    manifest: &'static str,
    /// The stack's folder in a workspace with several stacks; else empty.
    folder: String,
    parts: Vec<String>,
}

impl Lacking {
    /// What the stack in this folder lacks.
    ///
    /// # Errors
    /// A file can't be read, or has no place for a part.
    pub fn of(root: &Path) -> Result<Self> {
        let plan = Plan::new(root.to_owned());
        let is_workspace = plan.read("Cargo.toml").is_ok_and(|text| text.contains("[workspace]"));
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        let (manifest, folder) = match is_workspace {
            true => ("Cargo.toml", String::new()),
            false => ("../Cargo.toml", name.into_owned()),
        };
        let mut lacking = Self { plan, manifest, folder, parts: Vec::new() };
        let program = lacking.program()?;
        lacking.aliases(&program)?;
        lacking.libraries()?;
        lacking.profiles()?;
        lacking.dependencies_of_tests()?;
        Ok(lacking)
    }

    /// The manifest of the stack's workspace, as a path in the stack's folder.
    #[must_use]
    pub fn manifest(&self) -> &'static str {
        self.manifest
    }

    /// A line for each part, such as `Cargo.toml: ringfence-new in [workspace.dependencies]`.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Adds the parts. Returns lines that name the files.
    ///
    /// # Errors
    /// A file can't be written. Then nothing is written.
    pub fn write(self) -> Result<String> {
        let root = self.plan.root().to_owned();
        let written = self.plan.write()?;
        settle_lock(&root);
        Ok(written)
    }

    /// Adds a line to a section of a file, unless the section has its key.
    fn add(&mut self, path: &str, name: &str, line: &str) -> Result<()> {
        self.change(path, name, line, |text| add_to_section(text, name, line))
    }

    fn change(
        &mut self,
        path: &str,
        name: &str,
        line: &str,
        change: impl FnOnce(&str) -> String,
    ) -> Result<()> {
        let before = self.plan.read(path)?;
        self.plan.edit(path, |text| Ok(change(text)))?;
        if self.plan.read(path)? != before {
            let key = line.split([' ', '=']).next().unwrap_or_default();
            self.parts.push(format!("{path}: {} in [{name}]", key.trim_end_matches(".workspace")));
        }
        Ok(())
    }

    /// The name of the program of `cargo new-…`. In a workspace with several stacks it begins with the stack's name, as
    /// those of `starter` do. Ringfence's own workspace has it as a library's program.
    fn program(&mut self) -> Result<String> {
        let own = self.named("starter-ringfence-new");
        let manifests: String = self.plan.manifests().into_values().collect();
        let has = |name: &&String| manifests.contains(&format!("[[bin]]\nname = \"{name}\"\n"));
        if let Some(found) = [&own, &"ringfence-new".to_owned()].into_iter().find(has) {
            return Ok(found.clone());
        }
        for (path, text) in STARTER.iter().filter(|(path, _)| path.starts_with(PROGRAM)) {
            self.plan.create(path, &self.named(text));
        }
        self.parts.push(format!("{PROGRAM}: the program of `cargo new-…`"));
        let path = |of: &str| format!("{:?}", Path::new(&self.folder).join(of));
        let (members, more) = (path("functions/*"), path(PROGRAM));
        let more = format!("{members}, {more}");
        if self.plan.read(self.manifest)?.contains(&members) {
            self.plan.edit(self.manifest, |text| Ok(text.replacen(&members, &more, 1)))?;
        } else {
            let part = format!(
                "{}: {} in `members`, which you have to write",
                self.manifest,
                path(PROGRAM)
            );
            self.parts.push(part);
        }
        Ok(own)
    }

    /// A text of the starter with the names of this stack's programs.
    fn named(&self, text: &str) -> String {
        let prefix =
            if self.folder.is_empty() { String::new() } else { format!("{}-", self.folder) };
        text.replace("starter-", &prefix)
    }

    /// Aliases of the starter. A stack in a folder of a workspace also has those of the workspace.
    fn aliases(&mut self, program: &str) -> Result<()> {
        let (_, all) = STARTER.iter().find(|(path, _)| *path == ALIASES).expect("it has aliases");
        let above = fs::read_to_string(self.plan.root().join("..").join(ALIASES));
        let above = above.ok().filter(|_| !self.folder.is_empty()).unwrap_or_default();
        for line in section(all, "alias").unwrap_or_default().lines() {
            let key = line.split('=').next().unwrap_or_default();
            if !above.lines().any(|line| line.starts_with(key)) {
                self.plan.create(ALIASES, "[alias]\n");
                let line = self.named(&line.replace("starter-ringfence-new", program));
                self.add(ALIASES, "alias", &line)?;
            }
        }
        Ok(())
    }

    /// A library comes from where `ringfence-cli` comes from.
    fn libraries(&mut self) -> Result<()> {
        let entries = self.entries()?;
        let entry = |name: &str| {
            let line = entries.lines().find(|line| line.starts_with(&format!("{name} = ")));
            line.map(str::to_owned)
        };
        let Some(like) = entry("ringfence-cli") else { return Ok(()) };
        let mut last = like.clone();
        for (name, folder) in LIBRARIES {
            let line = entry(name).unwrap_or_else(|| {
                like.replacen("ringfence-cli", name, 1).replace("tools/cli", folder)
            });
            if !entries.contains(&line) {
                let with = format!("{last}\n{line}\n");
                let change = |text: &str| text.replacen(&format!("{last}\n"), &with, 1);
                self.change(self.manifest, "workspace.dependencies", &line, change)?;
            }
            last = line;
        }
        Ok(())
    }

    /// The dependencies of the workspace.
    fn entries(&self) -> Result<String> {
        let text = self.plan.read(self.manifest)?;
        Ok(section(&text, "workspace.dependencies").unwrap_or_default().to_owned())
    }

    /// The entries that take another version of Ringfence than this program's. A path, a branch and a commit have none.
    ///
    /// # Errors
    /// The manifest can't be read.
    pub fn other_versions(&self) -> Result<Vec<String>> {
        let own = [format!("\"{VERSION}\""), format!("\"v{VERSION}\"")];
        let is_other = |line: &&str| {
            let name = line.split(' ').next().unwrap_or_default();
            let is_library = LIBRARIES.iter().any(|(library, _)| *library == name);
            let has = |part: &str| line.contains(part);
            let is_fixed = ["path = ", "branch = ", "rev = "].into_iter().any(has);
            is_library && !is_fixed && !own.iter().any(|own| has(own))
        };
        Ok(self.entries()?.lines().filter(is_other).map(str::to_owned).collect())
    }

    fn profiles(&mut self) -> Result<()> {
        for paragraph in profiles().split("\n\n") {
            let name = paragraph.lines().find_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
            let name = name.expect("a paragraph of profiles has a head");
            for line in section(paragraph, name).unwrap_or_default().lines() {
                self.add(self.manifest, name, line)?;
            }
        }
        Ok(())
    }

    fn dependencies_of_tests(&mut self) -> Result<()> {
        for context in context::all(&self.plan) {
            let manifest = format!("functions/{context}/Cargo.toml");
            let line = "ringfence-testing.workspace = true";
            self.add(&manifest, "dev-dependencies", line)?;
        }
        Ok(())
    }
}
