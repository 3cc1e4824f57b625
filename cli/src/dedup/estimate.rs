//! Dry run: the documents of a run, and the memory and disk that it would take.

use simstore_corpus::dedup::{Estimate, Question, Search};

use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::numbers::{bytes, bytes_apart, grouped};
use crate::output::Output;

pub(super) fn print(estimate: &Estimate, memory_is_given: bool, json: bool) -> Outcome {
    let mut output = Output::stdout();
    if json {
        output.json(estimate)?;
    } else {
        print_lines(&mut output, estimate, memory_is_given)?;
    }
    output.finish()
}

fn print_lines(output: &mut Output, estimate: &Estimate, memory_is_given: bool) -> Outcome {
    output.line(format_args!("{}, {}", count_of(estimate.files as u64, "file"), bytes(estimate.bytes)))?;
    for (format, files) in &estimate.formats {
        let count = count_of(files.files as u64, "file");
        output.line(format_args!("  {format:<8} {count}, {}", bytes(files.bytes)))?;
    }
    if estimate.pipes > 0 {
        output.line(format_args!(
            "  {} not counted: their size is not known",
            count_of(estimate.pipes as u64, "pipe")
        ))?;
    }
    let documents = grouped(estimate.documents);
    if estimate.text_bytes == 0 {
        output.line(format_args!("about {documents} fingerprints, more if files are compressed"))?;
    } else {
        output.line(format_args!(
            "about {documents} documents, {} of text, judged by the first documents of up to {} files",
            bytes(estimate.text_bytes),
            Estimate::SAMPLED_FILES
        ))?;
    }
    output.line(format_args!(
        "memory: about {}; more with --pairs, or with many near-duplicates",
        bytes(estimate.memory),
    ))?;
    if let (Some(of), Some(left)) = (estimate.budget, estimate.budget_of_documents) {
        let given = if memory_is_given { "--memory allows" } else { "there are" };
        let [taken, left] = bytes_apart(estimate.memory_of_documents, left);
        output.line(format_args!(
            "        {given} {}, {left} of it for documents, which take {taken}",
            bytes(of)
        ))?;
        output.line(format_args!(
            "        {}",
            match estimate.spills {
                true => format!(
                    "too little: documents are put on disk, with about {} of temporary files (--temporary)",
                    bytes(estimate.disk_of_temporary)
                ),
                false if estimate.disk_of_temporary > 0 => format!(
                    "documents stay in memory; similar pairs take about {} of temporary files (--temporary)",
                    bytes(estimate.disk_of_temporary)
                ),
                false => "documents stay in memory".to_owned(),
            }
        ))?;
    }
    match (estimate.question, &estimate.search) {
        (_, Some(search)) => print_search(output, search)?,
        (Question::Distance(distance), None) => {
            let bits = count_of(distance.into(), "bit");
            output.line(format_args!("search: fingerprints within {bits} of each other, all of them"))?;
        }
        (Question::Similarity(_), None) => {}
    }
    output.line(format_args!(
        "disk: up to {} for --output or --annotated, uncompressed; about {} for the {} of --resume",
        bytes(estimate.disk_of_output),
        bytes(estimate.disk_of_parts),
        count_of(estimate.parts as u64, "part")
    ))
}

fn print_search(output: &mut Output, search: &Search) -> Outcome {
    let &Search { similar, recall, recall_of_closer, sketches, joined, distance, total, .. } = search;
    output.line(format_args!(
        "search: {joined} of {sketches} sketches joined within {distance} bits, all within {total}: finds {:.1}% of the pairs \
         of similarity {similar}, {:.2}% of {}",
        recall * 100.0,
        recall_of_closer * 100.0,
        (1.0 + similar) / 2.0
    ))?;
    output.line(format_args!(
        "        about {} candidates, {} on one core besides reading, as in a sample of {}",
        rough(search.candidates),
        seconds(search.seconds),
        count_of(search.sampled, "document")
    ))?;
    if let Some(stored) = search.stored_candidates {
        output.line(format_args!("        about {} pairs of a document and a stored one", rough(stored)))?;
    }
    if search.crowded > 0 {
        output.line(format_args!(
            "        about {} documents are in crowds, such as pages of one template: they are found by their rare shingles",
            rough(search.crowded as f64)
        ))?;
    }
    Ok(())
}

/// A number that is known by its order of magnitude.
fn rough(number: f64) -> String {
    let unit = 10_f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    grouped(((number / unit).round() * unit) as u64)
}

fn seconds(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 7200.0 => format!("{:.0} hours", seconds / 3600.0),
        seconds if seconds >= 120.0 => format!("{:.0} minutes", seconds / 60.0),
        seconds => format!("{seconds:.1} s"),
    }
}
