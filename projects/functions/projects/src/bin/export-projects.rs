fn main() -> std::process::ExitCode {
    ringfence_function::run::<projects::export_projects::ExportProjects>(())
}
