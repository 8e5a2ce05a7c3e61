#[derive(ringfence::Command)]
struct Place {
    #[tag(key = "Order-Id")]
    order: String,
}

fn main() {}
