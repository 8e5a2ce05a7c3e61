//! The gate's findings for each possible change of a command or of a name.

use std::collections::BTreeMap;

use ringfence_core::prelude::*;
use ringfence_schemas::{Comparison, Lock, LockedCommand, LockedFold, Shape, compare};

use crate::gates::{Book, released};

fn command<C: Command>(codes: &[&str]) -> Lock {
    let rejections = codes.iter().map(|code| (*code).to_owned()).collect();
    let command = LockedCommand { shape: Shape::of::<C>(), rejections };
    Lock { commands: BTreeMap::from([("book-room".to_owned(), command)]), ..Lock::default() }
}

mod then {
    use super::*;

    #[ringfence::value]
    #[derive(Clone, Debug, PartialEq)]
    #[serde(transparent)]
    #[schemars(extend("pattern" = "^[A-Z]{3}$"))]
    pub(super) struct Currency(String);

    #[ringfence::value]
    #[derive(Clone, Debug, PartialEq)]
    #[serde(transparent)]
    #[schemars(extend("maximum" = 1.0))]
    pub(super) struct Share(f64);

    #[derive(Clone, Debug, PartialEq, Command)]
    pub(super) struct BookRoom {
        #[tag(partition)]
        pub(super) room_id: String,
        pub(super) guest: String,
        pub(super) currency: Currency,
        pub(super) rate: Option<Share>,
        pub(super) nights: u16,
        pub(super) note: Option<String>,
    }
}

mod wider {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Command)]
    pub(super) struct BookRoom {
        #[tag(partition)]
        #[subject]
        pub(super) room_id: String,
        pub(super) guest: Personal<String>,
        pub(super) currency: String,
        pub(super) rate: Option<f64>,
        pub(super) nights: u32,
        pub(super) note: Option<String>,
        pub(super) kind: Option<String>,
    }
}

mod narrower {
    use super::*;

    #[ringfence::value]
    #[derive(Clone, Debug, PartialEq)]
    #[serde(transparent)]
    #[schemars(extend("pattern" = "^[A-Z]+$"))]
    pub(super) struct Currency(String);

    #[ringfence::value]
    #[derive(Clone, Debug, PartialEq)]
    #[serde(transparent)]
    #[schemars(extend("maximum" = 0.5))]
    pub(super) struct Share(f64);

    #[derive(Clone, Debug, PartialEq, Command)]
    pub(super) struct BookRoom {
        #[tag(partition)]
        pub(super) room_id: String,
        pub(super) name: String,
        pub(super) currency: Currency,
        pub(super) rate: Option<Share>,
        pub(super) nights: u8,
        pub(super) total: u64,
    }
}

#[test]
fn each_change_of_a_command_or_of_a_name_has_its_verdict() {
    let mut book = Book::default();
    let mut row = |change: &str, was: &Lock, now: &Lock, is_written: bool| {
        let Comparison { grown, findings } = compare("rooms", was, now);
        assert!(findings.iter().all(|it| it.is_written == is_written), "{change}: {findings:?}");
        match is_written {
            true => assert_eq!(compare("rooms", &grown, now).findings, []),
            false => assert_eq!(&grown, was),
        }
        book.row(change, &findings);
    };
    let was = command::<then::BookRoom>(&["fully-booked"]);
    let wider = command::<wider::BookRoom>(&["fully-booked", "closed"]);
    row("A command takes more, and has one more code", &was, &wider, true);
    let narrower = command::<narrower::BookRoom>(&["fully-booked"]);
    row("A command takes less", &was, &narrower, false);
    row("A code is gone", &was, &command::<then::BookRoom>(&[]), false);
    let folds = || [("bookings".to_owned(), LockedFold::default())].into();
    let reactors = ["bookings".to_owned()].into();
    let named = Lock { snapshots: folds(), views: folds(), dues: folds(), reactors, ..was };
    row("Everything is new", &Lock::default(), &named, true);
    row("Everything is gone", &named, &Lock::default(), false);
    row("A type is gone", &released(), &Lock::default(), false);
    insta::assert_snapshot!(book.0);
}
