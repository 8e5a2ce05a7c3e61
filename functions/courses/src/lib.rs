//! Courses and the students who subscribe to them: the DCB specification's first example.

pub mod change_course_capacity;
pub mod define_course;
mod events;
pub mod subscribe_student;
pub mod unsubscribe_student;
pub mod views {
    //! The read models.

    pub mod course_rosters;
}

use ringfence::prelude::*;
use ringfence_stack::{MemberList, Members, Visitor};

pub use events::*;

pub struct Courses;

impl Context for Courses {
    const NAME: &'static str = "courses";
    type Log = Dcb;

    fn catalog() -> Result<Catalog, CatalogError> {
        ringfence_stack::catalog::<Self>()
    }
}

impl Members for Courses {
    fn list(list: &mut MemberList<impl Visitor>) {
        list.slice::<change_course_capacity::ChangeCourseCapacity>()
            .slice::<define_course::DefineCourse>()
            .slice::<subscribe_student::SubscribeStudent>()
            .slice::<unsubscribe_student::UnsubscribeStudent>()
            .view::<views::course_rosters::CourseRosters>();
    }
}

#[test]
fn the_cases_of_courses_hold() {
    ringfence_stack::check_cases_in_memory::<Courses>();
}
