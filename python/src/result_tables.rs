//! Tables of a deduplication's result: clusters, pairs, kept and removed documents.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, LargeStringBuilder, UInt32Builder, UInt64Builder,
};
use simstore::Result;
use simstore_dedup::{Cluster, Criterion, NearPair, Report};
use simstore_io::{DocumentId, IdRef};

use crate::call::Call;
use crate::table::PyTable;

/// Maps document numbers to rows of the source. They differ if the source has malformed rows, which are not
/// documents.
pub(crate) struct RowMapping {
    /// Number of documents before each malformed row.
    documents_before: Vec<u64>,
}

impl RowMapping {
    pub(crate) fn new(malformed: &[u64]) -> RowMapping {
        RowMapping { documents_before: (0..).zip(malformed).map(|(at, row)| row - at).collect() }
    }

    fn row(&self, document: usize) -> u64 {
        let document = document as u64;
        document + self.documents_before.partition_point(|&before| before <= document) as u64
    }
}

/// The tables of a run.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) clusters: PyTable,
    pub(crate) pairs: Option<PyTable>,
    pub(crate) kept: PyTable,
    pub(crate) removed: PyTable,
    pub(crate) row_labels: RowLabels,
    /// The report page as HTML, if it was requested.
    pub(crate) page: Option<String>,
}

/// For each row of the source, whether it is kept, and its cluster. Also the largest clusters of the run.
#[derive(Debug)]
pub(crate) struct RowLabels {
    pub(crate) is_kept: Vec<bool>,
    /// For each row, the number of its cluster (from 1), or -1 if it is in no cluster.
    pub(crate) labels: Vec<i64>,
    /// The largest clusters, largest first.
    pub(crate) largest: Vec<LargeCluster>,
}

/// A large cluster, for notebooks.
#[derive(Debug)]
pub(crate) struct LargeCluster {
    /// Number of documents.
    pub(crate) documents: usize,
    /// Id of its representative.
    pub(crate) id: String,
    /// Row of its representative; `None` if that is a stored document.
    pub(crate) row: Option<u64>,
    /// Text of the representative, if it is available.
    pub(crate) text: Option<String>,
}

/// The fields of a pickled [`LargeCluster`].
pub(crate) type LargeClusterFields = (usize, String, Option<u64>, Option<String>);

impl LargeCluster {
    pub(crate) fn to_fields(&self) -> LargeClusterFields {
        (self.documents, self.id.clone(), self.row, self.text.clone())
    }

    pub(crate) fn from_fields((documents, id, row, text): LargeClusterFields) -> LargeCluster {
        LargeCluster { documents, id, row, text }
    }
}

/// Maximum number of clusters that a notebook shows.
const LARGEST_CLUSTERS_MAX: usize = 5;

/// Builder of a column of ids: uint64 if all ids are numbers, otherwise strings.
enum IdColumnBuilder {
    Numbers(UInt64Builder),
    Texts(LargeStringBuilder),
}

impl IdColumnBuilder {
    fn new(are_numbers: bool) -> IdColumnBuilder {
        if are_numbers {
            IdColumnBuilder::Numbers(UInt64Builder::new())
        } else {
            IdColumnBuilder::Texts(LargeStringBuilder::new())
        }
    }

    fn push(&mut self, id: IdRef<'_>) {
        match (self, id) {
            (IdColumnBuilder::Numbers(ids), IdRef::Number(id)) => ids.append_value(id),
            // Does not occur: the report says that all ids are numbers.
            (IdColumnBuilder::Numbers(ids), IdRef::Name(_)) => ids.append_null(),
            (IdColumnBuilder::Texts(ids), id) => ids.append_value(id.text()),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            IdColumnBuilder::Numbers(mut ids) => Arc::new(ids.finish()),
            IdColumnBuilder::Texts(mut ids) => Arc::new(ids.finish()),
        }
    }
}

/// Columns that only some runs have: distance or similarity, the store of a document, and the documents' places (FILE:LINE).
struct OptionalColumns {
    distance: Option<UInt32Builder>,
    similarity: Option<Float64Builder>,
    stored: Option<BooleanBuilder>,
    store: Option<LargeStringBuilder>,
    places: Option<[LargeStringBuilder; 2]>,
}

/// The optional columns that the tables of a run have, and the types of their id columns.
#[derive(Clone, Copy)]
struct ColumnChoice {
    has_distance: bool,
    has_similarity: bool,
    /// Number of stores that the documents were compared with.
    stores: usize,
    has_places: bool,
    /// First: whether all ids of the source's documents are numbers. Second: whether this is also true for all ids
    /// of stored documents.
    are_numbers: (bool, bool),
}

