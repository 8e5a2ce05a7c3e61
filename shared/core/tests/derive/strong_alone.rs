#[derive(ringfence::Event)]
struct Placed {
    #[tag(partition, strong)]
    order_id: String,
}

fn main() {}
