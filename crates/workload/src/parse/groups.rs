//! `x-groups` and `x-hotplug`.

use crate::json::Json;
use crate::place::{At, Field, Fields};
use crate::{Group, Hotplug};
use schedlab_base::{Nanos, Result};
use std::collections::BTreeMap;

/// The kernel's limits on `cpu.max`: 1 ms to 1 s (`min_cfs_quota_period`, `max_cfs_quota_period`).
const BANDWIDTH_NS: std::ops::RangeInclusive<Nanos> = 1_000_000..=1_000_000_000;
/// The longest path, as in the kernel (`PATH_MAX`).
const MAX_PATH: usize = 4095;
/// The deepest group. The kernel has no such limit, but every level above a group is a group too.
const MAX_DEPTH: usize = 64;
const KEYS: &[&str] = &["weight", "shares", "quota_us", "period_us", "burst_us", "idle"];

/// Checks a group's path: it must start at the root, have no `.` or `..`, and be neither too long nor too deep.
pub(super) fn check_path(field_at: &At, path: &str) -> Result<()> {
    if path.len() > MAX_PATH {
        return Err(field_at.error(format!("the group's path has {} bytes, more than {MAX_PATH}", path.len())));
    }
    if !path.starts_with('/') {
        return Err(field_at.error(format!("the group \"{path}\" does not start with '/'")).mend("write \"/group\""));
    }
    if path.split('/').any(|part| part == "." || part == "..") {
        return Err(field_at.error(format!("the group \"{path}\" must not hold . or ..")));
    }
    let depth = path.split('/').filter(|part| !part.is_empty()).count();
    if depth > MAX_DEPTH {
        let what = format!("the group is {depth} levels deep");
        return Err(field_at.error(what).mend(format!("nest groups at most {MAX_DEPTH} deep")));
    }
    Ok(())
}

/// Normalises a path to single slashes: `//a/b/` becomes `/a/b`, and the root is `/`.
pub(super) fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("/{}", parts.join("/"))
}

pub(super) fn read(field: &Field) -> Result<BTreeMap<String, Group>> {
    let mut groups = BTreeMap::new();
    for member in Fields::of(field.value, &field.at)?.members {
        let at = field.at.of(member);
        check_path(&at, &member.key)?;
        let path = tidy(&member.key);
        if path == "/" {
            return Err(at.error("the root group cannot be changed").mend("name a group below it: \"/group\""));
        }
        let group = read_group(&Fields::of(&member.value, &at)?)?;
        if groups.insert(path, group).is_some() {
            return Err(at.error("this group is given twice"));
        }
    }
    Ok(groups)
}

fn read_group(fields: &Fields) -> Result<Group> {
    fields.only(KEYS)?;
    let at = fields.at;
    let group = Group {
        weight: fields.read("weight", |f| f.int_in(1..=10_000))?.map(|w| w as u32),
        shares: fields.read("shares", |f| f.int_in(1..=i64::MAX))?.map(i64::unsigned_abs),
        quota: fields.read("quota_us", quota)?.flatten(),
        period: fields.read("period_us", |f| bandwidth(f, f.micros()?))?,
        burst: fields.read("burst_us", Field::micros)?,
        idle: fields.read("idle", idle)?.unwrap_or(false),
    };
    if group.weight.is_some() && group.shares.is_some() {
        return Err(at
            .error("has both \"weight\" and \"shares\"")
            .mend("weight is cgroup v2's, shares v1's: give one"));
    }
    if let (Some(quota), Some(burst)) = (group.quota, group.burst)
        && burst > quota
    {
        return Err(at
            .error("\"burst_us\" is more than \"quota_us\"")
            .mend("the kernel allows no more than the quota"));
    }
    Ok(group)
}

fn quota(field: &Field) -> Result<Option<Nanos>> {
    if field.int()? == -1 {
        return Ok(None);
    }
    let quota = field.micros()?;
    if quota < *BANDWIDTH_NS.start() {
        return Err(field.at.error("is less than the kernel's least quota, 1000 us").mend("-1 is no limit"));
    }
    Ok(Some(quota))
}

fn bandwidth(field: &Field, period: Nanos) -> Result<Nanos> {
    if BANDWIDTH_NS.contains(&period) {
        return Ok(period);
    }
    Err(field.at.error("is outside the kernel's bounds, 1000 to 1000000 us"))
}

fn idle(field: &Field) -> Result<bool> {
    match field.value.json {
        Json::Bool(idle) => Ok(idle),
        _ => Ok(field.int_in(0..=1)? == 1),
    }
}

pub(super) fn read_hotplug(field: &Field) -> Result<Vec<Hotplug>> {
    let Json::List(items) = &field.value.json else {
        return Err(field.at.error("should be a list of { \"at_us\", \"cpu\", \"online\" }"));
    };
    let mut changes = Vec::with_capacity(items.len());
    for value in items {
        let at = field.at.at_line(value.line);
        let fields = Fields::of(value, &at)?;
        fields.only(&["at_us", "cpu", "online"])?;
        changes.push(Hotplug {
            at: fields.need("at_us")?.micros()?,
            cpu: fields.need("cpu")?.index()?,
            online: fields.need("online")?.flag()?,
        });
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}
