
/// What the decision reads.
#[derive(Reads)]
pub enum Consumed {
    __Event__,
}

#[derive(Default)]
pub struct __Slice__State {
    done: bool,
}

impl State for __Slice__State {
    type Reads = Consumed;

    fn evolve(self, event: Consumed) -> Self {
        match event {
            Consumed::__Event__ => __Slice__State { done: true },
        }
    }
}
