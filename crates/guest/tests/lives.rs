//! What becomes of guests: one that stays for several jobs, and those that hang, panic or run out of memory.
//!
//! This program starts itself as a guest. Where QEMU or a kernel is missing and cannot be had, the test says so and
//! passes.

use schedlab_guest::{Guest, Job, Kernel, Limits, Running, Store, agent, find, run, start};
use schedlab_machine::Machine;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long a guest may take while the machine is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

/// What this program is called by those who choose among tests.
const NAME: &str = "lives";

fn main() {
    if agent::is_due() {
        agent::main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        words if is_guest() => inside(words),
        ["--list", ..] => println!("{NAME}: test"),
        ["outside"] => outside(),
        words if words.iter().all(|word| word.starts_with('-') || NAME.contains(word)) => {
            // Kernels are kept with the build, where the other tests of guests look for them too.
            let own = std::env::current_exe().expect("this program");
            let kept = own.parent().and_then(Path::parent).expect("the build's folder").join("guest-tests");
            let status = Command::new(&own).arg("outside").env("XDG_CACHE_HOME", kept).status().expect("it starts");
            std::process::exit(status.code().unwrap_or(1));
        }
        _ => println!("{NAME}: not asked for"),
    }
}

/// Whether this kernel was started for a guest. What follows would be the end of any other.
fn is_guest() -> bool {
    std::fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("rdinit=/init"))
}

/// What a job of a guest does.
fn inside(words: &[&str]) {
    match words {
        ["say", word] => println!("{word} {}", std::fs::read_to_string("/given").unwrap_or_default()),
        ["wait"] => std::thread::sleep(Duration::from_secs(1000)),
        ["panic"] => std::fs::write("/proc/sysrq-trigger", "c").expect("the kernel takes it"),
        ["eat"] => eat(),
        // The kernel kills the child, and the parent never ends.
        ["feed"] => {
            Command::new("/proc/self/exe").arg("eat").status().expect("the child starts");
            loop {
                std::hint::spin_loop();
            }
        }
        ["lack"] => {
            eprintln!("schedlab: there is no buffer: Cannot allocate memory (os error 12)");
            std::process::exit(2);
        }
        other => panic!("there is no job {other:?}"),
    }
}

/// Takes memory until there is no more.
fn eat() {
    let mut eaten = Vec::new();
    loop {
        eaten.push(vec![1u8; 1 << 20]);
        std::hint::black_box(&eaten);
    }
}

/// The host's side.
fn outside() {
    if !cfg!(target_arch = "x86_64") || Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
        println!("skipped: there is no QEMU (Debian: apt-get install qemu-system-x86)");
        return;
    }
    let kernel = Store::open().and_then(|store| match store.get("debian-6.12")? {
        Some(_) => find("debian-6.12"),
        None => store.fetch("debian-6.12", false, &mut |_| ()).and_then(|_| find("debian-6.12")),
    });
    let kernel = match kernel {
        Ok(kernel) => kernel,
        Err(why) => return println!("skipped: {why}"),
    };
    let machine = schedlab_machine::load("1").expect("a machine of one CPU");
    stays(&kernel, &machine);
    fails(&kernel, &machine, ("panic", None), "its kernel panicked: sysrq triggered crash");
    fails(&kernel, &machine, ("eat", Some(256)), "it ran out of memory; it has 256 MiB; give it more: --memory 512; ");
    fails(&kernel, &machine, ("feed", Some(256)), "the guest did not end: it ran out of memory; it has 256 MiB; ");
    fails(&kernel, &machine, ("lack", Some(256)), "the guest's command lacked memory: there is no buffer: Cannot ");
}

fn guest<'a>(kernel: &'a Kernel, machine: &'a Machine) -> Guest<'a> {
    Guest { limits: Limits { boot: PATIENCE, run: PATIENCE }, ..Guest::new(kernel, machine) }
}

fn job(words: &[&str]) -> Job {
    Job { command: words.iter().map(|word| (*word).to_owned()).collect(), ..Job::default() }
}

/// A guest does one job after the other, until one takes too long.
fn stays(kernel: &Kernel, machine: &Machine) {
    let guest = guest(kernel, machine);
    let (first, running) = start(&guest, &job(&["say", "first"]), &mut |_| ()).expect("the guest runs");
    assert_eq!((first.done.printed.as_str(), first.done.unfit), ("first \n", None));
    let files = vec![("/given".to_owned(), b"by the host".to_vec())];
    let again = |running: Option<Running>, job: &Job, limits: Limits| {
        let mut running = running.expect("the guest stays");
        assert!(running.is_alive());
        running.run(job, limits)
    };
    let (second, running) =
        again(running, &Job { files, ..job(&["say", "second"]) }, guest.limits).expect("the guest runs on");
    assert_eq!(second.done.printed, "second by the host\n");
    assert_eq!(second.boot, first.boot, "it was booted once");
    let (third, running) = again(running, &job(&["say", "third"]), guest.limits).expect("the guest runs on");
    assert_eq!(third.done.printed, "third \n", "the file of the job before is gone");
    let short = Limits { run: Duration::from_secs(1), ..guest.limits };
    let error = again(running, &job(&["wait"]), short).err().expect("the guest waits for longer").to_string();
    failed(&error, " within 1 s after it was asked");
}

/// A guest fails with this message.
fn fails(kernel: &Kernel, machine: &Machine, (what, memory): (&str, Option<u64>), why: &str) {
    let guest = Guest { memory, deterministic: true, ..guest(kernel, machine) };
    match run(&guest, &job(&[what]), &mut |_| ()) {
        Ok(ran) => panic!("the guest ended well: {:?}", ran.done),
        Err(error) => failed(&error.to_string(), why),
    }
}

/// The message is one line, and names the file with the guest's console.
fn failed(error: &str, why: &str) {
    assert!(error.starts_with("debian-6.12: ") && error.contains(why) && !error.contains('\n'), "{error}");
    let console = error.split("its console is in ").nth(1).expect("the console is named");
    let text = std::fs::read_to_string(console).expect("the console was kept");
    assert!(text.contains("Linux version 6.12"), "{text}");
    println!("{error}");
}
