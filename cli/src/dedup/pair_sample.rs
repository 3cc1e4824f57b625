//! `dedup --sample-pairs`: prints a histogram of similarities, and pairs above and below the threshold.

use simstore::Result;
use simstore_dedup::{PairSample, SampledPair};
use simstore_io::IdRef;
use simstore_io::numbers::format_similarity;

use crate::compare;
use crate::histogram::bar;
use crate::numbers::{format_count, format_count_of};
use crate::output::{self, Output, escape_name, escape_text, object};

/// Width of the longest bar of the histogram, in columns of the terminal.
const BAR_COLUMNS: usize = 30;
/// Maximum number of differing passages shown for a pair.
const MAX_PASSAGES: usize = 4;

pub(super) fn print(sample: &PairSample, json: bool) -> Result<()> {
    let mut output = output::stdout();
    if json {
        print_json(&mut output, sample)?;
    } else {
        print_histogram(&mut output, sample)?;
        sample.pairs.iter().try_for_each(|pair| print_pair(&mut output, pair, sample.threshold))?;
    }
    output.finish()
}

fn print_json(output: &mut Output, sample: &PairSample) -> Result<()> {
    let &PairSample { threshold, documents, ref bins, .. } = sample;
    output.write_json(&object! { threshold, documents, bins })?;
    for SampledPair { a, b, similarity } in &sample.pairs {
        output.write_json(&object! {
            similarity,
            a: IdRef::from(&a.id),
            b: IdRef::from(&b.id),
            place_a: compare::file_and_line(a),
            place_b: compare::file_and_line(b),
            differences: compare::text_differences(&a.text, &b.text),
        })?;
    }
    Ok(())
}

/// Prints a histogram of similarities: a row for each bin, most similar first, and a line at the threshold.
fn print_histogram(output: &mut Output, sample: &PairSample) -> Result<()> {
    let documents = format_count_of(sample.documents as u64, "document");
    output.write_line(format_args!(
        "{documents}; duplicates by similarity to the most similar document that --keep prefers to them"
    ))?;
    output.write_line("")?;
    output.write_line("   similarity       pairs  duplicates  max. removed")?;
    let largest = sample.bins.iter().map(|bin| bin.duplicates).max().unwrap_or(0).max(1);
    for bin in sample.bins.iter().rev() {
        let range =
            if bin.from < bin.to { format!("{:.2} to {:.2}", bin.from, bin.to) } else { "1".to_owned() };
        let pairs = if bin.from < bin.to { format_count(bin.pairs) } else { "-".to_owned() };
        let bar = bar(bin.duplicates as f64 / largest as f64, BAR_COLUMNS);
        let (duplicates, removed) = (format_count(bin.duplicates), format_count(bin.removed_at_most));
        output
            .write_line(format!("{range:>13}{pairs:>12}{duplicates:>12}{removed:>14}  {bar}").trim_end())?;
        let is_threshold = bin.from <= sample.threshold && sample.threshold < bin.to;
        if is_threshold || bin.from >= bin.to && sample.threshold >= 1.0 {
            output.write_line(format!("{:->53} --similar {}", "", sample.threshold).trim_end())?;
        }
    }
    output.write_line("")?;
    output.write_line(
        "max. removed: most documents that are removed if the threshold is the lower end of the range",
    )
}

/// Prints the similarity of a pair, its two documents, and the first differences between their texts.
fn print_pair(output: &mut Output, pair: &SampledPair, threshold: f64) -> Result<()> {
    let SampledPair { a, b, similarity } = pair;
    let verdict = if *similarity >= threshold { "duplicate" } else { "not a duplicate" };
    output.write_line("")?;
    output.write_line(format_args!(
        "similarity {}: {verdict} at {}",
        format_similarity(*similarity),
        threshold
    ))?;
    for (letter, document) in [("A", a), ("B", b)] {
        let id = IdRef::from(&document.id).text();
        output.write_line(format_args!(
            "{letter}: {}  ({})",
            escape_name(&id),
            escape_text(&compare::file_and_line(document))
        ))?;
    }
    let omitted = compare::print_first_differences(output, &a.text, &b.text, MAX_PASSAGES)?;
    if omitted > 0 {
        output.write_line("")?;
        output.write_line(format_count_of(omitted as u64, "more differing passage"))?;
    }
    Ok(())
}
