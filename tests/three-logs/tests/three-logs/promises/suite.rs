//! The promises.

use ringfence_aws::wire::Fault;
use ringfence_aws::{Clock, Random};
use ringfence_core::{
    AHEAD_MAX_MS, BOUNDARY_BYTES_MAX, BoundaryId, Catalogs, Context, Envelope, EventRef,
    FilingError, HandleError, Handled, LogError, LogKind, LogName, OnLog, Outcome, PlanError,
    SequencedEvent, StoreError,
};
use ringfence_log::Log;
use serde_json::json;

use super::Tested;
use super::world::{Fill, Memory, NOW_MS, Shelves, Tabled, World, envelope, fill, run};

macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                super::$promise(&super::Memory::new()).await;
            })*
        }

        mod in_a_table {
            $(#[tokio::test(start_paused = true)]
            async fn $promise() {
                let world = super::Tabled::new();
                super::$promise(&world).await;
                world.verify().await;
            })*
        }
    };
}

promises![
    a_key_takes_effect_once_and_each_repeat_has_the_first_answer,
    a_key_of_one_command_is_refused_to_another,
    a_rejection_leaves_nothing_or_its_events,
    events_are_appended_together_or_not_at_all,
    a_conflict_is_named_and_decided_again,
    a_warm_handler_never_answers_from_its_memory_alone,
    times_follow_the_boundary_the_clock_and_a_cause_that_is_not_too_far_ahead,
    a_writer_whose_clock_goes_back_still_writes_after_its_own_last_event,
    a_limit_is_named_and_nothing_is_written,
    an_id_that_makes_no_boundary_is_named,
];

fn right() -> Clock {
    Clock::fixed(NOW_MS)
}

fn events(handled: &Handled) -> &[EventRef] {
    let (Outcome::Accepted(events) | Outcome::Rejected { events, .. }) = &handled.outcome;
    events
}

/// A text of this many bytes that no log can compress.
fn noise(bytes: usize) -> String {
    let mut random = Random::new(&[bytes as u64]);
    (0..bytes)
        .map(|_| char::from(b'!' + u8::try_from(random.below(90)).expect("below 90")))
        .collect()
}

fn is_rejected(handled: &Handled) -> bool {
    matches!(handled.outcome, Outcome::Rejected { .. })
}

async fn a_key_takes_effect_once_and_each_repeat_has_the_first_answer(world: &impl World) {
    let (cold, warm) = (world.handler(right(), 0), world.handler(right(), 9));
    run(&warm, &fill(&["x"]), None).await;
    let first = run(&cold, &fill(&["y", "z"]), Some("k")).await;
    assert_eq!((events(&first).len(), first.repeated, first.written.len()), (2, false, 2));
    for later in ["l", "m"] {
        // The warm handler's state is older than the first run.
        for on in [&warm, &world.handler(right(), 9)] {
            let again = run(on, &fill(&["y", "z"]), Some("k")).await;
            assert!(again.repeated && again.written.is_empty());
            assert_eq!(again.outcome, first.outcome);
        }
        run(&cold, &fill(&[later]), None).await;
    }
    assert_eq!(world.shelf().await.things, ["x", "y", "z", "l", "m"]);
    // A command that has changed nothing leaves no record, and is decided again.
    let nothing = run(&cold, &fill(&["x"]), Some("n")).await;
    assert_eq!((events(&nothing), nothing.repeated), (&[][..], false));
    assert!(!run(&cold, &fill(&["x"]), Some("n")).await.repeated);
}

async fn a_key_of_one_command_is_refused_to_another(world: &impl World) {
    let on = world.handler(right(), 0);
    run(&on, &fill(&["x"]), Some("k")).await;
    let other = on.handle(&fill(&["y"]), &envelope(&right(), Some("k"))).await;
    assert!(matches!(other, Err(HandleError::Log(LogError::KeyReused(_)))), "{other:?}");
    // For another shelf it is another key.
    let elsewhere = Fill { shelf_id: "b".to_owned(), ..fill(&["y"]) };
    let elsewhere = run(&on, &elsewhere, Some("k")).await;
    assert_eq!((events(&elsewhere).len(), elsewhere.repeated), (1, false));
    assert_eq!(world.shelf().await.things, ["x"]);
}

