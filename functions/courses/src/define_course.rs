//! DefineCourse: defines a course, once.

use crate::{CourseDefined, CourseId, Courses};
use ringfence::prelude::*;
use serde::Serialize;

/// Defines a course.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct DefineCourse {
    #[tag(partition)]
    pub course_id: CourseId,
    pub capacity: u32,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CourseDefined,
}

/// Whether the course is there.
#[derive(Default)]
pub struct Course {
    defined: bool,
}

/// Why a course is not defined.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("course {course_id} already exists")]
    CourseAlreadyExists { course_id: CourseId },
}

impl State for Course {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::CourseDefined => Course { defined: true },
        }
    }
}

impl Slice for DefineCourse {
    const NAME: &'static str = "define-course";
    const SCOPES: &'static [&'static str] = &["courses/write"];
    type Context = Courses;
    type State = Course;
    type Writes = CourseDefined;
    type Rejection = Rejection;

    fn decide(&self, state: &Course, _: &CommandContext) -> Result<Vec<CourseDefined>, Rejection> {
        let Self { course_id, capacity } = self.clone();
        if state.defined {
            return Err(Rejection::CourseAlreadyExists { course_id });
        }
        Ok(vec![CourseDefined { course_id, capacity }])
    }

    fn cases() -> Vec<Case<Self>> {
        let define = |capacity| DefineCourse { course_id: id("c1"), capacity };
        let defined = |course, capacity| CourseDefined { course_id: id(course), capacity };
        let exists = Rejection::CourseAlreadyExists { course_id: id("c1") };
        vec![
            given([]).when(define(15)).then([defined("c1", 15)]),
            given(events![defined("c2", 10)]).when(define(15)).then([defined("c1", 15)]),
            given(events![defined("c1", 10)]).when(define(15)).then_rejected(exists),
        ]
    }
}
