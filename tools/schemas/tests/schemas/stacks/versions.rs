//! Stacks in which the type has a later version.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

stack! { third:
    #[derive(Event)]
    #[event(version = 3)]
    #[upcast(1 = Ok, 2 = Ok)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String } }
}

macro_rules! of_personal {
    ($name:ident: $(#[$meta:meta])* $read:ty) => {
        stack! { $name:
            #[derive(Event)]
            $(#[$meta])*
            struct RoomBooked {
                #[tag(partition)] #[subject] room_id: String, guest: Personal<String>, nights: u8,
                kind: Kind, note: Option<String>,
            }
            #[derive(Reads)]
            enum Read { RoomBooked { guest: $read } }
        }
    };
}

of_personal!(personal: Sealed<String>);
of_personal!(personal_in_second: #[event(version = 2)] #[upcast(1 = Ok)] Sealed<String>);
of_personal!(personal_written_as_first: #[event(version = 2)] #[upcast(1 = Ok)] #[write(1 = Ok)] Sealed<String>);
of_personal!(personal_opened_by_a_view: #[event(version = 2)] #[upcast(1 = Ok)] Personal<String>);

stack! { upcast:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = guest_is_name)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { still_written_as_first:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = guest_is_name)]
    #[write(1 = name_is_guest)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { downcast_without_the_guest:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = guest_or_name)]
    #[write(1 = Ok)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { downcast_to_another_guest:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = guest_or_name)]
    #[write(1 = somebody_is_guest)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { downcast_without_the_total:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = total_by_default)]
    #[write(1 = total_goes)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, guest: String, nights: u8, kind: Kind,
        note: Option<String>, total: u32,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { guest: String, total: u32 } }
}

stack! { upcast_skipped:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = Ok)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { upcast_by_halves:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = guest_stays)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { upcast_of_chance:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = name_by_chance)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind,
        note: Option<String>,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

stack! { upcast_wants_a_note:
    #[derive(Event)]
    #[event(version = 2)]
    #[upcast(1 = note_is_name)]
    struct RoomBooked {
        #[tag(partition)] room_id: String, name: String, nights: u8, kind: Kind, guest: String,
    }
    #[derive(Reads)]
    enum Read { RoomBooked { name: String } }
}

fn guest_is_name(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("guest", "name")?;
    Ok(data)
}

fn name_is_guest(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("name", "guest")?;
    Ok(data)
}

/// It takes the name that a downcast has left in the payload.
fn guest_or_name(mut data: Fields) -> Result<Fields, FieldError> {
    let guest = data.remove::<String>("guest");
    if !data.has("name") {
        data.set("name", guest?)?;
    }
    Ok(data)
}

fn somebody_is_guest(mut data: Fields) -> Result<Fields, FieldError> {
    data.set("guest", "somebody")?;
    Ok(data)
}

fn total_by_default(mut data: Fields) -> Result<Fields, FieldError> {
    data.default("total", 0)?;
    Ok(data)
}

fn total_goes(mut data: Fields) -> Result<Fields, FieldError> {
    let _: u32 = data.remove("total")?;
    Ok(data)
}

fn guest_stays(mut data: Fields) -> Result<Fields, FieldError> {
    data.set("name", "of the guest")?;
    Ok(data)
}

fn name_by_chance(mut data: Fields) -> Result<Fields, FieldError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let _: String = data.remove("guest")?;
    data.set("name", COUNT.fetch_add(1, Ordering::Relaxed).to_string())?;
    Ok(data)
}

/// It forgets that a note may be absent.
fn note_is_name(mut data: Fields) -> Result<Fields, FieldError> {
    data.rename("note", "name")?;
    Ok(data)
}
