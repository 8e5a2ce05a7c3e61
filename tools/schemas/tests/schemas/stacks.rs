//! Stacks with one type of events and a view that reads it, as released and after each change.

use std::num::NonZeroU8;

use ringfence_core::{CatalogError, Personal, Sealed, prelude::*};
use ringfence_stack::{MemberList, Members, Visitor, catalog};
use ringfence_views::View;

/// A stack with this type of events, and a view with these `Reads`.
macro_rules! stack {
    ($name:ident: $event:item $reads:item) => {
        pub(crate) mod $name {
            use super::*;

            $event

            #[expect(dead_code, reason = "only decoded")]
            $reads

            struct Bookings;

            impl View for Bookings {
                const NAME: &'static str = "bookings";
                type Reads = Read;
                type Row = ();

                fn rows(_: &Read) -> Vec<String> {
                    Vec::new()
                }

                fn evolve(_: Option<()>, _: &str, _: &Read) -> Option<()> {
                    None
                }
            }

            struct Rooms;

            impl Context for Rooms {
                const NAME: &'static str = "rooms";
                type Log = ringfence_dcb_log::Dcb;

                fn catalog() -> Result<Catalog, CatalogError> {
                    catalog::<Self>()
                }
            }

            impl Members for Rooms {
                fn list(list: &mut MemberList<impl Visitor>) {
                    list.event::<RoomBooked>().view::<Bookings>();
                }
            }

            pub(crate) struct Stack;

            impl Members for Stack {
                fn list(list: &mut MemberList<impl Visitor>) {
                    list.context::<Rooms>();
                }
            }
        }
    };
}

#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Kind {
    Single,
    Double,
}

#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum MoreKinds {
    Single,
    Double,
    Suite,
}

#[ringfence::value]
#[derive(Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FewerKinds {
    Single,
}

mod versions;

pub(crate) use versions::*;

stack! { before:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

/// Letters, and perhaps digits.
macro_rules! name_like {
    ($name:ident $pattern:literal) => {
        #[ringfence::value]
        #[derive(Clone, Debug, PartialEq)]
        #[serde(transparent)]
        #[schemars(extend("pattern" = $pattern))]
        pub(crate) struct $name(String);
    };
}

name_like!(Name "^[A-Za-z]+$");
name_like!(NameWithDigits "^[A-Za-z0-9]+$");

stack! { of_a_pattern:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: Name, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { of_another_pattern:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: NameWithDigits, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { optional_added:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>, discount: Option<u8>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String>, discount: Option<u8> } }
}

stack! { unread_removed:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, kind: Kind, note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { read_removed:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, nights: u8, kind: Kind, note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { choice_added:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: MoreKinds,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { choice_unread:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: MoreKinds,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { kind: Kind } }
}

stack! { widened:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u16, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { made_optional:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: Option<String>, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { required_added:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>, total: u32,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String>, total: u32 } }
}

stack! { renamed:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String, note: Option<String> } }
}

stack! { renamed_as_optional:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        remark: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, remark: Option<String> } }
}

stack! { narrowed:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: NonZeroU8, kind: FewerKinds,
        note: String,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { replaced:
    #[derive(Event)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: String, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { boundary_added:
    #[derive(Event)]
    #[event(fenced)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, #[tag(cross_partition, key = "guest")] guest: String,
        nights: u8, kind: Kind, note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { of_another_partition:
    #[derive(Event)]
    #[event(separator = '~')]
    struct RoomBooked {
        #[tag(partition)] room_id: String, #[tag(partition, key = "guest")] guest: String,
        nights: u8, kind: Kind, note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}

stack! { retired:
    #[derive(Event)]
    #[event(retired)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, note: Option<String> } }
}
