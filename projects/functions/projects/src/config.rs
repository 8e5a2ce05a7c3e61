//! How a project works: its graph of edges, its claims, and what its roles may do.

use std::collections::{BTreeMap, BTreeSet};

use ringfence::List;

use crate::{AgentId, EdgeName, Rejection, RoleName};

/// A lease of an hour.
pub const LEASE_MS: u64 = 3_600_000;
/// Leases are not shorter, in milliseconds.
pub const LEASE_MS_MIN: u64 = 1_000;
/// Leases are not longer, in milliseconds.
pub const LEASE_MS_MAX: u64 = 24 * 3_600_000;
/// How many edges a graph has at most.
pub const EDGES_MAX: usize = 30;
/// How many callers have a role, and how many roles have an authority, at most.
pub const ROLES_MAX: usize = 200;
/// The longest name of a caller, in bytes.
pub const PRINCIPAL_BYTES_MAX: usize = 128;
/// The role that may do everything.
pub const HUMAN: &str = "human";
/// The only agent of a project in single mode.
pub const PRIMARY: &str = "primary";

/// How many agents work on a project.
#[ringfence::value]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// The agent `primary` alone: leases have no end, and roles do not count.
    #[default]
    Single,
    /// Many agents.
    Multi,
}

impl Mode {
    /// Checks that a command names its agent. In single mode it need not, because there is one agent.
    ///
    /// # Errors
    /// [`Rejection::AgentMissing`]
    pub fn check(self, agent: &AgentId) -> Result<(), Rejection> {
        match self {
            Self::Multi if agent.is_primary() => Err(Rejection::AgentMissing),
            _ => Ok(()),
        }
    }
}

/// The fate of a claim after its lease has ended.
#[ringfence::value]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum OnExpiry {
    /// Another agent may take the edge.
    #[default]
    Takeable,
    /// It bars others until a person releases it.
    SignalOnly,
}

/// The condition of an edge besides a converged iteration.
#[ringfence::value]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    #[default]
    None,
    /// A person has approved exactly the state that converges.
    Human,
}

/// An edge of the graph.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct EdgeRule {
    pub edge: EdgeName,
    /// The edges that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<EdgeName>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub gate: Gate,
}

/// What happens where a role may not converge an edge.
#[ringfence::value]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Otherwise {
    /// A person decides.
    #[default]
    Escalate,
    /// The edge converges, and people can see which caller did it.
    Warn,
    /// The edge does not converge.
    Reject,
}

/// The edges that a role may converge.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Authority {
    #[serde(default)]
    pub edges: BTreeSet<EdgeName>,
    #[serde(default)]
    pub otherwise: Otherwise,
}

/// Acts that a project can reserve for some callers.
#[ringfence::value]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    Init,
    Reopen,
    FoldBack,
    Release,
}

/// The roles that may do an act, besides `human`. Without roles, every caller may do it.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Reserved {
    /// To begin a project with this configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<BTreeSet<RoleName>>,
    /// To open a converged edge again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen: Option<BTreeSet<RoleName>>,
    /// To fold a child back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold_back: Option<BTreeSet<RoleName>>,
    /// To create a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<BTreeSet<RoleName>>,
}

impl Reserved {
    fn roles(&self, act: Act) -> Option<&BTreeSet<RoleName>> {
        match act {
            Act::Init => self.init.as_ref(),
            Act::Reopen => self.reopen.as_ref(),
            Act::FoldBack => self.fold_back.as_ref(),
            Act::Release => self.release.as_ref(),
        }
    }
}

/// The part of the configuration that a feature copies when it is created, so that claims and work do not read the
/// project.
#[ringfence::value]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub mode: Mode,
    pub lease_ms: u64,
    pub on_expiry: OnExpiry,
    pub stuck_after: u32,
    pub edges: Vec<EdgeRule>,
}

impl Rules {
    /// The rule of the edge with this name.
    #[must_use]
    pub fn edge(&self, name: &EdgeName) -> Option<&EdgeRule> {
        self.edges.iter().find(|rule| rule.edge == *name)
    }
}

/// The configuration of a project.
#[ringfence::value]
#[derive(Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub mode: Mode,
    /// How long a claim lasts after its holder's latest event, in milliseconds: [`LEASE_MS_MIN`] to
    /// [`LEASE_MS_MAX`].
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
    #[serde(default)]
    pub on_expiry: OnExpiry,
    /// How many iterations in succession with the same number of failed checks show that work is stuck.
    #[serde(default = "stuck_after")]
    pub stuck_after: u32,
    pub edges: List<EdgeRule, EDGES_MAX>,
    /// The role of each caller, by principal.
    #[serde(default)]
    pub roles: BTreeMap<String, RoleName>,
    /// The edges that each role may converge.
    #[serde(default)]
    pub authority: BTreeMap<RoleName, Authority>,
    /// The acts that only some roles may do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved: Reserved,
}

fn lease_ms() -> u64 {
    LEASE_MS
}

