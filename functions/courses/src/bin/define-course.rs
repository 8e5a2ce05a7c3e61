fn main() -> std::process::ExitCode {
    ringfence::run::<courses::define_course::DefineCourse>()
}
