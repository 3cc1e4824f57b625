//! Stores of similar documents: how similar a text is to what is in one.

use serde::Serialize;
use simstore::{Fingerprint, Snapshot};
use simstore_text::{Estimate, Profile, SimilarSettings, similar_among};

use crate::failure::{Failure, Outcome};
use crate::output::{Output, column};

#[derive(Serialize)]
struct SimilarObject<'a> {
    similarity: f64,
    error: f64,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
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
    settings: &SimilarSettings,
    profile: &Profile,
    text: &str,
    json: bool,
    output: &mut Output,
) -> Outcome {
    let Some(kept) = settings.keep(&profile.feature_set(text)) else {
        return Err(Failure::Failed("the text is empty: it is similar to none".to_owned()));
    };
    for found in similar_among(store, kept.sample(), &kept.candidates(store)?, settings.similar())? {
        if json {
            output.json(&SimilarObject {
                similarity: found.estimate.similarity,
                error: found.estimate.standard_error,
                id: found.id,
                name: found.name.as_deref(),
            })?;
        } else {
            let called = found.name.map_or_else(|| found.id.to_string(), |name| column(&name).into_owned());
            output.line(format_args!("{}\t{called}", columns(found.estimate)))?;
        }
    }
    Ok(())
}
