//! A view reads events of older versions as the newest. At one of a newer version it stops, and goes on with a program
//! that knows it.

use ringfence_core::{Catalog, CatalogError, Catalogs, EventSchema, prelude::*};
use ringfence_views::{Definition, Projector, Ran, View, ViewError};
use serde_json::json;

use self::evolving::{history, schemas};
use crate::world::{FIRST, LONG, World};

#[path = "../../../core/tests/core/evolving.rs"]
#[allow(dead_code, reason = "the tests of the logs need more of it")]
mod evolving;

type Log = ringfence_dcb_log::Dcb;

fn catalog_of(schemas: Vec<EventSchema>) -> Result<Catalog, CatalogError> {
    Catalog::new("shelf", schemas)
}

/// The events that both programs can read.
#[derive(Reads)]
enum Titled {
    ItemAdded { title: String },
}

/// A row for each title.
#[derive(Debug)]
struct Titles;

impl View for Titles {
    const NAME: &'static str = "titles";
    type Reads = Titled;
    type Row = u32;

    fn rows(Titled::ItemAdded { title }: &Titled) -> Vec<String> {
        vec![title.clone()]
    }

    fn evolve(row: Option<u32>, _: &str, _: &Titled) -> Option<u32> {
        Some(row.unwrap_or(0) + 1)
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_stops_at_a_newer_version_and_goes_on_after_the_deploy() {
    let mut world = World::new(1, catalog_of(schemas(1)));
    for (program, event) in history("i") {
        world.program(catalog_of(schemas(program)));
        world.publish([event]).await;
    }
    let projector = |program| {
        let catalogs = Catalogs(vec![catalog_of(schemas(program)).unwrap()]);
        let (client, index) = (world.client.clone(), world.index.clone());
        Projector::new(client, index, "views", catalogs, world.clock.clone())
    };
    let view = Definition::of::<Titles>();
    projector(2).register(&view).await.unwrap();
    let mut ran = Ran::default();
    let error = projector(2).run(&view, FIRST, LONG, &mut ran).await.unwrap_err();
    assert!(matches!(error, ViewError::NewerVersion { view: "titles", .. }), "{error:?}");
    let text = "view titles: event itemId:i/4 has version 3 of ItemAdded, and this program knows the versions up to 2";
    assert!(error.to_string().starts_with(text), "{error}");
    assert_eq!((ran.rows, ran.parked), (2, 0), "the events before it are shown");
    projector(3).run(&view, FIRST, LONG, &mut ran).await.unwrap();
    let rows = world.rows("titles", FIRST).await;
    assert_eq!(serde_json::to_value(rows).unwrap(), json!({ "cup": 1, "jug": 1, "mug": 1 }));
}
