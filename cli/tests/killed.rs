//! `simstore add`, killed at random times.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Random;

/// An `add` that is killed and restarted many times adds the same documents as a single run.
#[test]
fn add_resumes_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..30_000).map(|i| format!("{:016x}\n", Random::hash(i))).collect();
    std::fs::write(folder.path().join("input.hex"), lines).unwrap();
    let simstore = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simstore"));
        command.args(args).current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let dump = |store: &str| {
        let output = simstore(&["dump", store]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(simstore(&["add", "whole", "input.hex"]).output().unwrap().status.success());
    // `--if-new` with `--durability sync` is left out: it would sync each document, which takes long.
    for (durability, if_new) in [("os", false), ("os", true), ("sync", false)] {
        let store = format!("{durability}-{if_new}");
        let mut args = vec!["add", &store, "input.hex", "--memtable", "128K", "--durability", durability];
        args.extend(if_new.then_some("--if-new"));
        let (mut kills, mut wait) = (0, 2_000);
        loop {
            let mut process = simstore(&args).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(Random::hash(kills) % wait));
            process.kill().unwrap();
            if process.wait().unwrap().success() {
                break;
            }
            kills += 1;
            // The wait grows, so that a run finishes at last on any machine.
            wait += wait / 8;
        }
        println!("{store}: {kills} kills");
        assert!(dump(&store) == dump("whole"), "{store}");
        let verified = simstore(&["verify", &store]).output().unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }
}
