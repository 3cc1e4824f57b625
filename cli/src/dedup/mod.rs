//! `simstore dedup`: near-duplicate clusters of a corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use serde::Serialize;
use simstore::{Error, Fingerprint, Snapshot};
use simstore_corpus::output::{Complete, SetAside, place_of};
use simstore_corpus::{Block, Counts, DocumentOptions, InputKind, Inputs, Piece};
use simstore_text::Profile;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use self::against::{Against, Run};
use self::clusters::Cluster;
use self::corpus::Corpus;
use self::groups::Groups;
use self::listing::Listing;
use self::outputs::Outputs;
use self::parts::{Parts, Shard};
use self::preference::{Preference, Rule};
use self::report::Summary;
use self::similarity::Texts;
use self::tables::Found;
use self::written::Documents;
use crate::counts::warn;
use crate::failure::{Failure, Outcome, complain};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::{bytes, parse_bytes, rounded};
use crate::output::Output;
use crate::progress::Progress;
use crate::width::{Bits, by_width, check_distance};

mod against;
mod clusters;
mod corpus;
mod dry_run;
mod groups;
mod listing;
mod names;
mod outputs;
mod part;
mod parts;
mod preference;
mod report;
mod similarity;
mod tables;
mod written;

/// What is said of the formats, for the help of options that name such a file.
pub(crate) const FORMATS_HELP: &str = "\
Tables are written in the format that the file's name ends in: .jsonl (an object a line), .csv or .tsv (with a line of \
column names), .parquet; these but the last compressed, where .gz, .zst, .bz2 or .xz follows; else, and to standard output (`-`), in lines of columns separated by tabs, without names, or \
with --json in objects.";

const EXAMPLES: &str = "\
If no output file is named, the clusters are printed: what stands for each, then its other documents, each with its \
distance to that. With --json, a line is an object: one for each cluster, then one summary; if a file is named, only the \
summary.
  cluster, size  number of the cluster from 1, and of its documents
  representative id of what stands for it; stored is true if that was in the store before
  members        its documents in order of input: id, fingerprint, distance (to the representative)
  place          where ids repeat, FILE:LINE of what stands for it, and of each member
and in the summary
  documents      documents or fingerprints read
  fingerprints   distinct fingerprints among them
  clusters       clusters of two documents and more, or of something stored
  clustered      documents in them
  duplicates     documents in them that do not stand for their cluster
  stored         documents in clusters of something stored, with --against
  added          documents added to the store, with --add
  added_before   documents that the same run has added before; nothing else is told then
  kept           documents that are left
  largest        the largest clusters: size, and farthest: the greatest distance of two members
  compared, unlike   pairs whose texts were compared, and that were not alike, with --verify-text
  same_id        documents that have an id which another has
  empty          documents without text, which match nothing
  short          documents too short to be reliable
  replaced       characters that were not in the encoding of their input
  bad            malformed documents skipped
  text_bytes     bytes of all texts
  seconds        time taken

Examples:
  simstore dedup samples/en.jsonl
  simstore dedup samples/zh.jsonl --output unique.jsonl --pairs pairs.csv
  simstore dedup --keep longest --clusters clusters.csv --remove-list remove.txt samples/en.jsonl
  simstore dedup --verify-text 0.8 --cluster-by stars samples/en.jsonl
  simstore dedup --against seen.simstore --add --output new.jsonl samples/en.jsonl";

/// How documents come together in clusters
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// What a chain of near ones connects: each is near another, not necessarily all
    Components,
    /// Each is near the one that stands for the cluster
    Stars,
}

/// Of a run that was finished before.
#[derive(Debug, Serialize)]
struct AlreadyAdded {
    documents: u64,
    added: u64,
    added_before: u64,
}

