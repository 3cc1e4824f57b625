//! Rows of what was found: lists, pairs and clusters.

use simstore::{Fingerprint, Match, Result, Snapshot};

use super::clusters::{Cluster, Representative};
use super::corpus::Corpus;
use super::groups::Groups;
use super::similarity::Texts;
use super::written::Clustered;
use crate::rows::{Cell, Column, Kind, Rows};
use crate::watch::{Step, each};
use crate::{DocumentId, IdRef, Watch};

/// Pairs that are counted together: to count each takes time.
const PAIRS_COUNTED: u64 = 64;

/// A document and what it is near to.
pub(super) struct Near<'a> {
    pub(super) document: usize,
    pub(super) other: Other<'a>,
    /// In bits.
    pub(super) distance: u32,
}

/// What a document is near to.
pub(super) enum Other<'a> {
    /// A later document.
    Document(usize),
    /// Something stored, by what it is called.
    Stored(IdRef<'a>),
}

/// What was found.
pub(super) struct Results<'a, F: Fingerprint> {
    pub(super) corpus: &'a Corpus<F>,
    pub(super) groups: &'a Groups<F>,
    pub(super) clusters: &'a [Cluster<F>],
    /// The store that was compared with.
    pub(super) stored: Option<&'a Snapshot<F>>,
}

