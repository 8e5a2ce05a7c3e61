//! The EventTopic: new events go to the bus
