//! Rows of what was found: lists, pairs and clusters.

use std::borrow::Cow;
use std::path::Path;

use simstore::{Fingerprint, Match, Result, Snapshot};

use super::against::{Against, Stored};
use super::clusters::{Cluster, Representative};
use super::corpus::Corpus;
use super::nearness::{How, Nearness};
use super::reasons::Reasons;
use super::similar::{LikeStored, StoredLike};
use super::written::Clustered;
use crate::output::{Complete, Output};
use crate::rows::{Cell, Column, Kind, Rows};
use crate::watch::each;
use crate::{DocumentId, IdRef, Watch};

/// A document and what it is near to.
pub(super) struct Near<'a> {
    pub(super) document: usize,
    pub(super) other: Other<'a>,
    pub(super) how: How,
}

/// What a document is near to.
pub(super) enum Other<'a> {
    /// A later document.
    Document(usize),
    /// Something stored, by what it is called, and which store has it.
    Stored(IdRef<'a>, usize),
}

/// Why a document is not kept.
pub(super) struct Reason {
    pub(super) document: usize,
    /// The document that it is a duplicate of; `None` for something stored.
    pub(super) of: Option<usize>,
    pub(super) of_id: DocumentId,
    pub(super) of_place: Option<String>,
    /// The store that has it.
    pub(super) store: Option<usize>,
    pub(super) how: How,
}

impl How {
    fn cells<'a>(self, with_errors: bool) -> impl Iterator<Item = Cell<'a>> {
        let distance = self.distance.map(|distance| Cell::Count(u64::from(distance)));
        // What is not estimated is exact.
        let error = with_errors.then(|| Cell::Share(self.error.unwrap_or_default()));
        distance.into_iter().chain(self.similarity.map(Cell::Share)).chain(error)
    }
}

/// What was found.
pub(super) struct Results<'a, F: Fingerprint> {
    pub(super) corpus: &'a Corpus<F>,
    pub(super) nearness: &'a Nearness<F>,
    pub(super) clusters: &'a [Cluster<F>],
    /// The stores that were compared with.
    pub(super) stores: &'a [Against<F>],
}

impl<'a, F: Fingerprint> Results<'a, F> {
    /// What is in the stores.
    fn stored(&self) -> impl Iterator<Item = &'a Snapshot<F>> + use<'a, F> {
        self.stores.iter().filter_map(Against::snapshot)
    }

    /// Whether there is a store that was compared with.
    pub(super) fn has_stored(&self) -> bool {
        self.stored().next().is_some()
    }

