//! Seats in courses: a decision with a limit in one partition and a limit across partitions.

use std::collections::BTreeSet;

use ringfence_core::{id_type, prelude::*};
use serde::Serialize;

id_type!(CourseId, "names a course");
id_type!(StudentId, "names a student");

/// How many courses a student may take.
pub(crate) const COURSES_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct CourseDefined {
    #[tag(partition)]
    pub(crate) course_id: CourseId,
    pub(crate) capacity: usize,
}

#[derive(Clone, Debug, PartialEq, Event)]
pub(crate) struct StudentSubscribed {
    #[tag(partition)]
    pub(crate) course_id: CourseId,
    #[tag(cross_partition)]
    pub(crate) student_id: StudentId,
}

pub(crate) struct Seats;

impl Context for Seats {
    const NAME: &'static str = "seats";
    type Log = ringfence_dcb_log::Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        Catalog::new(Self::NAME, [CourseDefined::SCHEMA, StudentSubscribed::SCHEMA])
    }
}

/// Gives a student a seat in a course, if the course has one and the student takes fewer than [`COURSES_MAX`]
/// courses.
#[derive(Clone, Debug, PartialEq, Command)]
pub(crate) struct Subscribe {
    #[tag(partition)]
    pub(crate) course_id: CourseId,
    #[tag(cross_partition)]
    pub(crate) student_id: StudentId,
}

#[derive(Reads)]
pub(crate) enum Consumed {
    CourseDefined { capacity: usize },
    StudentSubscribed { course_id: CourseId, student_id: StudentId },
}

#[derive(Default)]
pub(crate) struct Taken {
    capacity: usize,
    seats: BTreeSet<(CourseId, StudentId)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "code")]
pub(crate) enum Rejection {
    #[error("the student has a seat in the course")]
    AlreadySubscribed,
    #[error("the course has no seat left")]
    CourseFullyBooked,
    #[error("the student takes enough courses")]
    TooManyCourses,
}

impl State for Taken {
    type Reads = Consumed;

    fn evolve(mut self, event: Consumed) -> Self {
        match event {
            Consumed::CourseDefined { capacity } => self.capacity = capacity,
            Consumed::StudentSubscribed { course_id, student_id } => {
                self.seats.insert((course_id, student_id));
            }
        }
        self
    }
}

impl Slice for Subscribe {
    const NAME: &'static str = "subscribe";
    type Context = Seats;
    type State = Taken;
    type Writes = StudentSubscribed;
    type Rejection = Rejection;

    fn decide(
        &self,
        Taken { capacity, seats }: &Taken,
        _: &CommandContext,
    ) -> Result<Vec<StudentSubscribed>, Rejection> {
        let Self { course_id, student_id } = self.clone();
        if seats.contains(&(course_id.clone(), student_id.clone())) {
            return Err(Rejection::AlreadySubscribed);
        }
        if seats.iter().filter(|(course, _)| *course == course_id).count() >= *capacity {
            return Err(Rejection::CourseFullyBooked);
        }
        if seats.iter().filter(|(_, student)| *student == student_id).count() >= COURSES_MAX {
            return Err(Rejection::TooManyCourses);
        }
        Ok(vec![StudentSubscribed { course_id, student_id }])
    }
}
