//! Queries in stores of similar documents: the similarity of a text to stored documents.

use serde::Serialize;
use simstore::{Fingerprint, Snapshot};
use simstore_text::{Estimate, Sketched, StoredTexts};

use crate::compare;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, escaped_name};

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

/// The output about the stored texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Nothing,
    /// Differences between stored texts and the query text.
    Differences,
    Texts,
}

impl Show {
    pub(crate) fn of(diff: bool, show: bool) -> Show {
        match (diff, show) {
            (true, _) => Show::Differences,
            (false, true) => Show::Texts,
            (false, false) => Show::Nothing,
        }
    }
}

/// The similarity, rounded down so that only what is 1 is shown as such, and its standard error, rounded up.
pub(crate) fn columns(estimate: Estimate) -> String {
    let similarity = (estimate.similarity * 1000.0 + 1e-9).floor() / 1000.0;
    let error = (estimate.standard_error * 1000.0 - 1e-9).ceil().max(0.0) / 1000.0;
    format!("{similarity}\t{error}")
}

/// Prints the stored documents that are similar to a text, the most similar first.
pub(crate) fn print<F: Fingerprint>(
    store: &Snapshot<F>,
    stored: &StoredTexts,
    text: &str,
    show: Show,
    json: bool,
    output: &mut Output,
) -> Outcome {
    let features = stored.profile().feature_set(text);
    let Some(sketched) = Sketched::new(&features) else {
        return Err(Failure::Failed("the text is empty: no document is similar to it".to_owned()));
    };
    let settings = stored.settings();
    let candidates = settings.candidates(store, &sketched)?;
    for found in stored.similar_among(store, &sketched, || Ok(features), &candidates, settings.similar())? {
        let of_stored = if show == Show::Nothing { None } else { stored.text(store, found.id)? };
        if json {
            output.json(&SimilarObject {
                similarity: found.estimate.similarity,
                error: found.estimate.standard_error,
                id: found.id,
                name: found.name.as_deref(),
                text: of_stored.as_deref(),
            })?;
            continue;
        }
        let called = found.name.map_or_else(|| found.id.to_string(), |name| escaped_name(&name).into_owned());
        output.line(format_args!("{}\t{called}", columns(found.estimate)))?;
        match (show, of_stored) {
            (Show::Differences, Some(of_stored)) => compare::print_differences(output, text, &of_stored)?,
            (Show::Texts, Some(of_stored)) => output.line(of_stored.trim_end())?,
            _ => {}
        }
    }
    Ok(())
}
