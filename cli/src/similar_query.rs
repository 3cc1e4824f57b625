//! Queries of a store of similar documents: prints the stored documents that are similar to a text.

use serde::Serialize;
use simstore::{Fingerprint, Snapshot};
use simstore_text::{DocumentComparer, Signature, SimilarityEstimate};

use crate::command_error::{CommandError, CommandResult};
use crate::compare;
use crate::output::{Output, escape_name};

#[derive(Serialize)]
struct SimilarObject<'a> {
    similarity: f64,
    error: f64,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

/// What is printed of each stored text that is similar to the query text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOutput {
    None,
    /// The differences between the stored text and the query text.
    Differences,
    Full,
}

impl TextOutput {
    pub(crate) fn from_flags(diff: bool, show: bool) -> TextOutput {
        match (diff, show) {
            (true, _) => TextOutput::Differences,
            (false, true) => TextOutput::Full,
            (false, false) => TextOutput::None,
        }
    }
}

/// Returns the similarity and its standard error, separated by a tab, with at most three decimals. The similarity is rounded down, so that
/// only an exact 1 is printed as 1. The error is rounded up.
pub(crate) fn format_estimate(estimate: SimilarityEstimate) -> String {
    let similarity = (estimate.similarity * 1000.0 + 1e-9).floor() / 1000.0;
    let error = (estimate.standard_error * 1000.0 - 1e-9).ceil().max(0.0) / 1000.0;
    format!("{similarity}\t{error}")
}

/// Prints the stored documents that are similar to `text`, most similar first.
pub(crate) fn print_similar<F: Fingerprint>(
    store: &Snapshot<F>,
    comparer: &DocumentComparer,
    text: &str,
    text_output: TextOutput,
    json: bool,
    output: &mut Output,
) -> CommandResult {
    let features = comparer.profile().feature_set(text);
    let Some(signature) = Signature::new(&features) else {
        return Err(CommandError::Failed("the text is empty: no document is similar to it".to_owned()));
    };
    let settings = comparer.settings();
    let candidates = settings.candidates(store, &signature)?;
    for document in
        comparer.find_similar(store, &signature, || Ok(features), &candidates, settings.min_similarity())?
    {
        let stored_text =
            if text_output == TextOutput::None { None } else { comparer.text(store, document.id)? };
        if json {
            output.write_json(&SimilarObject {
                similarity: document.estimate.similarity,
                error: document.estimate.standard_error,
                id: document.id,
                name: document.name.as_deref(),
                text: stored_text.as_deref(),
            })?;
            continue;
        }
        let label =
            document.name.map_or_else(|| document.id.to_string(), |name| escape_name(&name).into_owned());
        output.write_line(format_args!("{}\t{label}", format_estimate(document.estimate)))?;
        match (text_output, stored_text) {
            (TextOutput::Differences, Some(stored_text)) => {
                compare::print_differences(output, text, &stored_text)?;
            }
            (TextOutput::Full, Some(stored_text)) => output.write_line(stored_text.trim_end())?,
            _ => {}
        }
    }
    Ok(())
}
