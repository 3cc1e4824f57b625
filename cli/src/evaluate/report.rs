//! Output of an evaluation: a text table, a Markdown table, or JSON.

use simstore::Result;
use simstore_corpus::evaluate::{
    CurvePoint, Evaluation, FalsePairs, MAX_K, PAPER_K, ProfileCurve, SimilarityPoint,
};

use crate::histogram::bar;
use crate::numbers::{format_count, format_count_of, format_short};
use crate::output::{self, Output, object};

/// Width of the bar for 100%, in columns of the terminal.
const BAR_COLUMNS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Text,
    Markdown,
    Json,
}

pub(crate) fn print(evaluation: &Evaluation, format: ReportFormat) -> Result<()> {
    let mut output = output::stdout();
    match (format, &evaluation.profiles[..]) {
        (ReportFormat::Json, _) => print_json(evaluation, &mut output)?,
        (_, [curve]) => print_curve(evaluation, curve, &mut output, format)?,
        _ => print_comparison(evaluation, &mut output, format)?,
    }
    output.finish()
}

fn is_paper(evaluation: &Evaluation, k: u32) -> bool {
    evaluation.has_paper() && k == PAPER_K
}

fn print_json(evaluation: &Evaluation, output: &mut Output) -> Result<()> {
    for curve in &evaluation.profiles {
        for point in &curve.points {
            let (false_pairs, false_pairs_at_most) = match point.false_pairs {
                None => (None, None),
                Some(FalsePairs::Expected(count)) => (Some(count), None),
                Some(FalsePairs::AtMost(count)) => (None, Some(count)),
            };
            let CurvePoint {
                k, recall, precision, f1, positives, negatives, random, alike, false_share, ..
            } = *point;
            output.write_json(&object! {
                profile: &curve.profile,
                k, recall, precision, f1, positives, negatives, random, alike, false_share,
                false_pairs, false_pairs_at_most,
                paper: is_paper(evaluation, k),
                recommended: is_recommended(curve, k),
            })?;
        }
    }
    for &SimilarityPoint { similar, positives, negatives, recall, precision, f1, excluded } in
        &evaluation.similar
    {
        output.write_json(&object! { similar, recall, precision, f1, positives, negatives, excluded })?;
    }
    for curve in &evaluation.profiles {
        output.write_json(&object! {
            profile: &curve.profile,
            bits: evaluation.bits,
            positives: curve.positives,
            negatives: curve.negatives,
            random: curve.random,
            looked_at: curve.verified,
            alike_from: evaluation.alike_from,
            excluded: curve.excluded,
            empty: curve.empty,
            bad: evaluation.malformed,
            documents: evaluation.documents,
            recommended: curve.recommended().map(|point| point.k),
            best: curve.best,
            f1: curve.best().f1,
            too_few_random: curve.too_few_random,
        })?;
    }
    Ok(())
}

fn is_recommended(curve: &ProfileCurve, k: u32) -> bool {
    curve.recommended().is_some_and(|point| point.k == k)
}

