//! What is compared.

use std::fmt;

use simstore::{Error, Result};

use super::documents::Listing;
use super::files::Files;
use super::options::Options;
use crate::{DocumentId, InputKind, Inputs};

/// A document that is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it is called.
    pub id: DocumentId,
    /// Its text.
    pub text: String,
    /// What decides whether it is kept, for [`Keep::Newest`](super::Keep::Newest).
    pub extra: Option<String>,
}

/// What is compared: files, or what is handed over one by one.
///
/// What is handed over can be read only once: documents are not written again, and no work is kept in parts; where texts are
/// compared, their features are put aside on disk. Its place is `-`, standard input, where ids repeat.
pub enum Source<'a> {
    /// Files of documents or of fingerprints.
    Files(Inputs),
    /// Documents.
    Documents(Box<dyn Iterator<Item = Result<Text>> + 'a>),
    /// Fingerprints of 64 or 128 bits, with ids.
    Fingerprints(Box<dyn Iterator<Item = Result<(DocumentId, u128)>> + 'a>),
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Files(inputs) => inputs.fmt(f),
            Source::Documents(_) => f.write_str("Documents"),
            Source::Fingerprints(_) => f.write_str("Fingerprints"),
        }
    }
}

impl From<Inputs> for Source<'_> {
    fn from(inputs: Inputs) -> Self {
        Source::Files(inputs)
    }
}

impl<'a> Source<'a> {
    /// Documents that are handed over: ids and texts.
    pub fn documents(documents: impl IntoIterator<Item = (DocumentId, String)> + 'a) -> Source<'a> {
        let text = |(id, text)| Ok(Text { id, text, extra: None });
        Source::Documents(Box::new(documents.into_iter().map(text)))
    }

    /// Fingerprints that are handed over, with ids.
    pub fn fingerprints(fingerprints: impl IntoIterator<Item = (DocumentId, u128)> + 'a) -> Source<'a> {
        Source::Fingerprints(Box::new(fingerprints.into_iter().map(Ok)))
    }

    pub(super) fn kind(&self) -> Result<InputKind> {
        match self {
            Source::Files(inputs) => inputs.kind(),
            Source::Documents(_) => Ok(InputKind::Documents),
            Source::Fingerprints(_) => Ok(InputKind::Fingerprints),
        }
    }

    /// Refuses what needs files.
    pub(super) fn check(&self, options: &Options, files: &Files) -> Result<()> {
        if matches!(self, Source::Files(_)) {
            return Ok(());
        }
        let writes_documents = matches!(self, Source::Documents(_)) && files.write_documents();
        let of_files = [(options.resume.is_some(), "resume"), (writes_documents, "output")];
        match of_files.iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(Error::BadArgument(format!(
                "option `{option}` is for files: what is handed over can be read only once"
            ))),
            None => Ok(()),
        }
    }

    /// The files of documents as they are now.
    pub(super) fn listing(&self) -> Result<Option<Listing>> {
        match self {
            Source::Files(inputs) if inputs.kind()? == InputKind::Documents => {
                Listing::read(inputs).map(Some)
            }
            _ => Ok(None),
        }
    }
}
