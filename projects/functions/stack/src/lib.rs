//! The stack: the list of its contexts.

ringfence::stack! {
    /// Projects that agents share.
    pub SharedProjects;
    context projects::Projects;
}
