//! The commands that the tests kill or disturb in another way, and their generated inputs.

use std::fmt::Write;
use std::fs;

use crate::{Random, TestFolder};

/// A command to disturb, and bash lines that create its stores and print the state after the command.
pub(crate) struct CommandCase {
    pub(crate) name: &'static str,
    /// Bash line that creates the initial stores. May be empty.
    setup: &'static str,
    /// Bash line that runs the command.
    pub(crate) command: &'static str,
    /// Bash line that prints the state after the command.
    print_state: &'static str,
}

/// Expands to a bash line that verifies the store `s`, prints its sorted dump (fingerprints with ids or names),
/// and then runs the bash commands `$rest`.
macro_rules! store_state {
    ($rest:literal) => {
        concat!("set -e; $simstore -q verify s >verified; $simstore dump s | sort; ", $rest)
    };
}

pub(crate) const CASES: &[CommandCase] = &[
    CommandCase {
        name: "build",
        setup: "",
        command: "$simstore -q build --force s docs pages $words",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "add",
        setup: "$simstore -q add --memtable 64K s docs/a.jsonl $words",
        command: "$simstore -q add --memtable 64K s docs pages 'new*.jsonl' $words",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "add of fingerprints, synced",
        setup: "",
        command: "$simstore -q add --memtable 64K --durability sync s 'more/*.tsv'",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "add --if-new",
        setup: "",
        command: "$simstore -q add --memtable 64K --if-new s 'more/*.tsv'",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "add --same-id replace",
        setup: "$simstore -q build s docs/a.jsonl docs/b.jsonl $words",
        command: "$simstore -q add --same-id replace s newer.jsonl $words",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "compact",
        setup: "for i in 0 1 2 3 4 5; do $simstore -q add --memtable 64K s more/$i.tsv; done",
        command: "$simstore -q compact s",
        print_state: store_state!(""),
    },
    CommandCase {
        name: "dedup",
        setup: "",
        command: "$simstore -q dedup docs $words --output o.jsonl --clusters c.csv --pairs p.tsv --remove-list r.csv",
        print_state: "cat o.jsonl c.csv p.tsv r.csv",
    },
    CommandCase {
        name: "dedup --resume",
        setup: "",
        command: "$simstore -q dedup docs pages $words --resume w --clusters c.csv",
        print_state: "cat c.csv",
    },
    CommandCase {
        name: "dedup of more than the memory",
        setup: "",
        command: "$simstore -q dedup 'more/*.tsv' --memory 150K --temporary . --keep-list k.csv --clusters c.csv -o o",
        // A later run removes the temporary folder of a killed run.
        print_state: "cat k.csv c.csv o; ! ls | grep simstore-",
    },
    CommandCase {
        name: "dedup --against --add",
        setup: "$simstore -q build s docs/a.jsonl $words; $simstore -q add s docs/b.jsonl; $simstore -q delete s docs/a.jsonl",
        command: "$simstore -q dedup docs $words -d 3 --against s --add --output o.jsonl",
        print_state: store_state!("cat o.jsonl"),
    },
];

impl CommandCase {
    /// Writes the input files to the folder, and runs the bash line `setup` there.
    pub(crate) fn prepare(&self, folder: &TestFolder) {
        write_inputs(folder);
        if !self.setup.is_empty() {
            folder.output_of(&format!("set -e; {}", self.setup));
        }
    }

    /// Runs the bash line `print_state` in the folder. Returns its output, which describes the state after the command.
    pub(crate) fn state(&self, folder: &TestFolder) -> String {
        folder.output_of(self.print_state)
    }

    /// Like [`state`](Self::state), in the subfolder `below`.
    pub(crate) fn state_in(&self, folder: &TestFolder, below: &str) -> String {
        folder.output_of(&format!("cd {below}; {}", self.print_state))
    }

    /// Runs the command undisturbed in a new folder. Returns the state afterwards and the duration of the command.
    pub(crate) fn run_undisturbed(&self) -> (String, std::time::Duration) {
        let folder = TestFolder::new();
        self.prepare(&folder);
        let exit = folder.run_line(self.command);
        assert_eq!(exit.code, Some(0), "{}: {}", self.name, exit.stderr);
        (self.state(&folder), exit.duration)
    }
}

/// Profile option of the commands: the profile with the shortest start-up time.
pub(crate) const FAST_PROFILE: &str = "--profile words-2";

/// Returns a text of 80 random words. The text of an odd seed differs in one word from the text of the even
/// seed before it.
fn text(seed: u64) -> String {
    let mut random = Random(seed & !1);
    let mut words: Vec<String> = (0..80).map(|_| format!("word{}", random.below(4000))).collect();
    if seed & 1 == 1 {
        words[0] = "another".to_owned();
    }
    words.join(" ")
}

fn document(id: u64, seed: u64) -> String {
    format!("{{\"id\": \"page-{id}\", \"text\": \"{}\"}}\n", text(seed))
}

fn write_inputs(folder: &TestFolder) {
    let write = |name: &str, content: String| fs::write(folder.0.path().join(name), content).unwrap();
    for name in ["docs", "pages", "more"] {
        fs::create_dir(folder.0.path().join(name)).unwrap();
    }
    for (number, name) in (0..).zip(["a", "b", "c", "d"]) {
        let ids = number * 150..(number + 1) * 150;
        write(&format!("docs/{name}.jsonl"), ids.map(|id| document(id, id)).collect());
    }
    for number in 0..10 {
        write(&format!("pages/{number}.txt"), text(1_000_000 + number));
    }
    write("newer.jsonl", (0..450).map(|id| document(id, id + id % 3 * 1_000_000)).collect());
    let mut random = Random(7);
    for number in 0..6 {
        let mut rows = String::new();
        for row in 0..800 {
            // Seeds that differ only in their lowest two bits give fingerprints at most two bits apart.
            let value = Random(random.below(1 << 40) & !3).next() ^ 1 << random.below(64);
            writeln!(rows, "{value:016x}\tf{number}-{row}").unwrap();
        }
        write(&format!("more/{number}.tsv"), rows);
    }
}
