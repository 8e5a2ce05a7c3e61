#[derive(ringfence::Command)]
struct Place {
    #[tag(skip)]
    order: String,
}

fn main() {}
