fn main() -> std::process::ExitCode {
    ringfence::run::<courses::change_course_capacity::ChangeCourseCapacity>()
}
