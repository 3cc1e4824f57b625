//! The files that are written, and what is printed without them.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use simstore::{Fingerprint, Match, Snapshot};

use super::clusters::{Cluster, Representative};
use super::corpus::Corpus;
use super::groups::Groups;
use super::report::Summary;
use super::similarity::Texts;
use super::written::{Clustered, Documents};
use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::naming::Id;
use crate::output::{Output, column};
use crate::rows::{self, Cell, Column, Kind, Rows};

/// The files that are asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output files (`-` is standard output; each appears when it is complete)")]
pub(super) struct OutputArgs {
    /// The input without its duplicates, in its own format, byte for byte; of text files, their paths; of
    /// fingerprints, HEX<TAB>ID
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The whole input, each document with the number of its cluster: in a field or column `cluster`
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// A table of the documents in clusters: id, cluster, representative, distance (to it)
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// A table of all pairs of documents within the distance: a, b, distance
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// The ids of what is kept
    #[arg(long, value_name = "FILE")]
    keep_list: Option<PathBuf>,
    /// The ids of the duplicates
    #[arg(long, value_name = "FILE")]
    remove_list: Option<PathBuf>,
}

impl OutputArgs {
    fn tables(&self) -> impl Iterator<Item = &Path> {
        [&self.clusters, &self.pairs, &self.keep_list, &self.remove_list]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.output, &self.annotated].into_iter().flatten().map(PathBuf::as_path).chain(self.tables())
    }

    /// Refuses what cannot be written.
    pub(super) fn check(&self) -> Outcome {
        self.tables().try_for_each(rows::check)?;
        let all: Vec<&Path> = self.all().collect();
        match all.iter().enumerate().find(|(at, path)| all[..*at].contains(path)) {
            Some((_, path)) if path.as_os_str() == "-" => {
                Err(Failure::Usage("only one output can be standard output (`-`)".to_owned()))
            }
            Some((_, path)) => Err(Failure::Usage(format!("{}: named for two outputs", path.display()))),
            None => Ok(()),
        }
    }

    /// Whether none is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Whether one of them is standard output, where nothing else is printed then.
    pub(super) fn use_stdout(&self) -> bool {
        self.all().any(|path| path.as_os_str() == "-")
    }

    /// Whether the documents themselves are written, and so read again.
    pub(super) fn write_documents(&self) -> bool {
        self.output.is_some() || self.annotated.is_some()
    }

    /// Whether all pairs are to be known.
    pub(super) fn write_pairs(&self) -> bool {
        self.pairs.is_some()
    }
}

/// The open files.
pub(super) struct Outputs<'a> {
    args: &'a OutputArgs,
    output: Option<Output>,
    annotated: Option<Output>,
    clusters: Option<Output>,
    pairs: Option<Output>,
    keep_list: Option<Output>,
    remove_list: Option<Output>,
}

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
    stored: bool,
    members: Vec<Member<'a>>,
}

#[derive(Serialize)]
struct Member<'a> {
    id: Id<'a>,
    fingerprint: String,
    distance: u32,
}