impl<F: Fingerprint> Results<'_, F> {
    fn ids(&self) -> Kind {
        Kind::Ids { are_numbers: self.corpus.names.are_numbers() }
    }

    /// Ids of documents and of what is stored.
    fn mixed_ids(&self) -> Kind {
        let are_numbers = self.corpus.names.are_numbers()
            && self.stored.is_none_or(|store| store.keeps_ids() && store.stats().names == 0);
        Kind::Ids { are_numbers }
    }

    /// How many of the documents that are kept have a fingerprint.
    pub(super) fn to_add(&self) -> u64 {
        let kept = Clustered::new(self.corpus.len(), self.clusters);
        kept.kept().filter(|&document| self.corpus.fingerprint(document).is_some()).count() as u64
    }

    /// Where a document stands, in case its id does not tell which one it is.
    pub(super) fn place(&self, document: usize) -> Option<String> {
        let names = &self.corpus.names;
        (names.repeated() > 0).then(|| names.place(document))
    }

    /// Columns for places, if there are any.
    fn place_columns(&self, names: &[&'static str]) -> Vec<Column> {
        if self.corpus.names.repeated() == 0 {
            return Vec::new();
        }
        names.iter().map(|&name| (name, Kind::Text)).collect()
    }

    pub(super) fn list_columns(&self) -> Vec<Column> {
        [vec![("id", self.ids())], self.place_columns(&["place"])].concat()
    }

    pub(super) fn write_list(
        &self,
        rows: &mut Rows,
        documents: impl Iterator<Item = usize>,
        watch: &dyn Watch,
    ) -> Result<()> {
        each(watch, "rows written", documents, |document| {
            let place = self.place(document);
            let mut cells = vec![Cell::Id(self.corpus.names.id(document))];
            cells.extend(place.as_deref().map(Cell::Text));
            rows.push(&cells)
        })
    }

    pub(super) fn pair_columns(&self) -> Vec<Column> {
        let mut columns = vec![("a", self.ids()), ("b", self.mixed_ids()), ("distance", Kind::Count)];
        columns.extend(self.stored.map(|_| ("stored", Kind::Flag)));
        [columns, self.place_columns(&["a_place", "b_place"])].concat()
    }

    /// Visits the pairs of near documents, then those of documents with something stored.
    pub(super) fn visit_pairs(
        &self,
        mut texts: Option<&mut Texts>,
        watch: &dyn Watch,
        mut visitor: impl FnMut(Near<'_>) -> Result<()>,
    ) -> Result<()> {
        // All that were compared before are among these.
        texts.iter_mut().for_each(|texts| texts.count_anew());
        let step = Step::new(watch, "pairs");
        step.add(0)?;
        let mut seen: u64 = 0;
        self.groups.visit_pairs(|a, b, distance| {
            seen += 1;
            if texts.is_some() || seen.is_multiple_of(PAIRS_COUNTED) {
                step.add(if texts.is_some() { 1 } else { PAIRS_COUNTED })?;
            }
            let is_wanted = match &mut texts {
                Some(texts) => texts.are_similar(a, b)?,
                None => true,
            };
            if is_wanted {
                visitor(Near { document: a, other: Other::Document(b), distance })
            } else {
                Ok(())
            }
        })?;
        each(watch, "pairs with the store", self.groups.documents().into_iter(), |(document, group)| {
            self.groups.stored(group).iter().try_for_each(|(_, found)| {
                let id = self.stored_id(found)?;
                visitor(Near { document, other: Other::Stored((&id).into()), distance: found.distance })
            })
        })
    }

    pub(super) fn write_pairs(
        &self,
        rows: &mut Rows,
        texts: Option<&mut Texts>,
        watch: &dyn Watch,
    ) -> Result<()> {
        let names = &self.corpus.names;
        self.visit_pairs(texts, watch, |Near { document, other, distance }| {
            let place = self.place(document);
            let (id, other_place, is_stored) = match other {
                Other::Document(other) => (names.id(other), self.place(other), false),
                Other::Stored(id) => (id, place.is_some().then(String::new), true),
            };
            let mut cells =
                vec![Cell::Id(names.id(document)), Cell::Id(id), Cell::Count(u64::from(distance))];
            cells.extend(self.stored.map(|_| Cell::Flag(is_stored)));
            cells.extend([&place, &other_place].into_iter().flatten().map(|place| Cell::Text(place)));
            rows.push(&cells)
        })
    }

    /// What something stored is called: by its name, its id or, without ids, its fingerprint.
    fn stored_id(&self, found: &Match<F>) -> Result<DocumentId> {
        let Some(id) = found.id else { return Ok(DocumentId::Name(found.fingerprint.to_hex())) };
        Ok(match self.stored.map_or(Ok(None), |store| store.name(id))? {
            Some(name) => DocumentId::Name(name),
            None => DocumentId::Number(id),
        })
    }

    /// What that is called which stands for a cluster, and whether it was stored before.
    pub(super) fn representative(&self, cluster: &Cluster<F>) -> Result<(DocumentId, bool)> {
        Ok(match &cluster.representative {
            Representative::Document(document) => (self.corpus.names.id(*document).into(), false),
            Representative::Stored(found) => (self.stored_id(found)?, true),
        })
    }

    /// Where what stands for a cluster is to be found; nothing of what is stored.
    pub(super) fn place_of_representative(&self, cluster: &Cluster<F>) -> Option<String> {
        match cluster.representative {
            Representative::Document(document) => self.place(document),
            Representative::Stored(_) => None,
        }
    }

    pub(super) fn cluster_columns(&self) -> Vec<Column> {
        let mut columns = vec![("id", self.ids()), ("cluster", Kind::Count)];
        columns.extend([("representative", self.mixed_ids()), ("distance", Kind::Count)]);
        columns.extend(self.stored.map(|_| ("stored", Kind::Flag)));
        [columns, self.place_columns(&["place", "representative_place"])].concat()
    }

    pub(super) fn write_clusters(&self, rows: &mut Rows, watch: &dyn Watch) -> Result<()> {
        each(watch, "clusters written", (1..).zip(self.clusters), |(number, cluster)| {
            let centre = cluster.centre(self.corpus);
            let representative_place = self.place_of_representative(cluster).unwrap_or_default();
            let (representative, is_stored) = self.representative(cluster)?;
            for &member in &cluster.members {
                let distance = self.corpus.fingerprints[member].distance(centre);
                let place = self.place(member);
                let mut cells = vec![Cell::Id(self.corpus.names.id(member)), Cell::Count(number)];
                cells.extend([Cell::Id((&representative).into()), Cell::Count(u64::from(distance))]);
                cells.extend(self.stored.map(|_| Cell::Flag(is_stored)));
                if let Some(place) = &place {
                    cells.extend([Cell::Text(place), Cell::Text(&representative_place)]);
                }
                rows.push(&cells)?;
            }
            Ok(())
        })
    }
}
