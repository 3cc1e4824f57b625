//! `dedup --dry-run`: prints estimates for a run: number of documents, time, memory and disk space.

use simstore::Result;
use simstore_dedup::{Criterion, Estimate, SearchEstimate};

use crate::numbers::{format_bytes, format_count, format_count_of, format_distinct_bytes};
use crate::output::{self, Output};

pub(super) fn print(estimate: &Estimate, memory_is_given: bool, json: bool) -> Result<()> {
    let mut output = output::stdout();
    if json {
        output.write_json(estimate)?;
    } else {
        print_lines(&mut output, estimate, memory_is_given)?;
    }
    output.finish()
}

fn print_lines(output: &mut Output, estimate: &Estimate, memory_is_given: bool) -> Result<()> {
    output.write_line(format_args!(
        "{}, {}",
        format_count_of(estimate.files as u64, "file"),
        format_bytes(estimate.bytes)
    ))?;
    for (format, files) in &estimate.formats {
        let count = format_count_of(files.files as u64, "file");
        output.write_line(format_args!("  {format:<8} {count}, {}", format_bytes(files.bytes)))?;
    }
    if estimate.pipes > 0 {
        output.write_line(format_args!(
            "  {} not counted, because the size is unknown",
            format_count_of(estimate.pipes as u64, "pipe")
        ))?;
    }
    let documents = format_count(estimate.documents);
    if estimate.text_bytes == 0 {
        output.write_line(format_args!("about {documents} fingerprints (more if files are compressed)"))?;
    } else {
        output.write_line(format_args!(
            "about {documents} documents, {} of text (estimated from the first documents of up to {} files)",
            format_bytes(estimate.text_bytes),
            Estimate::SAMPLED_FILES
        ))?;
    }
    output.write_line(format_args!(
        "memory: about {}; more with --pairs or many near-duplicates",
        format_bytes(estimate.memory),
    ))?;
    if let (Some(budget), Some(left)) = (estimate.budget, estimate.budget_of_documents) {
        let source = if memory_is_given { "--memory allows" } else { "available:" };
        let [needed, left] = format_distinguishable(estimate.memory_of_documents, left);
        output.write_line(format_args!(
            "        {source} {}; {left} of it for documents, which need {needed}",
            format_bytes(budget)
        ))?;
        output.write_line(format_args!(
            "        {}",
            match estimate.spills {
                true => format!(
                    "not enough: documents go to disk, about {} of temporary files (--temporary)",
                    format_bytes(estimate.disk_of_temporary)
                ),
                false if estimate.disk_of_temporary > 0 => format!(
                    "documents stay in memory; similar pairs need about {} of temporary files (--temporary)",
                    format_bytes(estimate.disk_of_temporary)
                ),
                false => "documents stay in memory".to_owned(),
            }
        ))?;
    }
    match (estimate.criterion, &estimate.search) {
        (_, Some(search)) => print_search(output, search)?,
        (Criterion::Distance(distance), None) => {
            let bits = format_count_of(distance.into(), "bit");
            output.write_line(format_args!("search: all pairs of fingerprints within {bits}"))?;
        }
        (Criterion::Similarity(_), None) => {}
    }
    output.write_line(format_args!(
        "disk: up to {} for --output or --annotated (uncompressed), about {} for the {} of --resume",
        format_bytes(estimate.disk_of_output),
        format_bytes(estimate.disk_of_parts),
        format_count_of(estimate.parts as u64, "part")
    ))
}

fn print_search(output: &mut Output, search: &SearchEstimate) -> Result<()> {
    let &SearchEstimate {
        min_similarity: similar,
        recall,
        recall_of_closer,
        bands,
        joined,
        distance,
        total,
        ..
    } = search;
    let width = 64 * bands;
    output.write_line(format_args!(
        "search: candidates differ in at most {distance} bits of one of {joined} bands (of {bands}), and in at most {total} of \
         {width} bits; recall {:.1}% at similarity {similar}, {:.2}% at {}",
        recall * 100.0,
        recall_of_closer * 100.0,
        (1.0 + similar) / 2.0
    ))?;
    output.write_line(format_args!(
        "        about {} candidates, {} on one core besides reading (estimated from {})",
        format_rough(search.candidates),
        format_seconds(search.seconds),
        format_count_of(search.sampled, "document")
    ))?;
    if let Some(stored) = search.stored_candidates {
        output.write_line(format_args!("        about {} candidates in stores", format_rough(stored)))?;
    }
    if search.dense_documents > 0 {
        output.write_line(format_args!(
            "        about {} documents are in dense groups, such as pages of one template; they are compared by their rare shingles",
            format_rough(search.dense_documents as f64)
        ))?;
    }
    Ok(())
}

/// Formats two sizes, given in bytes, each in its own unit. If the two texts are equal, formats both sizes in one unit, with
/// enough decimals to show the difference.
fn format_distinguishable(a: u64, b: u64) -> [String; 2] {
    let formatted = [a, b].map(format_bytes);
    if formatted[0] == formatted[1] { format_distinct_bytes(a, b) } else { formatted }
}

/// Formats an estimate as an integer, rounded to two significant digits.
fn format_rough(number: f64) -> String {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    format_count(((number / unit).round() * unit) as u64)
}

fn format_seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 7200.0 => format!("{:.0} hours", seconds / 3600.0),
        seconds if seconds >= 120.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{seconds:.1} s"),
    }
}
