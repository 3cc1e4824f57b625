//! `simstore add`: documents or fingerprints into a store that may be there already.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use simstore::store::is_store;
use simstore::{Codec, Durability, Fingerprint, PlanChoice, Snapshot, StoreOptions};
use simstore_corpus::InputKind;
use simstore_corpus::add::{self, AddOptions};
use simstore_text::{DEFAULT_RECALL, Profile, SimilarSettings, open_similar};

use self::report::Report;
use crate::counts::warn;
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP};
use crate::numbers::parse_bytes;
use crate::profile::check_bits;
use crate::progress::Progress;
use crate::width::{Bits, by_width};

mod report;

const EXAMPLES: &str = "\
With --if-new, a line of output is a document that was not added: ID<TAB>EARLIER<TAB>DISTANCE, the nearest earlier
one first; in a store of similar documents ID<TAB>EARLIER<TAB>SIMILARITY<TAB>ERROR, where ERROR is the standard error of
the similarity, 0 if that is exact. With --json, a line is an object: for each such document
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
  simstore add --similar 0.8 --if-new similar.simstore samples/en.jsonl
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

/// What becomes of a document whose id is stored with another fingerprint
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SameId {
    /// Both are kept: an id may have any number of fingerprints
    Both,
    /// It takes the place of what was stored with its id
    Replace,
    /// It is malformed: it ends the command, or is skipped by --skip-bad
    Refuse,
}

/// Add documents or fingerprints to a store
///
/// The store is made if there is none. A run that was cut off, by Ctrl-C, a crash or a loss of power, carries on where it
/// was when it is started again with the same inputs. For each file, also of a folder or a pattern, the store keeps how
/// many documents were read and a checksum of them. As long as these stand there, only what comes after them is added, so
/// that a file that has grown gives what is new. If the last of them is another now, such as a line that was not yet
/// complete, that is read again, and what it was as a fragment stays; if others are, all of the file is. A document with the id and the fingerprint of one
/// that is stored changes nothing; for one with the id and another fingerprint see --same-id.
///
/// Ids are numbers or names, as in the store; a new store decides by the first document. Names, and fingerprints
/// without an id, are numbered after the highest id that there ever was.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct AddArgs {
    /// The store: a folder; made if there is none
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Add only what is within no stored fingerprint's distance or, in a store of similar documents, similar to none, and
    /// print what is
    #[arg(long)]
    if_new: bool,
    /// What becomes of a document whose id is stored with another fingerprint. All but `both` read the ids of the
    /// store once for every 131,072 documents
    #[arg(long, value_enum, value_name = "RULE", default_value = "both", conflicts_with = "if_new")]
    same_id: SameId,
    /// When what was added counts as added
    #[arg(long, value_enum, default_value = "os")]
    durability: DurabilityArg,
    /// Read files from their beginning, also if they have been read before
    #[arg(long)]
    again: bool,
    /// Make a store of similar documents: texts are found that are so similar, 0 to 1. A store that is one stays so
    #[arg(long, value_name = "S", conflicts_with_all = ["distance", "bits"])]
    similar: Option<f64>,
    /// The probability that texts of just that similarity are found [default: 0.95]
    #[arg(long, value_name = "R", requires = "similar")]
    recall: Option<f64>,
    /// The largest distance that the store can answer [default: 3 for a new store]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Width of fingerprints of a new store [default: 64]
    #[arg(long, value_enum)]
    bits: Option<Bits>,
    /// How fingerprints are compressed, as of `simstore build` [default: first-difference for a new store]
    #[arg(long)]
    codec: Option<Codec>,
    /// Which tables segments get [default: auto for a new store]
    #[arg(long, value_name = "NAME")]
    plan: Option<PlanChoice>,
    /// Memory for what is not in segments yet, like 64M
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
    let bits = if is_store(&args.store) { Bits::of_store(&args.store)? } else { Bits::Narrow };
    let bits = args.bits.unwrap_or(bits);
    by_width!(bits, add(args, progress))
}

fn add<F: Fingerprint>(args: &AddArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs, progress)?;
    let kind = inputs::kind(&inputs)?;
    let exists = is_store(&args.store);
    let profile = profile_of::<F>(args, kind, exists)?;
    let settings = match args.similar {
        Some(_) if kind == InputKind::Fingerprints => {
            return Err(Failure::Usage(
                "--similar is for documents: the inputs hold fingerprints".to_owned(),
            ));
        }
        Some(similar) => Some(
            SimilarSettings::new(similar, args.recall.unwrap_or(DEFAULT_RECALL)).map_err(Failure::usage)?,
        ),
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
    };
    let mut report = Report::new(args);
    let added =
        add::add(&store, &inputs, &profile, &options, &mut report, progress).map_err(Failure::usage)?;
    warn(&added.counts, kind, progress);
    report.finish(&added, progress)
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
fn profile_of<F: Fingerprint>(args: &AddArgs, kind: InputKind, exists: bool) -> Outcome<Option<Profile>> {
    let profile = &args.documents.profile;
    if kind == InputKind::Fingerprints {
        return profile.given();
    }
    if !exists {
        let default = || if args.similar.is_some() { Profile::shingles() } else { Profile::default() };
        return Ok(Some(profile.given()?.unwrap_or_else(default)));
    }
    let stored = Snapshot::<F>::open(&args.store)?;
    if stored.profile().is_empty() && !profile.is_given() {
        return Err(Failure::Usage(format!(
            "{}: the store does not tell how its texts were fingerprinted: say --profile NAME as it was",
            args.store.display()
        )));
    }
    profile.profile(Some(stored.profile())).map(Some)
}