impl OptionalColumns {
    fn new(choice: ColumnChoice) -> OptionalColumns {
        OptionalColumns {
            distance: choice.has_distance.then(UInt32Builder::new),
            similarity: choice.has_similarity.then(Float64Builder::new),
            stored: (choice.stores > 0).then(BooleanBuilder::new),
            store: (choice.stores > 1).then(LargeStringBuilder::new),
            places: choice.has_places.then(|| [LargeStringBuilder::new(), LargeStringBuilder::new()]),
        }
    }

    /// Appends a row: the distance or similarity of two documents, whether the second is in a store and in which one, and
    /// the places of both. The value of a column that this run does not have is ignored.
    fn push(
        &mut self,
        (distance, similarity): (Option<u32>, Option<f64>),
        is_stored: bool,
        store: Option<&std::path::Path>,
        places: [Option<&str>; 2],
    ) {
        self.distance.iter_mut().for_each(|column| column.append_option(distance));
        self.similarity.iter_mut().for_each(|column| column.append_option(similarity));
        self.stored.iter_mut().for_each(|column| column.append_value(is_stored));
        let store = store.map(std::path::Path::to_string_lossy);
        self.store.iter_mut().for_each(|column| column.append_option(store.as_deref()));
        for (column, place) in self.places.iter_mut().flatten().zip(places) {
            column.append_option(place);
        }
    }

    /// Returns the columns with their names. `places` are the names of the two columns that have the FILE:LINE of
    /// the row's document and of the other document.
    fn columns(self, places: [&'static str; 2]) -> Vec<(&'static str, ArrayRef)> {
        let mut columns: Vec<(&str, ArrayRef)> = Vec::new();
        columns.extend(self.distance.map(|mut column| ("distance", Arc::new(column.finish()) as _)));
        columns.extend(self.similarity.map(|mut column| ("similarity", Arc::new(column.finish()) as _)));
        columns.extend(self.stored.map(|mut column| ("stored", Arc::new(column.finish()) as _)));
        columns.extend(self.store.map(|mut column| ("store", Arc::new(column.finish()) as _)));
        for (mut column, name) in self.places.into_iter().flatten().zip(places) {
            columns.push((name, Arc::new(column.finish())));
        }
        columns
    }
}

impl Results {
    /// Makes the tables from the report of a run. `malformed` is the number of malformed rows; `pairs` is whether
    /// to make the table of pairs.
    pub(crate) fn from_report(
        report: &Report,
        rows: &RowMapping,
        malformed: usize,
        pairs: bool,
        call: &Call,
    ) -> Result<Results> {
        let summary = report.summary();
        let is_by_distance = matches!(summary.criterion, Criterion::Distance(_));
        let choice = ColumnChoice {
            has_distance: is_by_distance,
            has_similarity: !is_by_distance || summary.verified.is_some(),
            stores: if summary.stored.is_some() { report.stores() } else { 0 },
            has_places: summary.repeated_ids > 0,
            are_numbers: report.ids_are_numbers(),
        };
        let all = summary.documents as usize + malformed;
        let mut row_labels =
            RowLabels { is_kept: vec![false; all], labels: vec![-1; all], largest: Vec::new() };
        Ok(Results {
            clusters: row_labels.read_clusters(report, rows, choice, call)?,
            kept: row_labels.read_kept(report, rows, choice, call)?,
            removed: read_removed(report, rows, choice, call)?,
            pairs: if pairs { Some(read_pairs(report, rows, choice, call)?) } else { None },
            row_labels,
            page: None,
        })
    }
}

impl RowLabels {
    fn read_clusters(
        &mut self,
        report: &Report,
        rows: &RowMapping,
        choice: ColumnChoice,
        call: &Call,
    ) -> Result<PyTable> {
        let (mut numbers, mut documents) = (UInt64Builder::new(), UInt64Builder::new());
        let (mut ids, mut representatives) =
            (IdColumnBuilder::new(choice.are_numbers.0), IdColumnBuilder::new(choice.are_numbers.1));
        let mut representative_documents = UInt64Builder::new();
        let mut is_kept = BooleanBuilder::new();
        let mut others = OptionalColumns::new(choice);
        for cluster in report.clusters() {
            call.check()?;
            let Cluster {
                number, representative, document, location: place, is_stored, store, members, ..
            } = &cluster?;
            for member in members {
                let row = rows.row(member.document);
                self.labels[row as usize] = *number as i64;
                numbers.append_value(*number as u64);
                documents.append_value(row);
                ids.push((&member.id).into());
                representative_documents.append_option(document.map(|document| rows.row(document)));
                representatives.push(representative.into());
                is_kept.append_value(member.is_kept);
                let places = [member.location.as_deref(), place.as_deref()];
                others.push((member.distance, member.similarity), *is_stored, *store, places);
            }
            self.note_cluster(members.len(), representative, document.map(|document| rows.row(document)));
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("cluster", Arc::new(numbers.finish())),
            ("document", Arc::new(documents.finish())),
            ("id", ids.finish()),
            ("representative_document", Arc::new(representative_documents.finish())),
            ("representative", representatives.finish()),
            ("is_kept", Arc::new(is_kept.finish())),
        ];
        table([columns, others.columns(["place", "representative_place"])].concat())
    }

