//! What is similar to documents in stores of similar documents.

/// A stored document that is similar to one of the corpus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct LikeStored {
    pub(in super::super) document: usize,
    /// Which of the stores, and the id there.
    pub(in super::super) store: usize,
    pub(in super::super) id: u64,
    pub(in super::super) similarity: f32,
    /// The standard error of the similarity; 0 if it is exact.
    pub(in super::super) error: f32,
}

/// All that was found in stores.
#[derive(Debug, Default)]
pub(in super::super) struct StoredLike {
    /// By document, the most similar one first: it stands for the document. The others are there if all pairs were asked for.
    found: Vec<LikeStored>,
    /// Whether similarities are estimated: some store keeps no texts.
    pub(in super::super) is_estimated: bool,
}

impl StoredLike {
    pub(in super::super) fn new(is_estimated: bool) -> Self {
        StoredLike { found: Vec::new(), is_estimated }
    }

    /// Adds what is similar to a document, behind those before; the most similar one first.
    pub(in super::super) fn extend(&mut self, found: impl IntoIterator<Item = LikeStored>) {
        self.found.extend(found);
    }

    /// All, by document.
    pub(in super::super) fn all(&self) -> &[LikeStored] {
        &self.found
    }

    /// The most similar one of each document that has one.
    pub(in super::super) fn best(&self) -> impl Iterator<Item = &LikeStored> {
        self.found.chunk_by(|a, b| a.document == b.document).map(|of_document| &of_document[0])
    }

    /// The most similar one of a document.
    pub(in super::super) fn best_of(&self, document: usize) -> Option<&LikeStored> {
        let at = self.found.partition_point(|found| found.document < document);
        self.found.get(at).filter(|found| found.document == document)
    }

    /// How many documents are similar to something by an estimate that is not exact, and the greatest standard error of these.
    pub(in super::super) fn estimated(&self) -> (u64, f64) {
        let errors = self.best().map(|found| f64::from(found.error)).filter(|&error| error > 0.0);
        errors.fold((0, 0.0), |(count, greatest), error| (count + 1, error.max(greatest)))
    }
}
