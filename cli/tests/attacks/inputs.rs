//! Inputs that change while they are read.

use std::fs;
use std::time::Duration;

use super::jobs::JOBS;
use super::{end, times};
use crate::{Folder, Random};

/// A change of the folder of inputs; another each time.
fn change(folder: &Folder, random: &mut Random) {
    let file = |name: &str| folder.0.path().join("docs").join(name);
    let name = ["a", "b", "c", "d"][random.below(4) as usize];
    let path = file(&format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let at = random.below(lines.len() as u64) as usize;
    match random.below(4) {
        0 => fs::write(file("0.jsonl"), &text).unwrap(),
        1 => {
            lines.remove(at);
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
        2 => {
            lines.rotate_left(at);
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
        _ => {
            lines.insert(at, r#"{"id": "inserted", "text": "a line that was not there before"}"#);
            fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
}

/// The documents that `dedup` writes are either all of the corpus as it was or as it became, without what is alike; or it
/// stops and says so.
#[test]
fn changed_while_read() {
    let job = JOBS.iter().find(|job| job.name == "dedup").unwrap();
    let (_, took) = job.undisturbed();
    let mut random = Random(11);
    let line = "exec $simstore -q dedup docs $words --output o.jsonl --format jsonl --remove-list r.csv";
    for _ in 0..times(8) {
        let folder = Folder::new();
        job.prepare(&folder);
        let before = folder.print(&format!("({line}) && cat o.jsonl r.csv && rm o.jsonl r.csv"));
        let child = folder.start(line);
        std::thread::sleep(Duration::from_micros(random.below(took.as_micros() as u64)));
        change(&folder, &mut random);
        let ended = end(child, line);
        ended.check("a changed input");
        if ended.code == Some(0) {
            let found = folder.print("cat o.jsonl r.csv");
            let after = folder.print(&format!("({line}) && cat o.jsonl r.csv"));
            assert!(found == before || found == after, "neither what it was nor what it became");
        } else {
            assert!(!folder.0.path().join("o.jsonl").exists(), "{}", ended.stderr);
        }
    }
}
