//! The events and the value types.

use ringfence::{Event, id_type};

id_type!(CourseId, "names a course");
id_type!(StudentId, "names a student");

/// A course is defined.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CourseDefined {
    #[tag(partition)]
    pub course_id: CourseId,
    pub capacity: u32,
}

/// The capacity of a course is changed.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct CourseCapacityChanged {
    #[tag(partition)]
    pub course_id: CourseId,
    pub new_capacity: u32,
}

/// A student subscribes to a course.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StudentSubscribed {
    #[tag(partition)]
    pub course_id: CourseId,
    /// A student's subscriptions are counted over all courses.
    #[tag(cross_partition)]
    pub student_id: StudentId,
}

/// A student unsubscribes from a course.
#[derive(Clone, Debug, PartialEq, Event)]
pub struct StudentUnsubscribed {
    #[tag(partition)]
    pub course_id: CourseId,
    #[tag(cross_partition)]
    pub student_id: StudentId,
}
