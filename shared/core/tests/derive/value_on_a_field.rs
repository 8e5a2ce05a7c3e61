#[derive(ringfence::Command)]
struct Take {
    #[tag(key = "seat", value = format!("{flight}/{row}"))]
    flight: String,
    row: u16,
}

fn main() {}
