#[derive(ringfence::Event)]
struct Placed {
    #[tag(partition)]
    order_ids: Vec<String>,
}

fn main() {}
