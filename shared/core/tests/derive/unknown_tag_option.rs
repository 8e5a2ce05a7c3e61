#[derive(ringfence::Command)]
struct Place {
    #[tag(partitioned)]
    order_id: String,
}

fn main() {}
