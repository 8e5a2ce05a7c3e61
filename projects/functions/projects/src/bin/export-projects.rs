fn main() -> std::process::ExitCode {
    ringfence::function::run::<projects::export_projects::ExportProjects>(())
}
