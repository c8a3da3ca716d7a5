//! How a run ends: in time, killed, or before it begins. Nothing is left of it then.

use super::*;

#[test]
fn a_trace_that_does_not_fit_on_its_disk_leaves_nothing_and_says_so() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no file system can be mounted here");
    }
    let trace = disk.join("t.arrows");
    let out = Command::new(SCHEDLAB).args(["exec", "messaging", "-d", "1s", "-o"]).arg(&trace).output().unwrap();
    let left = std::fs::read_dir(&disk).unwrap().count();
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!((out.status.code(), left), (Some(2), 0), "{text}");
    let expected = format!("schedlab: {}: cannot write the trace: ", trace.display());
    assert!(text.starts_with(&expected) && text.contains("No space left on device"), "{text}");
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    let Some(_guard) = may_record() else { return };
    if !may_be_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let groups = if cgroups().is_some() { r#""taskgroup": "/g","# } else { "" };
    for (start_by, signal, victim) in [
        ("wake", "-INT", "command"),
        ("fork", "-KILL", "command"),
        ("wake", "-KILL", "supervisor"),
        ("threads", "-KILL", "launcher"),
    ] {
        let text = format!(
            r#"{{"global": {{"x-start": "{start_by}"}}, "tasks": {{"hog": {{"instance": 3, {groups} "run": 1000}}}}}}"#
        );
        let file = workload(dir.path(), &text);
        let trace = dir.path().join("t.arrows");
        let mut run = start(&file, &["-d", "60s", "--force", "-o", trace.to_str().unwrap()]);
        let mut processes: Vec<u32> = wait_for("the tasks run", || {
            let threads = threads(&run);
            (threads.keys().filter(|name| name.starts_with("hog")).count() == 3)
                .then(|| threads.into_values().collect())
        });
        let supervisor =
            children(run.id()).into_iter().find(|pid| field(*pid, "Name").as_deref() == Some("schedlab-super"));
        let supervisor = supervisor.unwrap();
        processes.extend(children(run.id()));
        processes.extend(children(supervisor));
        std::thread::sleep(Duration::from_millis(200));
        let target = match victim {
            "command" => run.id(),
            "supervisor" => supervisor,
            _ => children(supervisor)[0],
        };
        assert!(Command::new("kill").args([signal, &target.to_string()]).status().unwrap().success());
        let output = run.wait_with_output_keeping_id();
        assert_nothing_left(run.id(), &processes);
        let problem = String::from_utf8_lossy(&output.1);
        match victim {
            "supervisor" => assert!(problem.contains("its supervisor was killed"), "{problem}"),
            "launcher" => assert!(problem.contains("killed by signal 9"), "{problem}"),
            _ if signal == "-INT" => assert!(output.0 == Some(0) && trace.metadata().unwrap().len() > 0, "{problem}"),
            _ => {}
        }
        if victim != "command" {
            assert_eq!(output.0, Some(2), "{problem}");
        }
    }
}

/// The groups are the supervisor's, which is there before they are.
#[test]
fn a_command_killed_while_it_sets_up_leaves_nothing() {
    let Some(_guard) = may_group() else { return };
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"tasks": {"a": {"taskgroup": "/a", "run": 1000}, "b": {"taskgroup": "/b/c", "run": 1000}},
        "x-groups": {"/a": {}, "/b": {}, "/b/c": {}}}"#;
    let file = workload(dir.path(), text);
    for (at, signal) in (0..16).map(|n| (8 * n, if n % 2 == 0 { "-TERM" } else { "-KILL" })) {
        let mut run = start(&file, &["-d", "60s", "--no-record"]);
        std::thread::sleep(Duration::from_millis(at));
        assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success());
        run.wait_with_output_keeping_id();
        assert_nothing_left(run.id(), &[]);
    }
}

trait KeepId {
    fn wait_with_output_keeping_id(&mut self) -> (Option<i32>, Vec<u8>);
}

