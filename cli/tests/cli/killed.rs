//! `simstore add` that is killed in the middle of its work.

use std::process::{Command, Stdio};
use std::time::Duration;

/// SplitMix64 of one number.
fn random(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def0);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A run of `simstore add` that is killed again and again, and started again, adds what one run adds.
#[test]
fn add_carries_on() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..30_000).map(|i| format!("{:016x}\n", random(i))).collect();
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
    // Without a sync for each document, which would take long.
    for (durability, if_new) in [("os", false), ("os", true), ("sync", false)] {
        let store = format!("{durability}-{if_new}");
        let mut args = vec!["add", &store, "input.hex", "--memtable", "128K", "--durability", durability];
        args.extend(if_new.then_some("--if-new"));
        let (mut kills, mut wait) = (0, 2_000);
        loop {
            let mut process = simstore(&args).spawn().unwrap();
            std::thread::sleep(Duration::from_micros(random(kills) % wait));
            process.kill().unwrap();
            if process.wait().unwrap().success() {
                break;
            }
            kills += 1;
            // Longer each time, so that it is done at some time on any machine.
            wait += wait / 8;
        }
        println!("{store}: {kills} kills");
        assert!(dump(&store) == dump("whole"), "{store}");
        let verified = simstore(&["verify", &store]).output().unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    }
}
