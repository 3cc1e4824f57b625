//! Commands that are killed or interrupted at any moment.

use std::process::Command;
use std::time::Duration;

use super::jobs::JOBS;
use super::{disturb, end, times};
use crate::Random;

/// Starts each command, sends it a signal after a part of the time that it takes, and runs it again.
fn send(signal: &str, default: u64, seed: u64) {
    let mut random = Random(seed);
    for job in JOBS {
        let (expected, took) = job.undisturbed();
        for _ in 0..times(default) {
            let wait = Duration::from_micros(random.below(took.as_micros() as u64));
            disturb(job, &format!("SIG{signal} after {wait:?} of {took:?}"), &expected, |folder| {
                let line = format!("exec {}", job.line);
                let child = folder.start(&line);
                std::thread::sleep(wait);
                // It may have ended already.
                let kill = Command::new("kill").args(["-s", signal, &child.id().to_string()]).output();
                kill.unwrap();
                let ended = end(child, &line);
                // Before the command is there to catch it, a signal ends it as any other program.
                (signal != "KILL" && ended.code.is_some()).then_some(ended)
            });
        }
    }
}

#[test]
fn killed() {
    send("KILL", 2, 1);
}

#[test]
fn interrupted() {
    send("INT", 1, 2);
    send("TERM", 1, 3);
}
