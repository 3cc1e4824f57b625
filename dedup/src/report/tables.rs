//! Tables of results: lists, pairs and clusters.

use std::borrow::Cow;
use std::path::Path;

use simstore::any::AnySnapshot;
use simstore::error::excerpt;
use simstore::{Error, Result};

use crate::config::criterion::Criterion;
use crate::corpus::{Corpus, Told};
use crate::pipeline::cluster_of_document::Clustered;
use crate::pipeline::outcome::Outcome;
use crate::reference::ReferenceStore;
use crate::report::near_pair::{How, Named, Near, Other, Reason, Why};
use crate::rows::{By, Measure, Member, Nearness, Stored, similarity};
use crate::workspace::Workspace;
use simstore_corpus::Watch;
use simstore_corpus::{Step, each};
use simstore_io::DocumentId;
use simstore_io::output::{Complete, Output};
use simstore_io::rows::{Cell, Column, Kind, Rows};

/// The results of a run.
pub(crate) struct Results<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) outcome: &'a Outcome,
    pub(crate) criterion: Criterion,
    /// Whether the representatives of clusters are removed, too.
    pub(crate) keeps_none: bool,
    /// The stores that were compared with.
    pub(crate) stores: &'a [ReferenceStore],
    /// Whether documents are added to a store of similar documents that keeps no texts.
    pub(crate) makes_estimates: bool,
    pub(crate) workspace: &'a Workspace,
}

impl<'a> Results<'a> {
    /// Snapshots of the stores.
    fn stored(&self) -> impl Iterator<Item = &'a AnySnapshot> + use<'a> {
        self.stores.iter().filter_map(ReferenceStore::snapshot)
    }

    /// Whether stores were named, also if the first one is missing and is made by this run: its tables have the columns of later runs.
    pub(crate) fn has_stores(&self) -> bool {
        !self.stores.is_empty()
    }

