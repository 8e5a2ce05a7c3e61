//! UnsubscribeStudent: unsubscribes a student from a course.

use std::collections::BTreeSet;

use crate::{CourseId, Courses, StudentId, StudentUnsubscribed};
use ringfence::prelude::*;
use serde::Serialize;

/// Unsubscribes a student from a course.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct UnsubscribeStudent {
    #[tag(partition)]
    pub course_id: CourseId,
    /// The course's partition has all of its seats, so the decision does not read the student's other
    /// courses.
    #[tag(skip)]
    pub student_id: StudentId,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CourseDefined,
    StudentSubscribed { student_id: StudentId },
    StudentUnsubscribed { student_id: StudentId },
}

/// Who has a seat, once the course is there.
#[derive(Default)]
pub struct Course {
    defined: bool,
    seated: BTreeSet<StudentId>,
}

/// Why a student is not unsubscribed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("course {course_id} does not exist")]
    CourseNotFound { course_id: CourseId },
}

impl State for Course {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::CourseDefined => self.defined = true,
            Consumed::StudentSubscribed { student_id } => {
                self.seated.insert(student_id);
            }
            Consumed::StudentUnsubscribed { student_id } => {
                self.seated.remove(&student_id);
            }
        }
        self
    }
}

impl Slice for UnsubscribeStudent {
    const NAME: &'static str = "unsubscribe-student";
    type Context = Courses;
    type State = Course;
    type Writes = StudentUnsubscribed;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Course,
        _: &CommandContext,
    ) -> Result<Vec<StudentUnsubscribed>, Rejection> {
        let Self { course_id, student_id } = self.clone();
        if !state.defined {
            return Err(Rejection::CourseNotFound { course_id });
        }
        if !state.seated.contains(&student_id) {
            return Ok(vec![]);
        }
        Ok(vec![StudentUnsubscribed { course_id, student_id }])
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::{CourseDefined, StudentSubscribed};

        let defined = || CourseDefined { course_id: id("c1"), capacity: 3 };
        let took =
            |course, student| StudentSubscribed { course_id: id(course), student_id: id(student) };
        let left = || StudentUnsubscribed { course_id: id("c1"), student_id: id("s1") };
        let leave = || UnsubscribeStudent { course_id: id("c1"), student_id: id("s1") };
        let missing = Rejection::CourseNotFound { course_id: id("c1") };
        vec![
            given([]).when(leave()).then_rejected(missing),
            given(events![defined()]).when(leave()).then_nothing(),
            given(events![defined(), took("c1", "s1")]).when(leave()).then([left()]),
            given(events![defined(), took("c1", "s1"), left()]).when(leave()).then_nothing(),
            given(events![defined(), took("c1", "s2"), took("c2", "s1")])
                .when(leave())
                .then_nothing(),
            given(events![defined(), took("c1", "s1"), left(), took("c1", "s1")])
                .when(leave())
                .then([left()]),
        ]
    }
}
