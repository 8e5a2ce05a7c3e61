#[derive(ringfence::Writes)]
enum Written {
    Placed { order_id: String },
}

fn main() {}