async fn a_rejection_leaves_nothing_or_its_events(world: &impl World) {
    let on = world.handler(right(), 0);
    run(&on, &fill(&["x"]), None).await;
    let quiet = Fill { most: 1, ..fill(&["y"]) };
    let rejected = run(&on, &quiet, Some("k")).await;
    assert!(is_rejected(&rejected) && events(&rejected).is_empty() && !rejected.repeated);
    assert_eq!(world.shelf().await.turned_away, 0);

    let telling = Fill { tells: true, ..quiet };
    let first = run(&on, &telling, Some("l")).await;
    assert!(is_rejected(&first) && !first.repeated);
    assert_eq!(events(&first)[0].event_type, "TurnedAway");
    run(&on, &fill(&["z"]), None).await;
    let again = run(&world.handler(right(), 0), &telling, Some("l")).await;
    assert!(again.repeated);
    assert_eq!(again.outcome, first.outcome);
    assert_eq!(world.shelf().await.turned_away, 1);
}

async fn events_are_appended_together_or_not_at_all(world: &impl World) {
    let on = world.handler(right(), 0);
    let three = run(&on, &fill(&["x", "y", "z"]), None).await;
    let first = Tested::KIND.first_slot();
    let slots: Vec<u64> = events(&three).iter().map(|event| event.slot).collect();
    assert_eq!(slots, [first, first + 1, first + 2]);
    assert!(events(&three).iter().all(|event| event.partition == events(&three)[0].partition));
    let too_large = noise(500_000);
    let refused = on.handle(&fill(&["small", &too_large]), &envelope(&right(), None)).await;
    assert!(refused.is_err());
    assert_eq!(world.shelf().await.things, ["x", "y", "z"]);
}

async fn a_conflict_is_named_and_decided_again(world: &impl World) {
    let (warm, other) = (world.handler(right(), 9), world.handler(right(), 0));
    let first = run(&warm, &fill(&["x"]), None).await;
    run(&other, &fill(&["y"]), None).await;
    let second = run(&warm, &fill(&["y", "z"]), None).await;
    assert_eq!((second.attempts, events(&second).len()), (2, 1));
    let conflicts: Vec<String> = second.conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(conflicts, [events(&first)[0].partition.clone()]);
    assert_eq!(world.shelf().await.things, ["x", "y", "z"]);
    // Nobody else has written since then.
    assert_eq!(run(&warm, &fill(&["w"]), None).await.attempts, 1);
}

async fn a_warm_handler_never_answers_from_its_memory_alone(world: &impl World) {
    let (warm, other) = (world.handler(right(), 9), world.handler(right(), 0));
    run(&warm, &fill(&["x"]), None).await;
    run(&other, &fill(&["y"]), None).await;
    let full = run(&warm, &Fill { most: 2, ..fill(&["z"]) }, None).await;
    let Outcome::Rejected { rejected, .. } = full.outcome else { panic!("{full:?}") };
    assert_eq!(rejected.rejection["shelf"]["things"], json!(["x", "y"]));
    run(&other, &fill(&["z"]), None).await;
    let nothing = run(&warm, &fill(&["z"]), None).await;
    assert_eq!(nothing.outcome, Outcome::Accepted(Vec::new()));
}

