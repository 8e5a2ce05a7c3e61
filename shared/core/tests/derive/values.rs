//! Values that no tag has, which the compiler finds once the macros are done.

mod computed_tag_with_several_values {
    #[derive(ringfence::Event)]
    #[tag(partition, key = "seat", value = seats(flight, rows))]
    struct Taken {
        flight: String,
        rows: Vec<u16>,
    }

    fn seats(flight: &str, rows: &[u16]) -> Vec<String> {
        rows.iter().map(|row| format!("{flight}/{row}")).collect()
    }
}

mod tag_of_a_type_without_text {
    #[derive(ringfence::Command)]
    struct Place {
        order_id: f64,
    }
}

fn main() {}
