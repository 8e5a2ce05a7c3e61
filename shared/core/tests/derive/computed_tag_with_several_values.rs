#[derive(ringfence::Event)]
#[tag(partition, key = "seat", value = seats(flight, rows))]
struct Taken {
    flight: String,
    rows: Vec<u16>,
}

fn seats(flight: &str, rows: &[u16]) -> Vec<String> {
    rows.iter().map(|row| format!("{flight}/{row}")).collect()
}

fn main() {}