async fn times_follow_the_boundary_the_clock_and_a_cause_that_is_not_too_far_ahead(
    world: &impl World,
) {
    let (fast, late) = (NOW_MS + 30_000, NOW_MS + 50_000);
    let ahead = Clock::fixed(fast);
    let on_ahead = world.handler(ahead.clone(), 0);
    on_ahead.handle(&fill(&["x"]), &envelope(&ahead, None)).await.expect("it is settled");
    // The clock of this writer is slow: neither its event nor its decision is before the last event.
    let on = world.handler(right(), 0);
    run(&on, &fill(&["y"]), None).await;
    let caused = |cause_ms| Envelope { cause_ms: Some(cause_ms), ..envelope(&right(), None) };
    on.handle(&fill(&["z"]), &caused(late)).await.expect("it is settled");
    let too_far = late + AHEAD_MAX_MS + 1;
    on.handle(&fill(&["w"]), &caused(too_far)).await.expect("it is settled");
    let times = world.shelf().await.times;
    assert_eq!(times[0], (fast, fast));
    assert_eq!(times[1].0, fast);
    let recorded: Vec<u64> = times.iter().map(|(_, at_ms)| *at_ms).collect();
    assert!(recorded.is_sorted(), "{recorded:?}");
    assert!(recorded[2] >= late && recorded[3] < too_far, "{recorded:?}");
}

async fn a_writer_whose_clock_goes_back_still_writes_after_its_own_last_event(world: &impl World) {
    let clock = Clock::fixed(NOW_MS + 30_000);
    let on = world.handler(clock.clone(), 0);
    let elsewhere = Fill { shelf_id: "b".to_owned(), ..fill(&["x"]) };
    on.handle(&elsewhere, &envelope(&clock, None)).await.expect("it is settled");
    clock.set(NOW_MS);
    on.handle(&fill(&["y"]), &envelope(&clock, None)).await.expect("it is settled");
    let recorded: Vec<u64> = world.shelf().await.times.iter().map(|(_, at_ms)| *at_ms).collect();
    // The document log orders only within a stream.
    let follows = Tested::KIND != LogKind::Documents;
    assert_eq!(recorded[0] > NOW_MS + 30_000, follows, "{recorded:?}");
}

async fn a_limit_is_named_and_nothing_is_written(world: &impl World) {
    let on = world.handler(right(), 0);
    let large = noise(500_000);
    let hundred = noise(100_000);
    let many: Vec<String> = (0..50).map(|n| format!("{n} {hundred}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for things in [&[&*large][..], &many] {
        let refused = on.handle(&fill(things), &envelope(&right(), None)).await;
        let Err(HandleError::Log(LogError::Limit(limit))) = &refused else { panic!("no limit") };
        assert!(limit.found > limit.limit && !limit.advice.is_empty(), "{limit}");
    }
    assert!(world.shelf().await.things.is_empty());
}

async fn an_id_that_makes_no_boundary_is_named(world: &impl World) {
    let on = world.handler(right(), 0);
    // The name of the partition begins with `shelfId:`, `shelves#` or `shelves-`.
    let longest = BOUNDARY_BYTES_MAX - 8;
    let of = |bytes| Fill { shelf_id: "x".repeat(bytes), ..fill(&["x"]) };
    assert_eq!(events(&run(&on, &of(longest), None).await).len(), 1);
    let refused = on.handle(&of(longest + 1), &envelope(&right(), None)).await;
    let Err(HandleError::Plan(PlanError::Boundary(error))) = refused else { panic!("{refused:?}") };
    let (key, bytes) = ("shelfId".to_owned(), BOUNDARY_BYTES_MAX + 1);
    assert_eq!(error, FilingError::BoundaryTooLong { key, bytes });
    let nameless = on.handle(&of(0), &envelope(&right(), None)).await;
    assert!(matches!(nameless, Err(HandleError::Plan(_))), "{nameless:?}");
}

#[tokio::test(start_paused = true)]
async fn damage_that_no_writer_of_a_log_causes_is_reported() {
    let world = Tabled::new();
    run(&world.handler(right(), 0), &fill(&["x"]), None).await;
    world.verify().await;
    world.spoil().await;
    let wrong = <Tested as Log<Fill>>::verify(&world.table).await.expect("a table of the log");
    assert!(!wrong.is_empty());
}

/// Only the DCB log has partitions with events of several contexts.
#[test]
fn an_event_of_another_context_with_the_same_type_is_not_read() {
    let partition = BoundaryId::stored(match Tested::KIND {
        LogKind::Dcb => "shelfId:a".to_owned(),
        LogKind::Aggregates => "shelves#a".to_owned(),
        LogKind::Documents => "shelves-a".to_owned(),
    });
    let of = |context: &str| SequencedEvent {
        event_type: "Put".to_owned(),
        context: context.to_owned(),
        ..SequencedEvent::gap(partition.clone(), Tested::KIND.first_slot(), NOW_MS)
    };
    let catalogs = Catalogs(vec![Shelves::catalog().expect("a catalog")]);
    let is_read = |context: &str| {
        let event = catalogs.current(of(context)).expect("its version is known");
        <Tested as Log<Fill>>::read(&event).is_some()
    };
    assert!(is_read(Shelves::NAME));
    assert_eq!(is_read("cupboards"), Tested::KIND == LogKind::Dcb);
}

/// The log in memory has nothing to wait for, so only tables have deadlines.
#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_the_deadline() {
    let world = Tabled::new();
    let (warm, other) = (world.handler(right(), 9), world.handler(right(), 0));
    run(&warm, &fill(&["x"]), None).await;
    run(&other, &fill(&["y"]), None).await;
    let late = Envelope { deadline_ms: Some(NOW_MS), ..envelope(&right(), None) };
    let handled = warm.handle(&fill(&["z"]), &late).await;
    let Err(HandleError::Log(LogError::Store(StoreError::Contention { attempts, over }))) = handled
    else {
        panic!("{handled:?}")
    };
    assert_eq!(attempts, 1);
    let over = over.expect("a conflict").to_string();
    assert!(over.contains("which was free"), "{over}");
    assert_eq!(world.shelf().await.things, ["x", "y"]);
}

