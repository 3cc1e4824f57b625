//! Tables of results: lists, pairs and clusters.

use std::borrow::Cow;
use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::error::excerpt;
use simstore::{Error, Result};

use crate::config::criterion::Criterion;
use crate::corpus::Told;
use crate::reference::ReferenceStore;
use crate::report::near_pair::{How, Other, Pair, Why};
use crate::report::run_results::{AddedTo, Job};
use crate::rows::{MemberRow, PairScore, RepresentativeId, ScoreWithError, StoredRow, similarity_from_score};
use simstore_corpus::Observer;
use simstore_corpus::{Stage, visit_in_stage};
use simstore_io::DocumentId;
use simstore_io::output::{CompleteOutput, Output};
use simstore_io::result_table::{Cell, Column, ColumnKind, ResultTableWriter};

impl Job {
    /// Snapshots of the stores.
    fn stored(&self) -> impl Iterator<Item = &AnySnapshot> {
        self.stores().iter().filter_map(ReferenceStore::snapshot)
    }

    /// Columns for whether the other document was stored, and for its store.
    fn stored_columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        columns.extend(self.has_stores().then_some(("stored", ColumnKind::Flag)));
        columns.extend((self.stores().len() > 1).then_some(("store", ColumnKind::Text)));
        columns
    }

    /// Cells for these columns; `store` is the store of a stored document.
    fn stored_cells<'c>(&self, store: Option<usize>, path: &'c str) -> impl Iterator<Item = Cell<'c>> {
        let flag = self.has_stores().then_some(Cell::Flag(store.is_some()));
        flag.into_iter().chain((self.stores().len() > 1).then_some(Cell::Text(path)))
    }

    fn ids(&self) -> ColumnKind {
        ColumnKind::Ids { are_numbers: self.corpus.are_numbers }
    }

    /// Ids of input documents and of stored documents.
    fn mixed_ids(&self) -> ColumnKind {
        ColumnKind::Ids { are_numbers: self.mixed_are_numbers() }
    }

    /// Whether the ids of all input documents and stored documents are numbers.
    pub(crate) fn mixed_are_numbers(&self) -> bool {
        self.corpus.are_numbers && self.stored().all(|store| store.keeps_ids() && store.stats().names == 0)
    }

    /// Where a document stands, in case its id does not tell which one it is.
    pub(crate) fn place(&self, told: &Told<'_>, document: usize) -> Option<String> {
        (self.corpus.same_id > 0).then(|| told.place(document))
    }

    /// Visits rows with the ids and places of two documents each, as many rows at a time as fit the memory.
    pub(crate) fn with_told<T>(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut rows: impl Iterator<Item = Result<T>>,
        documents: impl Fn(&T) -> [Option<usize>; 2],
        mut visitor: impl FnMut(&Told<'_>, T) -> Result<()>,
    ) -> Result<()> {
        let stage = Stage::new(observer, what);
        stage.add(0)?;
        let most = self.corpus.most_told() / 2;
        if self.corpus.spilled().is_none() {
            let told = self.corpus.told(Vec::new(), observer)?;
            return visit_in_stage(observer, what, rows, |row| visitor(&told, row?));
        }
        loop {
            let some: Vec<T> = rows.by_ref().take(most).collect::<Result<_>>()?;
            if some.is_empty() {
                return Ok(());
            }
            let told = self.told_of(&some, &documents, observer)?;
            for row in some {
                visitor(&told, row)?;
                stage.add(1)?;
            }
        }
    }

    /// Reads back the documents of rows.
    pub(crate) fn told_of<T>(
        &self,
        rows: &[T],
        documents: impl Fn(&T) -> [Option<usize>; 2],
        observer: &dyn Observer,
    ) -> Result<Told<'_>> {
        let mut wanted: Vec<usize> = rows.iter().flat_map(documents).flatten().collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.corpus.told(wanted, observer)
    }

    /// Columns for places, if ids repeat.
    fn place_columns(&self, names: &[&'static str]) -> Vec<Column> {
        if self.corpus.same_id == 0 {
            return Vec::new();
        }
        names.iter().map(|&name| (name, ColumnKind::Text)).collect()
    }

    pub(crate) fn list_columns(&self) -> Vec<Column> {
        [vec![("id", self.ids())], self.place_columns(&["place"])].concat()
    }

    /// Columns of a table of pairs, by the names of the columns for ids and for places.
    pub(crate) fn pair_columns(&self, ids: [&'static str; 2], places: [&'static str; 2]) -> Vec<Column> {
        let (one, other) = ((ids[0], self.ids()), (ids[1], self.mixed_ids()));
        let how = self.how_columns();
        [vec![one, other], how, self.stored_columns(), self.place_columns(&places)].concat()
    }

    /// Writes a list of kept or of removed documents.
    pub(crate) fn write_list(
        &self,
        rows: &mut ResultTableWriter,
        keeps: bool,
        observer: &dyn Observer,
    ) -> Result<()> {
        let (mut clustered, with_places) = (self.clustered()?, self.corpus.same_id > 0);
        self.corpus.scan(observer, "rows written", |document| {
            if clustered.status(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let place = with_places.then(|| document.place());
            let mut cells = vec![Cell::Id(document.id())];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.write_row(&cells)
        })
    }

    /// Writes the ids of the documents that are kept, or of those that are not: unescaped, each with a zero byte behind it.
    pub(crate) fn write_ids(
        &self,
        mut output: Output,
        keeps: bool,
        observer: &dyn Observer,
    ) -> Result<CompleteOutput> {
        let (mut clustered, with_places) = (self.clustered()?, self.corpus.same_id > 0);
        self.corpus.scan(observer, "ids written", |document| {
            if clustered.status(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let id = document.id_bytes();
            if id.contains(&0) {
                return Err(Error::Refused(format!(
                    "{}: the id `{}` contains a zero byte, which would end the id in this list: write the list without option `null`",
                    document.place(),
                    excerpt(&document.id().escaped_text())
                )));
            }
            output.write_bytes(&id)?;
            if with_places {
                output.write_bytes(format!("\t{}", document.place()).as_bytes())?;
            }
            output.write_bytes(b"\0")
        })?;
        output.complete()
    }

    /// Whether rows have a column for standard errors: a store of similar documents was named that keeps no texts.
    pub(crate) fn has_errors(&self) -> bool {
        let added_to = self.added_to.as_ref().and_then(AddedTo::settings);
        self.outcome.stored.is_estimated || added_to.is_some_and(|settings| !settings.has_texts())
    }

    /// Whether texts are compared, of near fingerprints.
    fn verifies(&self) -> bool {
        matches!(self.resolved.criterion, Criterion::Distance(_)) && self.outcome.compared.is_some()
    }

    /// Columns for how near two are.
    fn how_columns(&self) -> Vec<Column> {
        let (distance, similarity) = (("distance", ColumnKind::Count), ("similarity", ColumnKind::Share));
        match self.resolved.criterion {
            Criterion::Similarity(_) if self.has_errors() => vec![similarity, ("error", ColumnKind::Share)],
            Criterion::Similarity(_) => vec![similarity],
            Criterion::Distance(_) if self.verifies() => vec![distance, similarity],
            Criterion::Distance(_) => vec![distance],
        }
    }

    /// How near two are: by their nearness and its error, and by their distance if fingerprints are compared.
    fn how(&self, (nearness, error): ScoreWithError, distance: impl FnOnce() -> u32) -> How {
        match self.resolved.criterion {
            Criterion::Similarity(_) => How {
                distance: None,
                similarity: Some(similarity_from_score(nearness)),
                error: Some(similarity_from_score(error)),
            },
            Criterion::Distance(_) => {
                let of_texts = self.verifies().then(|| similarity_from_score(nearness));
                How { distance: Some(distance()), similarity: of_texts, error: None }
            }
        }
    }

    /// Nearness of a document to another one, with a standard error if the other one is stored.
    pub(crate) fn how_near(
        &self,
        told: &Told<'_>,
        document: usize,
        by: RepresentativeId,
        measure: ScoreWithError,
    ) -> Result<How> {
        let centre = match (self.resolved.criterion, by.get()) {
            (Criterion::Similarity(_), _) => 0,
            (_, Ok(other)) => told.fingerprint(other),
            (_, Err(number)) => self.outcome.stored.representatives.get(number as usize)?.fingerprint,
        };
        let how = self.how(measure, || (told.fingerprint(document) ^ centre).count_ones());
        Ok(How { error: how.error.filter(|_| by.get().is_err()), ..how })
    }

    fn pair(
        &self,
        told: &Told<'_>,
        document: usize,
        by: RepresentativeId,
        measure: ScoreWithError,
    ) -> Result<Pair> {
        Ok(Pair { document, other: self.other(by)?, how: self.how_near(told, document, by, measure)? })
    }

    fn pair_of_stored(&self, document: usize, stored: &StoredRow, measure: ScoreWithError) -> Result<Pair> {
        let how = self.how(measure, || measure.0 as u32);
        Ok(Pair { document, other: self.other_of_stored(stored)?, how })
    }

    /// The other document of a pair, from the input or from a store.
    pub(crate) fn other(&self, by: RepresentativeId) -> Result<Other> {
        match by.get() {
            Ok(document) => Ok(Other::Document(document)),
            Err(number) => self.other_of_stored(&self.outcome.stored.representatives.get(number as usize)?),
        }
    }

    /// A stored document, by its name, its number or, in a store without ids, its fingerprint.
    fn other_of_stored(&self, stored: &StoredRow) -> Result<Other> {
        let store = stored.store as usize;
        let Some(id) = stored.id else {
            return Ok(Other::Stored(DocumentId::Name(self.corpus.hex_of(stored.fingerprint)), store));
        };
        let snapshot = self.stores().get(store).and_then(ReferenceStore::snapshot);
        let name = snapshot.map_or(Ok(None), |store| store.name(id))?;
        Ok(Other::Stored(name.map_or(DocumentId::Number(id), DocumentId::Name), store))
    }

    /// Where the other document of a pair stands, in case its id does not tell which one it is.
    pub(crate) fn place_of(&self, told: &Told<'_>, other: &Other) -> Option<String> {
        other.document().and_then(|document| self.place(told, document))
    }

    /// Visits the pairs of near documents, then the pairs with stored documents.
    pub(crate) fn visit_pairs(
        &self,
        observer: &dyn Observer,
        mut visitor: impl FnMut(&Told<'_>, Pair) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let of_corpus = near.pairs(&self.workspace)?.map(|pair| {
            let (a, b, nearness) = pair?;
            Ok((near.document(a)? as usize, near.document(b)? as usize, nearness))
        });
        let documents = |&(a, b, _): &(usize, usize, PairScore)| [Some(a), Some(b)];
        self.with_told(observer, "pairs", of_corpus, documents, |told, (document, other, nearness)| {
            visitor(told, self.pair(told, document, RepresentativeId::document(other as u64), (nearness, 0))?)
        })?;
        let stored = self.outcome.stored.near.iter()?.map(|row| {
            let ((number, _), stored, measure) = row?;
            Ok((near.document(number)? as usize, stored, measure))
        });
        let documents = |&(document, ..): &(usize, StoredRow, _)| [Some(document), None];
        self.with_told(
            observer,
            "pairs with the store",
            stored,
            documents,
            |told, (document, stored, measure)| {
                visitor(told, self.pair_of_stored(document, &stored, measure)?)
            },
        )
    }

    /// Writes a row of a table of pairs, with the number of the cluster in a table of clusters.
    fn push(
        &self,
        rows: &mut ResultTableWriter,
        told: &Told<'_>,
        cluster: Option<u32>,
        Pair { document, other, how }: &Pair,
        other_place: Option<&str>,
    ) -> Result<()> {
        let (place, path) = (self.place(told, *document), self.path_of(other.store()));
        let mut cells = Vec::with_capacity(8);
        cells.push(Cell::Id(told.id(*document)));
        cells.extend(cluster.map(|cluster| Cell::Count(cluster.into())));
        cells.push(Cell::Id(other.id(told)));
        cells.extend(how.cells(self.has_errors()));
        cells.extend(self.stored_cells(other.store(), &path));
        if let Some(place) = &place {
            cells.extend([Cell::Text(place), Cell::Text(other_place.unwrap_or_default())]);
        }
        rows.write_row(&cells)
    }

    pub(crate) fn write_pairs(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        self.visit_pairs(observer, |told, pair| {
            self.push(rows, told, None, &pair, self.place_of(told, &pair.other).as_deref())
        })
    }

    /// The path of a store as text; empty for an input document.
    fn path_of(&self, store: Option<usize>) -> Cow<'_, str> {
        store.and_then(|store| self.store(store)).map_or(Cow::Borrowed(""), Path::to_string_lossy)
    }

    /// Visits removed documents in order of input, each with the document that it duplicates: a near stored document, the
    /// nearest kept document, or the representative of its cluster.
    pub(crate) fn visit_removed(
        &self,
        observer: &dyn Observer,
        what: &'static str,
        mut visitor: impl FnMut(&Told<'_>, Pair) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let (mut nearest, mut stored) = (self.outcome.nearest.cursor()?, self.outcome.stored.near.cursor()?);
        let reason = |member: Result<MemberRow>| -> Result<Option<Why>> {
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
                return Ok(Some(Why::Stored(member.document as usize, thing, measure)));
            }
            while let Some((number, ..)) = nearest.peek()?
                && is_before(number)?
            {
                nearest.next_row()?;
            }
            Ok(Some(Why::Member(match nearest.peek()? {
                Some((number, other, nearness)) if near.document(number)? == member.document => MemberRow {
                    representative: RepresentativeId::document(near.document(other)?),
                    measure: (nearness, 0),
                    ..member
                },
                _ => member,
            })))
        };
        let members = self.outcome.clusters.by_document.iter()?;
        let reasons = members.map(reason).filter_map(Result::transpose);
        let documents = |why: &Why| match why {
            Why::Stored(document, ..) => [Some(*document), None],
            Why::Member(member) => documents_of(member),
        };
        self.with_told(observer, what, reasons, documents, |told, why| {
            let pair = match why {
                Why::Stored(document, stored, measure) => self.pair_of_stored(document, &stored, measure)?,
                Why::Member(member) => {
                    self.pair(told, member.document as usize, member.representative, member.measure)?
                }
            };
            visitor(told, pair)
        })
    }

    /// Writes removed documents in order of input, each with the document that it duplicates.
    pub(crate) fn write_reasons(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        self.visit_removed(observer, "rows written", |told, pair| {
            self.push(rows, told, None, &pair, self.place_of(told, &pair.other).as_deref())
        })
    }

    pub(crate) fn cluster_columns(&self) -> Vec<Column> {
        let mut columns = self.pair_columns(["id", "representative"], ["place", "representative_place"]);
        columns.insert(1, ("cluster", ColumnKind::Count));
        columns
    }

    /// Writes the documents of clusters, by cluster.
    pub(crate) fn write_clusters(&self, rows: &mut ResultTableWriter, observer: &dyn Observer) -> Result<()> {
        // The cluster of the last row, its representative, and the place of the representative.
        let mut last: Option<(u32, Other, Option<String>)> = None;
        let members = self.outcome.clusters.by_cluster.iter()?;
        self.with_told(observer, "clusters written", members, documents_of, |told, member| {
            let MemberRow { cluster, document, representative: by, measure } = member;
            let document = document as usize;
            let (other, place) = match last.take().filter(|(last, ..)| *last == cluster) {
                Some((_, other, place)) => (other, place),
                None => {
                    let other = self.other(by)?;
                    let place = self.place_of(told, &other);
                    (other, place)
                }
            };
            let pair = Pair { document, other, how: self.how_near(told, document, by, measure)? };
            self.push(rows, told, Some(cluster), &pair, place.as_deref())?;
            last = Some((cluster, pair.other, place));
            Ok(())
        })
    }
}

/// The document and the representative, if it is one of the documents.
pub(crate) fn documents_of(member: &MemberRow) -> [Option<usize>; 2] {
    [Some(member.document as usize), member.representative.get().ok()]
}
