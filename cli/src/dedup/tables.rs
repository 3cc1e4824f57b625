//! Tables of what was found, and what is printed without them.

use serde::Serialize;
use simstore::{Fingerprint, Match, Snapshot};
use simstore_corpus::output::Complete;
use simstore_corpus::rows::{Cell, Column, Kind, Rows};

use super::clusters::{Cluster, Representative};
use super::corpus::Corpus;
use super::groups::Groups;
use super::report::Summary;
use super::similarity::Texts;
use super::written::Clustered;
use crate::failure::Outcome;
use crate::inputs::count_of;
use crate::naming::Id;
use crate::output::{Output, column};

/// What was found.
pub(super) struct Found<'a, F: Fingerprint> {
    pub(super) corpus: &'a Corpus<F>,
    pub(super) groups: &'a Groups<F>,
    pub(super) clusters: &'a [Cluster<F>],
    /// The store that was compared with.
    pub(super) stored: Option<&'a Snapshot<F>>,
}

#[derive(Serialize)]
struct ClusterObject<'a> {
    cluster: usize,
    size: usize,
    representative: Id<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    stored: bool,
    members: Vec<Member<'a>>,
}

#[derive(Serialize)]
struct Member<'a> {
    id: Id<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    fingerprint: String,
    distance: u32,
}

