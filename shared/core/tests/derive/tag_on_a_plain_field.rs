#[derive(ringfence::Command)]
struct Place {
    #[tag(partition)]
    order: String,
}

fn main() {}
