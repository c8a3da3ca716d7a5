//! Whether KVM runs guests on this machine. That `/dev/kvm` can be opened does not mean that a guest gets anywhere, so
//! a kernel is booted, once after each start of the host, and the answer is kept.

use crate::guest::{Accel, Guest, Limits};
use crate::kernel::Kernel;
use crate::mailbox::Job;
use crate::qemu;
use crate::store::Store;
use crate::vm;
use schedlab_base::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

/// How long a guest may take to boot under KVM. It takes about a second where it works.
const TRIAL: Limits = Limits { boot: Duration::from_secs(20), run: Duration::from_secs(10) };
/// The file in the cache that holds the answer.
const ANSWER: &str = "kvm.json";

/// What is known about KVM here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether a guest has booted.
    pub works: bool,
    /// What happened, for people.
    pub found: String,
    /// The start of the host that it is true for.
    boot: String,
    /// The QEMU that it is true for.
    qemu: String,
}

/// Why there is no KVM to be tried, if there is none.
fn absent() -> Option<String> {
    match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => None,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("there is no /dev/kvm".to_owned()),
        Err(e) => Some(format!("/dev/kvm cannot be opened: {e}")),
    }
}

/// The answer that is kept, if it is still true.
fn kept(path: &Path, boot: &str, qemu: &str) -> Option<Answer> {
    let answer: Answer = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (answer.boot == boot && answer.qemu == qemu).then_some(answer)
}

/// What is known about guests here, without running one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The version of QEMU, if it can be run.
    pub qemu: Option<String>,
    /// Why there is no KVM to be tried, if there is none.
    pub no_kvm: Option<String>,
    /// What the last trial of KVM showed, if it is still true.
    pub answer: Option<Answer>,
}

/// What is known about guests here, without running one.
#[must_use]
pub fn known() -> Known {
    let qemu = qemu::version();
    let path = Store::open().and_then(|store| store.folder("")).map(|folder| folder.join(ANSWER)).ok();
    let answer = path.zip(qemu.as_ref()).and_then(|(path, qemu)| kept(&path, &this_start(), qemu));
    Known { qemu, no_kvm: absent(), answer }
}

/// What the kernel calls the time from the host's last start on.
fn this_start() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Whether KVM runs guests here, found by booting `kernel` if it is not known yet. `say` is called before that.
///
/// # Errors
/// When there is no QEMU, or the cache cannot be written.
pub fn kvm(kernel: &Kernel, say: &mut dyn FnMut(&str)) -> Result<Answer> {
    let qemu = qemu::version().ok_or_else(|| {
        let mend = "install QEMU; Debian, as root: apt-get install qemu-system-x86";
        Error::not_permitted(format!("{} cannot be run", qemu::PROGRAM)).mend(mend)
    })?;
    let boot = this_start();
    if let Some(found) = absent() {
        return Ok(Answer { works: false, found, boot, qemu });
    }
    let path = Store::open()?.folder("")?.join(ANSWER);
    if let Some(answer) = kept(&path, &boot, &qemu) {
        return Ok(answer);
    }
    say(&format!("finding out whether KVM runs a guest here, for at most {} s", TRIAL.boot.as_secs()));
    let machine = schedlab_machine::load("1")?;
    let guest = Guest { limits: TRIAL, ..Guest::new(kernel, &machine) };
    let (works, found) = match vm::run(&guest, &Job::default(), Accel::Kvm) {
        Ok(ran) => (true, format!("a guest boots in {:.1} s", ran.boot.as_secs_f64())),
        Err(e) => (false, format!("/dev/kvm is there, but no guest boots: {e}")),
    };
    let answer = Answer { works, found, boot, qemu };
    let text = serde_json::to_vec_pretty(&answer).expect("plain data is always JSON");
    let part = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &path));
    written.map_err(|e| Error::system("cannot be written", &e).file(&path))?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_true_for_one_start_of_the_host_and_one_qemu() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(ANSWER);
        assert_eq!(kept(&path, "a", "7"), None);
        let answer = Answer { works: false, found: "it hangs".into(), boot: "a".into(), qemu: "7".into() };
        fs::write(&path, serde_json::to_vec(&answer).unwrap()).unwrap();
        assert_eq!(kept(&path, "a", "7"), Some(answer));
        assert_eq!(kept(&path, "b", "7"), None);
        assert_eq!(kept(&path, "a", "8"), None);
    }
}
