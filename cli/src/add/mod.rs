//! `simstore add`: documents or fingerprints into a store that may be there already.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use simstore::any::Width;
use simstore::store::is_store;
use simstore::{Codec, Durability, Fingerprint, PlanChoice, Snapshot, StoreOptions, each_width};
use simstore_corpus::add::{self, AddOptions};
use simstore_corpus::{InputKind, Inputs, profile_of_texts};
use simstore_text::{DEFAULT_RECALL, Profile, SimilarSettings, open_similar};

use self::report::Report;
use crate::counts::{warn, warn_of_texts};
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::numbers::parse_bytes;
use crate::profile::check_bits;
use crate::progress::Progress;
use crate::width::width;

mod report;

const EXAMPLES: &str = "\
With --if-new, each line of output is a document that was not added: ID<TAB>EARLIER<TAB>DISTANCE, the nearest earlier
one first; in a store of similar documents ID<TAB>EARLIER<TAB>SIMILARITY<TAB>ERROR, where ERROR is the standard error of
the similarity, 0 if it is exact. With --json, a line is an object: for each such document
  id, duplicate_of      the document, and what it is a duplicate of: id, name, distance, or similarity and error
and at the end
  store, documents      what was read
  added, duplicates     documents stored, and not stored under --if-new
  replaced              documents that took the place of others, under --same-id replace
  known                 documents that were stored before, with the same id and the same fingerprint
  carried_on            documents that an earlier run had already read
  changed               files in which other documents stand than those that were read before
  empty, short, bad     as by `simstore build`
  seconds               time taken

Examples:
  simstore add pages.simstore samples/en.jsonl
  simstore add --if-new pages.simstore samples/en.jsonl
  simstore add --similar 0.8 --with-texts --if-new similar.simstore samples/en.jsonl
  simstore add --same-id replace pages.simstore samples/en.jsonl
  simstore add --durability sync pages.simstore samples/zh.jsonl
  cat samples/zh.jsonl | simstore add --if-new pages.simstore -";

/// How durable what was added is when it counts as added
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DurabilityArg {
    /// The operating system has it: it survives a crash of simstore
    Os,
    /// It is on the disk: it survives a loss of power
    Sync,
}

/// Rule for a document whose id is stored with another fingerprint
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SameId {
    /// Both are kept: an id may have any number of fingerprints
    Both,
    /// It replaces the document that was stored with its id
    Replace,
    /// It is malformed: it ends the command, or is skipped by --skip-bad
    Refuse,
}

/// Add documents or fingerprints to a store
///
/// The store is made if it is missing. After Ctrl-C, a crash or a power loss, run the same command again: it carries on where
/// it was. For each file, also of a folder or a pattern, the store remembers how many documents it has read, with a
/// checksum. Run again, `add` reads only documents that were appended. If the last document has changed, such as a line
/// that was incomplete, it is read again, and its earlier version stays; if others have changed, the whole file is read
/// again. A document with the id and the fingerprint of a stored one changes nothing; for one with the same id and another
/// fingerprint see --same-id.
///
/// Ids are numbers or names, as in the store; in a new store, the first document decides. Names, and fingerprints without
/// an id, get numbers after the highest id that the store ever had.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct AddArgs {
    /// The store: a folder; made if it is missing
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Add only documents that are not near (in a store of similar documents: similar to) a stored one, and print the
    /// others. If the store is missing, --similar or --distance says which one is made of documents
    #[arg(long)]
    if_new: bool,
    /// Rule for a document whose id is stored with another fingerprint. All rules but `both` read the ids of the
    /// store once for every 131,072 documents
    #[arg(long, value_enum, value_name = "RULE", default_value = "both", conflicts_with = "if_new")]
    same_id: SameId,
    /// When what was added counts as added
    #[arg(long, value_enum, default_value = "os")]
    durability: DurabilityArg,
    /// Read files from their beginning, also if they have been read before
    #[arg(long)]
    again: bool,
    /// Make a store of similar documents, which finds texts of at least this similarity, 0.43 to 1. It is remembered
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits"])]
    similar: Option<f64>,
    /// Keep the texts too, compressed: they decide what is similar, and `query` can show them. It is remembered
    #[arg(long, requires = "similar")]
    with_texts: bool,
    /// Find texts of exactly that similarity with at least this probability; without --with-texts, an estimate then
    /// decides [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    recall: Option<f64>,
    /// The largest distance that the store can answer [default: 3 for a new store]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Width of fingerprints of a new store [default: 64]
    #[arg(long, value_parser = width())]
    bits: Option<Width>,
    /// How fingerprints are compressed, as of `simstore build` [default: first-difference for a new store;
    /// with --similar, elias-fano]
    #[arg(long)]
    codec: Option<Codec>,
    /// Which tables segments get [default: auto for a new store; with --similar, the fastest one for it]
    #[arg(long, value_name = "NAME")]
    plan: Option<PlanChoice>,
    /// Memory for documents that are not in segments yet, like 64M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memtable: Option<u64>,
    /// Take every id as a name, also numbers
    #[arg(long)]
    names: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(crate) fn run(args: &AddArgs, progress: &Progress) -> Outcome {
    let bits = if is_store(&args.store) { Width::of_store(&args.store)? } else { Width::Bits64(()) };
    let bits = args.bits.unwrap_or(bits);
    each_width!(bits, type F => add::<F>(args, progress))
}

