//! Commands that are killed or interrupted at random times.

use std::process::Command;
use std::time::Duration;

use super::cases::CASES;
use super::{disturb, repetitions, wait_for_exit};
use crate::Random;

/// Starts each command, sends it `signal` after a random part of its usual duration, and runs it again.
/// `default` is the number of repetitions for each command, unless `SIMSTORE_ATTACKS` sets another.
fn kill_each_command(signal: &str, default: u64, seed: u64) {
    let mut random = Random(seed);
    for case in CASES {
        let (expected, duration) = case.run_undisturbed();
        for _ in 0..repetitions(default) {
            let wait = Duration::from_micros(random.below(duration.as_micros() as u64));
            disturb(case, &format!("SIG{signal} after {wait:?} of {duration:?}"), &expected, |folder| {
                let line = format!("exec {}", case.command);
                let child = folder.start(&line);
                std::thread::sleep(wait);
                // The kill fails if the command has already exited.
                let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).output();
                kill.unwrap();
                let exit = wait_for_exit(child, &line);
                // Until the command has installed its signal handler, the signal ends it without an exit code.
                (signal != "KILL" && exit.code.is_some()).then_some(exit)
            });
        }
    }
}

#[test]
fn killed() {
    kill_each_command("KILL", 2, 1);
}

#[test]
fn interrupted() {
    kill_each_command("INT", 1, 2);
    kill_each_command("TERM", 1, 3);
}
