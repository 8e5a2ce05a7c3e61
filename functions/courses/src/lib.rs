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

pub use events::*;

ringfence::context! {
    pub Courses, "courses" on Dcb;
    slice change_course_capacity::ChangeCourseCapacity;
    slice define_course::DefineCourse;
    slice subscribe_student::SubscribeStudent;
    slice unsubscribe_student::UnsubscribeStudent;
    view views::course_rosters::CourseRosters;
}
