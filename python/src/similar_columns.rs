//! What is similar, in columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{Float64Builder, LargeStringBuilder, UInt64Builder};
use rayon::prelude::*;
use simstore::Result;
use simstore::threads::ensure_pool;
use simstore_text::SimilarDocument;

use crate::gate::Call;
use crate::similar_adding::TEXTS;

/// Columns of what is similar.
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

/// Does something for each of so many, on all cores.
pub(crate) fn in_parallel<T: Send>(
    call: &Call,
    count: usize,
    one: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    ensure_pool()?;
    let mut done = Vec::with_capacity(count);
    for start in (0..count).step_by(TEXTS) {
        let end = count.min(start + TEXTS);
        let some = (start..end).into_par_iter().map(|at| call.check().and_then(|()| one(at)));
        done.extend(some.collect::<Result<Vec<T>>>()?);
        call.step("texts", end as u64, count as u64);
    }
    Ok(done)
}
