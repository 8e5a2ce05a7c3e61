#[derive(ringfence::Command)]
struct Place {
    order_id: f64,
}

fn main() {}
