//! course-rosters: how full a course is, and who is in it. One row for each course, and one for each
//! seat, named `<course>/<student>`. So a course's row stays small, and a prefix lists its seats.

use crate::{CourseId, StudentId};
use ringfence::view::View;
use ringfence::{prelude::*, rfc3339};

#[derive(Debug)]
pub struct CourseRosters;

/// What the view reads.
#[derive(Reads)]
pub enum Consumed {
    CourseDefined {
        course_id: CourseId,
        capacity: u32,
    },
    CourseCapacityChanged {
        course_id: CourseId,
        new_capacity: u32,
    },
    StudentSubscribed {
        course_id: CourseId,
        student_id: StudentId,
        #[time]
        at_ms: u64,
    },
    StudentUnsubscribed {
        course_id: CourseId,
        student_id: StudentId,
    },
}

/// A course, or a seat in it.
#[ringfence::value]
#[derive(Debug)]
#[serde(untagged)]
pub enum Row {
    Course {
        capacity: u32,
        /// How many students have a seat.
        subscribed: u32,
    },
    Seat {
        /// RFC 3339, UTC, milliseconds.
        subscribed_at: String,
    },
}

fn seat(course: &CourseId, student: &StudentId) -> String {
    format!("{course}/{student}")
}

impl View for CourseRosters {
    const NAME: &'static str = "course-rosters";
    type Reads = Consumed;
    type Row = Row;

    fn rows(event: &Consumed) -> Vec<String> {
        match event {
            Consumed::CourseDefined { course_id, .. }
            | Consumed::CourseCapacityChanged { course_id, .. } => vec![course_id.to_string()],
            Consumed::StudentSubscribed { course_id, student_id, .. }
            | Consumed::StudentUnsubscribed { course_id, student_id } => {
                vec![course_id.to_string(), seat(course_id, student_id)]
            }
        }
    }

    fn evolve(row: Option<Row>, id: &str, event: &Consumed) -> Option<Row> {
        // Ids of courses have no slash.
        let is_seat = id.contains('/');
        match (event, row) {
            (Consumed::StudentSubscribed { at_ms, .. }, _) if is_seat => {
                Some(Row::Seat { subscribed_at: rfc3339(*at_ms) })
            }
            (Consumed::StudentUnsubscribed { .. }, _) if is_seat => None,
            (Consumed::CourseDefined { capacity, .. }, None) => {
                Some(Row::Course { capacity: *capacity, subscribed: 0 })
            }
            (
                Consumed::CourseDefined { capacity, .. }
                | Consumed::CourseCapacityChanged { new_capacity: capacity, .. },
                Some(Row::Course { subscribed, .. }),
            ) => Some(Row::Course { capacity: *capacity, subscribed }),
            (Consumed::StudentSubscribed { .. }, Some(Row::Course { capacity, subscribed })) => {
                Some(Row::Course { capacity, subscribed: subscribed + 1 })
            }
            (Consumed::StudentUnsubscribed { .. }, Some(Row::Course { capacity, subscribed })) => {
                Some(Row::Course { capacity, subscribed: subscribed.saturating_sub(1) })
            }
            (_, row) => row,
        }
    }
}

#[test]
fn a_roster_counts_seats_and_lists_them() {
    use crate::{CourseCapacityChanged, CourseDefined, StudentSubscribed, StudentUnsubscribed};
    use ringfence::view::kit::given;

    let took =
        |course, student| StudentSubscribed { course_id: id(course), student_id: id(student) };
    let seat = || Row::Seat { subscribed_at: "2024-06-23T00:00:00.000Z".to_owned() };
    given(events![
        CourseDefined { course_id: id("c1"), capacity: 2 },
        CourseDefined { course_id: id("c2"), capacity: 1 },
        took("c1", "s1"),
        took("c1", "s2"),
        took("c2", "s1"),
        StudentUnsubscribed { course_id: id("c1"), student_id: id("s1") },
        CourseCapacityChanged { course_id: id("c1"), new_capacity: 9 },
    ])
    .then::<CourseRosters>([
        ("c1", Row::Course { capacity: 9, subscribed: 1 }),
        ("c1/s2", seat()),
        ("c2", Row::Course { capacity: 1, subscribed: 1 }),
        ("c2/s1", seat()),
    ]);
}
