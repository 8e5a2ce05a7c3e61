#[derive(ringfence::Reads)]
enum Consumed {
    OrderPlaced(String),
}

fn main() {}
