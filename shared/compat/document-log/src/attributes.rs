//! The names of the attributes of Tips and calves.

/// Partition key: the stream.
pub const P: &str = "p";
/// Sort key: 2,147,483,647 for the Tip, else the index of the first event.
pub const I: &str = "i";
/// The index after the last event. In the Tip, it is the stream's version.
pub const N: &str = "n";
/// The events without their types, oldest first.
pub const E: &str = "e";
/// The types of the events.
pub const C: &str = "c";
/// Of a Tip: the unfolds.
pub const U: &str = "u";
/// Of a Tip: the number of its events that the last write appended.
pub const A: &str = "a";
/// Of a Tip: the estimated bytes of all events that have moved to calves.
pub const B: &str = "b";
/// Of a Tip: new with every write.
pub const ETAG: &str = "etag";
