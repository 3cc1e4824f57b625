//! `simstore profiles`: explains the parts of a profile's name.

use clap::Args;
use simstore_text::{Preset, Profile};

use crate::command_error::CommandResult;
use crate::output::{self, object};

const EXAMPLES: &str = "\
A profile defines how a text becomes features, and features become a fingerprint. Its name is a tokenizer, followed by options, \
separated by commas. A tokenizer alone is a profile too. A store records its profile and refuses documents processed with a \
different one.

With --json, a line is an object: group, part, meaning.

Examples:
  simstore profiles
  simstore fingerprint samples/en.jsonl --profile chars-4,plain-text,weights=none
  simstore build --force en.simstore samples/en.jsonl --preset pypi-simhash";

/// Explain each part of a profile's name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProfilesArgs {
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Parts of profile names with their meanings, in groups: (heading, [(part, meaning)]).
const PARTS: [(&str, &[(&str, &str)]); 6] = [
    (
        "Tokenizers",
        &[
            ("by-script", "Chinese texts: each character; other texts: each distinct word 2-gram"),
            ("auto", "Chinese texts: jieba-50; other texts: words-2"),
            ("words-N", "word N-grams, N from 1 to 8; a Han character is a word"),
            (
                "code-N",
                "source code: token N-grams, N from 1 to 8; a token is an identifier, number or symbol; `code` is code-7",
            ),
            ("chars-N", "character N-grams, N from 1 to 16"),
            ("jieba-N", "the N keywords with the greatest TF-IDF weight, N from 1 to 1000"),
            ("phrases", "phrases: the words between punctuation marks or empty lines"),
            ("sentences-N", "the N longest distinct sentences, N from 1 to 100"),
            ("tokens", "split on white space"),
            (
                "main-text",
                "HTML: short for words-3,segmented,main-text,simplified,weights=none; takes no other options",
            ),
            ("features", "ready-made features: the text is lines FEATURE<TAB>WEIGHT"),
            ("exact", "the whole text: only equal texts match"),
        ],
    ),
    (
        "Option of words-N, by-script, auto and jieba-N",
        &[(
            "segmented",
            "Thai, Lao, Khmer and Burmese are split into words [default: each character is a word]",
        )],
    ),
    (
        "Options of auto and jieba-N",
        &[
            ("search", "words inside longer words also count"),
            (
                "dictionary=CHECKSUM",
                "the words of --dictionary; this option and the next two are added automatically",
            ),
            ("stop-words=CHECKSUM", "the words of --stop-words"),
            (
                "idf=CHECKSUM",
                "the table of --idf; also for other tokenizers, with weights=idf or weights=levels",
            ),
        ],
    ),
    (
        "Cleaning, in this order",
        &[
            ("keep-front-matter", "keep YAML front matter [default: dropped]"),
            (
                "plain-text",
                "drop HTML tags, scripts, styles and Markdown link targets; decode character references",
            ),
            ("html-text", "like plain-text, but always parse the text as HTML"),
            ("main-text", "like html-text, and drop navigation, asides, headers and footers"),
            ("no-nfkc", "skip Unicode normalization NFKC"),
            ("keep-case", "keep upper case [default: lower case]"),
            ("simplified", "convert traditional Chinese characters to simplified ones"),
            ("only-han", "keep only Han characters"),
            ("strip-digits", "drop digits and other numerals"),
        ],
    ),
    (
        "Weights",
        &[
            ("weights=tf", "term frequency: the number of occurrences (the default, except for keywords)"),
            ("weights=idf", "TF-IDF: occurrences times the inverse document frequency in the table of --idf"),
            ("weights=levels", "one of five levels, relative to the greatest weight"),
            ("weights=none", "each distinct feature has weight 1"),
        ],
    ),
    (
        "Hashes",
        &[
            ("hash=xxh3", "the default"),
            ("hash=HASH", "md5, lookup2, lookup3, one-at-a-time, string-hash, siphash or fnv-1a"),
        ],
    ),
];

/// Heading of the group of presets.
const PRESETS_HEADING: &str = "Presets: reproduce another tool's fingerprints; they take no options";
/// Width of the first column (names of tokenizers and options) of the printed tables, in characters.
const PART_WIDTH: usize = 20;

pub(crate) fn run(args: &ProfilesArgs) -> CommandResult {
    let presets = Preset::ALL.map(|preset| (preset.name(), preset.description()));
    let groups = PARTS.into_iter().chain([(PRESETS_HEADING, &presets[..])]);
    let mut output = output::stdout();
    if !args.json {
        let (default, shingles) = (Profile::default(), Profile::shingles());
        output.write_line(format_args!(
            "Default profile of fingerprints: {default}. Default profile for text similarity: {shingles}."
        ))?;
    }
    for (group, parts) in groups {
        if !args.json {
            output.write_line(format_args!("\n{group}"))?;
        }
        for &(part, meaning) in parts {
            match args.json {
                true => output.write_json(&object! { group, part, meaning })?,
                false => output.write_line(format_args!("  {part:<PART_WIDTH$} {meaning}"))?,
            }
        }
    }
    Ok(output.finish()?)
}
