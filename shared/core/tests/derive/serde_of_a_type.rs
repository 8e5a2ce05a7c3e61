use ringfence::prelude::*;

#[derive(Event)]
#[serde(default)]
struct Booked {
    nights: u32,
}

#[derive(Command)]
enum Move {
    #[serde(rename = "up")]
    Up {},
}

#[derive(Reads)]
enum Known {
    #[serde(default)]
    Booked { nights: u32 },
}

fn main() {}
