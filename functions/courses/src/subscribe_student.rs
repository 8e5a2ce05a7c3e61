//! SubscribeStudent: subscribes a student to a course.
//!
//! Two limits in one decision: the course's seats, in the course's partition, and the student's
//! courses, across all partitions.

use std::collections::BTreeSet;

use crate::{CourseId, Courses, StudentId, StudentSubscribed};
use ringfence::prelude::*;
use serde::Serialize;

/// How many courses a student may take at a time.
pub const COURSES_MAX: usize = 5;

/// Subscribes a student to a course.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct SubscribeStudent {
    #[tag(partition)]
    pub course_id: CourseId,
    #[tag(cross_partition)]
    pub student_id: StudentId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CourseDefined { capacity: u32 },
    CourseCapacityChanged { new_capacity: u32 },
    StudentSubscribed { course_id: CourseId, student_id: StudentId },
    StudentUnsubscribed { course_id: CourseId, student_id: StudentId },
}

/// The course's capacity and every seat taken in the course or by the student.
#[derive(Default)]
pub struct Seats {
    capacity: Option<u32>,
    seats: BTreeSet<(CourseId, StudentId)>,
}

/// Why a student gets no seat.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("course {course_id} does not exist")]
    CourseNotFound { course_id: CourseId },
    #[error("course {course_id} is already fully booked")]
    CourseFullyBooked { course_id: CourseId },
    #[error("student already subscribed to this course")]
    AlreadySubscribed,
    #[error("student already subscribed to {limit} courses")]
    TooManyCourses { limit: usize },
}

impl State for Seats {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::CourseDefined { capacity }
            | Consumed::CourseCapacityChanged { new_capacity: capacity } => {
                self.capacity = Some(capacity);
            }
            Consumed::StudentSubscribed { course_id, student_id } => {
                self.seats.insert((course_id, student_id));
            }
            Consumed::StudentUnsubscribed { course_id, student_id } => {
                self.seats.remove(&(course_id, student_id));
            }
        }
        self
    }
}

impl Slice for SubscribeStudent {
    const NAME: &'static str = "subscribe-student";
    type Context = Courses;
    type State = Seats;
    type Writes = StudentSubscribed;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Seats,
        _: &CommandContext,
    ) -> Result<Vec<StudentSubscribed>, Rejection> {
        let Self { course_id, student_id } = self.clone();
        let Some(capacity) = state.capacity else {
            return Err(Rejection::CourseNotFound { course_id });
        };
        let taken = state.seats.iter().filter(|(course, _)| *course == course_id).count();
        if taken >= capacity as usize {
            return Err(Rejection::CourseFullyBooked { course_id });
        }
        if state.seats.contains(&(course_id.clone(), student_id.clone())) {
            return Err(Rejection::AlreadySubscribed);
        }
        let courses = state.seats.iter().filter(|(_, student)| *student == student_id).count();
        if courses >= COURSES_MAX {
            return Err(Rejection::TooManyCourses { limit: COURSES_MAX });
        }
        Ok(vec![StudentSubscribed { course_id, student_id }])
    }

    /// The published cases of the DCB specification's example, then further ones.
    fn cases() -> Vec<Case<Self>> {
        use crate::{CourseCapacityChanged, CourseDefined, StudentUnsubscribed};
        use ringfence::NewEvent;

        let defined = |course, capacity| CourseDefined { course_id: id(course), capacity };
        let resized = |new_capacity| CourseCapacityChanged { course_id: id("c1"), new_capacity };
        let took =
            |course, student| StudentSubscribed { course_id: id(course), student_id: id(student) };
        let left = |course, student| StudentUnsubscribed {
            course_id: id(course),
            student_id: id(student),
        };
        let subscribe =
            |course, student| SubscribeStudent { course_id: id(course), student_id: id(student) };
        let five =
            || ["c1", "c2", "c3", "c4", "c5"].map(|course| NewEvent::from(took(course, "s1")));
        let full = || Rejection::CourseFullyBooked { course_id: id("c1") };
        vec![
            given([])
                .when(subscribe("c0", "s1"))
                .then_rejected(Rejection::CourseNotFound { course_id: id("c0") }),
            given(events![defined("c1", 3), took("c1", "s1"), took("c1", "s2"), took("c1", "s3")])
                .when(subscribe("c1", "s4"))
                .then_rejected(full()),
            given(events![defined("c1", 10), took("c1", "s1")])
                .when(subscribe("c1", "s1"))
                .then_rejected(Rejection::AlreadySubscribed),
            given(events![defined("c6", 10)].into_iter().chain(five()))
                .when(subscribe("c6", "s1"))
                .then_rejected(Rejection::TooManyCourses { limit: 5 }),
            given(events![defined("c1", 10)]).when(subscribe("c1", "s1")).then([took("c1", "s1")]),
            given(events![defined("c1", 1), took("c1", "s1"), left("c1", "s1")])
                .when(subscribe("c1", "s2"))
                .then([took("c1", "s2")]),
            given(
                events![defined("c6", 1)]
                    .into_iter()
                    .chain(five())
                    .chain(events![left("c2", "s1")]),
            )
            .when(subscribe("c6", "s1"))
            .then([took("c6", "s1")]),
            given(events![defined("c1", 1), took("c1", "s1"), resized(2)])
                .when(subscribe("c1", "s2"))
                .then([took("c1", "s2")]),
            given(events![defined("c1", 2), took("c1", "s1"), resized(1)])
                .when(subscribe("c1", "s2"))
                .then_rejected(full()),
            // Other students' seats in other courses do not count.
            given(events![defined("c1", 1), took("c2", "s2")])
                .when(subscribe("c1", "s1"))
                .then([took("c1", "s1")]),
        ]
    }
}
