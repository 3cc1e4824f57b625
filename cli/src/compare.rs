//! `simstore compare`: prints the similarity of two documents, and their differences side by side.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use console::{Style, Term, measure_text_width};
use serde::Serialize;
use simstore::any::Width;
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_corpus::{Diagnostic, InputCounts, InputKind, Inputs, Observer, default_text_profile};
use simstore_io::numbers::format_similarity;
use simstore_io::{Document, IdRef};
use simstore_text::{DiffWord, Profile, WordDiff, WordEdit, jaccard};
use unicode_segmentation::UnicodeSegmentation;

use crate::command_error::{CommandError, CommandResult};
use crate::input_warnings::warn_about_texts;
use crate::inputs::DocumentArgs;
use crate::numbers::{format_count, format_count_of};
use crate::output::{self, Output, escape_text};
use crate::progress::ProgressDisplay;
use crate::width::width_parser;

/// Number of words shown before and after each difference.
const CONTEXT_WORDS: usize = 6;
/// Line width if standard output is not a terminal, in columns.
const DEFAULT_WIDTH: usize = 120;
/// Minimum line width, in columns, even if the terminal is narrower.
const MIN_WIDTH: usize = 40;
/// Separator between the columns of the two texts.
const COLUMN_SEPARATOR: &str = "  |  ";

const EXAMPLES: &str = "\
Words only in the first text are shown as [-words-], words only in the second as {+words+}; on a terminal also in colours. \
Differences in white space are ignored.

With --json, one object is printed:
  a, b         id, place (FILE:LINE) and shingles (number of distinct shingles) of each document
  similarity   Jaccard similarity of the shingles
  shared       number of shingles in both documents
  bits         width of the fingerprints, in bits
  distance     number of differing bits; null if a text has no fingerprint
  differences  a list of line_a, a, line_b, b: the differing words, and the line where they begin

Examples:
  simstore compare page.md other.md
  simstore compare samples/zh.jsonl --id docs/dmx/multiply-dmx.md --id docs/dmx/subtract-dmx.md";

/// Compare two documents: similarity, distance, and the differences side by side
///
/// Similarity and distance are defined as in `dedup --similar` and `dedup --distance`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Two documents: in two files or in one; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Id of a document to compare; give --id twice. Reading ends when both are found
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    id: Vec<String>,
    /// Profile that splits the texts into shingles [default: as in `dedup`; `code` if both files are source code]
    #[arg(long, value_name = "NAME")]
    verify_profile: Option<String>,
    /// Width of the fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    bits: Width,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Comparison<'a> {
    a: ComparedDocument<'a>,
    b: ComparedDocument<'a>,
    similarity: f64,
    shared: usize,
    bits: u32,
    distance: Option<u32>,
    differences: Vec<Difference<'a>>,
}

#[derive(Serialize)]
struct ComparedDocument<'a> {
    id: IdRef<'a>,
    place: String,
    shingles: usize,
}

/// Passage that differs between two texts: its words in each text, and the line on which it begins in each text, counted
/// from 1. The words of a text are empty if only the other text has words in this passage.
#[derive(Serialize)]
pub(crate) struct Difference<'a> {
    line_a: usize,
    a: &'a str,
    line_b: usize,
    b: &'a str,
}

pub(crate) fn run(args: &CompareArgs, progress: &ProgressDisplay) -> CommandResult {
    if !matches!(args.id.len(), 0 | 2) {
        let count = args.id.len();
        return Err(CommandError::Usage(format!("compare needs --id exactly twice, found {count}")));
    }
    let inputs = args.documents.open_documents(&args.inputs, "compare", progress)?;
    let [a, b] = read_pair(&inputs, &args.id, progress)?;
    let (choice, resources) = args.documents.profile.name_and_resources()?;
    let shingle_profile = match &args.verify_profile {
        Some(name) => Profile::with_resources(name, &resources).map_err(CommandError::usage)?,
        None => default_text_profile(&inputs, "verify_profile", progress),
    };
    let profile =
        simstore_dedup::resolve_profile(choice.as_deref(), &resources, None).map_err(CommandError::usage)?;
    let distance = each_width!(args.bits, type F => distance::<F>(&profile, &a.text, &b.text))?;
    let (shingles_a, shingles_b) =
        (shingle_profile.feature_set(&a.text), shingle_profile.feature_set(&b.text));
    let diff = WordDiff::new(&a.text, &b.text);
    let comparison = Comparison {
        a: ComparedDocument { id: (&a.id).into(), place: file_and_line(&a), shingles: shingles_a.len() },
        b: ComparedDocument { id: (&b.id).into(), place: file_and_line(&b), shingles: shingles_b.len() },
        similarity: jaccard(&shingles_a, &shingles_b),
        shared: shingles_a.iter().filter(|shingle| shingles_b.binary_search(shingle).is_ok()).count(),
        bits: args.bits.bits(),
        distance,
        differences: differences(&diff),
    };
    let mut output = output::stdout();
    if args.json {
        output.write_json(&comparison)?;
    } else {
        print_scores(&mut output, &comparison)?;
        print_passages(&mut output, &diff, usize::MAX)?;
    }
    Ok(output.finish()?)
}

