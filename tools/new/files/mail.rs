//! __Reactor__: sends a mail after __article__ __Event__.

use std::error::Error;

use crate::{__Context__, __Id__};
__use_address__
use ringfence::effect::{Mail, MailConfig, Mailer};
use ringfence::function::Variables;
use ringfence::prelude::*;
use ringfence::reactor::{Delivery, Failed, InDoubt, Reactor, Starts, kit::ReactorCase};

__receiver__
pub struct __Reactor__(Mailer);

/// What it reads.
#[derive(Reads)]
pub enum Consumed {
    __Event__ {
        __mark__
        __id__: __Id__,
        __address__
    },
}

impl Reactor for __Reactor__ {
    const NAME: &'static str = "__reactor__";
    const STARTS: Starts = Starts::Now;
    /// Two mails are better than none. Both have one id.
    const IN_DOUBT: InDoubt = InDoubt::Repeat;
    type Context = __Context__;
    type Reads = Consumed;
    type Effect = Mail;
    type Config = MailConfig;

    fn config(variables: &mut Variables) -> MailConfig {
        Mailer::config(variables)
    }

    async fn open(config: MailConfig) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Mailer::open(config).await.map(Self)
    }

    fn plan(event: &Consumed) -> Vec<Mail> {
        let Consumed::__Event__ { __names__ } = event;
__to__
        let subject = format!("__Title__: {__id__}");
        vec![Mail { to, text: format!("{subject}.\n"), subject }]
    }

    async fn run(&self, mail: &Mail, delivery: &Delivery<'_>) -> Result<(), Failed> {
        self.0.send(mail, delivery).await
    }

    fn cases() -> Vec<ReactorCase<Mail>> {
        use ringfence::reactor::kit::when;

        let subject = "__Title__: one".to_owned();
        let mail = Mail { to: id(__of_case__), text: format!("{subject}.\n"), subject };
        vec![when(crate::__Event__ { __fields__ }).then([mail])]
    }
}
