//! What an inspected simulation shows, with the tasks' names: decisions in words, queues as JSON.

use schedlab_base::CpuId;
use schedlab_sim::{Choice, Decision, TaskId, View};
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

/// A decision and its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InWords {
    /// When.
    pub time_us: f64,
    /// For which CPU.
    pub cpu: CpuId,
    /// What kind of decision.
    pub choice: &'static str,
    /// In whose favour; none is the idle task.
    pub who: Option<String>,
    /// Over whom.
    pub over: Vec<String>,
    /// By which rule.
    pub rule: &'static str,
    /// By which numbers.
    pub numbers: Vec<Number>,
}

/// A number that a rule compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Whose it is; none if it is the queue's.
    pub of: Option<String>,
    /// What it is.
    pub what: &'static str,
    /// How much.
    pub value: i64,
}

/// A view in which tasks have their names.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// A value.
    Plain(serde_json::Value),
    /// A list, in order.
    List(Vec<Named>),
    /// Named parts, in order.
    Map(Vec<(&'static str, Named)>),
}

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(to),
            Self::List(list) => {
                let mut seq = to.serialize_seq(Some(list.len()))?;
                for item in list {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Map(parts) => {
                let mut map = to.serialize_map(Some(parts.len()))?;
                for (key, value) in parts {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// A view with names for its tasks.
pub fn named(view: View, name: &impl Fn(TaskId) -> String) -> Named {
    match view {
        View::Nothing => Named::Plain(serde_json::Value::Null),
        View::Int(n) => Named::Plain(i64::try_from(n).map_or_else(|_| n.to_string().into(), Into::into)),
        View::Flag(yes) => Named::Plain(yes.into()),
        View::Text(text) => Named::Plain(text.into()),
        View::Task(p) => Named::Plain(name(p).into()),
        View::List(list) => Named::List(list.into_iter().map(|view| named(view, name)).collect()),
        View::Map(parts) => Named::Map(parts.into_iter().map(|(key, view)| (key, named(view, name))).collect()),
    }
}

/// A decision with names for its tasks.
pub fn in_words(d: &Decision, name: &impl Fn(TaskId) -> String) -> InWords {
    let number =
        |(of, what, value): &(Option<TaskId>, &'static str, i64)| Number { of: of.map(name), what, value: *value };
    InWords {
        time_us: d.time as f64 / 1e3,
        cpu: d.cpu,
        choice: choice(d.choice),
        who: d.who.map(name),
        over: d.over.iter().map(|p| name(*p)).collect(),
        rule: d.rule,
        numbers: d.numbers.iter().map(number).collect(),
    }
}

fn choice(choice: Choice) -> &'static str {
    match choice {
        Choice::Pick => "pick",
        Choice::Preempt => "preempt",
        Choice::Wait => "wait",
        Choice::TurnEnds => "turn-ends",
        Choice::Place => "place",
        Choice::Move => "move",
        Choice::Throttle => "throttle",
    }
}
