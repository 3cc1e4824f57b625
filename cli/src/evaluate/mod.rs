//! `simstore evaluate`: measures recall and precision at each distance, and recommends a distance.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::each_width;
use simstore_corpus::Inputs;
use simstore_corpus::evaluate::{EvaluateOptions, PairOptions, evaluate, labelled_pairs};
use simstore_io::DocumentOptions;
use simstore_text::Profile;

use crate::command_error::{CommandError, CommandResult, options_as_flags};
use crate::evaluate::report::ReportFormat;
use crate::numbers::{format_count, format_count_of, parse_count};
use crate::output;
use crate::profile_args::{ResourceArgs, check_bits};
use crate::progress::ProgressDisplay;
use crate::width::width_parser;

mod report;

const EXAMPLES: &str = "\
Each line of PAIRS is a JSON object with text_a, text_b and label; or with text_old and text_new, two versions of the document \
`path`, as a positive pair. .gz and .zst are decompressed; `-` is standard input.

Recall is the share of the positive pairs within distance k. Precision, F1 and `false pairs` are predicted for a corpus of \
--documents in which each document has one labelled partner. Precision is the share of positive pairs among all pairs within k. F1 \
is the harmonic mean of recall and precision. `false pairs` is the expected number of false pairs: their share of the random pairs \
x n(n-1)/2. If no false pair was seen, `under` shows an upper bound with 95% confidence (3 / pairs, the rule of three). The \
predictions assume documents like the sampled ones; pages of one template have many more false pairs.

Random pairs are two texts without a common pair, path or text: all such pairs, up to 2^28. The texts of random pairs within 16 \
bits are compared, a sample of about 4,096 at each distance. A random pair is `alike` if its Jaccard similarity of word 3-grams is \
at least --alike-from, otherwise false. The shingles of all texts go to a temporary file in TMPDIR, about as large as the texts.

`*` marks the recommended k: the smallest k with the largest F1. No k is recommended if this F1 is below 80%, or if there are too \
few random pairs. `paper` marks the setting of Manku, Jain and Das Sarma (2007): 64 bits, k = 3. Rows `similar` show text \
similarity at --similar, without fingerprints, for comparison.

With several --profile, the table has one line a profile instead of one a distance.

With --json, a line is an object: one for each profile and k, then one summary for each profile.
  profile, k
  recall, precision, f1  from 0 to 1; precision is null if no pair is within k
  positives, negatives, random, alike   number of pairs within k
  false_share            share of false pairs in all random pairs
  false_pairs            expected in the corpus; null if none was seen
  false_pairs_at_most    upper bound in the corpus; null if some were seen
  paper, recommended     true or false
one for each --similar
  similar, recall, precision, f1, positives, negatives
  excluded               labelled pairs in which a text has no shingles
and in the summary
  profile, bits, documents, alike_from
  positives, negatives, random   number of all pairs
  looked_at              random pairs whose texts were compared
  excluded               labelled pairs in which a text has no features; not in the other numbers
  empty                  texts without features
  bad                    invalid lines skipped
  recommended            k; null if none is
  best, f1               the k with the largest F1, and this F1
  too_few_random         whether there are too few random pairs for a recommendation

Examples:
  simstore evaluate samples/pairs.jsonl --documents 1000
  simstore evaluate samples/pairs.jsonl --label-field jaccard3 --positive-from 0.8 --similar 0.8 --svg curve.svg
  simstore evaluate samples/pairs.jsonl --profile auto --profile words-3 --profile chars-4 --documents 1000";

/// Measure recall and precision of each distance on labelled pairs; recommend a distance
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvaluateArgs {
    /// Files of labelled pairs in JSON lines; `-` is standard input
    #[arg(required = true, value_name = "PAIRS")]
    inputs: Vec<PathBuf>,
    /// Profile of the fingerprints; repeat to compare profiles [default: by-script,plain-text,simplified]
    #[arg(long = "profile", value_name = "NAME")]
    profiles: Vec<String>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Width of fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    bits: Width,
    /// Number of documents in the corpus to recommend a distance for, such as 8e9, 100M or 1_000_000
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_count)]
    documents: u64,
    /// Random pairs with at least this Jaccard similarity of word 3-grams, 0 to 1, do not count as false pairs
    #[arg(long, value_name = "S", default_value = "0.8")]
    alike_from: f64,
    /// Also show recall and precision of `dedup --similar S`; repeatable; S is at least --alike-from
    #[arg(long, value_name = "S")]
    similar: Vec<f64>,
    /// Draw precision, recall and F1 against k as an SVG file; with `-`, only the SVG is printed
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print a table in Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pairs: PairArgs,
}