/// Find the near-duplicates of a corpus, no store needed
///
/// The result depends on the input and the options only, not on the number of threads. Takes 28 bytes of memory for each
/// 64-bit fingerprint, 52 for each of 128 bits, and more for ids that are no positions, for what is near something, and
/// for --pairs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{FORMATS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DedupArgs {
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Fingerprints that differ in at most this many bits are near [default: 3, or what the store was built for]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Width of fingerprints [default: 64, or that of the store]
    #[arg(long, value_enum)]
    bits: Option<Bits>,
    /// How documents come together in clusters
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "components")]
    cluster_by: Shape,
    /// Which document of a cluster is kept: first, longest, smallest-id, or newest:FIELD, the greatest value of a field: numbers by
    /// value, texts as ISO 8601 dates of one time zone are in order
    #[arg(long, value_name = "RULE", default_value = "first")]
    keep: Rule,
    /// Documents are alike only if their texts are too: if of all features of the two, as the profile makes them, at
    /// least this share (0 to 1) is in both. The texts are read a second time
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    verify_text: Option<f64>,
    /// Find what is near documents of this store too. What is, is not kept
    #[arg(long, value_name = "STORE")]
    against: Option<PathBuf>,
    /// Add what is kept to the store, all at once in the end; the store is made if there is none. Store and output files
    /// change together: a run that was cut off is run again, and one that was not is not done twice
    #[arg(long, requires = "against")]
    add: bool,
    /// Add even if the same run has added its documents before: compare with the store as it is now
    #[arg(long, requires = "add")]
    again: bool,
    /// Keep the fingerprints of finished files in this folder, and take those that are there: a run that was cut off
    /// carries on
    #[arg(long, value_name = "FOLDER")]
    resume: Option<PathBuf>,
    /// Only make this share of the parts in the folder of --resume: shard I of N. When all shards are made, on any
    /// machine, and their parts are in one folder, a run without it joins them
    #[arg(
        long,
        value_name = "I/N",
        requires = "resume",
        conflicts_with_all = [
            "output", "annotated", "clusters", "pairs", "keep_list", "remove_list", "against", "verify_text", "json",
        ]
    )]
    shard: Option<Shard>,
    /// Stop with a message before fingerprints and ids take more memory than this, like 8G
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Only tell what would be read, and how much memory and disk it would take
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    outputs: outputs::OutputArgs,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &DedupArgs, progress: &Progress) -> Outcome {
    let stored = match &args.against {
        Some(store) if store.join("MANIFEST").exists() => Some(Bits::of_store(store)?),
        Some(store) if !args.add => {
            return Err(Failure::Failed(format!("{}: there is no store", store.display())));
        }
        _ => None,
    };
    by_width!(args.bits.or(stored).unwrap_or(Bits::Narrow), dedup(args, progress))
}

