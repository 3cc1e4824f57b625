//! What an evaluation tells, as a table, in Markdown and in JSON.

use serde::Serialize;

use simstore_corpus::evaluate::{Evaluation, FalsePairs, PAPER_K, Point, ProfileCurve};

use crate::failure::Outcome;
use crate::histogram::bar;
use crate::inputs::count_of;
use crate::numbers::{grouped, short};
use crate::output::Output;

/// An F1 below this share of the best is far from it.
const NEAR: f64 = 0.95;
const BAR_COLUMNS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Markdown,
    Json,
}

#[derive(Serialize)]
struct PointObject<'a> {
    profile: &'a str,
    k: u32,
    recall: f64,
    precision: Option<f64>,
    f1: f64,
    positives: u64,
    negatives: u64,
    random: u64,
    random_share: Option<f64>,
    false_pairs: Option<f64>,
    false_pairs_at_most: Option<f64>,
    paper: bool,
    recommended: bool,
}

#[derive(Serialize)]
struct CurveObject<'a> {
    profile: &'a str,
    bits: u32,
    positives: u64,
    negatives: u64,
    random: u64,
    excluded: u64,
    empty: u64,
    bad: u64,
    random_for_each: u64,
    documents: u64,
    recommended: u32,
    f1: f64,
    corpus_best: u32,
    corpus_f1: f64,
    corpus_f1_of_recommended: f64,
    too_few_random: bool,
}

pub(crate) fn print(evaluation: &Evaluation, format: Format) -> Outcome {
    let mut output = Output::stdout();
    match (format, &evaluation.profiles[..]) {
        (Format::Json, _) => print_json(evaluation, &mut output)?,
        (_, [curve]) => print_one(evaluation, curve, &mut output, format)?,
        _ => print_comparison(evaluation, &mut output, format)?,
    }
    output.finish()
}

fn is_paper(evaluation: &Evaluation, k: u32) -> bool {
    evaluation.has_paper() && k == PAPER_K
}

fn print_json(evaluation: &Evaluation, output: &mut Output) -> Outcome {
    for curve in &evaluation.profiles {
        for point in &curve.points {
            let (false_pairs, false_pairs_at_most) = match point.false_pairs {
                None => (None, None),
                Some(FalsePairs::Expected(count)) => (Some(count), None),
                Some(FalsePairs::AtMost(count)) => (None, Some(count)),
            };
            output.json(&PointObject {
                profile: &curve.profile,
                k: point.k,
                recall: point.recall,
                precision: point.precision,
                f1: point.f1,
                positives: point.positives,
                negatives: point.negatives,
                random: point.random,
                random_share: point.random_share,
                false_pairs,
                false_pairs_at_most,
                paper: is_paper(evaluation, point.k),
                recommended: point.k == curve.recommended,
            })?;
        }
    }
    for curve in &evaluation.profiles {
        output.json(&CurveObject {
            profile: &curve.profile,
            bits: evaluation.bits,
            positives: curve.positives,
            negatives: curve.negatives,
            random: curve.random,
            excluded: curve.excluded,
            empty: curve.empty,
            bad: evaluation.bad,
            random_for_each: evaluation.random_each,
            documents: evaluation.documents,
            recommended: curve.recommended,
            f1: curve.best().f1,
            corpus_best: curve.corpus_best,
            corpus_f1: curve.best_of_corpus().corpus_f1,
            corpus_f1_of_recommended: curve.best().corpus_f1,
            too_few_random: curve.too_few_random,
        })?;
    }
    Ok(())
}

/// A line for each k.
fn print_one(evaluation: &Evaluation, curve: &ProfileCurve, output: &mut Output, format: Format) -> Outcome {
    // In Markdown without bars.
    let with_bar = |text: String, share: f64| match format {
        Format::Text => format!("{text:>7} {:<BAR_COLUMNS$}", bar(share, BAR_COLUMNS)),
        _ => text,
    };
    let has_negatives = curve.negatives > 0;
    let mut head = vec!["k".to_owned()];
    head.extend(["recall", "precision", "F1"].map(|name| with_bar(name.to_owned(), 0.0)));
    if has_negatives {
        head.push("negatives".to_owned());
    }
    head.extend(["random", "false pairs"].map(str::to_owned));
    let mut table = Table { head, rows: Vec::new() };
    for point in &curve.points {
        let &Point { k, recall, precision, f1, .. } = point;
        let mut row = vec![
            match (is_paper(evaluation, k), k == curve.recommended) {
                (true, true) => format!("{k} * paper"),
                (true, false) => format!("{k}   paper"),
                (false, true) => format!("{k} *"),
                (false, false) => k.to_string(),
            },
            with_bar(percent(recall), recall),
            with_bar(precision.map_or("-".to_owned(), percent), precision.unwrap_or(0.0)),
            with_bar(percent(f1), f1),
        ];
        if has_negatives {
            row.push(grouped(point.negatives));
        }
        row.push(point.random_share.map_or("-".to_owned(), share));
        row.push(count_of_false(point.false_pairs));
        table.rows.push(row);
    }
    output.line(format_args!("{}\n", counts(evaluation, curve)))?;
    table.print(output, format)?;
    output.line("")?;
    output.line(format_args!("Recommended: k = {}, of the largest F1.", curve.recommended))?;
    output.line(corpus_advice(evaluation, curve))?;
    output.line(meaning(evaluation))
}

