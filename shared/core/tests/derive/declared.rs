//! Mistakes in declarations, which the macros find.

mod composite_with_a_list {
    #[derive(ringfence::Event)]
    #[event(read_as_composite)]
    struct Placed {
        #[tag(partition)]
        order_id: String,
        product_ids: Vec<String>,
    }
}

mod computed_tag_of_all_variants {
    #[derive(ringfence::Command)]
    #[tag(key = "seat", value = format!("{flight}/{row}"))]
    enum Seat {
        Take { flight: String, row: u16 },
        Free { flight: String, row: u16 },
    }
}

mod computed_tag_without_a_value {
    #[derive(ringfence::Command)]
    #[tag(key = "seat", cross_partition)]
    struct Take {
        flight: String,
        row: u16,
    }
}

mod event_without_partition {
    #[derive(ringfence::Event)]
    struct Placed {
        order_id: String,
    }
}

mod key_is_not_camel_case {
    #[derive(ringfence::Command)]
    struct Place {
        #[tag(key = "Order-Id")]
        order: String,
    }
}

mod partition_is_a_list {
    #[derive(ringfence::Event)]
    struct Placed {
        #[tag(partition)]
        order_ids: Vec<String>,
    }
}

mod reads_a_tuple {
    #[derive(ringfence::Reads)]
    enum Consumed {
        OrderPlaced(String),
    }
}

mod serde_of_a_type {
    use ringfence::prelude::*;

    #[derive(Event)]
    #[serde(default)]
    struct Booked {
        nights: u32,
    }

    #[derive(Command)]
    enum Move {
        #[serde(rename = "up")]
        Up {},
    }

    #[derive(Reads)]
    enum Known {
        #[serde(default)]
        Booked { nights: u32 },
    }
}

mod skip_of_a_plain_field {
    #[derive(ringfence::Command)]
    struct Place {
        #[tag(skip)]
        order: String,
    }
}

mod strong_alone {
    #[derive(ringfence::Event)]
    struct Placed {
        #[tag(partition, strong)]
        order_id: String,
    }
}

mod tags_on_plain_fields {
    #[derive(ringfence::Command)]
    struct Place {
        #[tag(partition)]
        order: String,
        #[tag(cross_partition)]
        product: String,
    }
}

mod unknown_event_option {
    #[derive(ringfence::Event)]
    #[event(counted)]
    struct Placed {}
}

mod copies_of_no_fence {
    #[derive(ringfence::Event)]
    #[event(copies = 16)]
    struct Priced {}
}

mod one_copy {
    #[derive(ringfence::Event)]
    #[event(fenced, copies = 1)]
    struct Priced {}
}

mod unknown_tag_option {
    #[derive(ringfence::Command)]
    struct Place {
        #[tag(partitioned)]
        order_id: String,
    }
}

mod value_on_a_field {
    #[derive(ringfence::Command)]
    struct Take {
        #[tag(key = "seat", value = format!("{flight}/{row}"))]
        flight: String,
        row: u16,
    }
}

mod writes_fields {
    #[derive(ringfence::Writes)]
    enum Written {
        Placed { order_id: String },
    }
}

mod stored_as_no_name {
    #[derive(ringfence::Event)]
    #[event(stored_as = "Order Placed")]
    struct Placed {}
}

mod upcast_is_missing {
    #[derive(ringfence::Event)]
    #[event(version = 3)]
    #[upcast(1 = Ok)]
    struct Placed {}
}

mod upcast_of_another_version {
    #[derive(ringfence::Event)]
    #[event(version = 3)]
    #[upcast(2 = Ok, 1 = Ok)]
    struct Placed {}
}

mod upcast_without_a_version {
    #[derive(ringfence::Event)]
    #[upcast(1 = Ok)]
    struct Placed {}
}

mod write_of_the_newest_version {
    #[derive(ringfence::Event)]
    #[event(version = 2)]
    #[upcast(1 = Ok)]
    #[write(2 = Ok)]
    struct Placed {}
}

mod write_of_two_versions {
    #[derive(ringfence::Event)]
    #[event(version = 3)]
    #[upcast(1 = Ok, 2 = Ok)]
    #[write(1 = Ok, 2 = Ok)]
    struct Placed {}
}

mod write_of_a_retired_type {
    #[derive(ringfence::Event)]
    #[event(version = 2, retired)]
    #[upcast(1 = Ok)]
    #[write(1 = Ok)]
    struct Placed {}
}

mod option_that_a_function_reads {
    #[derive(ringfence::Command)]
    struct Place {
        #[serde(deserialize_with = "read")]
        at: Option<u64>,
    }
}

mod personal_value_without_a_subject {
    #[derive(ringfence::Event)]
    struct Known {
        names: Option<Vec<ringfence::Personal<String>>>,
    }
}

mod personal_tag_in_clear {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guest: String,
        #[tag(key = "email")]
        email: ringfence::Personal<String>,
    }
}

mod blind_tag_of_a_plain_value {
    #[derive(ringfence::Command)]
    struct Know {
        #[tag(blind, key = "email")]
        email: String,
    }
}

mod blind_partition {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guest: String,
        #[tag(partition, blind, key = "email")]
        email: ringfence::Personal<String>,
    }
}

mod subject_under_another_name {
    #[derive(ringfence::Command)]
    struct Know {
        #[serde(rename = "host")]
        #[subject]
        guest: String,
        name: ringfence::Personal<String>,
    }

    #[derive(ringfence::Event)]
    struct Known {
        guest: String,
        #[serde(with = "plain")]
        #[personal(of = "guest")]
        name: ringfence::Personal<String>,
    }

    #[derive(ringfence::Command)]
    struct Find {
        #[subject]
        guest: String,
        #[serde(flatten)]
        others: std::collections::BTreeMap<String, String>,
        #[serde(default)]
        name: ringfence::Personal<String>,
    }
}

mod subject_that_is_a_number {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guest: u64,
    }
}

mod blind_field_that_is_no_tag {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guest: String,
        #[tag(blind)]
        email: ringfence::Personal<String>,
    }
}

mod two_subjects {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guest: String,
        #[subject]
        host: String,
    }
}

mod subject_that_is_a_list {
    #[derive(ringfence::Command)]
    struct Know {
        #[subject]
        guests: Vec<String>,
    }
}

mod subject_that_is_no_field {
    #[derive(ringfence::Command)]
    struct Know {
        #[personal(of = "guest")]
        name: ringfence::Personal<String>,
    }
}

mod version_zero {
    #[derive(ringfence::Event)]
    #[event(version = 0)]
    struct Placed {}
}

fn main() {}