/// Reads the two documents to compare. `ids` selects them; without ids, the inputs must hold exactly two documents.
fn read_pair(inputs: &Inputs, ids: &[String], progress: &ProgressDisplay) -> CommandResult<[Document; 2]> {
    /// Number of documents between two reports of progress.
    const PROGRESS_INTERVAL: u64 = 1024;
    let mut counts = InputCounts::default();
    let mut documents: [Option<Document>; 2] = [None, None];
    let records = inputs.records();
    let read = records.progress();
    for record in records {
        let document = match record.and_then(|record| record.into_document(inputs.options())) {
            Ok(document) => document,
            Err(error @ Error::BadInput { .. }) if inputs.skips_malformed() => {
                counts.malformed += 1;
                progress.diagnostic(&Diagnostic::Malformed(&error));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let index = if ids.is_empty() {
            counts.read as usize
        } else {
            let id = IdRef::from(&document.id).text();
            // If both ids are equal, they name the first two documents with this id.
            (0..2).find(|&index| ids[index] == id && documents[index].is_none()).unwrap_or(2)
        };
        counts.read += 1;
        if counts.read.is_multiple_of(PROGRESS_INTERVAL) {
            let stage_progress = simstore_corpus::StageProgress {
                stage: "documents",
                count: counts.read,
                bytes: read.bytes(),
                total_bytes: None,
            };
            let ControlFlow::Continue(()) = progress.progress(&stage_progress) else {
                return Err(Error::Cancelled.into());
            };
        }
        if let Some(slot) = documents.get_mut(index) {
            counts.replacements += document.replacements;
            *slot = Some(document);
        }
        if ids.is_empty() && counts.read > 2 || !ids.is_empty() && documents.iter().all(Option::is_some) {
            break;
        }
    }
    progress.stage_ended("documents");
    read.diagnostics()
        .into_iter()
        .for_each(|(read, count)| progress.diagnostic(&Diagnostic::Read(read, count)));
    warn_about_texts(&counts, InputKind::Documents, progress);
    match (documents, ids) {
        ([Some(a), Some(b)], _) if !ids.is_empty() || counts.read == 2 => Ok([a, b]),
        (_, []) => {
            let count = if counts.read > 2 {
                "more than two documents".to_owned()
            } else {
                format_count_of(counts.read, "document")
            };
            Err(CommandError::Failed(format!(
                "the inputs hold {count}; compare needs exactly two: select them with --id A --id B"
            )))
        }
        (documents, _) => {
            let missing: Vec<_> = (0..2)
                .filter(|&index| documents[index].is_none())
                .map(|index| excerpt(ids[index].as_str()))
                .collect();
            let read = format_count_of(counts.read, "document");
            Err(CommandError::Failed(format!("ids not found in {read}: {}", missing.join(", "))))
        }
    }
}

/// Returns the location of a document: `FILE:LINE`.
pub(crate) fn file_and_line(document: &Document) -> String {
    format!("{}:{}", document.path.display(), document.line)
}

fn distance<F: Fingerprint>(profile: &Profile, a: &str, b: &str) -> CommandResult<Option<u32>> {
    profile.check_bits(F::BITS).map_err(CommandError::usage)?;
    let fingerprint = |text| profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint);
    Ok(fingerprint(a).zip(fingerprint(b)).map(|(a, b)| a.distance(b)))
}

/// Returns the differing passages of two texts.
fn differences<'a>(diff: &WordDiff<'a>) -> Vec<Difference<'a>> {
    let changed = diff.edits().iter().filter(|edit| !edit.is_equal);
    let difference = |edit: &WordEdit| {
        let [a, b] = diff.passages(edit);
        let [line_a, line_b] = [0, 1].map(|side| line(diff.words()[side], edit.words[side].start));
        Difference { line_a, a, line_b, b }
    };
    changed.map(difference).collect()
}