/// Options that name the fields of the input. Each input line is a JSON object with two texts and a label that says whether
/// the texts are near-duplicates.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pairs")]
struct PairArgs {
    /// Field with the first text [default: `text_a`, or `text_old`]
    #[arg(long, value_name = "FIELD")]
    text_a: Option<String>,
    /// Field with the second text [default: `text_b`, or `text_new`]
    #[arg(long, value_name = "FIELD")]
    text_b: Option<String>,
    /// Field with the label: true or 1 is a positive pair, false or 0 a negative pair; or a number, with --positive-from [default:
    /// `label`; without labels, all pairs are positive]
    #[arg(long, value_name = "FIELD")]
    label_field: Option<String>,
    /// Labels are numbers; a pair is positive if its label is at least T
    #[arg(long, value_name = "T")]
    positive_from: Option<f64>,
    /// Optional field with the document that both texts are versions of; pairs with the same value form no random pairs
    #[arg(long, value_name = "FIELD", default_value = "path")]
    path_field: String,
    /// Skip, report and count invalid lines [default: the first one ends the command]
    #[arg(long)]
    skip_bad: bool,
}

impl PairArgs {
    fn options(&self) -> PairOptions {
        PairOptions {
            text_a: self.text_a.clone(),
            text_b: self.text_b.clone(),
            label_field: self.label_field.clone(),
            positive_from: self.positive_from,
            path_field: self.path_field.clone(),
        }
    }
}

pub(crate) fn run(args: &EvaluateArgs, progress: &ProgressDisplay) -> CommandResult {
    let resources = args.resources.read()?;
    let profile = |name: &String| {
        let profile = Profile::with_resources(name, &resources)
            .map_err(|error| CommandError::Usage(options_as_flags(&error.to_string())))?;
        each_width!(args.bits, type F => check_bits::<F>(&profile))?;
        Ok(profile)
    };
    let options = EvaluateOptions {
        profiles: args.profiles.iter().map(profile).collect::<CommandResult<_>>()?,
        bits: args.bits.bits(),
        documents: args.documents,
        alike_from: args.alike_from,
        similar: args.similar.clone(),
        skip_malformed: args.pairs.skip_bad,
    };
    if let Some(svg) = args.svg.as_deref().filter(|svg| svg.as_os_str() != "-")
        && Inputs::new(&args.inputs, DocumentOptions::default()).is_ok_and(|inputs| inputs.contains_path(svg))
    {
        return Err(CommandError::Usage(format!(
            "{}: is an input; choose another path for --svg",
            svg.display()
        )));
    }
    // Created before the evaluation, so that a missing folder is reported at once.
    let svg = args.svg.as_deref().map(output::create).transpose()?;
    let pairs = labelled_pairs(&args.inputs, &args.pairs.options());
    let evaluation = evaluate(pairs, &options, progress)?;
    if let Some(mut output) = svg {
        output.write_with(|out| evaluation.draw_svg(out))?;
        output.finish()?;
    }
    if args.svg.as_deref() != Some(Path::new("-")) {
        let format = match (args.json, args.markdown) {
            (true, _) => ReportFormat::Json,
            (_, true) => ReportFormat::Markdown,
            _ => ReportFormat::Text,
        };
        report::print(&evaluation, format)?;
    }
    let positives = if evaluation.positives == evaluation.pairs {
        "all positive (no labels)".to_owned()
    } else {
        format!("{} positive", format_count(evaluation.positives))
    };
    progress.print_summary(&format!(
        "{}, {positives}, {} in {:.1} s",
        format_count_of(evaluation.pairs, "pair"),
        format_count_of(evaluation.profiles.len() as u64, "profile"),
        progress.elapsed_seconds()
    ));
    Ok(())
}
