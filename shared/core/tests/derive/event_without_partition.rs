#[derive(ringfence::Event)]
struct Placed {
    order_id: String,
}

fn main() {}