/// Prints the evaluation of one profile: a table with a row for each distance k, then the recommendation.
fn print_curve(
    evaluation: &Evaluation,
    curve: &ProfileCurve,
    output: &mut Output,
    format: ReportFormat,
) -> Result<()> {
    // Markdown has no bars.
    let with_bar = |text: String, share: f64| match format {
        ReportFormat::Text => format!("{text:>7} {:<BAR_COLUMNS$}", bar(share, BAR_COLUMNS)),
        _ => text,
    };
    let has_negatives = curve.negatives > 0;
    let mut headings = vec!["k".to_owned()];
    headings.extend(["recall", "precision", "F1"].map(|name| with_bar(name.to_owned(), 0.0)));
    if has_negatives {
        headings.push("negatives".to_owned());
    }
    headings.extend(["random", "alike", "false pairs"].map(str::to_owned));
    let mut table = TextTable { headings, rows: Vec::new() };
    for point in &curve.points {
        let &CurvePoint { k, recall, precision, f1, .. } = point;
        let mut row = vec![
            match (is_paper(evaluation, k), is_recommended(curve, k)) {
                (true, true) => format!("{k} * paper"),
                (true, false) => format!("{k}   paper"),
                (false, true) => format!("{k} *"),
                (false, false) => k.to_string(),
            },
            with_bar(format_percent(recall), recall),
            with_bar(precision.map_or("-".to_owned(), format_percent), precision.unwrap_or(0.0)),
            with_bar(format_percent(f1), f1),
        ];
        if has_negatives {
            row.push(format_count(point.negatives));
        }
        row.extend([
            format_count(point.random),
            format_count(point.alike),
            format_false_pairs(point.false_pairs),
        ]);
        table.rows.push(row);
    }
    for &SimilarityPoint { similar, recall, precision, f1, negatives, .. } in &evaluation.similar {
        let mut row = vec![format!("similar {similar}")];
        row.push(with_bar(format_percent(recall), recall));
        row.push(with_bar(precision.map_or("-".to_owned(), format_percent), precision.unwrap_or(0.0)));
        row.push(with_bar(format_percent(f1), f1));
        if has_negatives {
            row.push(format_count(negatives));
        }
        row.extend(["-", "-", "0"].map(str::to_owned));
        table.rows.push(row);
    }
    output.write_line(format_args!("{}\n", counts_line(evaluation, curve)))?;
    table.print(output, format)?;
    output.write_line("")?;
    output.write_line(recommendation_line(evaluation, curve, "distance"))?;
    output.write_line(corpus_line(evaluation))?;
    output.write_line(verified_line(evaluation, curve))
}

fn counts_line(evaluation: &Evaluation, curve: &ProfileCurve) -> String {
    let mut text = format!(
        "{}, {} bits: {}, {}, {}",
        curve.profile,
        evaluation.bits,
        format_count_of(curve.positives, "positive pair"),
        format_count_of(curve.negatives, "negative pair"),
        format_count_of(curve.random, "random pair"),
    );
    if curve.excluded > 0 {
        text.push_str(&format!(
            "; {} excluded, because a text has no features",
            format_count_of(curve.excluded, "labelled pair"),
        ));
    }
    text
}

/// Returns a sentence that says for how many documents precision, F1 and false pairs are predicted.
fn corpus_line(evaluation: &Evaluation) -> String {
    format!(
        "Precision, F1 and false pairs are predicted for a corpus of {}, each with one labelled partner.",
        format_count_of(evaluation.documents, "document"),
    )
}

/// Returns a sentence that says how many random pairs (pairs of unrelated texts) with near fingerprints were also compared
/// by their texts.
fn verified_line(evaluation: &Evaluation, curve: &ProfileCurve) -> String {
    let candidates = curve.points[MAX_K as usize].random;
    let compared = match curve.verified {
        count if count == candidates => format!("all {}", format_count_of(candidates, "random pair")),
        count => {
            format!(
                "{} of {}, sampled at each distance,",
                format_count(count),
                format_count_of(candidates, "random pair")
            )
        }
    };
    format!(
        "The texts of {compared} within {MAX_K} bits were compared; pairs with a similarity of at least {} are not false.",
        evaluation.alike_from
    )
}

/// Returns a sentence that recommends the best distance of a profile, or says that none is good enough and suggests an
/// alternative. `noun`, "distance" or "profile", is used in the sentence "No {noun} is recommended".
fn recommendation_line(evaluation: &Evaluation, curve: &ProfileCurve, noun: &str) -> String {
    let corpus = format_count_of(evaluation.documents, "document");
    let quality = |point: &CurvePoint| {
        let precision = point.precision.map_or("unknown".to_owned(), format_percent);
        format!("has recall {} and precision {precision}", format_percent(point.recall))
    };
    match curve.recommended() {
        Some(point) => {
            format!("Recommended for a corpus of {corpus}: k = {}. It {}.", point.k, quality(point))
        }
        None if curve.too_few_random => format!(
            "No {noun} is recommended for a corpus of {corpus}: there are too few random pairs to estimate false pairs. Give more \
             labelled pairs, or --documents {} or less; or compare texts instead of fingerprints: simstore dedup --similar {}.",
            curve.max_documents(),
            evaluation.alike_from
        ),
        None => format!(
            "No {noun} is good enough for a corpus of {corpus}. The best, k = {}, {}. Compare texts instead: simstore dedup \
             --similar {}.",
            curve.best,
            quality(curve.best()),
            evaluation.alike_from
        ),
    }
}