fn counts(evaluation: &Evaluation, curve: &ProfileCurve) -> String {
    let mut text = format!(
        "{}, {} bits: {}, {}, {}",
        curve.profile,
        evaluation.bits,
        count_of(curve.positives, "positive pair"),
        count_of(curve.negatives, "negative pair"),
        count_of(curve.random, "random pair"),
    );
    if curve.excluded > 0 {
        text.push_str(&format!(
            "; {} left out, with a text without features",
            count_of(curve.excluded, "labelled pair"),
        ));
    }
    text
}

/// What precision is relative to.
fn meaning(evaluation: &Evaluation) -> String {
    format!(
        "Precision and F1 are relative to {} for each labelled one; false pairs to a corpus of {}.",
        count_of(evaluation.random_each, "random pair"),
        count_of(evaluation.documents, "document"),
    )
}

fn corpus_advice(evaluation: &Evaluation, curve: &ProfileCurve) -> String {
    let corpus = count_of(evaluation.documents, "document");
    if curve.too_few_random {
        return format!(
            "For a corpus of {corpus} the random pairs are too few to tell: give more labelled pairs, or \
             fewer --documents."
        );
    }
    let (here, there) = (curve.best(), curve.best_of_corpus());
    let in_corpus = format!("in a corpus of {corpus}, each in one labelled pair");
    let of_here = percent(here.corpus_f1);
    if here.k == there.k {
        return format!("It is also the best {in_corpus}: F1 {of_here} there.");
    }
    let how = if here.corpus_f1 >= NEAR * there.corpus_f1 { "nearly" } else { "far from" };
    let of_there = percent(there.corpus_f1);
    format!("It is {how} the best {in_corpus}: F1 {of_here} there, {of_there} for k = {}.", there.k)
}

/// A line for each profile.
fn print_comparison(evaluation: &Evaluation, output: &mut Output, format: Format) -> Outcome {
    let paper = if evaluation.has_paper() { "paper, " } else { "" };
    let head = [
        "profile",
        "k",
        "recall",
        "precision",
        "F1",
        "false pairs",
        &format!("{paper}k = {PAPER_K}: recall"),
        "precision",
        "F1",
        "false pairs",
        "corpus: k",
        "F1",
    ];
    let mut table = Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() };
    let best = evaluation.profiles.iter().map(|curve| curve.best().f1).fold(0.0, f64::max);
    let mut excluded = Vec::new();
    for curve in &evaluation.profiles {
        let (here, profile) = (curve.best(), &curve.profile);
        let mark = if here.f1 == best { " *" } else { "" };
        let mut row = vec![format!("{profile}{mark}"), here.k.to_string()];
        for point in [here, &curve.points[PAPER_K as usize]] {
            row.push(percent(point.recall));
            row.push(point.precision.map_or("-".to_owned(), percent));
            row.push(percent(point.f1));
            row.push(count_of_false(point.false_pairs));
        }
        let there = curve.best_of_corpus();
        let known = |text: String| if curve.too_few_random { "-".to_owned() } else { text };
        row.extend([known(there.k.to_string()), known(percent(there.corpus_f1))]);
        table.rows.push(row);
        if curve.excluded > 0 {
            let pairs = count_of(curve.excluded, "labelled pair");
            excluded.push(format!("{profile}: {pairs} left out, with a text without features."));
        }
    }
    table.print(output, format)?;
    output.line(format_args!(
        "\nFor each profile, the k of the largest F1; {}; and the best k of a corpus of {}, each in one \
         labelled pair.",
        if evaluation.has_paper() { "the paper's, 64 bits and k = 3" } else { "k = 3" },
        count_of(evaluation.documents, "document"),
    ))?;
    output.line(meaning(evaluation))?;
    excluded.iter().try_for_each(|sentence| output.line(sentence))
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// A share that may be tiny.
fn share(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") }
}

fn count_of_false(count: Option<FalsePairs>) -> String {
    let figure = |count: f64| if count < 1e9 { short(count) } else { format!("{count:.1e}") };
    match count {
        None => "-".to_owned(),
        Some(FalsePairs::Expected(count)) => figure(count),
        Some(FalsePairs::AtMost(count)) => format!("under {}", figure(count)),
    }
}

/// Rows of cells: the first column is aligned to the left, the others to the right.
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn print(&self, output: &mut Output, format: Format) -> Outcome {
        if format == Format::Markdown {
            output.line(format_args!("| {} |", self.head.join(" | ")))?;
            output.line(format_args!("|---{}|", "|--:".repeat(self.head.len() - 1)))?;
            return self.rows.iter().try_for_each(|row| output.line(format_args!("| {} |", row.join(" | "))));
        }
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        for row in all() {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            output.line(line.trim_end())?;
        }
        Ok(())
    }
}
