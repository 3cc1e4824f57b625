//! `simstore add`: adds documents or fingerprints to a store, which is created if it is missing.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use simstore::any::Width;
use simstore::store::is_store;
use simstore::{Codec, Durability, Fingerprint, PlanChoice, Snapshot, StoreOptions, each_width};
use simstore_corpus::add::{self, AddOptions};
use simstore_corpus::{InputKind, Inputs, default_text_profile};
use simstore_text::{DEFAULT_RECALL, Profile, SimilarSettings, open_similar_store};

use self::report::AddReport;
use crate::command_error::{CommandError, CommandResult};
use crate::input_warnings::{warn_about_fingerprints, warn_about_texts};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP};
use crate::numbers::{format_count_of, parse_bytes};
use crate::open_store::{open_store, warn_about_torn_tail};
use crate::profile_args::check_bits;
use crate::progress::ProgressDisplay;
use crate::width::{check_distance, width_parser};

mod report;

const EXAMPLES: &str = "\
With --if-new, a line is printed for each stored near-duplicate of a document that was not added, the nearest first: \
ID<TAB>STORED_ID<TAB>DISTANCE. In a store of similar documents it is ID<TAB>STORED_ID<TAB>SIMILARITY<TAB>ERROR; ERROR is the \
standard error, 0 for an exact similarity. With --json, a line is an object: for each duplicate
  id, duplicate_of      id of the document; its stored near-duplicates: id, name, distance, or
                        similarity and error
and at the end
  store, documents      path of the store, number of documents read
  added, duplicates     documents added; with --if-new, duplicates not added
  replaced              documents that replaced a stored one (--same-id replace)
  known                 documents already stored with the same id and fingerprint
  carried_on            documents that an earlier run has read
  changed               files whose documents have changed since they were read
  empty, short, bad, other_names, skipped_files   as in `simstore build`
  seconds               elapsed time

Examples:
  simstore add pages.simstore samples/en.jsonl
  simstore add --if-new pages.simstore samples/en.jsonl
  simstore add --similar 0.8 --with-texts --if-new similar.simstore samples/en.jsonl
  simstore add --same-id replace pages.simstore samples/en.jsonl
  simstore add --durability sync pages.simstore samples/zh.jsonl
  cat samples/zh.jsonl | simstore add --if-new pages.simstore -";

/// Value of `--durability`: when a write counts as durable
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DurabilityArg {
    /// Handed to the operating system: survives a crash of simstore
    Os,
    /// Synced to disk: survives a power loss
    Sync,
}

/// Value of `--same-id`: rule for a document whose id is stored with another fingerprint
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SameIdArg {
    /// Keep both: an id may have several fingerprints
    Both,
    /// Replace the stored document
    Replace,
    /// Treat the document as invalid: an error, or skipped with --skip-bad
    Refuse,
}

/// Add documents or fingerprints to a store
///
/// Creates the store if it does not exist. After Ctrl-C, a crash or a power loss, run the same command again: it continues where it
/// stopped. For each input file the store records how many documents were read, with a checksum. The next call reads only appended
/// documents. If only the last document has changed, such as an incomplete line, it is read again, and its earlier version stays. If
/// earlier documents have changed, the whole file is read again. A document whose id and fingerprint are already stored changes
/// nothing. For a stored id with another fingerprint, see --same-id.
///
/// A store has either numbers or names as ids; the first document decides. A document with a name, or without an id, gets the next free
/// number.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct AddArgs {
    /// Path of the store, a directory; created if missing
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Add only documents without a stored near-duplicate, and print the duplicates. A missing store of documents needs --similar or
    /// --distance
    #[arg(long)]
    if_new: bool,
    /// What to do with a document whose id is stored with another fingerprint. `replace` and `refuse` read all ids of the store once for
    /// every 131,072 documents
    #[arg(long, value_enum, value_name = "RULE", default_value = "both", conflicts_with = "if_new")]
    same_id: SameIdArg,
    /// When a write counts as durable
    #[arg(long, value_enum, default_value = "os")]
    durability: DurabilityArg,
    /// Read files from the beginning, even if they were read before
    #[arg(long)]
    again: bool,
    /// For a new store: find texts with at least this Jaccard similarity, 0.43 to 1 (a store of similar documents)
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits"])]
    similar: Option<f64>,
    /// For a new store with --similar: also store the texts, compressed. Similarities are then exact, and `query` can show texts
    #[arg(long, requires = "similar")]
    with_texts: bool,
    /// For a new store with --similar: probability to find a text exactly at the threshold. Without --with-texts, similarities are
    /// estimates [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    recall: Option<f64>,
    /// For a new store: largest distance of later queries, in bits [default: 3]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// For a new store: width of fingerprints, in bits [default: 64]
    #[arg(long, value_parser = width_parser())]
    bits: Option<Width>,
    /// Codec of new segments, as in `simstore build` [default: the store's codec; for a new store first-difference, with --similar
    /// elias-fano]
    #[arg(long)]
    codec: Option<Codec>,
    /// Table plan of new segments [default: the store's plan; for a new store auto, with --similar the fastest plan]
    #[arg(long, value_name = "NAME")]
    plan: Option<PlanChoice>,
    /// Size of the in-memory write buffer (memtable), such as 64M
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memtable: Option<u64>,
    /// Store every id as a name, including numbers
    #[arg(long)]
    names: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(crate) fn run(args: &AddArgs, progress: &ProgressDisplay) -> CommandResult {
    let bits = if is_store(&args.store) { Width::from_store(&args.store)? } else { Width::Bits64(()) };
    let bits = args.bits.unwrap_or(bits);
    each_width!(bits, type F => add::<F>(args, progress))
}

