//! Comparisons of removed documents with the representatives of their clusters, word by word.

use std::collections::BTreeMap;

use rayon::prelude::*;
use simstore::{Result, Snapshot};
use simstore_corpus::{Observer, Stage};
use simstore_text::{DiffSegment, DocumentComparer, WordDiff};

use crate::documents::rereader::DocumentRereader;
use crate::documents::text_starts::TextStart;
use crate::report::page::cluster_rows::{ClusterRows, ComparisonRequest, RepresentativePlace};
use crate::report::page::page_data::{ComparisonData, SegmentData, page_bytes};
use crate::report::run_results::RunResults;

/// Maximum number of comparisons on the page.
const MAX_COMPARISONS: usize = 2500;
/// Limit of all comparisons, in bytes of the page.
const MAX_BYTES: usize = 6 << 20;
/// Limit of one comparison, in bytes of the page.
const MAX_COMPARISON_BYTES: usize = 16 << 10;
/// Number of equal words shown on each side of a difference.
const CONTEXT_WORDS: usize = 25;

/// Makes the requested comparisons, as many as the page has room for, and enters their numbers in the rows. Reads the inputs
/// again if they have requested texts that were not put aside.
pub(crate) fn compare_documents(
    results: &RunResults,
    rows: &mut ClusterRows,
    observer: &dyn Observer,
) -> Result<Vec<ComparisonData>> {
    let requests = &rows.to_compare[..rows.to_compare.len().min(MAX_COMPARISONS)];
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let documents = read_documents(results, requests, observer)?;
    let stored = read_stored(results, requests)?;
    let compare = |request: &ComparisonRequest| {
        let representative = match request.representative {
            RepresentativePlace::Input(document) => documents.get(&document),
            RepresentativePlace::Stored { store, id } => stored.get(&(store, id)),
        };
        representative.zip(documents.get(&request.document)).map(|(a, b)| compare_texts(a, b))
    };
    let compared: Vec<Option<ComparisonData>> = requests.par_iter().map(compare).collect();
    let (mut comparisons, mut bytes) = (Vec::new(), 0);
    for (&ComparisonRequest { at: (row, member), .. }, comparison) in requests.iter().zip(compared) {
        let Some(comparison) = comparison else { continue };
        bytes += page_bytes(&comparison);
        if bytes > MAX_BYTES {
            break;
        }
        if let Some(member) = rows.rows[row].members.as_mut().and_then(|members| members.get_mut(member)) {
            member.diff = Some(comparisons.len());
            comparisons.push(comparison);
        }
    }
    Ok(comparisons)
}

/// Reads the requested documents of the input.
fn read_documents(
    results: &RunResults,
    requests: &[ComparisonRequest],
    observer: &dyn Observer,
) -> Result<BTreeMap<usize, TextStart>> {
    let Some(inputs) = results.resolved.documents() else { return Ok(BTreeMap::new()) };
    let mut documents: BTreeMap<usize, Option<TextStart>> = BTreeMap::new();
    for request in requests {
        documents.insert(request.document, None);
        if let RepresentativePlace::Input(document) = request.representative {
            documents.insert(document, None);
        }
    }
    if let Some(texts) = &results.texts {
        for (&document, start) in &mut documents {
            *start = texts.get(document as u64)?;
        }
    }
    let mut missing = documents.iter_mut().filter(|(_, start)| start.is_none()).peekable();
    if missing.peek().is_some() {
        let mut rereader = DocumentRereader::new(&results.corpus, inputs, &results.workspace);
        let stage = Stage::new(observer, "documents compared")
            .with_read_progress(rereader.progress(), || inputs.total_bytes());
        for (&document, start) in missing {
            let text = rereader.record(document)?.into_document(inputs.options())?.text;
            *start = Some(TextStart::new(&text));
            stage.add(1)?;
        }
    }
    Ok(documents.into_iter().filter_map(|(document, start)| Some((document, start?))).collect())
}

/// Reads the texts of the requested stored representatives. Stores without texts have none.
fn read_stored(
    results: &RunResults,
    requests: &[ComparisonRequest],
) -> Result<BTreeMap<(usize, u64), TextStart>> {
    let references = &results.resolved.references;
    let Some(profile) = results.resolved.text_profile.as_ref().filter(|_| references.are_similar()) else {
        return Ok(BTreeMap::new());
    };
    let comparers = references.text_comparers(profile)?;
    let stores: BTreeMap<usize, (&Snapshot<u64>, &DocumentComparer)> = references
        .with_width::<u64>()
        .zip(&comparers)
        .map(|((number, store), comparer)| (number as usize, (store, comparer)))
        .collect();
    let mut texts = BTreeMap::new();
    for request in requests {
        let RepresentativePlace::Stored { store, id } = request.representative else { continue };
        let Some((snapshot, comparer)) = stores.get(&store).filter(|_| !texts.contains_key(&(store, id)))
        else {
            continue;
        };
        if let Some(text) = comparer.text(snapshot, id)? {
            texts.insert((store, id), TextStart::new(&text));
        }
    }
    Ok(texts)
}

/// Compares the starts of two texts.
fn compare_texts(a: &TextStart, b: &TextStart) -> ComparisonData {
    let diff = WordDiff::new(&a.text, &b.text);
    let mut comparison = ComparisonData { cut: a.is_cut || b.is_cut, ..ComparisonData::default() };
    let mut bytes = 0;
    for segment in diff.segments(CONTEXT_WORDS) {
        let data = match segment {
            DiffSegment::Equal(text) => SegmentData::Equal(text.to_owned()),
            DiffSegment::Changed { a, b } => SegmentData::Changed(a.to_owned(), b.to_owned()),
            DiffSegment::Skipped(words) => SegmentData::Skipped(words),
        };
        // A comma separates the segments.
        bytes += page_bytes(&data) + 1;
        // The first passage is shown even if it is long: only the start of a text is compared.
        if comparison.more > 0 || bytes > MAX_COMPARISON_BYTES && !comparison.segments.is_empty() {
            comparison.more += usize::from(matches!(data, SegmentData::Changed(..)));
        } else {
            comparison.segments.push(data);
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(text: &str) -> TextStart {
        TextStart::new(text)
    }

    #[test]
    fn only_the_start_of_a_long_text_is_compared() {
        let long = "好 ".repeat(1 << 15);
        let comparison = compare_texts(&start(&long), &start("好 坏"));
        assert!(comparison.cut && page_bytes(&comparison) < 1 << 16);
        assert!(!compare_texts(&start("a"), &start("b")).cut);
    }

    #[test]
    fn passages_that_have_no_room_are_counted() {
        let words = |mark: &str| (0..2000).map(|i| format!("word{i} {mark}{i} ")).collect::<String>();
        let comparison = compare_texts(&start(&words("old")), &start(&words("new")));
        let shown = comparison.segments.iter().filter(|segment| matches!(segment, SegmentData::Changed(..)));
        let shown = shown.count();
        assert!(shown > 100 && comparison.more > 100, "{shown} {}", comparison.more);
        let bytes = page_bytes(&comparison);
        assert!(bytes < MAX_COMPARISON_BYTES + 200, "{bytes}");
        let compared = start(&words("old")).text.split_whitespace().count() / 2;
        assert!(compared.abs_diff(shown + comparison.more) <= 1, "{shown} {}", comparison.more);
    }
}
