//! What a run would read, and how much memory and disk it would take.

use simstore_corpus::dedup::{Estimate, Search};

use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::numbers::{bytes, grouped};
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
        output.line(format_args!("about {documents} fingerprints; more, where files are compressed"))?;
    } else {
        output.line(format_args!(
            "about {documents} documents, {} of text, by the first documents of at most {} files",
            bytes(estimate.text_bytes),
            Estimate::SAMPLED_FILES
        ))?;
    }
    output.line(format_args!(
        "memory: about {}; {} for fingerprints and ids, if all are there; more with --pairs, or where much is near something",
        bytes(estimate.memory),
        bytes(estimate.memory_of_documents)
    ))?;
    if let Some(budget) = estimate.budget {
        let given = if memory_is_given { "--memory allows" } else { "there are" };
        let spills = match (estimate.spills, estimate.search.is_some()) {
            (true, is_similarity) => format!(
                "too little: documents are put on disk, with about {} of temporary files (--temporary){}",
                bytes(estimate.disk_of_temporary),
                if is_similarity { ", and more for those of fewer than 32 shingles" } else { "" }
            ),
            (false, _) => "documents stay in memory".to_owned(),
        };
        output.line(format_args!("        {given} {}, {spills}", bytes(budget)))?;
    }
    if let Some(search) = &estimate.search {
        let Search { similar, recall, recall_of_closer, sketches, joined, distance, total, .. } = search;
        output.line(format_args!(
            "search: {joined} of {sketches} sketches joined within {distance} bits, all within {total}: finds {:.1}% of the pairs \
             of similarity {similar}, {:.2}% of {}",
            recall * 100.0,
            recall_of_closer * 100.0,
            (1.0 + similar) / 2.0
        ))?;
        output.line(format_args!(
            "        some {} pairs of unrelated documents looked at, {:.1} s on one core besides reading",
            grouped(search.unrelated_pairs as u64),
            search.seconds
        ))?;
    }
    output.line(format_args!(
        "disk: up to {} for --output or --annotated, uncompressed; about {} for the {} of --resume",
        bytes(estimate.disk_of_output),
        bytes(estimate.disk_of_parts),
        count_of(estimate.parts as u64, "part")
    ))
}
