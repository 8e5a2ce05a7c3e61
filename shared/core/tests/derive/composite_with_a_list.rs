#[derive(ringfence::Event)]
#[event(read_as_composite)]
struct Placed {
    #[tag(partition)]
    order_id: String,
    product_ids: Vec<String>,
}

fn main() {}
