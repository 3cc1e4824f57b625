//! Output tables: lists of documents, pairs and clusters.

use std::borrow::Cow;
use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::error::excerpt;
use simstore::{Error, Result};

use crate::config::criterion::Criterion;
use crate::documents::DocumentLookup;
use crate::reference_stores::ReferenceStore;
use crate::report::reported_pair::{OtherDocument, Proximity, RemovalReason, ReportedPair};
use crate::report::run_results::{RunResults, StoreAddition};
use crate::rows::{MemberRow, PairScore, RepresentativeId, ScoreWithError, StoredRow, similarity_from_score};
use simstore_corpus::Observer;
use simstore_corpus::{Stage, visit_in_stage};
use simstore_io::DocumentId;
use simstore_io::output::{CompleteOutput, Output};
use simstore_io::result_table::{Cell, Column, ColumnKind, ResultTableWriter};

impl RunResults {
    /// Snapshots of the reference stores.
    fn stored_snapshots(&self) -> impl Iterator<Item = &AnySnapshot> {
        self.stores().iter().filter_map(ReferenceStore::snapshot)
    }

    /// Returns columns about the second document of a pair: whether it is a stored document, and the path of its
    /// store. The first column exists only if the run has reference stores, the second one only if the run has
    /// several reference stores.
    fn stored_columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        columns.extend(self.has_stores().then_some(("stored", ColumnKind::Flag)));
        columns.extend((self.stores().len() > 1).then_some(("store", ColumnKind::Text)));
        columns
    }

    /// Returns the cells for the columns of [`stored_columns`](Self::stored_columns). For a stored document, `store` is
    /// the index of its store, and `path` is the path of its store. For an input document, `store` is `None`.
    fn stored_cells<'c>(&self, store: Option<usize>, path: &'c str) -> impl Iterator<Item = Cell<'c>> {
        let flag = self.has_stores().then_some(Cell::Flag(store.is_some()));
        flag.into_iter().chain((self.stores().len() > 1).then_some(Cell::Text(path)))
    }

    fn id_column_kind(&self) -> ColumnKind {
        ColumnKind::Ids { are_numbers: self.corpus.ids_are_numbers }
    }

    /// Returns the kind of a column that has ids of input documents and ids of stored documents.
    fn mixed_id_column_kind(&self) -> ColumnKind {
        ColumnKind::Ids { are_numbers: self.all_ids_are_numbers() }
    }

    /// Whether the ids of all input documents and stored documents are numbers.
    pub(crate) fn all_ids_are_numbers(&self) -> bool {
        self.corpus.ids_are_numbers
            && self.stored_snapshots().all(|store| store.keeps_ids() && store.stats().names == 0)
    }

    /// Returns the location of a document, if ids repeat in the input.
    pub(crate) fn location(&self, lookup: &DocumentLookup<'_>, document: usize) -> Option<String> {
        (self.corpus.repeated_ids > 0).then(|| lookup.location(document))
    }

    /// Visits each row, together with a lookup that has the documents of the row. `documents` returns the indexes
    /// of the input documents of a row, at most two. `what` names the stage of the progress reports. If documents
    /// are on disk, loads the documents of as many rows at a time as one lookup allows.
    pub(crate) fn visit_with_lookup<T>(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut rows: impl Iterator<Item = Result<T>>,
        documents: impl Fn(&T) -> [Option<usize>; 2],
        mut visitor: impl FnMut(&DocumentLookup<'_>, T) -> Result<()>,
    ) -> Result<()> {
        let stage = Stage::new(observer, what);
        stage.add(0)?;
        let most = self.corpus.max_lookup_documents() / 2;
        if self.corpus.spilled().is_none() {
            let lookup = self.corpus.lookup(Vec::new(), observer)?;
            return visit_in_stage(observer, what, rows, |row| visitor(&lookup, row?));
        }
        loop {
            let batch: Vec<T> = rows.by_ref().take(most).collect::<Result<_>>()?;
            if batch.is_empty() {
                return Ok(());
            }
            let lookup = self.lookup_for_rows(&batch, &documents, observer)?;
            for row in batch {
                visitor(&lookup, row)?;
                stage.add(1)?;
            }
        }
    }

    /// Loads the input documents of all `rows`. `documents` returns the indexes of the documents of a row.
    pub(crate) fn lookup_for_rows<T>(
        &self,
        rows: &[T],
        documents: impl Fn(&T) -> [Option<usize>; 2],
        observer: &dyn Observer,
    ) -> Result<DocumentLookup<'_>> {
        let mut numbers: Vec<usize> = rows.iter().flat_map(documents).flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        self.corpus.lookup(numbers, observer)
    }

    /// Returns columns with these names, for the locations of documents; an empty list if no id repeats in the
    /// input, because the tables then have no locations.
    fn location_columns(&self, names: &[&'static str]) -> Vec<Column> {
        if self.corpus.repeated_ids == 0 {
            return Vec::new();
        }
        names.iter().map(|&name| (name, ColumnKind::Text)).collect()
    }

    pub(crate) fn list_columns(&self) -> Vec<Column> {
        [vec![("id", self.id_column_kind())], self.location_columns(&["place"])].concat()
    }

    /// Columns of a table of pairs. `ids` and `location_names` are the names of the columns for the ids and
    /// locations of the two documents.
    pub(crate) fn pair_columns(
        &self,
        ids: [&'static str; 2],
        location_names: [&'static str; 2],
    ) -> Vec<Column> {
        let (one, other) = ((ids[0], self.id_column_kind()), (ids[1], self.mixed_id_column_kind()));
        let proximity = self.proximity_columns();
        [vec![one, other], proximity, self.stored_columns(), self.location_columns(&location_names)].concat()
    }

    /// Writes the list of kept documents if `keeps` is set, else the list of removed documents.
    pub(crate) fn write_list(
        &self,
        rows: &mut ResultTableWriter,
        keeps: bool,
        observer: &dyn Observer,
    ) -> Result<()> {
        let (mut cluster_cursor, with_places) = (self.cluster_cursor()?, self.corpus.repeated_ids > 0);
        self.corpus.scan(observer, "rows written", |document| {
            if cluster_cursor.status(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let place = with_places.then(|| document.location());
            let mut cells = vec![Cell::Id(document.id())];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.write_row(&cells)
        })
    }

    /// Writes the ids of the kept documents if `keeps` is set, else the ids of the removed documents. Ids are
    /// not escaped, and each ends in a zero byte.
    pub(crate) fn write_ids(
        &self,
        mut output: Output,
        keeps: bool,
        observer: &dyn Observer,
    ) -> Result<CompleteOutput> {
        let (mut cluster_cursor, with_places) = (self.cluster_cursor()?, self.corpus.repeated_ids > 0);
        self.corpus.scan(observer, "ids written", |document| {
            if cluster_cursor.status(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let id = document.id_bytes();
            if id.contains(&0) {
                return Err(Error::Refused(format!(
                    "{}: the id `{}` contains a zero byte, which would end the id in this list: write the list without option `null`",
                    document.location(),
                    excerpt(&document.id().escaped_text())
                )));
            }
            output.write_bytes(&id)?;
            if with_places {
                output.write_bytes(format!("\t{}", document.location()).as_bytes())?;
            }
            output.write_bytes(b"\0")
        })?;
        output.complete()
    }

    /// Whether tables have a column for standard errors. They do if a store keeps no texts, because similarities
    /// to its documents are estimated.
    pub(crate) fn has_standard_errors(&self) -> bool {
        let addition = self.addition.as_ref().and_then(StoreAddition::settings);
        self.outcome.stored.is_estimated || addition.is_some_and(|settings| !settings.has_texts())
    }

    /// Whether documents with near fingerprints are near-duplicates only if their texts are similar, too.
    fn verifies_texts(&self) -> bool {
        matches!(self.resolved.criterion, Criterion::Distance(_)) && self.outcome.compared.is_some()
    }

    /// Columns for the distance or the similarity of a pair.
    fn proximity_columns(&self) -> Vec<Column> {
        let (distance, similarity) = (("distance", ColumnKind::Count), ("similarity", ColumnKind::Share));
        match self.resolved.criterion {
            Criterion::Similarity(_) if self.has_standard_errors() => {
                vec![similarity, ("error", ColumnKind::Share)]
            }
            Criterion::Similarity(_) => vec![similarity],
            Criterion::Distance(_) if self.verifies_texts() => vec![distance, similarity],
            Criterion::Distance(_) => vec![distance],
        }
    }

    /// Converts a score and its standard error to a distance or similarity. `distance` computes the distance of
    /// the two fingerprints; it is called only if documents are compared by distance.
    fn proximity_from_score(
        &self,
        (score, error): ScoreWithError,
        distance: impl FnOnce() -> u32,
    ) -> Proximity {
        match self.resolved.criterion {
            Criterion::Similarity(_) => Proximity {
                distance: None,
                similarity: Some(similarity_from_score(score)),
                standard_error: Some(similarity_from_score(error)),
            },
            Criterion::Distance(_) => {
                let text_similarity = self.verifies_texts().then(|| similarity_from_score(score));
                Proximity { distance: Some(distance()), similarity: text_similarity, standard_error: None }
            }
        }
    }

    /// Returns the distance or similarity of a document and its representative `by`. `measure` is the score of the
    /// two. The result has a standard error only if the representative is a stored document.
    pub(crate) fn proximity(
        &self,
        lookup: &DocumentLookup<'_>,
        document: usize,
        by: RepresentativeId,
        measure: ScoreWithError,
    ) -> Result<Proximity> {
        let centre = match (self.resolved.criterion, by.get()) {
            (Criterion::Similarity(_), _) => 0,
            (_, Ok(other)) => lookup.fingerprint(other),
            (_, Err(number)) => self.outcome.stored.representatives.get(number as usize)?.fingerprint,
        };
        let proximity =
            self.proximity_from_score(measure, || (lookup.fingerprint(document) ^ centre).count_ones());
        Ok(Proximity { standard_error: proximity.standard_error.filter(|_| by.get().is_err()), ..proximity })
    }

    fn pair(
        &self,
        lookup: &DocumentLookup<'_>,
        document: usize,
        by: RepresentativeId,
        measure: ScoreWithError,
    ) -> Result<ReportedPair> {
        Ok(ReportedPair {
            document,
            other: self.other_document(by)?,
            proximity: self.proximity(lookup, document, by, measure)?,
        })
    }

    fn stored_pair(
        &self,
        document: usize,
        stored: &StoredRow,
        measure: ScoreWithError,
    ) -> Result<ReportedPair> {
        let proximity = self.proximity_from_score(measure, || measure.0 as u32);
        Ok(ReportedPair { document, other: self.other_stored_document(stored)?, proximity })
    }

    /// Converts the id of a representative to the second document of a pair. Looks up the name of a stored
    /// document.
    pub(crate) fn other_document(&self, by: RepresentativeId) -> Result<OtherDocument> {
        match by.get() {
            Ok(document) => Ok(OtherDocument::Document(document)),
            Err(number) => {
                self.other_stored_document(&self.outcome.stored.representatives.get(number as usize)?)
            }
        }
    }

    /// Returns the store and the id of a stored representative, given the number of its row. `None` if its store has no ids.
    pub(crate) fn stored_id(&self, row: u64) -> Result<Option<(usize, u64)>> {
        let stored = self.outcome.stored.representatives.get(row as usize)?;
        Ok(stored.id.map(|id| (stored.store as usize, id)))
    }

    /// Returns a stored document as the second document of a pair, identified by its name; if it has no name, by
    /// its number; in a store without ids, by its fingerprint.
    fn other_stored_document(&self, stored: &StoredRow) -> Result<OtherDocument> {
        let store = stored.store as usize;
        let Some(id) = stored.id else {
            return Ok(OtherDocument::Stored(
                DocumentId::Name(self.corpus.to_hex(stored.fingerprint)),
                store,
            ));
        };
        let snapshot = self.stores().get(store).and_then(ReferenceStore::snapshot);
        let name = snapshot.map_or(Ok(None), |store| store.name(id))?;
        Ok(OtherDocument::Stored(name.map_or(DocumentId::Number(id), DocumentId::Name), store))
    }

    /// Returns the location of the second document of a pair, if it is an input document and ids repeat.
    pub(crate) fn other_location(
        &self,
        lookup: &DocumentLookup<'_>,
        other: &OtherDocument,
    ) -> Option<String> {
        other.document().and_then(|document| self.location(lookup, document))
    }

    /// Visits the near pairs of input documents, then the near pairs of an input document and a stored document.
    pub(crate) fn visit_pairs(
        &self,
        observer: &dyn Observer,
        mut visitor: impl FnMut(&DocumentLookup<'_>, ReportedPair) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let corpus_pairs = near.pairs(&self.workspace)?.map(|pair| {
            let (a, b, score) = pair?;
            Ok((near.document(a)? as usize, near.document(b)? as usize, score))
        });
        let documents = |&(a, b, _): &(usize, usize, PairScore)| [Some(a), Some(b)];
        self.visit_with_lookup(
            observer,
            "pairs",
            corpus_pairs,
            documents,
            |lookup, (document, other, score)| {
                visitor(
                    lookup,
                    self.pair(lookup, document, RepresentativeId::document(other as u64), (score, 0))?,
                )
            },
        )?;
        let stored = self.outcome.stored.near.iter()?.map(|row| {
            let ((number, _), stored, measure) = row?;
            Ok((near.document(number)? as usize, stored, measure))
        });
        let documents = |&(document, ..): &(usize, StoredRow, _)| [Some(document), None];
        self.visit_with_lookup(
            observer,
            "pairs with the store",
            stored,
            documents,
            |lookup, (document, stored, measure)| {
                visitor(lookup, self.stored_pair(document, &stored, measure)?)
            },
        )
    }

    /// Writes a row of a table of pairs. If `cluster` is a cluster number, writes a row of the table of clusters
    /// instead. `other_place` is the location of the second document, if ids repeat in the input.
    fn write_pair_row(
        &self,
        rows: &mut ResultTableWriter,
        lookup: &DocumentLookup<'_>,
        cluster: Option<u32>,
        ReportedPair { document, other, proximity }: &ReportedPair,
        other_place: Option<&str>,
    ) -> Result<()> {
        let (place, path) = (self.location(lookup, *document), self.store_path_text(other.store()));
        let mut cells = Vec::with_capacity(8);
        cells.push(Cell::Id(lookup.id(*document)));
        cells.extend(cluster.map(|cluster| Cell::Count(cluster.into())));
        cells.push(Cell::Id(other.id(lookup)));
        cells.extend(proximity.cells(self.has_standard_errors()));
        cells.extend(self.stored_cells(other.store(), &path));
        if let Some(place) = &place {
            cells.extend([Cell::Text(place), Cell::Text(other_place.unwrap_or_default())]);
        }
        rows.write_row(&cells)
    }

    pub(crate) fn write_pairs(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        self.visit_pairs(observer, |lookup, pair| {
            self.write_pair_row(
                rows,
                lookup,
                None,
                &pair,
                self.other_location(lookup, &pair.other).as_deref(),
            )
        })
    }

    /// Returns the path of a store as text. The text is empty if `store` is `None`, as for an input document, or if
    /// the run has only one store.
    fn store_path_text(&self, store: Option<usize>) -> Cow<'_, str> {
        store.and_then(|store| self.store_path(store)).map_or(Cow::Borrowed(""), Path::to_string_lossy)
    }

    /// Visits removed documents in input order, each with the document that it duplicates: a near stored
    /// document, else the nearest kept document, else the representative of its cluster.
    pub(crate) fn visit_removed(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut visitor: impl FnMut(&DocumentLookup<'_>, ReportedPair) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let (mut nearest, mut stored) = (self.outcome.nearest.cursor()?, self.outcome.stored.near.cursor()?);
        let reason = |member: Result<MemberRow>| -> Result<Option<RemovalReason>> {
            let member = member?;
            if member.is_representative() && !self.keeps_none() {
                return Ok(None);
            }
            let is_before = |number: u32| Ok::<_, simstore::Error>(near.document(number)? < member.document);
            while let Some(((number, _), ..)) = stored.peek()?
                && is_before(number)?
            {
                stored.next_row()?;
            }
            if let Some(((number, _), thing, measure)) = stored.peek()?
                && near.document(number)? == member.document
            {
                return Ok(Some(RemovalReason::Stored(member.document as usize, thing, measure)));
            }
            while let Some((number, ..)) = nearest.peek()?
                && is_before(number)?
            {
                nearest.next_row()?;
            }
            Ok(Some(RemovalReason::Member(match nearest.peek()? {
                Some((number, other, score)) if near.document(number)? == member.document => MemberRow {
                    representative: RepresentativeId::document(near.document(other)?),
                    measure: (score, 0),
                    ..member
                },
                _ => member,
            })))
        };
        let members = self.outcome.clusters.by_document.iter()?;
        let reasons = members.map(reason).filter_map(Result::transpose);
        let documents = |reason: &RemovalReason| match reason {
            RemovalReason::Stored(document, ..) => [Some(*document), None],
            RemovalReason::Member(member) => member_documents(member),
        };
        self.visit_with_lookup(observer, what, reasons, documents, |lookup, reason| {
            let pair = match reason {
                RemovalReason::Stored(document, stored, measure) => {
                    self.stored_pair(document, &stored, measure)?
                }
                RemovalReason::Member(member) => {
                    self.pair(lookup, member.document as usize, member.representative, member.measure)?
                }
            };
            visitor(lookup, pair)
        })
    }

    /// Writes the table of removed documents in input order, each with the document that it duplicates.
    pub(crate) fn write_reasons(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        self.visit_removed(observer, "rows written", |lookup, pair| {
            self.write_pair_row(
                rows,
                lookup,
                None,
                &pair,
                self.other_location(lookup, &pair.other).as_deref(),
            )
        })
    }

    pub(crate) fn cluster_columns(&self) -> Vec<Column> {
        let mut columns = self.pair_columns(["id", "representative"], ["place", "representative_place"]);
        columns.insert(1, ("cluster", ColumnKind::Count));
        columns
    }

    /// Writes the table of the documents that are in clusters, ordered by cluster.
    pub(crate) fn write_clusters(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        // The cluster of the last row, its representative, and the place of the representative.
        let mut last: Option<(u32, OtherDocument, Option<String>)> = None;
        let members = self.outcome.clusters.by_cluster.iter()?;
        self.visit_with_lookup(observer, "clusters written", members, member_documents, |lookup, member| {
            let MemberRow { cluster, document, representative: by, measure } = member;
            let document = document as usize;
            let (other, place) = match last.take().filter(|(last, ..)| *last == cluster) {
                Some((_, other, place)) => (other, place),
                None => {
                    let other = self.other_document(by)?;
                    let place = self.other_location(lookup, &other);
                    (other, place)
                }
            };
            let pair =
                ReportedPair { document, other, proximity: self.proximity(lookup, document, by, measure)? };
            self.write_pair_row(rows, lookup, Some(cluster), &pair, place.as_deref())?;
            last = Some((cluster, pair.other, place));
            Ok(())
        })
    }
}

/// Returns the indexes of the document in a row and of its representative. If the representative is a stored
/// document, the second index is `None`.
pub(crate) fn member_documents(member: &MemberRow) -> [Option<usize>; 2] {
    [Some(member.document as usize), member.representative.get().ok()]
}
