//! The commands that are disturbed, on inputs that are made here.

use std::fmt::Write;
use std::fs;

use crate::{Folder, Random};

/// A command, what it starts from, and what is compared at its end.
pub(crate) struct Job {
    pub(crate) name: &'static str,
    /// Lines of bash that make what the command starts from.
    before: &'static str,
    pub(crate) line: &'static str,
    /// A line that prints the end state.
    after: &'static str,
}

/// Of all documents of a store, fingerprint and id or name; and that the store is sound.
macro_rules! store {
    ($more:literal) => {
        concat!("set -e; $simstore -q verify s >verified; $simstore dump s | sort; ", $more)
    };
}

pub(crate) const JOBS: &[Job] = &[
    Job {
        name: "build",
        before: "",
        line: "$simstore -q build --force s docs pages $words",
        after: store!(""),
    },
    Job {
        name: "add",
        before: "$simstore -q add --memtable 64K s docs/a.jsonl $words",
        line: "$simstore -q add --memtable 64K s docs pages 'new*.jsonl' $words",
        after: store!(""),
    },
    Job {
        name: "add of fingerprints, synced",
        before: "",
        line: "$simstore -q add --memtable 64K --durability sync s 'more/*.tsv'",
        after: store!(""),
    },
    Job {
        name: "add --if-new",
        before: "",
        line: "$simstore -q add --memtable 64K --if-new s 'more/*.tsv'",
        after: store!(""),
    },
    Job {
        name: "add --same-id replace",
        before: "$simstore -q build s docs/a.jsonl docs/b.jsonl $words",
        line: "$simstore -q add --same-id replace s newer.jsonl $words",
        after: store!(""),
    },
    Job {
        name: "compact",
        before: "for i in 0 1 2 3 4 5; do $simstore -q add --memtable 64K s more/$i.tsv; done",
        line: "$simstore -q compact s",
        after: store!(""),
    },
    Job {
        name: "dedup",
        before: "",
        line: "$simstore -q dedup docs $words --output o.jsonl --clusters c.csv --pairs p.tsv --remove-list r.csv",
        after: "cat o.jsonl c.csv p.tsv r.csv",
    },
    Job {
        name: "dedup --resume",
        before: "",
        line: "$simstore -q dedup docs pages $words --resume w --clusters c.csv",
        after: "cat c.csv",
    },
    Job {
        name: "dedup of more than the memory",
        before: "",
        line: "$simstore -q dedup 'more/*.tsv' --memory 150K --temporary . --keep-list k.csv --clusters c.csv -o o",
        // What was left of a run that was killed is removed by the next one.
        after: "cat k.csv c.csv o; ! ls | grep simstore-",
    },
    Job {
        name: "dedup --against --add",
        before: "$simstore -q build s docs/a.jsonl $words; $simstore -q add s docs/b.jsonl; $simstore -q delete s docs/a.jsonl",
        line: "$simstore -q dedup docs $words -d 3 --against s --add --output o.jsonl",
        after: store!("cat o.jsonl"),
    },
];

impl Job {
    /// Makes the inputs and what the command starts from.
    pub(crate) fn prepare(&self, folder: &Folder) {
        write_inputs(folder);
        if !self.before.is_empty() {
            folder.print(&format!("set -e; {}", self.before));
        }
    }

    pub(crate) fn state(&self, folder: &Folder) -> String {
        folder.print(self.after)
    }

    /// The state in a folder below this one.
    pub(crate) fn state_in(&self, folder: &Folder, below: &str) -> String {
        folder.print(&format!("cd {below}; {}", self.after))
    }

    /// The state after an undisturbed run, and how long that took.
    pub(crate) fn undisturbed(&self) -> (String, std::time::Duration) {
        let folder = Folder::new();
        self.prepare(&folder);
        let ended = folder.attempt(self.line);
        assert_eq!(ended.code, Some(0), "{}: {}", self.name, ended.stderr);
        (self.state(&folder), ended.took)
    }
}

/// In a command: the profile that is the quickest to start.
pub(crate) const WORDS: &str = "--profile words-2";

/// A text of random words; of an odd seed it is that of the seed before, but for a word.
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

fn write_inputs(folder: &Folder) {
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
            // In fours that are near one another.
            let value = Random(random.below(1 << 40) & !3).next() ^ 1 << random.below(64);
            writeln!(rows, "{value:016x}\tf{number}-{row}").unwrap();
        }
        write(&format!("more/{number}.tsv"), rows);
    }
}
