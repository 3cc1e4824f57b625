//! Messages of usage errors.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use simstore::error::excerpt;

/// Options of other tools, each with advice that names the option of `simstore` to use instead.
const OPTIONS_OF_OTHER_TOOLS: [(&str, &str); 7] = [
    ("--threshold", "the threshold of the Jaccard similarity is '--similar'"),
    ("--jaccard", "the threshold of the Jaccard similarity is '--similar'"),
    ("--num-perm", "the number of hash functions follows from '--similar' and '--recall'"),
    ("--num_perm", "the number of hash functions follows from '--similar' and '--recall'"),
    ("--ngram", "word n-grams are '--verify-profile words-N'"),
    ("--jobs", "the number of threads is '--threads'"),
    ("--workers", "the number of threads is '--threads'"),
];

/// Improves the message of a usage error: shortens long quoted values, and adds advice if the user gave an option of another
/// tool.
pub(crate) fn improve_message(mut error: clap::Error) -> clap::Error {
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue] {
        if let Some(ContextValue::String(value)) = error.get(kind) {
            let short = excerpt(value).into_owned();
            if short != *value {
                error.insert(kind, ContextValue::String(short));
                // A suggestion would quote the whole value.
                error.remove(ContextKind::Suggested);
            }
        }
    }
    if let Some(advice) = advice(&error) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(advice)]));
    }
    error
}

/// Returns advice if the unknown argument is an option of another tool, and the command is `simstore dedup`.
fn advice(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || !usage.to_string().contains("simstore dedup ") {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    OPTIONS_OF_OTHER_TOOLS.iter().find(|(name, _)| name == option).map(|&(_, advice)| advice)
}