impl<'a> Outputs<'a> {
    /// Opens all files.
    pub(super) fn create(args: &'a OutputArgs) -> Outcome<Self> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        Ok(Outputs {
            args,
            output: create(&args.output)?,
            annotated: create(&args.annotated)?,
            clusters: create(&args.clusters)?,
            pairs: create(&args.pairs)?,
            keep_list: create(&args.keep_list)?,
            remove_list: create(&args.remove_list)?,
        })
    }

    /// Writes all files. Pairs are only those of similar texts, where texts are at hand.
    pub(super) fn write<F: Fingerprint>(
        self,
        found: &Found<F>,
        texts: Option<&mut Texts>,
        documents: Option<&Documents>,
        json: bool,
    ) -> Outcome {
        let clustered = Clustered::new(found.corpus.len(), found.clusters);
        let ids = Kind::Ids { are_numbers: found.corpus.names.are_numbers() };
        let table = |path: &'a Option<PathBuf>, output: Option<Output>, columns: &[Column]| {
            path.as_deref()
                .zip(output)
                .map(|(path, output)| Rows::new(path, output, columns, json))
                .transpose()
        };
        let mut finished = Vec::new();
        if let Some(mut rows) = table(&self.args.keep_list, self.keep_list, &[("id", ids)])? {
            clustered
                .kept()
                .try_for_each(|document| rows.push(&[Cell::Id(found.corpus.names.id(document))]))?;
            finished.push(rows);
        }
        if let Some(mut rows) = table(&self.args.remove_list, self.remove_list, &[("id", ids)])? {
            clustered
                .removed()
                .try_for_each(|document| rows.push(&[Cell::Id(found.corpus.names.id(document))]))?;
            finished.push(rows);
        }
        let columns = [("a", ids), ("b", ids), ("distance", Kind::Count)];
        if let Some(mut rows) = table(&self.args.pairs, self.pairs, &columns)? {
            found.write_pairs(&mut rows, texts)?;
            finished.push(rows);
        }
        let mut columns = vec![("id", ids), ("cluster", Kind::Count)];
        columns.push(("representative", Kind::Ids { are_numbers: found.are_representatives_numbers() }));
        columns.push(("distance", Kind::Count));
        columns.extend(found.stored.map(|_| ("stored", Kind::Flag)));
        if let Some(mut rows) = table(&self.args.clusters, self.clusters, &columns)? {
            found.write_clusters(&mut rows)?;
            finished.push(rows);
        }
        if let Some((path, output)) = self.args.output.as_deref().zip(self.output) {
            match documents {
                Some(documents) => documents.write_kept(path, output, found.corpus, &clustered)?,
                None => clustered.write_kept_fingerprints(output, found.corpus)?,
            }
        }
        if let Some((path, output)) = self.args.annotated.as_deref().zip(self.annotated) {
            match documents {
                Some(documents) => documents.write_annotated(path, output, found.corpus, &clustered)?,
                None => clustered.write_annotated_fingerprints(output, found.corpus)?,
            }
        }
        finished.into_iter().try_for_each(Rows::finish)
    }
}

impl<F: Fingerprint> Found<'_, F> {
    fn write_pairs(&self, rows: &mut Rows, mut texts: Option<&mut Texts>) -> Outcome {
        let names = &self.corpus.names;
        self.groups.visit_pairs(|a, b, distance| {
            let is_wanted = match &mut texts {
                Some(texts) => texts.are_similar(a, b)?,
                None => true,
            };
            if !is_wanted {
                return Ok(());
            }
            rows.push(&[Cell::Id(names.id(a)), Cell::Id(names.id(b)), Cell::Count(u64::from(distance))])
        })
    }

    /// What something stored is called: by its name, its id or, without ids, its fingerprint.
    fn stored_id(&self, found: &Match<F>) -> Outcome<Result<u64, String>> {
        let Some(id) = found.id else { return Ok(Err(found.fingerprint.to_hex())) };
        Ok(match self.stored.map_or(Ok(None), |store| store.name(id))? {
            Some(name) => Err(name),
            None => Ok(id),
        })
    }

    fn are_representatives_numbers(&self) -> bool {
        self.corpus.names.are_numbers()
            && self.stored.is_none_or(|store| store.keeps_ids() && store.stats().names == 0)
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

    fn write_clusters(&self, rows: &mut Rows) -> Outcome {
        for (number, cluster) in (1..).zip(self.clusters) {
            let centre = cluster.centre(self.corpus);
            self.with_representative(cluster, |representative, is_stored| {
                for &member in &cluster.members {
                    let distance = self.corpus.fingerprints[member].distance(centre);
                    let cells = [
                        Cell::Id(self.corpus.names.id(member)),
                        Cell::Count(number),
                        Cell::Id(representative),
                        Cell::Count(u64::from(distance)),
                        Cell::Flag(is_stored),
                    ];
                    rows.push(&cells[..4 + usize::from(self.stored.is_some())])?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Prints the clusters and, as JSON, the summary.
    pub(super) fn print(&self, summary: &Summary, json: bool) -> Outcome {
        let mut output = Output::stdout();
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
        output.finish()
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
            fingerprint: self.corpus.fingerprints[document].to_hex(),
            distance: self.corpus.fingerprints[document].distance(centre),
        };
        let members: Vec<Member> = cluster.members.iter().map(member).collect();
        ClusterObject { cluster: number, size: members.len(), representative, stored, members }
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
        output.line(format_args!(
            "   {}  {}",
            if stored { "=" } else { "0" },
            column(&representative.text())
        ))?;
        for &document in &cluster.members {
            if cluster.representative != Representative::Document(document) {
                let distance = self.corpus.fingerprints[document].distance(centre);
                output
                    .line(format_args!("  {distance:>2}  {}", column(&self.corpus.names.text(document))))?;
            }
        }
        Ok(())
    }
}
