//! What an evaluation tells, as a table, in Markdown and in JSON.

use serde::Serialize;

use crate::evaluate::curve::{Evaluation, FalsePairs, Point};
use crate::failure::Outcome;
use crate::histogram::bar;
use crate::inputs::count_of;
use crate::numbers::{grouped, short};
use crate::output::Output;

/// The distance of the paper, for fingerprints of [`PAPER_BITS`].
const PAPER_K: u32 = 3;
const PAPER_BITS: u32 = 64;
/// An F1 below this share of the best is far from it.
const NEAR: f64 = 0.95;
const BAR_COLUMNS: usize = 6;

/// The evaluations of all profiles, and what they are weighed by.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) evaluations: &'a [(String, Evaluation)],
    pub(crate) bits: u32,
    /// Malformed lines skipped.
    pub(crate) bad: u64,
    /// Random pairs for each labelled one.
    pub(crate) random: u64,
    /// Size of a corpus.
    pub(crate) documents: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Markdown,
    Json,
}

#[derive(Serialize)]
struct Row<'a> {
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
struct Summary<'a> {
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

impl Report<'_> {
    /// Random pairs for each labelled one.
    pub(crate) fn weight(&self) -> f64 {
        self.random as f64
    }

    /// The same in the corpus, of whose n(n-1)/2 pairs n/2 are labelled.
    fn corpus_weight(&self) -> f64 {
        (self.documents - 1) as f64
    }

    pub(crate) fn is_paper(&self, k: u32) -> bool {
        k == PAPER_K && self.bits == PAPER_BITS
    }

    pub(crate) fn print(&self, format: Format) -> Outcome {
        let mut output = Output::stdout();
        match (format, self.evaluations) {
            (Format::Json, _) => self.print_json(&mut output)?,
            (_, [(profile, evaluation)]) => self.print_one(&mut output, format, profile, evaluation)?,
            _ => self.print_comparison(&mut output, format)?,
        }
        output.finish()
    }

    fn print_json(&self, output: &mut Output) -> Outcome {
        for (profile, evaluation) in self.evaluations {
            let best = evaluation.best(self.weight());
            for Point { k, recall, precision, f1 } in evaluation.curve(self.weight()) {
                let (false_pairs, false_pairs_at_most) = match evaluation.false_pairs(k, self.documents) {
                    None => (None, None),
                    Some(FalsePairs::Expected(count)) => (Some(count), None),
                    Some(FalsePairs::AtMost(count)) => (None, Some(count)),
                };
                output.json(&Row {
                    profile,
                    k,
                    recall,
                    precision,
                    f1,
                    positives: evaluation.positives.within(k),
                    negatives: evaluation.negatives.within(k),
                    random: evaluation.random.within(k),
                    random_share: evaluation.random_share(k),
                    false_pairs,
                    false_pairs_at_most,
                    paper: self.is_paper(k),
                    recommended: k == best.k,
                })?;
            }
        }
        for (profile, evaluation) in self.evaluations {
            let best = evaluation.best(self.weight());
            let corpus_best = evaluation.best(self.corpus_weight());
            output.json(&Summary {
                profile,
                bits: self.bits,
                positives: evaluation.positives.all,
                negatives: evaluation.negatives.all,
                random: evaluation.random.all,
                excluded: evaluation.excluded,
                empty: evaluation.empty,
                bad: self.bad,
                random_for_each: self.random,
                documents: self.documents,
                recommended: best.k,
                f1: best.f1,
                corpus_best: corpus_best.k,
                corpus_f1: corpus_best.f1,
                corpus_f1_of_recommended: evaluation.point(best.k, self.corpus_weight()).f1,
                too_few_random: evaluation.is_too_small(self.corpus_weight()),
            })?;
        }
        Ok(())
    }

    /// A line for each k.
    fn print_one(
        &self,
        output: &mut Output,
        format: Format,
        profile: &str,
        evaluation: &Evaluation,
    ) -> Outcome {
        let best = evaluation.best(self.weight());
        // In Markdown without bars.
        let with_bar = |text: String, share: f64| match format {
            Format::Text => format!("{text:>7} {:<BAR_COLUMNS$}", bar(share, BAR_COLUMNS)),
            _ => text,
        };
        let has_negatives = evaluation.negatives.all > 0;
        let mut head = vec!["k".to_owned()];
        head.extend(["recall", "precision", "F1"].map(|name| with_bar(name.to_owned(), 0.0)));
        if has_negatives {
            head.push("negatives".to_owned());
        }
        head.extend(["random", "false pairs"].map(str::to_owned));
        let mut table = Table { head, rows: Vec::new() };
        for Point { k, recall, precision, f1 } in evaluation.curve(self.weight()) {
            let mut row = vec![
                match (self.is_paper(k), k == best.k) {
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
                row.push(grouped(evaluation.negatives.within(k)));
            }
            row.push(evaluation.random_share(k).map_or("-".to_owned(), share));
            row.push(count_of_false(evaluation.false_pairs(k, self.documents)));
            table.rows.push(row);
        }
        output.line(format_args!("{}\n", self.counts(profile, evaluation)))?;
        table.print(output, format)?;
        output.line("")?;
        for sentence in [self.advice(evaluation), self.corpus_advice(evaluation), self.meaning()] {
            output.line(sentence)?;
        }
        Ok(())
    }

    fn counts(&self, profile: &str, evaluation: &Evaluation) -> String {
        let mut text = format!(
            "{profile}, {} bits: {}, {}, {}",
            self.bits,
            count_of(evaluation.positives.all, "positive pair"),
            count_of(evaluation.negatives.all, "negative pair"),
            count_of(evaluation.random.all, "random pair"),
        );
        if evaluation.excluded > 0 {
            text.push_str(&format!(
                "; {} left out, with a text without features",
                count_of(evaluation.excluded, "labelled pair"),
            ));
        }
        text
    }

    /// What precision is relative to.
    fn meaning(&self) -> String {
        format!(
            "Precision and F1 are relative to {} for each labelled one; false pairs to a corpus of {}.",
            count_of(self.random, "random pair"),
            count_of(self.documents, "document"),
        )
    }

    fn advice(&self, evaluation: &Evaluation) -> String {
        let best = evaluation.best(self.weight());
        format!("Recommended: k = {}, of the largest F1.", best.k)
    }

    fn corpus_advice(&self, evaluation: &Evaluation) -> String {
        let corpus = count_of(self.documents, "document");
        if evaluation.is_too_small(self.corpus_weight()) {
            return format!(
                "For a corpus of {corpus} the random pairs are too few to tell: give more labelled pairs, or \
                 fewer --documents."
            );
        }
        let (here, there) = (evaluation.best(self.weight()), evaluation.best(self.corpus_weight()));
        let of_here = evaluation.point(here.k, self.corpus_weight()).f1;
        let in_corpus = format!("in a corpus of {corpus}, each in one labelled pair");
        if here.k == there.k {
            format!("It is also the best {in_corpus}: F1 {} there.", percent(of_here))
        } else if of_here >= NEAR * there.f1 {
            format!(
                "It is nearly the best {in_corpus}: F1 {} there, {} for k = {}.",
                percent(of_here),
                percent(there.f1),
                there.k
            )
        } else {
            format!(
                "It is far from the best {in_corpus}: F1 {} there, {} for k = {}.",
                percent(of_here),
                percent(there.f1),
                there.k
            )
        }
    }

    /// A line for each profile.
    fn print_comparison(&self, output: &mut Output, format: Format) -> Outcome {
        let paper = if self.is_paper(PAPER_K) { "paper, " } else { "" };
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
        let best_of = |evaluation: &Evaluation| evaluation.best(self.weight());
        let best = self.evaluations.iter().map(|(_, evaluation)| best_of(evaluation).f1).fold(0.0, f64::max);
        let mut excluded = Vec::new();
        for (profile, evaluation) in self.evaluations {
            let mark = if best_of(evaluation).f1 == best { " *" } else { "" };
            let mut row = vec![format!("{profile}{mark}")];
            let here = best_of(evaluation);
            row.push(here.k.to_string());
            for point in [here, evaluation.point(PAPER_K, self.weight())] {
                row.push(percent(point.recall));
                row.push(point.precision.map_or("-".to_owned(), percent));
                row.push(percent(point.f1));
                row.push(count_of_false(evaluation.false_pairs(point.k, self.documents)));
            }
            let there = evaluation.best(self.corpus_weight());
            let known = !evaluation.is_too_small(self.corpus_weight());
            row.push(if known { there.k.to_string() } else { "-".to_owned() });
            row.push(if known { percent(there.f1) } else { "-".to_owned() });
            table.rows.push(row);
            if evaluation.excluded > 0 {
                let pairs = count_of(evaluation.excluded, "labelled pair");
                excluded.push(format!("{profile}: {pairs} left out, with a text without features."));
            }
        }
        table.print(output, format)?;
        output.line(format_args!(
            "\nFor each profile, the k of the largest F1; {}; and the best k of a corpus of {}, each in one \
             labelled pair.",
            if self.is_paper(PAPER_K) { "the paper's, 64 bits and k = 3" } else { "k = 3" },
            count_of(self.documents, "document"),
        ))?;
        output.line(self.meaning())?;
        excluded.iter().try_for_each(|sentence| output.line(sentence))
    }
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
