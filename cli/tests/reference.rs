//! The grouped help, shell completions and man pages contain all commands.

use crate::TestFolder;
use crate::examples::COMMANDS;

#[test]
fn the_help_lists_each_command_once_in_its_group() {
    let help = TestFolder::new().run(&["--help"]).ok();
    let groups = ["Deduplicate:", "Stores:", "Serve:", "Fingerprints:", "Measure:", "Setup:"];
    let places =
        groups.map(|group| help.find(&format!("\n{group}\n")).unwrap_or_else(|| panic!("{group}: {help}")));
    assert!(places.is_sorted(), "{help}");
    for command in COMMANDS.into_iter().chain(["completions", "man-pages", "help"]) {
        let lines = help.lines().filter(|line| line.trim_start().split("  ").next() == Some(command));
        let lines: Vec<&str> = lines.collect();
        assert_eq!(lines.len(), 1, "{command}: {help}");
        let about = lines[0].trim_start().strip_prefix(command).unwrap().trim();
        assert!(about.len() > 10, "{command} is not described: {help}");
    }
    // The short help has the groups too.
    assert!(TestFolder::new().run(&["-h"]).ok().contains("\nDeduplicate:\n"));
}

#[test]
fn options_of_other_tools_suggest_those_of_dedup() {
    let folder = TestFolder::new();
    for (option, advice) in
        [("--threshold", "'--similar'"), ("--num-perm", "'--recall'"), ("--jobs", "'--threads'")]
    {
        let run = folder.run(&["dedup", "a.jsonl", option, "1"]);
        assert!(run.stderr.contains(option), "{}", run.stderr);
        run.fails(2, advice);
    }
    let run = folder.run(&["inspect", "store", "--threshold", "1"]);
    assert!(!run.stderr.contains("'--similar'"), "{}", run.stderr);
}

#[test]
fn completions_name_all_commands_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = TestFolder::new().run(&["completions", shell]).ok();
        for word in COMMANDS.into_iter().chain(["sample-pairs", "keep-list"]) {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let run = TestFolder::new().run(&["completions", "tcsh"]);
    assert_eq!(run.code, Some(2), "{}", run.stderr);
}

#[test]
fn each_command_has_a_man_page() {
    let folder = TestFolder::new();
    folder.run(&["man-pages", "man/man1"]).ok();
    assert!(folder.read("man/man1/simstore.1").contains("simstore\\-dedup(1)"));
    for command in COMMANDS {
        let page = folder.read(&format!("man/man1/simstore-{command}.1"));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{command}: {page}");
    }
    folder.write("file", "");
    let run = folder.run(&["man-pages", "file"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("file: cannot write man pages"), "{}", run.stderr);
}