impl<F: Fingerprint> Found<'_, F> {
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
    fn place(&self, document: usize) -> Option<String> {
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

    pub(super) fn write_listed(&self, rows: &mut Rows, document: usize) -> Outcome {
        let place = self.place(document);
        let mut cells = vec![Cell::Id(self.corpus.names.id(document))];
        cells.extend(place.as_deref().map(Cell::Text));
        Ok(rows.push(&cells)?)
    }

    pub(super) fn pair_columns(&self) -> Vec<Column> {
        let mut columns = vec![("a", self.ids()), ("b", self.mixed_ids()), ("distance", Kind::Count)];
        columns.extend(self.stored.map(|_| ("stored", Kind::Flag)));
        [columns, self.place_columns(&["a_place", "b_place"])].concat()
    }

    /// Writes the pairs of documents, then those of documents with something stored.
    pub(super) fn write_pairs(&self, rows: &mut Rows, mut texts: Option<&mut Texts>) -> Outcome {
        let names = &self.corpus.names;
        // All that were compared before are among these.
        texts.iter_mut().for_each(|texts| texts.count_anew());
        self.groups.visit_pairs(|a, b, distance| {
            let is_wanted = match &mut texts {
                Some(texts) => texts.are_similar(a, b)?,
                None => true,
            };
            if !is_wanted {
                return Ok(());
            }
            let places = [self.place(a), self.place(b)];
            let mut cells =
                vec![Cell::Id(names.id(a)), Cell::Id(names.id(b)), Cell::Count(u64::from(distance))];
            cells.extend(self.stored.map(|_| Cell::Flag(false)));
            cells.extend(places.iter().flatten().map(|place| Cell::Text(place)));
            Ok(rows.push(&cells)?)
        })?;
        for (document, group) in self.groups.documents() {
            for (_, found) in self.groups.stored(group) {
                let (stored, place) = (self.stored_id(found)?, self.place(document));
                let stored = stored.as_ref().map_or_else(|name| Id::Name(name), |&number| Id::Number(number));
                let mut cells = vec![Cell::Id(names.id(document)), Cell::Id(stored)];
                cells.extend([Cell::Count(u64::from(found.distance)), Cell::Flag(true)]);
                if let Some(place) = &place {
                    cells.extend([Cell::Text(place), Cell::Text("")]);
                }
                rows.push(&cells)?;
            }
        }
        Ok(())
    }

    /// What something stored is called: by its name, its id or, without ids, its fingerprint.
    fn stored_id(&self, found: &Match<F>) -> Outcome<Result<u64, String>> {
        let Some(id) = found.id else { return Ok(Err(found.fingerprint.to_hex())) };
        Ok(match self.stored.map_or(Ok(None), |store| store.name(id))? {
            Some(name) => Err(name),
            None => Ok(id),
        })
    }

    /// Calls a function with what stands for a cluster.
    fn with_representative<R>(
        &self,
        cluster: &Cluster<F>,
        call: impl FnOnce(Id, bool) -> Outcome<R>,
    ) -> Outcome<R> {
        match &cluster.representative {
            Representative::Document(document) => call(self.corpus.names.id(*document), false),
            Representative::Stored(found) => match self.stored_id(found)? {
                Ok(number) => call(Id::Number(number), true),
                Err(name) => call(Id::Name(&name), true),
            },
        }
    }

    /// Where what stands for a cluster is to be found; nothing of what is stored.
    fn place_of_representative(&self, cluster: &Cluster<F>) -> Option<String> {
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

    pub(super) fn write_clusters(&self, rows: &mut Rows) -> Outcome {
        for (number, cluster) in (1..).zip(self.clusters) {
            let centre = cluster.centre(self.corpus);
            let representative_place = self.place_of_representative(cluster).unwrap_or_default();
            self.with_representative(cluster, |representative, is_stored| {
                for &member in &cluster.members {
                    let distance = self.corpus.fingerprints[member].distance(centre);
                    let place = self.place(member);
                    let mut cells = vec![Cell::Id(self.corpus.names.id(member)), Cell::Count(number)];
                    cells.extend([Cell::Id(representative), Cell::Count(u64::from(distance))]);
                    cells.extend(self.stored.map(|_| Cell::Flag(is_stored)));
                    if let Some(place) = &place {
                        cells.extend([Cell::Text(place), Cell::Text(&representative_place)]);
                    }
                    rows.push(&cells)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Prints the clusters and, as JSON, the summary.
    pub(super) fn print(&self, mut output: Output, summary: &Summary, json: bool) -> Outcome<Complete> {
        for (number, cluster) in (1..).zip(self.clusters) {
            self.with_representative(cluster, |representative, stored| {
                if json {
                    output.json(&self.object(number, cluster, representative, stored))
                } else {
                    self.print_cluster(&mut output, number, cluster, representative, stored)
                }
            })?;
        }
        if json {
            output.json(summary)?;
        }
        output.complete()
    }

    fn object<'b>(
        &'b self,
        number: usize,
        cluster: &Cluster<F>,
        representative: Id<'b>,
        stored: bool,
    ) -> ClusterObject<'b> {
        let centre = cluster.centre(self.corpus);
        let member = |&document: &usize| Member {
            id: self.corpus.names.id(document),
            place: self.place(document),
            fingerprint: self.corpus.fingerprints[document].to_hex(),
            distance: self.corpus.fingerprints[document].distance(centre),
        };
        let members: Vec<Member> = cluster.members.iter().map(member).collect();
        ClusterObject {
            cluster: number,
            size: members.len(),
            representative,
            place: self.place_of_representative(cluster),
            stored,
            members,
        }
    }

    fn print_cluster(
        &self,
        output: &mut Output,
        number: usize,
        cluster: &Cluster<F>,
        representative: Id,
        stored: bool,
    ) -> Outcome {
        let centre = cluster.centre(self.corpus);
        let like = if stored { ", stored before" } else { "" };
        let documents = count_of(cluster.members.len() as u64, "document");
        output.line(format_args!("cluster {number}: {documents}{like}"))?;
        let place =
            |place: Option<String>| place.map_or_else(String::new, |place| format!("  ({})", column(&place)));
        output.line(format_args!(
            "   {}  {}{}",
            if stored { "=" } else { "0" },
            column(&representative.text()),
            place(self.place_of_representative(cluster))
        ))?;
        for &document in &cluster.members {
            if cluster.representative != Representative::Document(document) {
                let distance = self.corpus.fingerprints[document].distance(centre);
                let (id, place) = (self.corpus.names.text(document), place(self.place(document)));
                output.line(format_args!("  {distance:>2}  {}{place}", column(&id)))?;
            }
        }
        Ok(())
    }
}
