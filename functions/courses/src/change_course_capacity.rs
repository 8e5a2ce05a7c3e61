//! ChangeCourseCapacity: changes how many students a course takes. Nobody loses a seat.

use crate::{CourseCapacityChanged, CourseId, Courses};
use ringfence::prelude::*;
use serde::Serialize;

/// Changes how many students a course takes.
#[derive(Clone, Debug, PartialEq, Command)]
pub struct ChangeCourseCapacity {
    #[tag(partition)]
    pub course_id: CourseId,
    pub new_capacity: u32,
}

/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    CourseDefined { capacity: u32 },
    CourseCapacityChanged { new_capacity: u32 },
}

/// The capacity, once the course is there.
#[derive(Default)]
pub struct Course {
    capacity: Option<u32>,
}

/// Why a capacity is not changed.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
pub enum Rejection {
    #[error("course {course_id} does not exist")]
    CourseNotFound { course_id: CourseId },
}

impl State for Course {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        let (Consumed::CourseDefined { capacity }
        | Consumed::CourseCapacityChanged { new_capacity: capacity }) = event;
        Course { capacity: Some(capacity) }
    }
}

impl Slice for ChangeCourseCapacity {
    const NAME: &'static str = "change-course-capacity";
    const SCOPES: &'static [&'static str] = &["courses/write"];
    type Context = Courses;
    type State = Course;
    type Writes = CourseCapacityChanged;
    type Rejection = Rejection;

    fn decide(
        &self,
        state: &Course,
        _: &CommandContext,
    ) -> Result<Vec<CourseCapacityChanged>, Rejection> {
        let Self { course_id, new_capacity } = self.clone();
        match state.capacity {
            None => Err(Rejection::CourseNotFound { course_id }),
            Some(capacity) if capacity == new_capacity => Ok(vec![]),
            Some(_) => Ok(vec![CourseCapacityChanged { course_id, new_capacity }]),
        }
    }

    fn cases() -> Vec<Case<Self>> {
        use crate::CourseDefined;

        let defined = || CourseDefined { course_id: id("c1"), capacity: 12 };
        let change = |new_capacity| ChangeCourseCapacity { course_id: id("c1"), new_capacity };
        let changed = |new_capacity| CourseCapacityChanged { course_id: id("c1"), new_capacity };
        let missing = Rejection::CourseNotFound { course_id: id("c1") };
        vec![
            given([]).when(change(15)).then_rejected(missing),
            given(events![defined()]).when(change(15)).then([changed(15)]),
            given(events![defined()]).when(change(12)).then_nothing(),
            given(events![defined(), changed(15)]).when(change(15)).then_nothing(),
            given(events![defined(), changed(15)]).when(change(12)).then([changed(12)]),
        ]
    }
}
