//! The log on an embedded DynamoDB: its requests, their costs, racing clients, and requests that fail.

extern crate ringfence_core as ringfence; // the derive macros name it so

mod both;
mod broken;
mod claims;
mod copies;
mod costs;
mod declared;
mod examples;
mod faults;
mod items;
mod layout;
mod limits;
mod listing;
mod one_time;
mod permissions;
mod prices;
mod races;
mod reads;
mod records;
mod render;
mod repair;
mod restore;
mod seats;
mod shop;
mod slots;
mod snapshots;
mod stack;
mod stale;
mod unindexed;
mod verify;
mod versions;
mod weather;
