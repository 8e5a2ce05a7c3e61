//! The events and the value types.

use ringfence::{Event, id_type};

id_type!(CourseId, "names a course");
id_type!(StudentId, "names a student");

/// A course is offered.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CourseDefined {
    #[tag(partition)]
    pub course_id: CourseId,
    /// How many students it takes.
    pub capacity: u32,
}

/// A course takes more or fewer students.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CourseCapacityChanged {
    #[tag(partition)]
    pub course_id: CourseId,
    /// How many students it takes from now on.
    pub new_capacity: u32,
}

/// A student takes a seat.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StudentSubscribed {
    #[tag(partition)]
    pub course_id: CourseId,
    /// The student. A student's courses are counted across all courses.
    #[tag(cross_partition)]
    pub student_id: StudentId,
}

/// A student gives the seat back.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StudentUnsubscribed {
    #[tag(partition)]
    pub course_id: CourseId,
    #[tag(cross_partition)]
    pub student_id: StudentId,
}