fn add<F: Fingerprint>(args: &AddArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let exists = is_store(&args.store);
    if args.if_new
        && !exists
        && kind == InputKind::Documents
        && args.similar.or(args.distance.map(f64::from)).is_none()
    {
        return Err(Failure::Usage(format!(
            "{}: there is no store to compare with: --similar 0.8 makes one of similar documents, --distance 3 one of fingerprints",
            args.store.display()
        )));
    }
    let profile = profile_of::<F>(args, &inputs, exists, progress)?;
    let settings = match args.similar {
        Some(_) if kind == InputKind::Fingerprints => {
            return Err(Failure::Usage(
                "--similar is for documents: the inputs hold fingerprints".to_owned(),
            ));
        }
        Some(similar) => Some(settings_of(similar, args.recall, args.with_texts)?),
        None => None,
    };
    let options = options::<F>(args, profile.as_ref())?;
    if let Some(settings) = settings {
        crate::writing::tell_torn_end(&open_similar(&args.store, options.clone(), settings)?);
    }
    let store = crate::writing::open::<F>(&args.store, options)?;
    let profile = profile.unwrap_or_default();

    if kind == InputKind::Documents {
        check_bits::<F>(&profile)?;
    }
    let options = AddOptions {
        if_new: args.if_new,
        same_id: match args.same_id {
            SameId::Both => add::SameId::Both,
            SameId::Replace => add::SameId::Replace,
            SameId::Refuse => add::SameId::Refuse,
        },
        durability: match args.durability {
            DurabilityArg::Os => Durability::Os,
            DurabilityArg::Sync => Durability::Group(Duration::ZERO),
        },
        again: args.again,
        names: args.names,
        shared_names: false,
    };
    let mut report = Report::new(&args.store, args.json, args.if_new);
    let added =
        add::add(&store, &inputs, &profile, &options, &mut report, progress).map_err(Failure::usage)?;
    let near = match SimilarSettings::of_store(&store.snapshot())? {
        Some(settings) => {
            warn_of_texts(&added.counts, kind, progress);
            format!("similarity {} or more", settings.similar())
        }
        None => {
            warn(&added.counts, kind, progress);
            format!("within {}", count_of(store.snapshot().distance().into(), "bit"))
        }
    };
    report.finish(&added, &near, progress)
}

/// How similar documents are found in a new store.
pub(crate) fn settings_of(similar: f64, recall: Option<f64>, with_texts: bool) -> Outcome<SimilarSettings> {
    let settings = SimilarSettings::new(similar, recall.unwrap_or(DEFAULT_RECALL)).map_err(Failure::usage)?;
    Ok(if with_texts { settings.with_texts() } else { settings })
}

/// The settings that are asked for.
fn options<F: Fingerprint>(args: &AddArgs, profile: Option<&Profile>) -> Outcome<StoreOptions> {
    if let Some(distance) = args.distance {
        crate::width::check_distance::<F>(distance)?;
    }
    let default = StoreOptions::default();
    Ok(StoreOptions {
        distance: args.distance,
        codec: args.codec,
        plan: args.plan.clone(),
        memtable: args.memtable.unwrap_or(default.memtable),
        profile: profile.map(ToString::to_string),
        ..default
    })
}

/// How texts become fingerprints: one store has one profile. How fingerprints were made only the user can know.
fn profile_of<F: Fingerprint>(
    args: &AddArgs,
    inputs: &Inputs,
    exists: bool,
    progress: &Progress,
) -> Outcome<Option<Profile>> {
    let profile = &args.documents.profile;
    if inputs.kind()? == InputKind::Fingerprints {
        return profile.given();
    }
    if !exists {
        let default = || match args.similar {
            Some(_) => profile_of_texts(inputs, "profile", progress),
            None => Profile::default(),
        };
        return Ok(Some(profile.given()?.unwrap_or_else(default)));
    }
    profile.of_store(&Snapshot::<F>::open(&args.store)?).map(Some)
}