fn dedup<F: Fingerprint>(args: &DedupArgs, progress: &Progress) -> Outcome {
    args.outputs.check()?;
    if args.against.is_some() && args.verify_text.is_some() {
        return Err(Failure::Usage(
            "a store holds fingerprints and no texts, so --verify-text cannot tell whether a document is like one that is \
             stored: take out duplicates among the documents first, with --verify-text and --output, and compare what is \
             left with the store"
                .to_owned(),
        ));
    }
    let inputs = inputs::open(&args.inputs, args.options(), args.documents.skip_bad)?;
    let kind = inputs::kind(&inputs)?;
    if kind == InputKind::Fingerprints {
        let of_documents = [
            (args.verify_text.is_some(), "--verify-text"),
            (args.resume.is_some(), "--resume"),
            (args.dry_run, "--dry-run"),
            (args.keep == Rule::Longest || args.keep.field().is_some(), "--keep by what is in documents"),
        ];
        if let Some((_, option)) = of_documents.iter().find(|(is_set, _)| *is_set) {
            return Err(Failure::Usage(format!("{option} is for documents: the inputs hold fingerprints")));
        }
    }
    if args.dry_run {
        let profile = args.documents.profile.profile(None)?;
        return dry_run::run::<F>(&inputs, &profile, args.json);
    }
    if let (Some(folder), Some(_)) = (&args.resume, args.shard) {
        return make_shard::<F>(args, &inputs, folder, progress);
    }
    let against = args.against.as_deref().map(|store| Against::<F>::open(store, args.add)).transpose()?;
    let stored = against.as_ref().and_then(Against::snapshot);
    let last_run = match &against {
        Some(against) if args.add => against.last_run()?,
        _ => None,
    };
    let finished = match (&against, &last_run) {
        (Some(against), Some(run)) => against.finish(run)?,
        _ => Vec::new(),
    };
    for path in &finished {
        complain(&format!(
            "{}: written by a run that was cut off before it could be given its name",
            path.display()
        ));
    }
    let distance = args.distance.or(stored.map(Snapshot::distance)).unwrap_or(3);
    check_distance::<F>(distance)?;
    let listing = match kind {
        InputKind::Documents => Some(Listing::read(&inputs)?),
        InputKind::Fingerprints => None,
    };
    args.check_inputs(listing.as_ref())?;
    let is_cut_off = Arc::new(AtomicBool::new(false));
    // Opened first, so that a folder that is not there costs no work.
    let outputs = Outputs::create(&args.outputs, args.add.then_some(&is_cut_off))?;
    // What is read twice has to be there twice.
    let twice = args.verify_text.is_some() || args.outputs.write_documents();
    if twice && kind == InputKind::Documents {
        inputs.put_aside()?;
    }
    let profile = match kind {
        InputKind::Documents => args.documents.profile.profile(stored.map(Snapshot::profile))?,
        InputKind::Fingerprints => Profile::default(),
    };

    let (corpus, counts) = read(args, &inputs, &profile, progress)?;
    if let Some(field) = args.keep.field() {
        check_field(field, &corpus, &inputs)?;
    }
    let run = args.run_of(&corpus, distance, &profile);
    if let Some(last) = last_run.filter(|last| last.run == run && !args.again && !args.outputs.is_empty()) {
        return args.say_already_added(&last, &counts, progress);
    }
    if let Some(path) = args.outputs.all().find(|path| finished.contains(&place_of(path))) {
        return Err(Failure::Failed(format!(
            "{}: holds what another run has found, which was cut off; take it away, and run this again",
            path.display()
        )));
    }
    let with_pairs =
        args.outputs.write_pairs() || args.verify_text.is_some() || args.cluster_by == Shape::Stars;
    let groups = Groups::new(&corpus, distance, with_pairs, stored)?;
    let check_unchanged = || match &listing {
        Some(listing) if twice => listing.check_unchanged(&inputs),
        _ => Ok(()),
    };
    // Before work that would be in vain.
    check_unchanged()?;
    let mut texts = match args.verify_text {
        Some(least) => Some(Texts::read(least, &groups, &corpus, &inputs, &profile, progress)?),
        None => None,
    };
    let preference = Preference { rule: &args.keep, values: &corpus.values, names: &corpus.names };
    let clusters: Vec<Cluster<F>> = match args.cluster_by {
        Shape::Components => clusters::components(&groups, &preference, texts.as_mut())?,
        Shape::Stars => clusters::stars(&groups, &preference, texts.as_mut())?,
    };
    warn(&counts, kind, progress);
    let repeated = corpus.names.repeated();
    if repeated > 0 {
        complain(&format!(
            "warning: {} have an id that another has: tables and lists tell them apart by FILE:LINE",
            count_of(repeated as u64, "document")
        ));
    }
    let found = Found { corpus: &corpus, groups: &groups, clusters: &clusters, stored };
    let documents = Documents { inputs: &inputs, progress };
    let documents = (kind == InputKind::Documents).then_some(&documents);
    let mut complete = outputs.write(&found, texts.as_mut(), documents, args.json)?;
    check_unchanged()?;
    let mut summary = Summary::new(&found, texts.as_ref(), counts);
    summary.seconds = rounded(progress.seconds());
    let Some(against) = against.as_ref().filter(|_| args.add) else {
        complete.into_iter().try_for_each(|output| output.publish().map_err(Failure::from))?;
        if args.outputs.is_empty() {
            found.print(Output::stdout(), &summary, args.json)?;
        }
        return args.say(&summary, distance, progress);
    };
    // Of fingerprints only the user can know how they were made.
    let profile = if documents.is_some() { profile.to_string() } else { String::new() };
    let made = against.open_store(distance, &profile)?;
    let load = against.load(made.as_ref(), &corpus, &clusters)?;
    summary.added = Some(found.to_add());
    // Standard output comes before the store: a run that is cut off may print again what it has printed, never less.
    if args.outputs.is_empty() {
        complete.push(found.print(Output::stdout_that_may_close(&is_cut_off), &summary, args.json)?);
    }
    if is_cut_off.load(Ordering::Relaxed) {
        complain(
            "warning: standard output was closed before all was written to it; all of it is added to the store",
        );
    }
    let suffix = against::suffix(&run);
    let aside: Vec<Option<SetAside>> =
        complete.iter_mut().map(|output| output.set_aside(&suffix)).collect::<simstore::Result<_>>()?;
    let aside: Vec<SetAside> = aside.into_iter().flatten().collect();
    // From here on nobody but the store knows whether they are to get their names.
    complete.iter_mut().for_each(Complete::keep);
    if let Some(load) = load {
        against::commit(load, &run, found.to_add(), &aside)?;
    }
    for file in &aside {
        file.publish()?;
    }
    against.settle(made.as_ref())?;
    args.say(&summary, distance, progress)
}

