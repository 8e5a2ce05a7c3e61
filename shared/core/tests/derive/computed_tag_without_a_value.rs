#[derive(ringfence::Command)]
#[tag(key = "seat", cross_partition)]
struct Take {
    flight: String,
    row: u16,
}

fn main() {}
