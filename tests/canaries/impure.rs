//! A canary: each function is a way for a simulation to depend on more than its arguments. It is never built;
//! scripts/check_purity.py holds that the lints of crates/sim/clippy.toml refuse every one of them.

pub fn clock() -> u64 {
    std::time::Instant::now().elapsed().as_secs()
}

pub fn calendar() -> bool {
    std::time::SystemTime::now() > std::time::UNIX_EPOCH
}

pub fn order(keys: &[u32]) -> Option<u32> {
    keys.iter().copied().collect::<std::collections::HashSet<u32>>().into_iter().next()
}

pub fn map(keys: &[u32]) -> Option<u32> {
    keys.iter().map(|key| (*key, ())).collect::<std::collections::HashMap<u32, ()>>().into_keys().next()
}

pub fn file() -> bool {
    std::fs::read_to_string("/proc/loadavg").is_ok()
}

pub fn open() -> bool {
    std::fs::File::open("/proc/loadavg").is_ok()
}

pub fn print() {
    println!("here");
}

pub fn error() {
    eprintln!("here");
}

pub fn environment() -> bool {
    std::env::var("HOME").is_ok()
}

pub fn threads() -> bool {
    std::thread::spawn(|| ()).join().is_ok()
}

pub fn wait() {
    std::thread::sleep(std::time::Duration::from_millis(1));
}

pub fn program() -> bool {
    std::process::Command::new("date").status().is_ok()
}