    /// Adds a cluster to [`largest`](Self::largest) if it is one of the largest so far. Among clusters of equal size,
    /// the first ones are kept.
    fn note_cluster(&mut self, documents: usize, id: &DocumentId, row: Option<u64>) {
        let at = self.largest.partition_point(|other| other.documents >= documents);
        if at < LARGEST_CLUSTERS_MAX {
            self.largest.insert(at, LargeCluster { documents, id: id.to_string(), row, text: None });
            self.largest.truncate(LARGEST_CLUSTERS_MAX);
        }
    }

    fn read_kept(
        &mut self,
        report: &Report,
        rows: &RowMapping,
        choice: ColumnChoice,
        call: &Call,
    ) -> Result<PyTable> {
        let mut documents = UInt64Builder::new();
        let mut ids = IdColumnBuilder::new(choice.are_numbers.0);
        let mut places = choice.has_places.then(LargeStringBuilder::new);
        for (at, kept) in report.kept().enumerate() {
            if at.is_multiple_of(1024) {
                call.check()?;
            }
            let kept = kept?;
            let row = rows.row(kept.document);
            self.is_kept[row as usize] = true;
            documents.append_value(row);
            ids.push((&kept.id).into());
            places.iter_mut().for_each(|places| places.append_option(kept.location.as_deref()));
        }
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("document", Arc::new(documents.finish())), ("id", ids.finish())];
        columns.extend(places.map(|mut places| ("place", Arc::new(places.finish()) as _)));
        table(columns)
    }
}

fn read_removed(report: &Report, rows: &RowMapping, choice: ColumnChoice, call: &Call) -> Result<PyTable> {
    let (mut documents, mut duplicate_of_documents) = (UInt64Builder::new(), UInt64Builder::new());
    let (mut ids, mut duplicate_of_ids) =
        (IdColumnBuilder::new(choice.are_numbers.0), IdColumnBuilder::new(choice.are_numbers.1));
    let mut others = OptionalColumns::new(choice);
    report.visit_removed(&mut |removed| {
        call.check()?;
        documents.append_value(rows.row(removed.document));
        ids.push(removed.id);
        duplicate_of_documents.append_option(removed.duplicate_of.map(|document| rows.row(document)));
        duplicate_of_ids.push((&removed.duplicate_of_id).into());
        let places = [removed.location.as_deref(), removed.duplicate_of_location.as_deref()];
        let proximity = (removed.distance, removed.similarity);
        others.push(proximity, removed.duplicate_of.is_none(), removed.store, places);
        Ok(())
    })?;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("document", Arc::new(documents.finish())),
        ("id", ids.finish()),
        ("duplicate_of_document", Arc::new(duplicate_of_documents.finish())),
        ("duplicate_of", duplicate_of_ids.finish()),
    ];
    table([columns, others.columns(["place", "duplicate_of_place"])].concat())
}

fn read_pairs(report: &Report, rows: &RowMapping, choice: ColumnChoice, call: &Call) -> Result<PyTable> {
    let (mut a, mut b) = (UInt64Builder::new(), UInt64Builder::new());
    let (mut a_ids, mut b_ids) =
        (IdColumnBuilder::new(choice.are_numbers.0), IdColumnBuilder::new(choice.are_numbers.1));
    // Pairs have no places: ids and document numbers identify the documents.
    let mut others = OptionalColumns::new(ColumnChoice { has_places: false, ..choice });
    report.visit_pairs(call, &mut |pair| {
        let &NearPair { document, id, other, other_id, store, distance, similarity } = pair;
        a.append_value(rows.row(document));
        b.append_option(other.map(|other| rows.row(other)));
        a_ids.push(id);
        b_ids.push(other_id);
        others.push((distance, similarity), other.is_none(), store, [None, None]);
        Ok(())
    })?;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a_document", Arc::new(a.finish())),
        ("a", a_ids.finish()),
        ("b_document", Arc::new(b.finish())),
        ("b", b_ids.finish()),
    ];
    table([columns, others.columns(["", ""])].concat())
}

fn table(columns: Vec<(&str, ArrayRef)>) -> Result<PyTable> {
    // All columns have the same length, so this does not fail.
    PyTable::from_columns(columns).map_err(|error| simstore::Error::Bug(error.to_string()))
}
