//! `simstore evaluate`: which distance finds the near-duplicates, and what else it finds.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::any::Width;
use simstore::each_width;
use simstore_corpus::evaluate::{EvaluateOptions, PairOptions, evaluate, labelled_pairs};
use simstore_corpus::{DocumentOptions, Inputs};
use simstore_text::Profile;

use crate::evaluate::report::Format;
use crate::failure::{Failure, Outcome, with_flags};
use crate::inputs::count_of;
use crate::numbers::{grouped, parse_count};
use crate::output::Output;
use crate::profile::{ResourceArgs, check_bits};
use crate::progress::Progress;
use crate::width::width;

mod report;

const EXAMPLES: &str = "\
PAIRS are lines of JSON: text_a, text_b, label; or text_old, text_new, which are two versions of one document, at \
`path`, and a positive pair. .gz and .zst are decompressed; `-` is standard input.

Recall is the share of the positive pairs that are within k. Precision is the share of positive pairs in all that are within \
k in a corpus of --documents, each of them in one labelled pair: every labelled pair meets as many random ones as there are \
other documents. F1 is the harmonic mean of both, and `false pairs` are those to be expected there, share x n(n-1)/2; `under` \
stands where none was seen: with 95% confidence (the rule of three, for independent pairs) the share is not above 3 / pairs. \
They hold for a corpus whose documents are as much alike as those of the random pairs: pages of one template make many.

Random pairs are texts of different documents (of no common pair, path or text): all there are, up to 2^28. Those within 16 \
bits have their texts compared, at most some 4,096 at each distance, whose share then stands for all. From a Jaccard \
similarity of --alike-from on, of their sets of word 3-grams, they are `alike`, neither found nor false; the others are \
false. The shingles of all texts are meanwhile in a temporary file (TMPDIR), which is about as large as the texts.

`*` marks the k that is recommended for the corpus: the one of the largest F1, and of equal ones the smallest. None is, \
if that F1 is below 80%, or the random pairs are too few to tell. `paper` marks what Manku, Jain and Das Sarma use: 64 \
bits, k = 3. `similar` rows, for comparison, are what the similarity of the texts finds at --similar, without fingerprints.

Several --profile give one line each instead of one for each k.

With --json, a line is an object: one for each profile and k, then one summary for each profile.
  profile, k
  recall, precision, f1  from 0 to 1; no precision where nothing is within k
  positives, negatives, random, alike   number of pairs within k
  false_share            of all random pairs
  false_pairs            expected among --documents; null where none was seen
  false_pairs_at_most    null where some were
  paper, recommended     true or false
one for each --similar
  similar, recall, precision, f1, positives, negatives
  excluded               labelled pairs of which a text has no shingles
and in the summary
  profile, bits, documents, alike_from
  positives, negatives, random   number of all pairs
  looked_at              random pairs of which the texts were compared
  excluded               labelled pairs of which a text has no features: they are in no other number
  empty                  texts without features
  bad                    malformed lines skipped
  recommended            k; null if none is
  best, f1               the k of the largest F1
  too_few_random         whether the random pairs are too few to speak of the corpus

Examples:
  simstore evaluate samples/pairs.jsonl --documents 1000
  simstore evaluate samples/pairs.jsonl --label-field jaccard3 --positive-from 0.8 --similar 0.8 --svg curve.svg
  simstore evaluate samples/pairs.jsonl --profile auto --profile words-3 --profile chars-4 --documents 1000";

