//! The log in memory and on an embedded DynamoDB: one contract for both, the requests, the costs, and the behaviour
//! when writers race and when requests fail.

extern crate ringfence_core as ringfence; // the derive macros name it so

mod accesses;
mod basket;
mod checks;
mod commands;
mod contract;
mod costs;
mod curve;
mod dotnet;
mod equinox;
mod faults;
mod loads;
mod original;
mod personal;
mod pruning;
mod random;
mod requests;
mod slices;
mod stack;
mod streams;
mod versions;
mod whole;