fn add<F: Fingerprint>(args: &AddArgs, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let exists = is_store(&args.store);
    if args.if_new
        && !exists
        && kind == InputKind::Documents
        && args.similar.or(args.distance.map(f64::from)).is_none()
    {
        return Err(CommandError::Usage(format!(
            "{}: no such store: --similar 0.8 creates a store of similar documents, --distance 3 a store of fingerprints",
            args.store.display()
        )));
    }
    let settings = match args.similar {
        Some(_) if kind == InputKind::Fingerprints => {
            return Err(CommandError::Usage(
                "--similar needs documents, but the inputs are fingerprints".to_owned(),
            ));
        }
        Some(similar) => Some(similar_settings(similar, args.recall, args.with_texts)?),
        None => None,
    };
    if let (true, Some(settings)) = (exists, settings) {
        // Fails if the store has other settings.
        settings.read_equivalent(&Snapshot::open(&args.store)?)?;
    }
    let profile = document_profile::<F>(args, &inputs, exists, progress)?;
    let options = store_options::<F>(args, profile.as_ref())?;
    if let Some(settings) = settings {
        warn_about_torn_tail(&open_similar_store(&args.store, options.clone(), settings)?);
    }
    let store = open_store::<F>(&args.store, options)?;
    let profile = profile.unwrap_or_default();

    if kind == InputKind::Documents {
        check_bits::<F>(&profile)?;
    }
    let options = AddOptions {
        if_new: args.if_new,
        same_id: match args.same_id {
            SameIdArg::Both => add::SameIdPolicy::KeepBoth,
            SameIdArg::Replace => add::SameIdPolicy::Replace,
            SameIdArg::Refuse => add::SameIdPolicy::Refuse,
        },
        durability: match args.durability {
            DurabilityArg::Os => Durability::Os,
            DurabilityArg::Sync => Durability::Group(Duration::ZERO),
        },
        reread: args.again,
        names: args.names,
        shared_names: false,
    };
    let mut report = AddReport::new(&args.store, args.json, args.if_new);
    let added =
        add::add(&store, &inputs, &profile, &options, &mut report, progress).map_err(CommandError::usage)?;
    let (content, near) = match SimilarSettings::from_store(&store.snapshot())? {
        Some(settings) => {
            warn_about_texts(&added.counts, kind, progress);
            ("similar documents", format!("similarity >= {}", settings.min_similarity()))
        }
        None => {
            warn_about_fingerprints(&added.counts, kind, progress);
            ("fingerprints", format!("within {}", format_count_of(store.snapshot().distance().into(), "bit")))
        }
    };
    let new_store = (!exists).then(|| format!("new store of {content} ({near})"));
    report.finish(&added, &near, new_store, progress)
}

/// Returns the settings of a new store of similar documents. `similar` is the least Jaccard similarity that queries find.
/// `recall` is the probability to find a document exactly at this similarity; the default is [`DEFAULT_RECALL`].
pub(crate) fn similar_settings(
    similar: f64,
    recall: Option<f64>,
    with_texts: bool,
) -> CommandResult<SimilarSettings> {
    let settings =
        SimilarSettings::new(similar, recall.unwrap_or(DEFAULT_RECALL)).map_err(CommandError::usage)?;
    Ok(if with_texts { settings.with_texts() } else { settings })
}

/// Returns the options for opening or creating the store.
fn store_options<F: Fingerprint>(args: &AddArgs, profile: Option<&Profile>) -> CommandResult<StoreOptions> {
    if let Some(distance) = args.distance {
        check_distance::<F>(distance)?;
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

/// Returns the text profile of the inputs. For documents added to an existing store, it is the store's profile. For inputs
/// that already are fingerprints, it is `None` unless the user selects a profile.
fn document_profile<F: Fingerprint>(
    args: &AddArgs,
    inputs: &Inputs,
    exists: bool,
    progress: &ProgressDisplay,
) -> CommandResult<Option<Profile>> {
    let profile = &args.documents.profile;
    if inputs.kind()? == InputKind::Fingerprints {
        return profile.requested_profile();
    }
    if !exists {
        let default = || match args.similar {
            Some(_) => default_text_profile(inputs, "profile", progress),
            None => Profile::default(),
        };
        return Ok(Some(profile.requested_profile()?.unwrap_or_else(default)));
    }
    profile.profile_for_store(&Snapshot::<F>::open(&args.store)?).map(Some)
}