/// Find the distance that tells near-duplicates from others, by labelled pairs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvaluateArgs {
    /// Labelled pairs: .jsonl files; `-` is standard input
    #[arg(required = true, value_name = "PAIRS")]
    inputs: Vec<PathBuf>,
    /// How a text becomes features, as for `simstore fingerprint`; repeatable, to compare [default: by-script,plain-text,simplified]
    #[arg(long = "profile", value_name = "NAME")]
    profiles: Vec<String>,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Width of fingerprints
    #[arg(long, value_parser = width(), default_value = "64")]
    bits: Width,
    /// The size of the corpus for which a distance is wanted, like 8e9, 100M or 1_000_000
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_count)]
    documents: u64,
    /// Random pairs of texts that are so similar (Jaccard of word 3-grams, 0 to 1) are not false
    #[arg(long, value_name = "S", default_value = "0.8")]
    alike_from: f64,
    /// Compare with what is found by a similarity of S and more, as by dedup --similar; repeatable, S from --alike-from on
    #[arg(long, value_name = "S")]
    similar: Vec<f64>,
    /// Draw precision, recall and F1 against k; `-` is standard output, nothing else is then printed
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

/// Where in a line of JSON a pair stands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pairs")]
struct PairArgs {
    /// The field that holds the first text [default: `text_a`, or else `text_old`]
    #[arg(long, value_name = "FIELD")]
    text_a: Option<String>,
    /// The field that holds the second text [default: `text_b`, or else `text_new`]
    #[arg(long, value_name = "FIELD")]
    text_b: Option<String>,
    /// The field that tells whether the pair is positive: true, false, 1 or 0, or a number with
    /// --positive-from [default: `label`; where no pair has it, every pair is positive]
    #[arg(long, value_name = "FIELD")]
    label_field: Option<String>,
    /// The label is a number, and a pair positive from this one on
    #[arg(long, value_name = "T")]
    positive_from: Option<f64>,
    /// The field that holds what the texts of a pair are versions of: pairs that have it in common give no
    /// random pair; no pair has to have it
    #[arg(long, value_name = "FIELD", default_value = "path")]
    path_field: String,
    /// Report malformed lines, count them and go on; without it the first one ends the command
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

pub(crate) fn run(args: &EvaluateArgs, progress: &Progress) -> Outcome {
    let resources = args.resources.read()?;
    let profile = |name: &String| {
        let profile = Profile::with_resources(name, &resources)
            .map_err(|error| Failure::Usage(with_flags(&error.to_string())))?;
        each_width!(args.bits, type F => check_bits::<F>(&profile))?;
        Ok(profile)
    };
    let options = EvaluateOptions {
        profiles: args.profiles.iter().map(profile).collect::<Outcome<_>>()?,
        bits: args.bits.bits(),
        documents: args.documents,
        alike_from: args.alike_from,
        similar: args.similar.clone(),
        skip_bad: args.pairs.skip_bad,
    };
    if let Some(svg) = args.svg.as_deref().filter(|svg| svg.as_os_str() != "-")
        && Inputs::new(&args.inputs, DocumentOptions::default()).is_ok_and(|inputs| inputs.has_file(svg))
    {
        return Err(Failure::Usage(format!("{}: is an input, which a picture would replace", svg.display())));
    }
    // Opened first, so that a folder that is not there costs no work.
    let svg = args.svg.as_deref().map(Output::create).transpose()?;
    let pairs = labelled_pairs(&args.inputs, &args.pairs.options());
    let evaluation = evaluate(pairs, &options, progress)?;
    if let Some(mut output) = svg {
        output.draw(|out| evaluation.draw_svg(out))?;
        output.finish()?;
    }
    if args.svg.as_deref() != Some(Path::new("-")) {
        let format = match (args.json, args.markdown) {
            (true, _) => Format::Json,
            (_, true) => Format::Markdown,
            _ => Format::Text,
        };
        report::print(&evaluation, format)?;
    }
    let positives = if evaluation.positives == evaluation.pairs {
        "all positive: no label tells others".to_owned()
    } else {
        format!("{} of them positive", grouped(evaluation.positives))
    };
    progress.say(&format!(
        "{}, {positives}, {} in {:.1} s",
        count_of(evaluation.pairs, "pair"),
        count_of(evaluation.profiles.len() as u64, "profile"),
        progress.seconds()
    ));
    Ok(())
}
