#[derive(ringfence::Event)]
struct Placed {
    #[tag(partition)]
    order_id: String,
    #[tag(cross_partition)]
    product_ids: Vec<String>,
}

fn main() {}