/// Reads all inputs.
fn read<F: Fingerprint>(
    args: &DedupArgs,
    inputs: &Inputs,
    profile: &Profile,
    progress: &Progress,
) -> Outcome<(Corpus<F>, Counts)> {
    let kind = inputs.kind()?;
    let with_checksums = args.add || args.verify_text.is_some() || args.outputs.write_documents();
    let mut corpus = Corpus::new(&args.keep, with_checksums && kind == InputKind::Documents);
    let push = |corpus: &mut Corpus<F>, item| {
        corpus.push(&item);
        if corpus.len().is_multiple_of(MEMORY_CHECKED) { check_memory(corpus, args.memory) } else { Ok(()) }
    };
    let counts = match kind {
        InputKind::Fingerprints => {
            let mut stopped = None;
            let visited = inputs.visit_pieces(progress, |piece| {
                let taken = match piece {
                    Piece::Item(item) => push(&mut corpus, item),
                    Piece::Block(Block { fingerprints, position, path, line }) => {
                        corpus.push_block(fingerprints, position, path, line);
                        check_memory(&corpus, args.memory)
                    }
                };
                taken.map_err(|failure| {
                    stopped = Some(failure);
                    Error::Cancelled
                })
            });
            visited.map_err(|error| stopped.unwrap_or_else(|| error.into()))?
        }
        InputKind::Documents => match &args.resume {
            Some(folder) => {
                let parts = Parts { folder, shard: None, inputs, profile };
                let (counts, tally) = parts.visit(progress, |item| push(&mut corpus, item))?;
                progress.say(&format!("{} were there, {} made", count_of(tally.found, "part"), tally.made));
                counts
            }
            None => inputs::visit(inputs, profile, progress, |item| push(&mut corpus, item))?,
        },
    };
    check_memory(&corpus, args.memory)?;
    corpus.names.find_repeated();
    Ok((corpus, counts))
}

/// Tells of documents that do not have the field by which one is kept; fails if none has it.
fn check_field<F: Fingerprint>(field: &str, corpus: &Corpus<F>, inputs: &Inputs) -> Outcome {
    let missing = corpus.values.missing();
    if missing == 0 {
        return Ok(());
    }
    if missing < corpus.len() {
        complain(&format!(
            "warning: {} without `{field}`: kept only where none of a cluster has it",
            count_of(missing as u64, "document")
        ));
        return Ok(());
    }
    // What was read from a pipe is gone.
    let is_there = inputs.pipes().next().is_none();
    let first = if is_there { inputs.records().find_map(Result::ok) } else { None };
    let there = match first.map(|record| record.field_names()) {
        Some(names) if !names.is_empty() => format!("; the first has `{}`", names.join("`, `")),
        _ => String::new(),
    };
    Err(Failure::Failed(format!("--keep: no document has a field `{field}`{there}")))
}