/// The first read shows nothing, like a stale one.
#[tokio::test(start_paused = true)]
async fn a_dry_run_with_a_conflict_writes_nothing_and_costs_as_much_as_the_command() {
    let world = Tabled::new();
    run(&world.handler(right(), 0), &fill(&["x"]), None).await;
    let stale = || {
        let nothing = json!({ "Items": [], "Count": 0, "ScannedCount": 0 });
        world.wire.inject("Query", 0, Fault::Answer(200, nothing));
        world.wire.forget();
    };
    let (command, alone) = (fill(&["x", "y"]), envelope(&right(), None));
    stale();
    let dry_run = <Tested as Log<Fill>>::dry_run(&world.table, &command, &alone).await;
    let dry_run = dry_run.expect("a slice of the log");
    let sent = world.wire.take().into_iter().map(|exchange| exchange.operation);
    let writes: Vec<String> =
        sent.filter(|it| it.contains("Put") || it.contains("Write")).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!((dry_run.conflicts.len(), world.shelf().await.things.len()), (1, 1));
    let intent = dry_run.intent.expect("it appends");
    assert_eq!(intent.actions.len(), 1);

    stale();
    let (on, meter) = <Tested as Log<Fill>>::open(world.table.clone(), 0).expect("a slice");
    let real = on.handle(&command, &alone).await.expect("it is settled");
    let spent = meter.snapshot();
    let handled = dry_run.handled.expect("it is settled");
    assert_eq!((handled.attempts, &handled), (2, &real));
    assert_eq!(dry_run.usage.reads - dry_run.looks.reads, spent.reads);
    world.verify().await;
}

/// Some of these answers need no look besides the read.
#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_command_without_events_names_what_it_has_seen() {
    let world = Tabled::new();
    run(&world.handler(right(), 0), &fill(&["x"]), None).await;
    let envelope = envelope(&right(), None);
    let dry_run = <Tested as Log<Fill>>::dry_run(&world.table, &fill(&["x"]), &envelope).await;
    let dry_run = dry_run.expect("a slice of the log");
    let seen: Vec<&str> = dry_run.reads.iter().map(|read| &*read.seen).collect();
    assert!(seen.len() == 1 && seen[0].contains('1'), "{seen:?}");
    assert_eq!(dry_run.intent, None);
}
