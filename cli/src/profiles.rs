//! `simstore profiles`: what the parts of a profile's name mean.

use clap::Args;
use serde::Serialize;
use simstore_text::{Preset, Profile};

use crate::failure::Outcome;
use crate::output::Output;

const EXAMPLES: &str = "\
A profile is how a text becomes features, and these a fingerprint. Its name is a tokenizer, then options, after commas: the \
first of the parts here are tokenizers, and each alone is a profile. A store keeps the name, and takes no texts of another.

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

/// The parts by their groups, and what they mean.
const PARTS: [(&str, &[(&str, &str)]); 6] = [
    (
        "Tokenizers",
        &[
            ("by-script", "every character where the text is Chinese; else every two successive words, once"),
            ("auto", "as jieba-50 where the text is Chinese, else as words-2"),
            ("words-N", "every N successive words, N from 1 to 8; a Han character is a word"),
            (
                "code-N",
                "every N successive words of source code, N from 1 to 8: identifiers, numbers, signs; code is code-7",
            ),
            ("chars-N", "every N successive characters, N from 1 to 16"),
            ("jieba-N", "the N keywords of greatest TF-IDF weight, N from 1 to 1000"),
            ("phrases", "the words between two punctuation marks or empty lines"),
            ("sentences-N", "the N longest different sentences, N from 1 to 100"),
            ("tokens", "what stands between white space"),
            (
                "main-text",
                "of HTML: short for words-3,segmented,main-text,simplified,weights=none, without more options",
            ),
            ("features", "the text is lines FEATURE<TAB>WEIGHT, taken as they are"),
            ("exact", "the whole text: only equal texts are similar"),
        ],
    ),
    (
        "Option of words-N, by-script, auto and jieba-N",
        &[("segmented", "Thai, Lao, Khmer and Burmese are cut into words; else each character is a word")],
    ),
    (
        "Options of auto and jieba-N",
        &[
            ("search", "words inside of long words count too"),
            ("dictionary=CHECKSUM", "the words of --dictionary; added by itself, as the next two are"),
            ("stop-words=CHECKSUM", "the words of --stop-words"),
            ("idf=CHECKSUM", "the table of --idf; for others with weights=idf or weights=levels"),
        ],
    ),
    (
        "Cleaning, in this order",
        &[
            ("keep-front-matter", "keeps YAML front matter; by default it is dropped"),
            ("plain-text", "drops tags, scripts, styles and link targets, decodes references"),
            ("html-text", "like plain-text, but the text is HTML whatever it begins with"),
            ("main-text", "like html-text, and drops navigation, side notes, headers and footers"),
            ("no-nfkc", "the text is not brought to Unicode's form NFKC; else it is"),
            ("keep-case", "letters keep their case; else they become lower case"),
            ("simplified", "traditional Chinese characters become simplified ones"),
            ("only-han", "only Han characters are left"),
            ("strip-digits", "digits and other numerals are left out"),
        ],
    ),
    (
        "Weights",
        &[
            ("weights=tf", "a feature weighs 1 each time it comes: the default but for keywords"),
            ("weights=idf", "its inverse document frequency each time it comes, by the table of --idf"),
            ("weights=levels", "one of five levels, relative to the heaviest"),
            ("weights=none", "every different feature weighs 1"),
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

/// What presets are among the parts.
const PRESETS: &str = "Presets, which do as another tool and take no options";
const COLUMN: usize = 20;

#[derive(Serialize)]
struct PartObject<'a> {
    group: &'a str,
    part: &'a str,
    meaning: &'a str,
}

pub(crate) fn run(args: &ProfilesArgs) -> Outcome {
    let presets = Preset::ALL.map(|preset| (preset.name(), preset.about()));
    let groups = PARTS.into_iter().chain([(PRESETS, &presets[..])]);
    let mut output = Output::stdout();
    if !args.json {
        let (default, shingles) = (Profile::default(), Profile::shingles());
        output.line(format_args!("The default is {default}; texts are compared by {shingles}."))?;
    }
    for (group, parts) in groups {
        if !args.json {
            output.line(format_args!("\n{group}"))?;
        }
        for &(part, meaning) in parts {
            match args.json {
                true => output.json(&PartObject { group, part, meaning })?,
                false => output.line(format_args!("  {part:<COLUMN$} {meaning}"))?,
            }
        }
    }
    output.finish()
}