/// Documents after which the memory is looked at.
const MEMORY_CHECKED: usize = 4096;

fn check_memory<F: Fingerprint>(corpus: &Corpus<F>, limit: Option<u64>) -> Outcome {
    let Some(limit) = limit.filter(|&limit| corpus.memory() > limit) else { return Ok(()) };
    Err(Failure::Failed(format!(
        "{} take {}, more than the {} of --memory: give it more, or fingerprint the corpus first and compare \
         fingerprints without ids, which take the least",
        count_of(corpus.len() as u64, "document"),
        bytes(corpus.memory()),
        bytes(limit)
    )))
}

/// Makes the parts of a shard.
fn make_shard<F: Fingerprint>(
    args: &DedupArgs,
    inputs: &Inputs,
    folder: &Path,
    progress: &Progress,
) -> Outcome {
    let profile = args.documents.profile.profile(None)?;
    let parts = Parts { folder, shard: args.shard, inputs, profile: &profile };
    let (counts, tally) = parts.visit::<F>(progress, |_| Ok(()))?;
    // Of what is left to others nothing was read.
    if tally.left == 0 || counts.read + counts.bad > 0 {
        warn(&counts, InputKind::Documents, progress);
    }
    progress.say(&format!(
        "{} were there, {} made, {} left to others; when all are in one folder, run this without --shard",
        count_of(tally.found, "part"),
        tally.made,
        tally.left
    ));
    Ok(())
}

impl DedupArgs {
    /// Tells a run from those on other documents, or with other options.
    fn run_of<F: Fingerprint>(&self, corpus: &Corpus<F>, distance: u32, profile: &Profile) -> String {
        if !self.add {
            return String::new();
        }
        let how = format!("{} {distance} {:?} {:?} {profile}", F::BITS, self.cluster_by, self.keep);
        format!("{:016x}", xxh3_64_with_seed(how.as_bytes(), corpus.checksum()))
    }

    /// Says that the same run was finished before, if its outputs are there.
    fn say_already_added(&self, last: &Run, counts: &Counts, progress: &Progress) -> Outcome {
        let is_there = |path: &&Path| last.has_written(path) && path.exists();
        if let Some(path) = self.outputs.all().find(|path| !is_there(path)) {
            return Err(Failure::Failed(format!(
                "the same run has added these documents to the store before, and cannot tell again which were new: {} is \
                 not to be had; --again compares with the store as it is now",
                if path.as_os_str() == "-" { "standard output".into() } else { path.to_string_lossy() }
            )));
        }
        if self.json {
            let mut output = Output::stdout();
            output.json(&AlreadyAdded { documents: counts.read, added: 0, added_before: last.added })?;
            output.finish()?;
        }
        progress.say(&format!(
            "the same run has added {} before: store and outputs stay as they are",
            count_of(last.added, "document")
        ));
        Ok(())
    }

    /// Says what came of it, to whom it concerns.
    fn say(&self, summary: &Summary, distance: u32, progress: &Progress) -> Outcome {
        if self.json && !self.outputs.is_empty() && !self.outputs.use_stdout() {
            let mut output = Output::stdout();
            output.json(summary)?;
            output.finish()?;
        }
        if !self.json || self.outputs.use_stdout() {
            summary.say(distance, progress);
        }
        Ok(())
    }

    /// Refuses inputs that come twice, and outputs that do not go with the inputs.
    fn check_inputs(&self, listing: Option<&Listing>) -> Outcome {
        match listing {
            Some(listing) => {
                listing.check_each_is_named_once()?;
                self.outputs.warn_of_folders(&self.inputs);
                self.outputs.check_with_inputs(listing.paths(), Some(listing), self.add)
            }
            None => self.outputs.check_with_inputs(self.inputs.iter().map(PathBuf::as_path), None, self.add),
        }
    }

    fn options(&self) -> DocumentOptions {
        let extra_field = self.keep.field().map(str::to_owned);
        DocumentOptions { extra_field, ..self.documents.options() }
    }
}
