fn main() -> std::process::ExitCode {
    ringfence_lambda::run::<courses::change_course_capacity::ChangeCourseCapacity>()
}
