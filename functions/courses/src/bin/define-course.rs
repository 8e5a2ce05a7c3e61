fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<courses::define_course::DefineCourse>()
}