/// Returns the line of the word with this index, or of the last word if there are fewer words; 1 if there are none.
fn line(words: &[DiffWord<'_>], index: usize) -> usize {
    words.get(index).or(words.last()).map_or(1, |word| word.line)
}

fn print_scores(output: &mut Output, comparison: &Comparison<'_>) -> Result<()> {
    for (letter, ComparedDocument { id, place, shingles }) in [("A", &comparison.a), ("B", &comparison.b)] {
        let shingles = format_count_of(*shingles as u64, "shingle");
        output.write_line(format_args!(
            "{letter}: {}  ({}, {shingles})",
            id.escaped_text(),
            escape_text(place)
        ))?;
    }
    let union = comparison.a.shingles + comparison.b.shingles - comparison.shared;
    output.write_line(format_args!(
        "similarity {}: {} of {} in both",
        format_similarity(comparison.similarity),
        format_count(comparison.shared as u64),
        format_count_of(union as u64, "distinct shingle")
    ))?;
    match comparison.distance {
        Some(distance) => output.write_line(format_args!("distance {distance} of {} bits", comparison.bits)),
        None => {
            output.write_line("no distance: a text has no fingerprint, because it has no letters or digits")
        }
    }
}

/// Prints the differences between two texts, side by side.
pub(crate) fn print_differences(output: &mut Output, a: &str, b: &str) -> Result<()> {
    print_first_differences(output, a, b, usize::MAX).map(drop)
}

/// Prints the first `max_passages` differing passages of two texts, side by side. Returns the number of omitted passages.
pub(crate) fn print_first_differences(
    output: &mut Output,
    a: &str,
    b: &str,
    max_passages: usize,
) -> Result<usize> {
    print_passages(output, &WordDiff::new(a, b), max_passages)
}

/// Returns the differences between two texts.
pub(crate) fn text_differences<'a>(a: &'a str, b: &'a str) -> Vec<Difference<'a>> {
    differences(&WordDiff::new(a, b))
}

/// Prints the first `max_passages` differing passages of two texts, side by side. Returns the number of omitted passages.
fn print_passages(output: &mut Output, diff: &WordDiff<'_>, max_passages: usize) -> Result<usize> {
    let groups = diff.groups(CONTEXT_WORDS);
    if groups.is_empty() {
        output.write_line("no differences except white space")?;
    }
    let terminal = Term::stdout();
    let width = if terminal.is_term() { terminal.size().1.into() } else { DEFAULT_WIDTH };
    let column = (width.max(MIN_WIDTH) - COLUMN_SEPARATOR.len()) / 2;
    for group in groups.iter().take(max_passages) {
        let sides = [0, 1].map(|side| layout_side(side, diff.words()[side], group, column));
        output.write_line("")?;
        for at in 0..sides[0].len().max(sides[1].len()) {
            let [(left, used), (right, _)] =
                [0, 1].map(|side| sides[side].get(at).cloned().unwrap_or_default());
            let padding = " ".repeat(column - used);
            output.write_line(format!("{left}{padding}{COLUMN_SEPARATOR}{right}").trim_end())?;
        }
    }
    Ok(groups.len().saturating_sub(max_passages))
}

/// Formats one side of a differing passage: text A if `side` is 0, text B if it is 1. `words` are all words of this text;
/// `group` holds the edits of the passage. Returns lines of at most `width` columns, each with its width: a heading such as
/// `A, line 12`, then the words of the passage, with changed words marked.
fn layout_side(
    side: usize,
    words: &[DiffWord<'_>],
    group: &[WordEdit],
    width: usize,
) -> Vec<(String, usize)> {
    let (name, colour, open, close) = if side == 0 {
        ("A", Style::new().red(), "[-", "-]")
    } else {
        ("B", Style::new().green(), "{+", "+}")
    };
    let head =
        format!("{name}, line {}", line(words, group.first().map_or(0, |edit| edit.words[side].start)));
    let mut lines = vec![(head.clone(), head.len())];
    let (mut line, mut used) = (String::new(), 0);
    for edit in group {
        let is_changed = !edit.is_equal;
        let is_marked = is_changed && !console::colors_enabled();
        let words = &words[edit.words[side].clone()];
        for (at, word) in words.iter().enumerate() {
            let before = if is_marked && at == 0 { open } else { "" };
            let after = if is_marked && at + 1 == words.len() { close } else { "" };
            let marked = format!("{before}{}{after}", escape_text(word.text));
            if word.is_spaced && used > 0 && used < width {
                line.push(' ');
                used += 1;
            }
            // A word wider than the line continues on the next line.
            let is_long = measure_text_width(&marked) > width;
            let pieces = if is_long { marked.graphemes(true).collect() } else { vec![marked.as_str()] };
            for piece in pieces {
                let length = measure_text_width(piece);
                if used + length > width {
                    lines.push((std::mem::take(&mut line), used));
                    used = 0;
                }
                line += &if is_changed { colour.apply_to(piece).to_string() } else { piece.to_owned() };
                used += length;
            }
        }
    }
    lines.push((line, used));
    lines
}