/// Prints a table with a row for each profile, then the recommendation for the best profile.
fn print_comparison(evaluation: &Evaluation, output: &mut Output, format: ReportFormat) -> Result<()> {
    let paper = if evaluation.has_paper() { "paper, " } else { "" };
    let headings = [
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
    ];
    let mut table = TextTable { headings: headings.map(str::to_owned).to_vec(), rows: Vec::new() };
    // The best profile has a recommended distance, and then the highest F1. If profiles tie, the first is best.
    let rank = |curve: &ProfileCurve| (curve.recommended().is_some(), curve.best().f1);
    let is_better = |curve: &'_ ProfileCurve, best: &'_ ProfileCurve| rank(curve) > rank(best);
    let best =
        evaluation.profiles.iter().reduce(|best, curve| if is_better(curve, best) { curve } else { best });
    let mut excluded = Vec::new();
    for curve in &evaluation.profiles {
        let (best_point, profile) = (curve.best(), &curve.profile);
        let is_best = best.is_some_and(|best| best.recommended().is_some() && best.profile == *profile);
        let mut row = vec![format!("{profile}{}", if is_best { " *" } else { "" }), best_point.k.to_string()];
        for point in [best_point, &curve.points[PAPER_K as usize]] {
            row.push(format_percent(point.recall));
            row.push(point.precision.map_or("-".to_owned(), format_percent));
            row.push(format_percent(point.f1));
            row.push(format_false_pairs(point.false_pairs));
        }
        table.rows.push(row);
        if curve.excluded > 0 {
            let pairs = format_count_of(curve.excluded, "labelled pair");
            excluded.push(format!("{profile}: {pairs} excluded, because a text has no features."));
        }
    }
    for point in &evaluation.similar {
        let precision = point.precision.map_or("-".to_owned(), format_percent);
        let mut row = vec![
            format!("similar {}", point.similar),
            "-".to_owned(),
            format_percent(point.recall),
            precision,
        ];
        row.extend([format_percent(point.f1), "0".to_owned()]);
        row.resize(table.headings.len(), "-".to_owned());
        table.rows.push(row);
    }
    table.print(output, format)?;
    output.write_line(format_args!(
        "\nFor each profile: the k with the largest F1, and {}.",
        if evaluation.has_paper() { "the paper's setting (64 bits, k = 3)" } else { "k = 3" },
    ))?;
    if let Some(best) = best {
        let recommendation = recommendation_line(evaluation, best, "profile");
        let prefix = if best.too_few_random { String::new() } else { format!("{}: ", best.profile) };
        output.write_line(format_args!("{prefix}{recommendation}"))?;
    }
    output.write_line(corpus_line(evaluation))?;
    output.write_line(format_args!(
        "Random pairs within {MAX_K} bits with a similarity of at least {} are not false.",
        evaluation.alike_from
    ))?;
    excluded.iter().try_for_each(|sentence| output.write_line(sentence))
}

fn format_percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

fn format_false_pairs(count: Option<FalsePairs>) -> String {
    let figure = |count: f64| if count < 1e9 { format_short(count) } else { format!("{count:.1e}") };
    match count {
        None => "-".to_owned(),
        Some(FalsePairs::Expected(count)) => figure(count),
        Some(FalsePairs::AtMost(count)) => format!("under {}", figure(count)),
    }
}

/// Table of text cells. The first column is aligned to the left, the others to the right.
struct TextTable {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    fn print(&self, output: &mut Output, format: ReportFormat) -> Result<()> {
        if format == ReportFormat::Markdown {
            output.write_line(format_args!("| {} |", self.headings.join(" | ")))?;
            output.write_line(format_args!("|---{}|", "|--:".repeat(self.headings.len() - 1)))?;
            return self
                .rows
                .iter()
                .try_for_each(|row| output.write_line(format_args!("| {} |", row.join(" | "))));
        }
        let lines = || std::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        for row in lines() {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            output.write_line(line.trim_end())?;
        }
        Ok(())
    }
}