    /// The path of a store, if several were named.
    pub(crate) fn store(&self, store: usize) -> Option<&'a Path> {
        if self.stores.len() > 1 { Some(self.stores.get(store)?.path()) } else { None }
    }

    /// Columns for whether the other document was stored, and for its store.
    fn stored_columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        columns.extend(self.has_stores().then_some(("stored", Kind::Flag)));
        columns.extend((self.stores.len() > 1).then_some(("store", Kind::Text)));
        columns
    }

    /// Cells for these columns; `store` is the store of a stored document.
    fn stored_cells<'c>(&self, store: Option<usize>, path: &'c str) -> impl Iterator<Item = Cell<'c>> {
        let flag = self.has_stores().then_some(Cell::Flag(store.is_some()));
        flag.into_iter().chain((self.stores.len() > 1).then_some(Cell::Text(path)))
    }

    fn ids(&self) -> Kind {
        Kind::Ids { are_numbers: self.corpus.are_numbers() }
    }

    /// Ids of input documents and of stored documents.
    fn mixed_ids(&self) -> Kind {
        Kind::Ids { are_numbers: self.mixed_are_numbers() }
    }

    /// Whether the ids of all input documents and stored documents are numbers.
    pub(crate) fn mixed_are_numbers(&self) -> bool {
        self.corpus.are_numbers() && self.stored().all(|store| store.keeps_ids() && store.stats().names == 0)
    }

    /// How many of the documents that are kept have a fingerprint.
    pub(crate) fn to_add(&self) -> u64 {
        // A removed document is near another one, so it has a fingerprint.
        (self.corpus.len() - self.corpus.empty() - self.outcome.clusters.removed(self.keeps_none)) as u64
    }

    /// Where a document stands, in case its id does not tell which one it is.
    pub(crate) fn place(&self, told: &Told<'_>, document: usize) -> Option<String> {
        (self.corpus.same_id() > 0).then(|| told.place(document))
    }

    /// Visits rows with the ids and places of two documents each, as many rows at a time as fit the memory.
    pub(crate) fn with_told<T>(
        &self,
        watch: &dyn Watch,
        what: &'static str,
        mut rows: impl Iterator<Item = Result<T>>,
        documents: impl Fn(&T) -> [Option<usize>; 2],
        mut visitor: impl FnMut(&Told<'_>, T) -> Result<()>,
    ) -> Result<()> {
        let step = Step::new(watch, what);
        step.add(0)?;
        let most = self.corpus.most_told() / 2;
        if self.corpus.spilled().is_none() {
            let told = self.corpus.told(Vec::new(), watch)?;
            return each(watch, what, rows, |row| visitor(&told, row?));
        }
        loop {
            let some: Vec<T> = rows.by_ref().take(most).collect::<Result<_>>()?;
            if some.is_empty() {
                return Ok(());
            }
            let mut wanted: Vec<usize> = some.iter().flat_map(&documents).flatten().collect();
            wanted.sort_unstable();
            wanted.dedup();
            let told = self.corpus.told(wanted, watch)?;
            for row in some {
                visitor(&told, row)?;
                step.add(1)?;
            }
        }
    }

    /// Columns for places, if ids repeat.
    fn place_columns(&self, names: &[&'static str]) -> Vec<Column> {
        if self.corpus.same_id() == 0 {
            return Vec::new();
        }
        names.iter().map(|&name| (name, Kind::Text)).collect()
    }

    pub(crate) fn list_columns(&self) -> Vec<Column> {
        [vec![("id", self.ids())], self.place_columns(&["place"])].concat()
    }

    /// Clusters of documents, asked for in order.
    pub(crate) fn clustered(&self) -> Result<Clustered<'a>> {
        Clustered::new(&self.outcome.clusters, self.keeps_none)
    }

    /// Writes a list of kept or of removed documents.
    pub(crate) fn write_list(&self, rows: &mut Rows, keeps: bool, watch: &dyn Watch) -> Result<()> {
        let (mut clustered, with_places) = (self.clustered()?, self.corpus.same_id() > 0);
        self.corpus.scan(watch, "rows written", |document| {
            if clustered.of(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let place = with_places.then(|| document.place());
            let mut cells = vec![Cell::Id(document.id())];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.push(&cells)
        })
    }

    /// Writes the ids of the documents that are kept, or of those that are not: unescaped, each with a zero byte behind it.
    pub(crate) fn write_ids(&self, mut output: Output, keeps: bool, watch: &dyn Watch) -> Result<Complete> {
        let (mut clustered, with_places) = (self.clustered()?, self.corpus.same_id() > 0);
        self.corpus.scan(watch, "ids written", |document| {
            if clustered.of(document.number)?.is_kept != keeps {
                return Ok(());
            }
            let id = document.id_bytes();
            if id.contains(&0) {
                return Err(Error::Refused(format!(
                    "{}: the id `{}` contains a zero byte, which would end the id in this list: write the list without option `null`",
                    document.place(),
                    excerpt(&document.id().column())
                )));
            }
            output.push(&id)?;
            if with_places {
                output.push(format!("\t{}", document.place()).as_bytes())?;
            }
            output.push(b"\0")
        })?;
        output.complete()
    }

    /// Whether rows have a column for standard errors: a store of similar documents was named that keeps no texts.
    pub(crate) fn has_errors(&self) -> bool {
        self.outcome.stored.is_estimated || self.makes_estimates
    }

    /// Whether texts are compared, of near fingerprints.
    fn verifies(&self) -> bool {
        matches!(self.criterion, Criterion::Distance(_)) && self.outcome.compared.is_some()
    }

    /// Columns for how near two are.
    fn how_columns(&self) -> Vec<Column> {
        let (distance, similarity) = (("distance", Kind::Count), ("similarity", Kind::Share));
        match self.criterion {
            Criterion::Similarity(_) if self.has_errors() => vec![similarity, ("error", Kind::Share)],
            Criterion::Similarity(_) => vec![similarity],
            Criterion::Distance(_) if self.verifies() => vec![distance, similarity],
            Criterion::Distance(_) => vec![distance],
        }
    }

    /// How near two are: by their nearness and its error, and by their distance if fingerprints are compared.
    fn how(&self, (nearness, error): Measure, distance: impl FnOnce() -> u32) -> How {
        match self.criterion {
            Criterion::Similarity(_) => {
                How { distance: None, similarity: Some(similarity(nearness)), error: Some(similarity(error)) }
            }
            Criterion::Distance(_) => {
                let of_texts = self.verifies().then(|| similarity(nearness));
                How { distance: Some(distance()), similarity: of_texts, error: None }
            }
        }
    }

    pub(crate) fn pair_columns(&self) -> Vec<Column> {
        let mut columns = vec![("a", self.ids()), ("b", self.mixed_ids())];
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["a_place", "b_place"])].concat()
    }

    /// Visits the pairs of near documents, then the pairs with stored documents.
    pub(crate) fn visit_pairs(
        &self,
        watch: &dyn Watch,
        mut visitor: impl FnMut(&Told<'_>, Near<'_>) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let of_corpus = near.pairs(self.workspace)?.map(|pair| {
            let (a, b, nearness) = pair?;
            Ok((near.document(a)? as usize, near.document(b)? as usize, nearness))
        });
        let documents = |&(a, b, _): &(usize, usize, Nearness)| [Some(a), Some(b)];
        self.with_told(watch, "pairs", of_corpus, documents, |told, (document, other, nearness)| {
            let how =
                self.how((nearness, 0), || distance(told.fingerprint(document), told.fingerprint(other)));
            let how = How { error: None, ..how };
            visitor(told, Near { document, other: Other::Document(other), how })
        })?;
        let stored = self.outcome.stored.near.iter()?.map(|row| {
            let ((number, _), stored, measure) = row?;
            Ok((near.document(number)? as usize, stored, measure))
        });
        let documents = |&(document, ..): &(usize, Stored, _)| [Some(document), None];
        self.with_told(
            watch,
            "pairs with the store",
            stored,
            documents,
            |told, (document, stored, measure)| {
                let id = self.stored_id(&stored)?;
                let how = self.how(measure, || measure.0 as u32);
                visitor(
                    told,
                    Near { document, other: Other::Stored((&id).into(), stored.store as usize), how },
                )
            },
        )
    }

    pub(crate) fn write_pairs(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        self.visit_pairs(watch, |told, Near { document, other, how }| {
            let place = self.place(told, document);
            let (id, other_place, store) = match other {
                Other::Document(other) => (told.id(other), self.place(told, other), None),
                Other::Stored(id, store) => (id, place.is_some().then(String::new), Some(store)),
            };
            let path = self.path_of(store);
            let mut cells = vec![Cell::Id(told.id(document)), Cell::Id(id)];
            cells.extend(how.cells(self.has_errors()));
            cells.extend(self.stored_cells(store, &path));
            cells.extend([&place, &other_place].into_iter().flatten().map(|place| Cell::Text(place)));
            rows.push(&cells)
        })
    }

    /// The id of a stored document: its name, its number or, in a store without ids, its fingerprint.
    fn stored_id(&self, &Stored { store, id, fingerprint }: &Stored) -> Result<DocumentId> {
        let Some(id) = id else { return Ok(DocumentId::Name(self.corpus.hex_of(fingerprint))) };
        let snapshot = self.stores.get(store as usize).and_then(ReferenceStore::snapshot);
        Ok(match snapshot.map_or(Ok(None), |store| store.name(id))? {
            Some(name) => DocumentId::Name(name),
            None => DocumentId::Number(id),
        })
    }

    /// The id of an input document or of a stored document.
    pub(crate) fn named(&self, told: &Told<'_>, by: By) -> Result<Named> {
        Ok(match by.get() {
            Ok(document) => Named {
                id: told.id(document).into(),
                place: self.place(told, document),
                document: Some(document),
                store: None,
            },
            Err(number) => {
                let stored = self.outcome.stored.things.get(number as usize)?;
                let store = Some(stored.store as usize);
                Named { id: self.stored_id(&stored)?, place: None, document: None, store }
            }
        })
    }

    /// The nearness of a cluster's member and its representative.
    pub(crate) fn how_near(&self, told: &Told<'_>, member: &Member) -> Result<How> {
        let document = member.document as usize;
        let centre = match (self.criterion, member.by.get()) {
            (Criterion::Similarity(_), _) => 0,
            (_, Ok(other)) => told.fingerprint(other),
            (_, Err(number)) => self.outcome.stored.things.get(number as usize)?.fingerprint,
        };
        let how = self.how(member.measure, || distance(told.fingerprint(document), centre));
        Ok(How { error: how.error.filter(|_| member.is_stored()), ..how })
    }

    /// The path of a store as text; empty for an input document.
    fn path_of(&self, store: Option<usize>) -> Cow<'a, str> {
        store.and_then(|store| self.store(store)).map_or(Cow::Borrowed(""), Path::to_string_lossy)
    }

    pub(crate) fn reason_columns(&self) -> Vec<Column> {
        let mut columns = vec![("id", self.ids()), ("duplicate_of", self.mixed_ids())];
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["place", "duplicate_of_place"])].concat()
    }

    /// Visits removed documents in order of input, each with the document that it duplicates: a near stored document, the
    /// nearest kept document, or the representative of its cluster.
    pub(crate) fn visit_removed(
        &self,
        watch: &dyn Watch,
        what: &'static str,
        mut visitor: impl FnMut(&Told<'_>, Reason) -> Result<()>,
    ) -> Result<()> {
        let near = &self.outcome.near;
        let (mut nearest, mut stored) = (self.outcome.nearest.cursor()?, self.outcome.stored.near.cursor()?);
        let reason = |member: Result<Member>| -> Result<Option<(usize, Why)>> {
            let member = member?;
            if member.is_representative() && !self.keeps_none {
                return Ok(None);
            }
            let document = member.document as usize;
            let is_before = |number: u32| Ok::<_, simstore::Error>(near.document(number)? < member.document);
            while let Some(((number, _), ..)) = stored.peek()?
                && is_before(number)?
            {
                stored.take()?;
            }
            if let Some(((number, _), thing, measure)) = stored.peek()?
                && near.document(number)? == member.document
            {
                return Ok(Some((document, Why::Stored(thing, measure))));
            }
            while let Some((number, ..)) = nearest.peek()?
                && is_before(number)?
            {
                nearest.take()?;
            }
            match nearest.peek()? {
                Some((number, other, nearness)) if near.document(number)? == member.document => {
                    Ok(Some((document, Why::Nearest(near.document(other)? as usize, nearness))))
                }
                _ => Ok(Some((document, Why::Cluster(member)))),
            }
        };
        let members = self.outcome.clusters.by_document.iter()?;
        let reasons = members.map(reason).filter_map(Result::transpose);
        let documents = |(document, why): &(usize, Why)| {
            let other = match why {
                Why::Stored(..) => None,
                Why::Nearest(other, _) => Some(*other),
                Why::Cluster(member) => member.by.get().ok(),
            };
            [Some(*document), other]
        };
        self.with_told(watch, what, reasons, documents, |told, (document, why)| {
            let (of, how) = match why {
                Why::Stored(stored, measure) => {
                    let (id, store) = (self.stored_id(&stored)?, Some(stored.store as usize));
                    let how = self.how(measure, || measure.0 as u32);
                    (Named { id, place: None, document: None, store }, how)
                }
                Why::Nearest(other, nearness) => {
                    let distance = || distance(told.fingerprint(document), told.fingerprint(other));
                    let how = How { error: None, ..self.how((nearness, 0), distance) };
                    (self.named(told, By::document(other as u64))?, how)
                }
                Why::Cluster(member) => (self.named(told, member.by)?, self.how_near(told, &member)?),
            };
            visitor(told, Reason { document, of, how })
        })
    }

    /// Writes removed documents in order of input, each with the document that it duplicates.
    pub(crate) fn write_reasons(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        self.visit_removed(watch, "rows written", |told, Reason { document, of, how }| {
            let (place, path) = (self.place(told, document), self.path_of(of.store));
            let mut cells = vec![Cell::Id(told.id(document)), Cell::Id((&of.id).into())];
            cells.extend(how.cells(self.has_errors()));
            cells.extend(self.stored_cells(of.store, &path));
            if let Some(place) = &place {
                cells.extend([Cell::Text(place), Cell::Text(of.place.as_deref().unwrap_or_default())]);
            }
            rows.push(&cells)
        })
    }

    pub(crate) fn cluster_columns(&self) -> Vec<Column> {
        let mut columns = vec![("id", self.ids()), ("cluster", Kind::Count)];
        columns.push(("representative", self.mixed_ids()));
        columns.extend(self.how_columns());
        [columns, self.stored_columns(), self.place_columns(&["place", "representative_place"])].concat()
    }

    /// Visits the documents of clusters, by cluster.
    pub(crate) fn visit_members(
        &self,
        watch: &dyn Watch,
        what: &'static str,
        mut visitor: impl FnMut(&Told<'_>, Member, &Named, How) -> Result<()>,
    ) -> Result<()> {
        let documents = |member: &Member| [Some(member.document as usize), member.by.get().ok()];
        let mut last: Option<(u32, Named)> = None;
        let members = self.outcome.clusters.by_cluster.iter()?;
        self.with_told(watch, what, members, documents, |told, member| {
            let named = match last.take().filter(|(cluster, _)| *cluster == member.cluster) {
                Some((_, named)) => named,
                None => self.named(told, member.by)?,
            };
            visitor(told, member, &named, self.how_near(told, &member)?)?;
            last = Some((member.cluster, named));
            Ok(())
        })
    }

    pub(crate) fn write_clusters(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        self.visit_members(watch, "clusters written", |told, member, representative, how| {
            let document = member.document as usize;
            let (place, path) = (self.place(told, document), self.path_of(representative.store));
            let mut cells = vec![Cell::Id(told.id(document)), Cell::Count(member.cluster.into())];
            cells.push(Cell::Id((&representative.id).into()));
            cells.extend(how.cells(self.has_errors()));
            cells.extend(self.stored_cells(representative.store, &path));
            if let Some(place) = &place {
                let of_representative = representative.place.as_deref().unwrap_or_default();
                cells.extend([Cell::Text(place), Cell::Text(of_representative)]);
            }
            rows.push(&cells)
        })
    }
}

/// Number of differing bits of two fingerprints of one width.
fn distance(a: u128, b: u128) -> u32 {
    (a ^ b).count_ones()
}
