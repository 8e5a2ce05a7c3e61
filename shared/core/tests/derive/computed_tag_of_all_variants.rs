#[derive(ringfence::Command)]
#[tag(key = "seat", value = format!("{flight}/{row}"))]
enum Seat {
    Take { flight: String, row: u16 },
    Free { flight: String, row: u16 },
}

fn main() {}