impl KeepId for Child {
    /// The exit status and what it wrote on standard error.
    fn wait_with_output_keeping_id(&mut self) -> (Option<i32>, Vec<u8>) {
        let mut problem = Vec::new();
        // Standard output is drained first, so that a full pipe stops nobody.
        std::io::copy(self.stdout.as_mut().unwrap(), &mut std::io::sink()).unwrap();
        std::io::Read::read_to_end(self.stderr.as_mut().unwrap(), &mut problem).unwrap();
        (self.wait().unwrap().code(), problem)
    }
}

#[test]
fn what_is_missing_is_one_message() {
    let _guard = one_at_a_time();
    let dir = tempfile::tempdir().unwrap();
    let refused = |command: &mut Command, text: &str, status: i32, words: &[&str]| {
        let file = workload(dir.path(), text);
        fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let output = command.args(["exec", "--no-record", "-d", "1s"]).arg(file).output().unwrap();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}: {problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
        assert!(words.iter().all(|word| problem.contains(word)), "{problem}");
    };
    let us = || Command::new(SCHEDLAB);
    refused(&mut us(), r#"{"tasks": {"t": {"run": 1, "cpus": [9999]}}}"#, 2, &["has no CPU 9999"]);
    let hotplug = r#"{"x-hotplug": [{"at_us": 1, "cpu": 1, "online": false}], "tasks": {"t": {"run": 1}}}"#;
    refused(&mut us(), hotplug, 4, &["x-hotplug", "not taken offline"]);
    let wrong = r#"{"x-groups": {"/a/../b": {}}, "tasks": {"t": {"run": 1, "taskgroup": "/a/../b"}}}"#;
    if cgroups().is_some() {
        let output = us().args(["exec", "--no-record", "-d", "1s"]).arg(workload(dir.path(), wrong)).output().unwrap();
        assert!(matches!(output.status.code(), Some(2 | 4)), "{output:?}");
    }
    if !may_be_root() {
        return;
    }
    // Someone else must be able to read the command.
    let copy = dir.path().join("schedlab");
    fs::copy(SCHEDLAB, &copy).unwrap();
    let other = || {
        let mut command = Command::new(&copy);
        command.uid(65534).gid(65534);
        command
    };
    let fifo = r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "priority": 30, "run": 100, "sleep": 100}}}"#;
    refused(&mut other(), fifo, 4, &["tasks.t", "SCHED_FIFO with priority 30", "sudo"]);
    let nice = r#"{"tasks": {"t": {"priority": -5, "run": 100, "sleep": 100}}}"#;
    refused(&mut other(), nice, 4, &["tasks.t", "nice -5", "sudo"]);
    let user = r#"{"tasks": {"t": {"x-user": 1, "run": 100, "sleep": 100}}}"#;
    refused(&mut other(), user, 4, &["tasks.t", "user 1", "sudo"]);
    let group = r#"{"tasks": {"t": {"taskgroup": "/a", "run": 100, "sleep": 100}}}"#;
    refused(&mut other(), group, 4, &["cgroup"]);
    let fine = r#"{"tasks": {"t": {"priority": 5, "run": 100, "sleep": 100}}}"#;
    let output = other().args(["exec", "--no-record", "-d", "200ms"]).arg(workload(dir.path(), fine)).output().unwrap();
    assert!(output.status.success(), "nothing of this needs root: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn real_time_hogs_on_every_cpu_end_in_time() {
    let _guard = one_at_a_time();
    if !may_be_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get();
    let text = format!(
        r#"{{"tasks": {{"hog": {{"instance": {cpus}, "policy": "SCHED_FIFO", "priority": 99, "run": 100000}}}}}}"#
    );
    let file = workload(dir.path(), &text);
    let began = Instant::now();
    let document = json(&exec(&file, &["-d", "1s", "--no-record"]));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let duration = document["execution"]["duration_us"].as_f64().unwrap();
    assert!((999_000.0..1_600_000.0).contains(&duration), "{duration}");
}
