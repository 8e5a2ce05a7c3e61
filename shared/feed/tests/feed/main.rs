//! The feed on an embedded DynamoDB. Whatever happens to requests, whatever runs at the same time, and
//! however records are delivered, every event is in the index once, in the order of its partition.

extern crate ringfence_core as ringfence; // the derive macros name it so

mod bodies;
mod checkpoints;
mod costs;
mod crashes;
mod deliveries;
mod epochs;
mod guards;
mod lease;
mod limited;
mod limits;
mod neighbours;
mod news;
mod pruned;
mod readers;
mod settling;
mod shards;
mod streams;
mod weather;
mod world;
