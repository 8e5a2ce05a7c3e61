#[derive(ringfence::Event)]
#[event(counted)]
struct Placed {}

fn main() {}
