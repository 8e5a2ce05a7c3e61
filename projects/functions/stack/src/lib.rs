//! The stack: its contexts, each with its line here.

ringfence::stack! {
    /// Projects that agents share.
    pub SharedProjects;
    context projects::Projects;
}
