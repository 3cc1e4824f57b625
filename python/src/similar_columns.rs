//! Similar documents in columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, LargeStringBuilder, UInt64Builder};
use simstore_text::SimilarDocument;

/// Columns of similar documents.
#[derive(Default)]
pub(crate) struct Similar {
    ids: UInt64Builder,
    names: LargeStringBuilder,
    similarities: Float64Builder,
    errors: Float64Builder,
}

impl Similar {
    pub(crate) fn push(&mut self, found: Option<&SimilarDocument>) {
        self.ids.append_option(found.map(|found| found.id));
        self.names.append_option(found.and_then(|found| found.name.as_deref()));
        self.similarities.append_option(found.map(|found| found.estimate.similarity));
        self.errors.append_option(found.map(|found| found.estimate.standard_error));
    }

    /// The ids by this name, and the rest.
    pub(crate) fn columns(mut self, id: &str) -> [(&str, ArrayRef); 4] {
        [
            (id, Arc::new(self.ids.finish())),
            ("name", Arc::new(self.names.finish())),
            ("similarity", Arc::new(self.similarities.finish())),
            ("error", Arc::new(self.errors.finish())),
        ]
    }
}
