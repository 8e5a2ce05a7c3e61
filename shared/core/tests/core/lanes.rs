//! The lanes of events.

use ringfence_core::{BoundaryId, Lane, SequencedEvent, Tag};

#[test]
fn the_lane_of_an_event_is_its_partition_or_the_tag_of_the_lane() {
    let partition = BoundaryId::stored("orderId:o1");
    let tags = [("orderId", "o1"), ("customerId", "c/1"), ("guestId", "g1")];
    let tags = tags.map(|(key, value)| Tag::new(key, value)).into();
    let event = SequencedEvent { tags, ..SequencedEvent::gap(partition.clone(), 1, 0) };
    let lane = |lane: Lane| lane.of(&event);
    assert_eq!(lane(Lane::Partition), partition);
    assert_eq!(lane(Lane::Tag("customerId")), BoundaryId::tag("customerId", "c/1"));
    assert_eq!(lane(Lane::Tag("courseId")), partition, "it has no such tag");
}
