//! Compiles the eBPF program, if there is a clang that can. If not, the crate is built without it and says why at run
//! time.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "src/bpf/queues.bpf.c";

/// Tried in this order. Newer ones are found under the name without a number.
const NAMES: [&str; 8] = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14", "clang-13"];

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=SCHEDLAB_CLANG");
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("queues.bpf.o");
    let why = match compile(&object) {
        Ok(clang) => {
            println!("cargo::rerun-if-changed={}", clang.display());
            String::new()
        }
        Err(why) => {
            // An empty object stands for none. As soon as a clang is installed, this runs again.
            fs::write(&object, []).expect("the output folder can be written");
            if Path::new("/usr/bin").exists() {
                println!("cargo::rerun-if-changed=/usr/bin");
            }
            why
        }
    };
    println!("cargo::rustc-env=SCHEDLAB_NO_EBPF={why}");
}

/// Compiles the program with the first clang that can, and returns where that one is; or says why none can.
fn compile(object: &Path) -> Result<PathBuf, String> {
    let (names, missing) = match env::var("SCHEDLAB_CLANG") {
        Ok(given) => (vec![given.clone()], given),
        Err(_) => (NAMES.map(str::to_owned).to_vec(), "clang".to_owned()),
    };
    let mut why = format!("there was no {missing} when schedlab was built");
    for clang in names.iter().filter_map(|name| find(name)) {
        let mut command = Command::new(&clang);
        // Debian's clang looks for headers of the target, of which there are none: the program includes nothing.
        command.args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-c", SOURCE, "-o"]).arg(object);
        match command.output() {
            Ok(output) if output.status.success() => return Ok(clang),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let first = said.lines().next().unwrap_or("it gives no reason").to_owned();
                why = format!("{} could not compile it when schedlab was built: {first}", clang.display());
            }
            Err(e) => why = format!("{} could not be started when schedlab was built: {e}", clang.display()),
        }
    }
    Err(why)
}

/// The program of this name, as a shell finds it.
fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.exists());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}