fn stuck_after() -> u32 {
    3
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Config {
    /// The rules that features copy.
    #[must_use]
    pub fn rules(&self) -> Rules {
        Rules {
            mode: self.mode,
            lease_ms: self.lease_ms,
            on_expiry: self.on_expiry,
            stuck_after: self.stuck_after,
            edges: self.edges.to_vec(),
        }
    }

    /// Whether `who` may do everything. In single mode everybody may.
    #[must_use]
    pub fn is_human(&self, who: &str) -> bool {
        self.mode == Mode::Single || self.roles.get(who).is_some_and(is_human)
    }

    /// The consequence if `who` may not converge the edge, and the role; `None` if it may.
    #[must_use]
    pub fn bars(&self, who: &str, edge: &EdgeName) -> Option<(Option<RoleName>, Otherwise)> {
        if self.is_human(who) {
            return None;
        }
        let role = self.roles.get(who);
        match role.and_then(|role| self.authority.get(role)) {
            Some(authority) if authority.edges.contains(edge) => None,
            authority => {
                let otherwise = authority.map_or(Otherwise::default(), |it| it.otherwise);
                Some((role.cloned(), otherwise))
            }
        }
    }

    /// Checks that `who` may do this.
    ///
    /// # Errors
    /// [`Rejection::Reserved`]
    pub fn permit(&self, who: &str, act: Act) -> Result<(), Rejection> {
        let Some(roles) = self.reserved.roles(act) else { return Ok(()) };
        let has_role = self.roles.get(who).is_some_and(|role| roles.contains(role));
        match has_role || self.is_human(who) {
            true => Ok(()),
            false => Err(Rejection::Reserved { act, roles: roles.iter().cloned().collect() }),
        }
    }

    /// Checks the rules that no type expresses.
    ///
    /// # Errors
    /// [`Rejection::BadConfig`] names the field and what it may be.
    pub fn check(&self) -> Result<(), Rejection> {
        let bad = |field: &str, problem: String| {
            Err(Rejection::BadConfig { field: field.to_owned(), problem })
        };
        if !(LEASE_MS_MIN..=LEASE_MS_MAX).contains(&self.lease_ms) {
            let problem = format!("must be {LEASE_MS_MIN} to {LEASE_MS_MAX}, is {}", self.lease_ms);
            return bad("leaseMs", problem);
        }
        if self.stuck_after == 0 {
            return bad("stuckAfter", "must be at least 1".to_owned());
        }
        if self.edges.is_empty() {
            return bad("edges", format!("must have 1 to {EDGES_MAX} edges"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = self.edges.iter().find(|rule| !names.insert(&rule.edge)) {
            return bad("edges", format!("has {} twice", twice.edge));
        }
        for rule in &self.edges {
            let mut after = BTreeSet::new();
            if let Some(twice) = rule.after.iter().find(|before| !after.insert(*before)) {
                return bad("edges", format!("{} comes after {twice} twice", rule.edge));
            }
        }
        let after = self.edges.iter().flat_map(|rule| rule.after.iter().map(move |it| (rule, it)));
        for (rule, before) in after {
            if !names.contains(before) {
                return bad(
                    "edges",
                    format!("{} comes after {before}, which is missing", rule.edge),
                );
            }
        }
        if let Some(edge) = self.cycle() {
            return bad("edges", format!("{edge} comes after itself"));
        }
        let wrong = self.roles.keys().find(|who| !(1..=PRINCIPAL_BYTES_MAX).contains(&who.len()));
        if wrong.is_some() || self.roles.len() > ROLES_MAX {
            let problem = format!(
                "may have {ROLES_MAX} entries, whose names have 1 to {PRINCIPAL_BYTES_MAX} bytes each"
            );
            return bad("roles", problem);
        }
        if self.authority.len() > ROLES_MAX {
            return bad("authority", format!("may have {ROLES_MAX} entries"));
        }
        let acts = [Act::Init, Act::Reopen, Act::FoldBack, Act::Release];
        let mut reserved = acts.into_iter().filter_map(|act| self.reserved.roles(act));
        if reserved.any(|roles| roles.len() > ROLES_MAX) {
            return bad("reserved", format!("may name {ROLES_MAX} roles for each act"));
        }
        let of_roles = self.authority.values().flat_map(|authority| &authority.edges);
        if let Some(edge) = of_roles.into_iter().find(|edge| !names.contains(edge)) {
            return bad("authority", format!("names the edge {edge}, which the graph lacks"));
        }
        if self.mode == Mode::Multi && !self.roles.values().any(is_human) {
            let problem =
                format!("in multi mode somebody needs the role {HUMAN}, who may do everything");
            return bad("roles", problem);
        }
        Ok(())
    }

    /// An edge of a cycle, if there is one: an edge that is left after edges without predecessors were removed again
    /// and again.
    fn cycle(&self) -> Option<&EdgeName> {
        let mut left: Vec<&EdgeRule> = self.edges.iter().collect();
        loop {
            let names: BTreeSet<&EdgeName> = left.iter().map(|rule| &rule.edge).collect();
            let before = left.len();
            left.retain(|rule| rule.after.iter().any(|after| names.contains(after)));
            if left.is_empty() {
                return None;
            }
            if left.len() == before {
                return left.first().map(|rule| &rule.edge);
            }
        }
    }
}

fn is_human(role: &RoleName) -> bool {
    role.to_string() == HUMAN
}
