//! The criterion of a command: which documents count as duplicates or matches, by similarity of texts or by
//! distance of fingerprints. An option that changes the default criterion is reported, or refused if it
//! cannot have an effect.

use crate::TestFolder;

/// Expected result of a run with options that select or change the criterion for duplicates: similarity or distance.
enum ExpectedOutcome {
    /// The run prints no warning, because the criterion was requested or is the default. Its summary names this
    /// criterion.
    Accepted(&'static str),
    /// The summary names this criterion (first value). A warning (second value) names the option that changed
    /// the criterion or has no effect.
    Warned(&'static str, &'static str),
    /// The run fails with exit code 2 and this message.
    Refused(&'static str),
}

use ExpectedOutcome::{Accepted, Refused, Warned};

const BY_DISTANCE: &str = "within 3 bits";
const BY_SIMILARITY: &str = "similarity >= 0.8";
const GIVE_DISTANCE: &str = "give --distance";
const NEEDS_DOCUMENTS: &str = "needs documents, but the inputs are fingerprints";

/// Creates a folder with documents (`a.jsonl`), fingerprints (`a.hex`), and stores. `store` has fingerprints
/// of documents, `plain` and `pairs` have fingerprints without a profile, and `pages` is made by `add --similar`: it
/// finds documents by the similarity of their texts.
fn folder() -> TestFolder {
    let folder = TestFolder::new();
    let words = |from: usize| (from..from + 60).map(|i| format!("word{i}")).collect::<Vec<_>>().join(" ");
    let document = |id: usize, from| format!("{{\"id\": {id}, \"text\": \"{}\"}}\n", words(from));
    folder.write("a.jsonl", [document(1, 0), document(2, 1), document(3, 1000)].concat());
    folder.write("a.hex", "0000000000000000\t1\n0000000000000007\t2\n");
    folder.write("words.txt", "a\nthe\n");
    folder.run(&["build", "store", "a.jsonl", "-d", "6"]).ok();
    folder.run(&["build", "plain", "a.hex"]).ok();
    folder.run(&["add", "-q", "pairs", "a.hex"]).ok();
    folder.run(&["add", "-q", "--similar", "0.9", "pages", "a.jsonl"]).ok();
    folder
}

#[test]
fn dedup_reports_options_that_change_its_criterion() {
    let by = |option| {
        format!("{option} compares fingerprints, within 3 bits by default (--distance changes this)")
    };
    let [profile, bits, verify] = ["--profile", "--bits", "--verify-text"].map(by);
    let [profile, bits, verify]: [&'static str; 3] = [profile.leak(), bits.leak(), verify.leak()];
    let table: &[(&[&str], ExpectedOutcome)] = &[
        (&["a.jsonl"], Accepted(BY_SIMILARITY)),
        (&["a.jsonl", "-s", "0.9"], Accepted("similarity >= 0.9")),
        (&["a.jsonl", "-d", "4"], Accepted("within 4 bits")),
        (&["a.jsonl", "-d", "3", "--profile", "words-2"], Accepted(BY_DISTANCE)),
        (&["a.jsonl", "-d", "3", "--bits", "128"], Accepted(BY_DISTANCE)),
        (&["a.jsonl", "-d", "3", "--verify-text", "0.5"], Accepted(BY_DISTANCE)),
        (&["a.jsonl", "--verify-profile", "words-2"], Accepted(BY_SIMILARITY)),
        (&["a.jsonl", "--profile", "words-2"], Warned(BY_DISTANCE, profile)),
        (&["a.jsonl", "--preset", "pypi-simhash"], Warned(BY_DISTANCE, profile)),
        (&["a.jsonl", "--bits", "64"], Warned(BY_DISTANCE, bits)),
        (&["a.jsonl", "--verify-text", "0.5"], Warned(BY_DISTANCE, verify)),
        (
            &["a.jsonl", "-d", "3", "--verify-profile", "words-2"],
            Warned(BY_DISTANCE, "--verify-profile has no effect"),
        ),
        (&["a.jsonl", "-d", "3", "--recall", "0.9"], Refused("cannot be used with")),
        (&["a.jsonl", "-s", "0.8", "-d", "3"], Refused("cannot be used with")),
        (&["a.jsonl", "-s", "0"], Refused("--similar: expected a number above 0, up to 1")),
        (&["a.jsonl", "-s", "1.5"], Refused("from 0 to 1")),
        (&["a.jsonl", "-s", "0.2"], Refused("give --similar 0.43 or more, or a smaller --recall")),
        (&["a.jsonl", "--recall", "1"], Refused("--recall: expected a number between 0 and 1")),
        (
            &["a.jsonl", "-s", "0.8", "--profile", "words-2", "--verify-profile", "words-2"],
            Refused("leave out one of them"),
        ),
        (&["a.jsonl", "-s", "0.8", "--verify-profile", "words-0"], Refused("unknown text profile")),
        (
            &["a.jsonl", "--profile", "words-2", "--recall", "0.9"],
            Refused("--recall needs comparison by similarity"),
        ),
        // Fingerprints can be compared by distance only.
        (&["a.hex"], Accepted(BY_DISTANCE)),
        (&["a.hex", "-d", "2"], Accepted("within 2 bits")),
        (&["a.hex", "-s", "0.8"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--recall", "0.9"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--profile", "words-2"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--stop-words", "words.txt"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--verify-text", "0.8"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--verify-profile", "words-2"], Refused(NEEDS_DOCUMENTS)),
        (&["a.hex", "--against", "plain"], Accepted(BY_DISTANCE)),
        (&["a.hex", "--against", "pages"], Refused("not possible with a store of similar documents")),
        // A store of fingerprints has no similarity of texts.
        (&["a.jsonl", "--against", "store"], Refused(GIVE_DISTANCE)),
        (&["a.jsonl", "--against", "store", "--add"], Refused(GIVE_DISTANCE)),
        (&["a.jsonl", "--against", "store", "--bits", "64"], Refused(GIVE_DISTANCE)),
        (
            &["a.jsonl", "--against", "store", "-s", "0.8"],
            Refused("--similar compares texts, but the store of --against has only fingerprints"),
        ),
        (&["a.jsonl", "--against", "store", "-d", "6"], Accepted("within 6 bits")),
        // A store of similar documents has its own similarity.
        (&["a.jsonl", "--against", "pages"], Accepted("similarity >= 0.9")),
        (&["a.jsonl", "--against", "pages", "-s", "0.95"], Accepted("similarity >= 0.95")),
        (
            &["a.jsonl", "--against", "pages", "-s", "0.8"],
            Refused("created for a similarity of at least 0.9"),
        ),
        (&["a.jsonl", "--against", "pages", "--recall", "0.99"], Refused("created with recall 0.95")),
        (
            &["a.jsonl", "--against", "pages", "-d", "3"],
            Refused("not possible with a store of similar documents"),
        ),
        // A store keeps texts for all documents or for none.
        (&["a.jsonl", "--against", "pages", "--add", "--with-texts"], Refused("was created without texts")),
        (
            &["a.jsonl", "--against", "new", "--add", "--with-texts", "-d", "3"],
            Refused("--with-texts needs a new store of"),
        ),
        (
            &["a.hex", "--against", "new", "--add", "--with-texts"],
            Refused("--with-texts needs a new store of"),
        ),
    ];
    let folder = folder();
    let names = folder.names();
    for (args, outcome) in table {
        let run = folder.run(&[&["dedup"], *args].concat());
        let dry = folder.run(&[&["dedup", "--dry-run", "--json"], *args].concat());
        match outcome {
            Accepted(criterion) | Warned(criterion, _) => {
                assert!(run.code == Some(0) && run.stderr.contains(criterion), "{args:?}: {}", run.stderr);
                let warned = run.stderr.contains("warning: --");
                assert_eq!(warned, matches!(outcome, Warned(..)), "{args:?}: {}", run.stderr);
                // The dry run has the same criterion. Both JSON summaries have it.
                let expected = criterion.split(' ').find_map(|word| word.parse::<f64>().ok()).unwrap();
                let field = if criterion.starts_with("within") { "distance" } else { "similar" };
                for objects in [dry.json(), folder.run(&[&["dedup", "--json"], *args].concat()).json()] {
                    let summary = objects.last().unwrap();
                    assert_eq!(summary[field].as_f64(), Some(expected), "{args:?}: {summary}");
                }
                if let Warned(_, warning) = outcome {
                    assert!(run.stderr.contains(warning), "{args:?}: {}", run.stderr);
                    let quiet = folder.run(&[&["dedup", "-q"], *args].concat()).stderr;
                    assert!(quiet.contains(warning), "{args:?}: {quiet}");
                }
            }
            Refused(message) => [run, dry].into_iter().for_each(|run| run.fails(2, message)),
        }
    }
    assert_eq!(folder.names(), names);
}

#[test]
fn other_commands_report_their_criterion() {
    let folder = folder();
    let hex = "0000000000000000";
    // A store of similar documents can be queried only by texts. A store of fingerprints can be queried up to
    // its distance.
    folder.run(&["query", "pages", hex]).fails(2, "use --text or --file");
    folder.run(&["query", "pages", "a.hex"]).fails(2, "cannot be queried by fingerprint");
    folder
        .run(&["query", "pages", "--text", "a", "-d", "3"])
        .fails(2, "--distance and --batch need a store of fingerprints");
    folder.run(&["query", "store", hex, "-d", "7"]).fails(1, "compact --distance 7");
    folder.run(&["add", "pages", "a.hex"]).fails(2, "needs texts");
    folder.run(&["add", "--similar", "0.8", "store", "a.jsonl"]).fails(1, "has type `fingerprints`");
    // Fingerprints depend on the profile, so `add` and `delete` need one. `query` assumes a profile and reports it.
    for command in ["add", "delete"] {
        folder.run(&[command, "pairs", "a.jsonl"]).fails(2, "give --profile NAME");
    }
    let query = folder.run(&["query", "pairs", "--text", "some words of a text"]);
    assert!(query.stderr.contains("has no text profile; using `"), "{}", query.stderr);
    // The summary of `add --if-new` has the criterion.
    let add = |args: &[&str]| folder.run(&[&["add", "--if-new", "--again"], args].concat()).stderr;
    let message = add(&["store", "a.jsonl"]);
    assert!(message.contains("duplicates not added (within 6 bits)"), "{message}");
    let message = add(&["pages", "a.jsonl"]);
    assert!(message.contains("duplicates not added (similarity >= 0.9)"), "{message}");
    // Pairs without labels are all positive.
    folder.write(
        "pairs.jsonl",
        "{\"text_a\": \"one two three\", \"text_b\": \"one two three\"}\n".to_owned()
            + "{\"text_a\": \"four five six\", \"text_b\": \"four five seven\"}\n",
    );
    let message = folder.run(&["evaluate", "pairs.jsonl"]).stderr;
    assert!(message.contains("2 pairs, all positive (no labels)"), "{message}");
    folder.run(&["evaluate", "pairs.jsonl", "--positive-from", "0.5"]).fails(1, "no label field `label`");
}