    /// The path of the store that has something, where there are several.
    pub(super) fn store(&self, store: usize) -> Option<&'a Path> {
        if self.stores.len() > 1 { Some(self.stores.get(store)?.path()) } else { None }
    }

    /// Columns for whether something was stored, and in which store.
    fn stored_columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        columns.extend(self.has_stored().then_some(("stored", Kind::Flag)));
        columns.extend((self.stores.len() > 1).then_some(("store", Kind::Text)));
        columns
    }

    /// Their cells, of something in a store if there is one.
    fn stored_cells<'c>(&self, store: Option<usize>, path: &'c str) -> impl Iterator<Item = Cell<'c>> {
        let flag = self.has_stored().then_some(Cell::Flag(store.is_some()));
        flag.into_iter().chain((self.stores.len() > 1).then_some(Cell::Text(path)))
    }

    fn ids(&self) -> Kind {
        Kind::Ids { are_numbers: self.corpus.are_numbers() }
    }

    /// Ids of documents and of what is stored.
    fn mixed_ids(&self) -> Kind {
        Kind::Ids { are_numbers: self.mixed_are_numbers() }
    }

    /// Whether all documents, and what is stored, are called by numbers.
    pub(super) fn mixed_are_numbers(&self) -> bool {
        self.corpus.are_numbers() && self.stored().all(|store| store.keeps_ids() && store.stats().names == 0)
    }

    /// How many of the documents that are kept have a fingerprint.
    pub(super) fn to_add(&self) -> u64 {
        // What is removed is near something, and so has one.
        let removed: usize = self.clusters.iter().map(|cluster| cluster.removed().count()).sum();
        (self.corpus.len() - self.corpus.empty() - removed) as u64
    }

    /// Where a document stands, in case its id does not tell which one it is.
    pub(super) fn place(&self, document: usize) -> Option<String> {
        (self.corpus.same_id() > 0).then(|| self.corpus.place(document))
    }

    /// Columns for places, if there are any.
    fn place_columns(&self, names: &[&'static str]) -> Vec<Column> {
        if self.corpus.same_id() == 0 {
            return Vec::new();
        }
        names.iter().map(|&name| (name, Kind::Text)).collect()
    }

    pub(super) fn list_columns(&self) -> Vec<Column> {
        [vec![("id", self.ids())], self.place_columns(&["place"])].concat()
    }

    /// Writes a list of what is kept.
    pub(super) fn write_kept(&self, rows: &mut Rows, clustered: &Clustered, watch: &dyn Watch) -> Result<()> {
        let (mut next, with_places) = (0, self.corpus.same_id() > 0);
        self.corpus.scan(watch, "rows written", |document| {
            if !clustered.of(document.number, &mut next).is_kept {
                return Ok(());
            }
            let place = with_places.then(|| document.place());
            let mut cells = vec![Cell::Id(document.id())];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.push(&cells)
        })
    }

    /// Writes a list of documents that are in clusters.
    pub(super) fn write_list(
        &self,
        rows: &mut Rows,
        documents: impl Iterator<Item = usize>,
        watch: &dyn Watch,
    ) -> Result<()> {
        each(watch, "rows written", documents, |document| {
            let place = self.place(document);
            let mut cells = vec![Cell::Id(self.corpus.id(document))];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.push(&cells)
        })
    }

    /// Writes ids as they are, each with a zero byte behind it.
    pub(super) fn write_ids(
        &self,
        mut output: Output,
        mut is_listed: impl FnMut(usize) -> bool,
        watch: &dyn Watch,
    ) -> Result<Complete> {
        let with_places = self.corpus.same_id() > 0;
        self.corpus.scan(watch, "ids written", |document| {
            if !is_listed(document.number) {
                return Ok(());
            }
            output.push(&document.id_bytes())?;
            if with_places {
                output.push(format!("\t{}", document.place()).as_bytes())?;
            }
            output.push(b"\0")
        })?;
        output.complete()
    }

    /// What is similar in stores of similar documents.
    fn stored_like(&self) -> Option<&'a StoredLike> {
        match self.nearness {
            Nearness::Similarity(similar) => similar.stored.as_ref(),
            Nearness::Distance { .. } => None,
        }
    }

    /// Whether rows have a column for standard errors.
    fn has_errors(&self) -> bool {
        self.stored_like().is_some_and(|stored| stored.is_estimated)
    }

    /// Columns for how near two are.
    fn how_columns(&self) -> Vec<Column> {
        let (distance, similarity) = (("distance", Kind::Count), ("similarity", Kind::Share));
        match self.nearness {
            Nearness::Similarity(_) if self.has_errors() => vec![similarity, ("error", Kind::Share)],
            Nearness::Similarity(_) => vec![similarity],
            Nearness::Distance { texts: Some(_), .. } => vec![distance, similarity],
            Nearness::Distance { texts: None, .. } => vec![distance],
        }
    }

    pub(super) fn pair_columns(&self) -> Vec<Column> {
        let mut columns = vec![("a", self.ids()), ("b", self.mixed_ids())];
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["a_place", "b_place"])].concat()
    }

    /// Visits the pairs of near documents, then those of documents with something stored.
    pub(super) fn visit_pairs(
        &self,
        watch: &dyn Watch,
        mut visitor: impl FnMut(Near<'_>) -> Result<()>,
    ) -> Result<()> {
        self.nearness.visit_pairs(watch, |document, other, how| {
            visitor(Near { document, other: Other::Document(other), how })
        })?;
        let groups = match self.nearness {
            Nearness::Distance { groups, .. } => groups,
            Nearness::Similarity(similar) => {
                let stored = similar.stored.iter().flat_map(StoredLike::all);
                return each(watch, "pairs with the store", stored, |like| {
                    let &LikeStored { document, store, id, similarity, error } = like;
                    let found = Match { fingerprint: F::default(), distance: 0, id: Some(id) };
                    let id = self.stored_id(&Stored { store, found })?;
                    let how = How { distance: None, similarity: Some(similarity), error: Some(error) };
                    visitor(Near { document, other: Other::Stored((&id).into(), store), how })
                });
            }
        };
        each(watch, "pairs with the store", groups.documents().into_iter(), |(document, group)| {
            groups.stored(group).iter().try_for_each(|(_, stored)| {
                let id = self.stored_id(stored)?;
                let how = How { distance: Some(stored.found.distance), ..How::default() };
                visitor(Near { document, other: Other::Stored((&id).into(), stored.store), how })
            })
        })
    }

    pub(super) fn write_pairs(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        self.visit_pairs(watch, |Near { document, other, how }| {
            let place = self.place(document);
            let (id, other_place, store) = match other {
                Other::Document(other) => (self.corpus.id(other), self.place(other), None),
                Other::Stored(id, store) => (id, place.is_some().then(String::new), Some(store)),
            };
            let path = self.path_of(store);
            let mut cells = vec![Cell::Id(self.corpus.id(document)), Cell::Id(id)];
            cells.extend(how.cells(self.has_errors()));
            cells.extend(self.stored_cells(store, &path));
            cells.extend([&place, &other_place].into_iter().flatten().map(|place| Cell::Text(place)));
            rows.push(&cells)
        })
    }

    /// What something stored is called: by its name, its id or, without ids, its fingerprint.
    fn stored_id(&self, &Stored { store, found }: &Stored<F>) -> Result<DocumentId> {
        let Some(id) = found.id else { return Ok(DocumentId::Name(found.fingerprint.to_hex())) };
        let snapshot = self.stores.get(store).and_then(Against::snapshot);
        Ok(match snapshot.map_or(Ok(None), |store| store.name(id))? {
            Some(name) => DocumentId::Name(name),
            None => DocumentId::Number(id),
        })
    }

    /// What that is called which stands for a cluster, and the store that had it before.
    pub(super) fn representative(&self, cluster: &Cluster<F>) -> Result<(DocumentId, Option<usize>)> {
        Ok(match &cluster.representative {
            Representative::Document(document) => (self.corpus.id(*document).into(), None),
            Representative::Stored(stored) => (self.stored_id(stored)?, Some(stored.store)),
        })
    }

    /// The path of a store as text; nothing of what is not stored.
    fn path_of(&self, store: Option<usize>) -> Cow<'a, str> {
        store.and_then(|store| self.store(store)).map_or(Cow::Borrowed(""), Path::to_string_lossy)
    }

    /// Where what stands for a cluster is to be found; nothing of what is stored.
    pub(super) fn place_of_representative(&self, cluster: &Cluster<F>) -> Option<String> {
        match cluster.representative {
            Representative::Document(document) => self.place(document),
            Representative::Stored(_) => None,
        }
    }

    /// How near a member of a cluster is to what stands for it.
    pub(super) fn how(&self, cluster: &Cluster<F>, at: usize) -> How {
        let similarity = cluster.similarities.as_ref().map(|similarities| similarities[at]);
        let distance = match self.nearness {
            Nearness::Similarity(_) => None,
            Nearness::Distance { .. } => {
                let fingerprint = self.corpus.fingerprint(cluster.members[at]);
                Some(fingerprint.distance(cluster.centre(self.corpus)))
            }
        };
        let stored = match cluster.representative {
            Representative::Stored(_) => self.stored_like(),
            Representative::Document(_) => None,
        };
        let error = stored.and_then(|stored| stored.best_of(cluster.members[at])).map(|like| like.error);
        How { distance, similarity, error }
    }

    pub(super) fn reason_columns(&self) -> Vec<Column> {
        let mut columns = vec![("id", self.ids()), ("duplicate_of", self.mixed_ids())];
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["place", "duplicate_of_place"])].concat()
    }

    /// What is not kept, in order of input, with what it is a duplicate of: see [`Reasons`].
    pub(super) fn removed(
        &self,
        watch: &dyn Watch,
    ) -> Result<impl Iterator<Item = Result<Reason>> + use<'a, '_, F>> {
        let of_cluster = |cluster: &'a Cluster<F>| {
            let members = cluster.members.iter().enumerate();
            let removed = members.filter(|&(_, &member)| !cluster.keeps(member));
            removed.map(move |(at, &member)| (member, cluster, at))
        };
        let mut removed: Vec<(usize, &Cluster<F>, usize)> =
            self.clusters.iter().flat_map(of_cluster).collect();
        removed.sort_unstable_by_key(|&(member, ..)| member);
        let reasons = Reasons::new(self, watch)?;
        Ok(removed.into_iter().map(move |(document, cluster, at)| {
            let nearest = reasons.of(document)?;
            let (of, how) =
                nearest.unwrap_or_else(|| (cluster.representative.clone(), self.how(cluster, at)));
            Ok(match of {
                Representative::Document(of) => {
                    let (of_id, of_place) = (self.corpus.id(of).into(), self.place(of));
                    Reason { document, of: Some(of), of_id, of_place, store: None, how }
                }
                Representative::Stored(stored) => {
                    let of_id = self.stored_id(&stored)?;
                    Reason { document, of: None, of_id, of_place: None, store: Some(stored.store), how }
                }
            })
        }))
    }

    /// Writes what is not kept, in order of input, with what it is a duplicate of.
    pub(super) fn write_reasons(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        each(watch, "rows written", self.removed(watch)?, |removed| {
            let Reason { document, of_id, of_place, store, how, .. } = removed?;
            let (place, path) = (self.place(document), self.path_of(store));
            let mut cells = vec![Cell::Id(self.corpus.id(document)), Cell::Id((&of_id).into())];
            cells.extend(how.cells(self.has_errors()));
            cells.extend(self.stored_cells(store, &path));
            if let Some(place) = &place {
                cells.extend([Cell::Text(place), Cell::Text(of_place.as_deref().unwrap_or_default())]);
            }
            rows.push(&cells)
        })
    }

    pub(super) fn cluster_columns(&self) -> Vec<Column> {
        let mut columns = vec![("id", self.ids()), ("cluster", Kind::Count)];
        columns.push(("representative", self.mixed_ids()));
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["place", "representative_place"])].concat()
    }

    pub(super) fn write_clusters(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        each(watch, "clusters written", (1..).zip(self.clusters), |(number, cluster)| {
            let representative_place = self.place_of_representative(cluster).unwrap_or_default();
            let (representative, store) = self.representative(cluster)?;
            let path = self.path_of(store);
            for (at, &member) in cluster.members.iter().enumerate() {
                let place = self.place(member);
                let mut cells = vec![Cell::Id(self.corpus.id(member)), Cell::Count(number)];
                cells.push(Cell::Id((&representative).into()));
                cells.extend(self.how(cluster, at).cells(self.has_errors()));
                cells.extend(self.stored_cells(store, &path));
                if let Some(place) = &place {
                    cells.extend([Cell::Text(place), Cell::Text(&representative_place)]);
                }
                rows.push(&cells)?;
            }
            Ok(())
        })
    }
}
