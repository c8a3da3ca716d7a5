//! The guest's first file system, in memory: this program as its first process, and the job.

use crate::cpio::Archive;
use crate::mailbox::Job;
use crate::program::Program;

/// Where the guest finds its job.
pub(crate) const JOB: &str = "/schedlab-job.json";

/// Where this program is in the guest. The first process is called "init", and the command "schedlab".
pub(crate) const PROGRAM: &str = "/bin/schedlab";

/// The archive for a job.
pub(crate) fn build(program: &Program, job: &Job) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["proc", "sys", "dev", "run", "tmp"] {
        archive.folder(folder);
    }
    archive.device("dev/console", (5, 1));
    archive.device("dev/null", (1, 3));
    archive.file(inside(PROGRAM), 0o755, &program.contents);
    archive.link("init", PROGRAM);
    for (path, contents) in &program.libraries {
        archive.file(inside(&path.to_string_lossy()), 0o755, contents);
    }
    for (path, contents) in &job.files {
        archive.file(inside(path), 0o755, contents);
    }
    let text = serde_json::to_vec(job).expect("plain data is always JSON");
    archive.file(inside(JOB), 0o644, &text);
    archive.finish()
}

fn inside(path: &str) -> &str {
    path.trim_start_matches('/')
}
