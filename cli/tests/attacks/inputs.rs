//! Inputs that change while a command reads them.

use std::fs;
use std::time::Duration;

use super::cases::CASES;
use super::{repetitions, wait_for_exit};
use crate::{Random, TestFolder};

/// Changes the input folder `docs` at random: copies a file, or removes, moves or inserts lines of a file.
fn change_inputs(folder: &TestFolder, random: &mut Random) {
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

/// If an input file changes during a run, `dedup` either succeeds or fails with a message. If it succeeds, it has
/// written the result for the old files or the result for the new files. If it fails, it writes no output.
#[test]
fn changed_while_read() {
    let case = CASES.iter().find(|case| case.name == "dedup").unwrap();
    let (_, duration) = case.run_undisturbed();
    let mut random = Random(11);
    let line = "exec $simstore -q dedup docs $words --output o.jsonl --format jsonl --remove-list r.csv";
    for _ in 0..repetitions(8) {
        let folder = TestFolder::new();
        case.prepare(&folder);
        let before = folder.output_of(&format!("({line}) && cat o.jsonl r.csv && rm o.jsonl r.csv"));
        let child = folder.start(line);
        std::thread::sleep(Duration::from_micros(random.below(duration.as_micros() as u64)));
        change_inputs(&folder, &mut random);
        let exit = wait_for_exit(child, line);
        exit.check("a changed input");
        if exit.code == Some(0) {
            let output = folder.output_of("cat o.jsonl r.csv");
            let after = folder.output_of(&format!("({line}) && cat o.jsonl r.csv"));
            assert!(
                output == before || output == after,
                "the output is of neither the old nor the new corpus"
            );
        } else {
            assert!(!folder.0.path().join("o.jsonl").exists(), "{}", exit.stderr);
        }
    }
}
