//! `simstore idf`: inverse document frequencies, learned from a corpus.

use std::path::PathBuf;

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;
use simstore_corpus::{Counts, InputKind, Inputs};
use simstore_text::DocumentFrequencies;

use crate::counts::warn;
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, BadLines, DocumentArgs, count_of};
use crate::output::Output;
use crate::progress::Progress;

const EXAMPLES: &str = "\
With --json, a line is an object:
  feature      a feature, as the profile makes it
  documents    in how many documents it comes
  idf          its inverse document frequency, ln(1 + N / documents) of N documents, to four decimals

Examples:
  simstore idf --profile words-2 samples/en.jsonl > en.idf
  simstore fingerprint --profile words-2,weights=idf --idf en.idf samples/en.jsonl
  simstore idf --profile jieba samples/zh.jsonl > zh.idf
  simstore fingerprint --profile jieba-20 --idf zh.idf samples/zh.jsonl";

/// Print the inverse document frequency of each feature of a corpus: lines FEATURE<TAB>IDF
///
/// With `--idf`, the table weights features, where the profile says `weights=idf`, or chooses keywords; a store keeps
/// its checksum. Of Chinese texts, every word that may be a keyword counts. Takes memory for all different features.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct IdfArgs {
    /// Documents: .jsonl files, texts, folders; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Leave out features of fewer documents: most features are rare, and a text can do without a weight of their own
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    min_documents: u64,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Row<'a> {
    feature: &'a str,
    documents: u64,
    idf: f64,
}

/// Bytes of text that all threads count together.
const BATCH_BYTES: usize = 8 << 20;

pub(crate) fn run(args: &IdfArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs)?;
    if inputs::kind(&inputs)? == InputKind::Fingerprints {
        return Err(Failure::Usage("the inputs hold fingerprints already, not documents".to_owned()));
    }
    let frequencies = count(args, &inputs, progress)?;
    let rows = frequencies.rows(args.min_documents);
    let mut output = Output::stdout();
    for row in &rows {
        if args.json {
            output.json(&Row { feature: row.feature, documents: row.documents, idf: row.idf })?;
        } else {
            output.line(row)?;
        }
    }
    output.finish()?;
    progress.say(&format!(
        "{}, {} of {} kept, {:.1} s",
        count_of(frequencies.documents(), "document"),
        rows.len(),
        count_of(frequencies.features() as u64, "feature"),
        progress.seconds()
    ));
    Ok(())
}

fn count(args: &IdfArgs, inputs: &Inputs, progress: &Progress) -> Outcome<DocumentFrequencies> {
    let profile = args.documents.profile.profile(None)?;
    let mut counter = progress.counter("documents");
    let mut bad = BadLines::new(args.documents.skip_bad, progress);
    let mut parts = vec![DocumentFrequencies::default(); rayon::current_num_threads()];
    let mut counts = Counts::default();
    let mut documents = inputs.documents();
    loop {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(document) = documents.next()
        {
            match document {
                Ok(document) => {
                    bytes += document.text.len();
                    (counts.read, counts.replaced) = (counts.read + 1, counts.replaced + document.replaced);
                    batch.push(document.text);
                }
                Err(error) => bad.take(error.into())?,
            }
        }
        if batch.is_empty() {
            break;
        }
        let share = batch.len().div_ceil(parts.len());
        batch.par_chunks(share).zip(&mut parts).for_each(|(texts, part)| {
            texts.iter().for_each(|text| part.add(&profile, text));
        });
        counter.add(batch.len() as u64);
    }
    counts.bad = bad.count();
    warn(&counts, InputKind::Documents, progress);
    let mut all = DocumentFrequencies::default();
    parts.into_iter().for_each(|part| all.merge(part));
    Ok(all)
}
