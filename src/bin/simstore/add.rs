//! `simstore add`: documents or fingerprints into a store that may be there already.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use simstore::corpus::InputKind;
use simstore::text::Profile;
use simstore::{
    Batch, Codec, Durability, Fingerprint, Insertion, Match, Options, PlanChoice, Snapshot, Store,
};

use crate::failure::{Failure, Outcome};
use crate::inputs::{self, Counts, DocumentArgs, INPUTS_HELP, Item, count_of};
use crate::naming::{Id, Naming};
use crate::numbers::{parse_bytes, rounded};
use crate::output::{Output, column};
use crate::progress::Progress;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
With --if-new, a line of output is a document that was not added: ID<TAB>EARLIER<TAB>DISTANCE, the nearest earlier
one first. With --json, a line is an object: for each such document
  id, duplicate_of      the document, and what it is a duplicate of: id, name, distance
and at the end
  store, documents      what was read
  added, duplicates     documents stored, and not stored under --if-new
  carried_on            documents that an earlier run, which was cut off, had already read
  empty, short, bad     as by `simstore build`
  seconds               time taken

Examples:
  simstore add pages.simstore samples/en.jsonl
  simstore add --if-new pages.simstore samples/en.jsonl
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

/// Add documents or fingerprints to a store
///
/// The store is made if there is none. A run that was cut off, by Ctrl-C, a crash or a loss of power, carries on where it
/// was when it is started again with the same inputs: how far each file has been read is kept with the store. So a file
/// that has grown gives only what is new.
///
/// Ids are numbers or names, as in the store; a new store decides by the first document. Names are numbered after the
/// highest id.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct AddArgs {
    /// The store: a folder; made if there is none
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Add only what is within no stored fingerprint's distance, and print what is
    #[arg(long)]
    if_new: bool,
    /// When what was added counts as added
    #[arg(long, value_enum, default_value = "os")]
    durability: DurabilityArg,
    /// Read files from their beginning, also if they have been read before
    #[arg(long)]
    again: bool,
    /// The largest distance that the store can answer [default: 3 for a new store]
    #[arg(long, short, value_name = "K")]
    distance: Option<u32>,
    /// Width of fingerprints of a new store [default: 64]
    #[arg(long, value_enum)]
    bits: Option<Bits>,
    /// How fingerprints are compressed [default: first-difference for a new store]
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

#[derive(Serialize)]
struct Duplicate<'a> {
    id: Id<'a>,
    duplicate_of: Vec<Earlier>,
}

#[derive(Serialize)]
struct Earlier {
    id: Option<u64>,
    name: Option<String>,
    distance: u32,
}

#[derive(Serialize)]
struct Summary<'a> {
    store: &'a str,
    documents: u64,
    added: u64,
    duplicates: u64,
    carried_on: u64,
    empty: u64,
    short: u64,
    bad: u64,
    seconds: f64,
}

pub(crate) fn run(args: &AddArgs, progress: &Progress) -> Outcome {
    let bits = if args.store.join("MANIFEST").exists() { Bits::of_store(&args.store)? } else { Bits::Narrow };
    let bits = args.bits.unwrap_or(bits);
    by_width!(bits, add(args, progress))
}

/// Documents that are written at once where nobody waits for each.
const BATCH: usize = 1024;

struct Adding<'a, F: Fingerprint> {
    store: &'a Store<F>,
    args: &'a AddArgs,
    profile: &'a Profile,
    output: Output,
    naming: Naming,
    /// For a document that has a name.
    next_id: u64,
    added: u64,
    duplicates: u64,
    carried_on: u64,
}

fn add<F: Fingerprint>(args: &AddArgs, progress: &Progress) -> Outcome {
    let kind = args.documents.kind(&args.inputs)?;
    let exists = args.store.join("MANIFEST").exists();
    let mut options = Options::default();
    if let Some(distance) = args.distance {
        crate::width::check_distance::<F>(distance)?;
        options = options.distance(distance);
    }
    if let Some(codec) = args.codec {
        options = options.codec(codec);
    }
    if let Some(plan) = &args.plan {
        options = options.plan(plan.clone());
    }
    if let Some(bytes) = args.memtable {
        options = options.memtable(bytes);
    }
    let profile = profile_of::<F>(args, kind, exists)?;
    if let Some(profile) = &profile {
        options = options.profile(&profile.to_string());
    }
    let profile = profile.unwrap_or_default();
    let store = Store::<F>::open(&args.store, options)?;
    let (of_store, next_id) = Naming::of_store(&store.snapshot());
    let naming = if args.names { Naming::Names } else { of_store };
    let mut adding = Adding {
        store: &store,
        args,
        profile: &profile,
        output: Output::stdout(),
        naming,
        next_id,
        added: 0,
        duplicates: 0,
        carried_on: 0,
    };
    let mut counts = Counts::default();
    for input in &args.inputs {
        let of_input = adding.add(input, kind, progress)?;
        counts.add(of_input);
    }
    store.sync()?;
    counts.warn(kind, progress);
    adding.report(counts, progress)
}

/// How texts become fingerprints: one store has one profile. How fingerprints were made only the user can know.
fn profile_of<F: Fingerprint>(args: &AddArgs, kind: InputKind, exists: bool) -> Outcome<Option<Profile>> {
    let given = args.documents.profile.given()?;
    if kind == InputKind::Fingerprints {
        return Ok(given);
    }
    if !exists {
        return Ok(Some(given.unwrap_or_default()));
    }
    let stored = Snapshot::<F>::open(&args.store)?;
    if stored.profile().is_empty() && given.is_none() {
        return Err(Failure::Usage(format!(
            "{}: the store does not tell how its texts were fingerprinted: say --profile NAME as it was",
            args.store.display()
        )));
    }
    args.documents.profile.profile(Some(stored.profile())).map(Some)
}

/// The key under which it is kept how much of an input has been read; none for what can be read only once.
fn mark_of(input: &Path) -> Option<String> {
    if inputs::is_read_once(input) {
        return None;
    }
    let path = input.canonicalize().ok()?;
    let key = format!("add {}", path.to_string_lossy());
    (key.len() <= 4096).then_some(key)
}

impl<F: Fingerprint> Adding<'_, F> {
    fn durability(&self) -> Durability {
        match self.args.durability {
            DurabilityArg::Os => Durability::Os,
            DurabilityArg::Sync => Durability::Group(Duration::ZERO),
        }
    }

    fn add(&mut self, input: &PathBuf, kind: InputKind, progress: &Progress) -> Outcome<Counts> {
        let (store, args, profile) = (self.store, &self.args.documents, self.profile);
        let mark = mark_of(input);
        let kept = match mark.as_deref().filter(|_| !self.args.again) {
            Some(key) => store.snapshot().mark(key)?,
            None => None,
        };
        let skip = kept.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (mut batch, mut in_batch, mut end) = (store.batch(), 0, 0);
        let counts =
            inputs::visit::<F>(std::slice::from_ref(input), kind, args, profile, progress, |item| {
                end = item.position + 1;
                if item.position < skip {
                    self.carried_on += 1;
                    return Ok(());
                }
                let (id, name) =
                    self.naming.assign(item.id.clone(), self.next_id).map_err(|reason| item.bad(reason))?;
                if let Some(key) = &mark {
                    batch.mark(key, &end.to_le_bytes())?;
                }
                let Some(fingerprint) = item.fingerprint else { return Ok(()) };
                if name.is_some() {
                    self.next_id += 1;
                }
                match &name {
                    Some(name) => batch.insert_named(fingerprint, id, name)?,
                    None => batch.insert(fingerprint, id),
                }
                in_batch += 1;
                if self.args.if_new {
                    let batch = std::mem::replace(&mut batch, store.batch());
                    self.add_if_new(batch, &item, fingerprint, name.is_some())?;
                } else if in_batch >= BATCH {
                    std::mem::replace(&mut batch, store.batch()).commit(self.durability())?;
                    self.added += in_batch as u64;
                    in_batch = 0;
                }
                Ok(())
            })?;
        if !self.args.if_new {
            self.added += in_batch as u64;
        }
        if let Some(key) = &mark
            && end > skip
        {
            batch.mark(key, &end.to_le_bytes())?;
        }
        batch.commit(self.durability())?;
        Ok(counts)
    }

    fn add_if_new(&mut self, batch: Batch<'_, F>, item: &Item<F>, fingerprint: F, named: bool) -> Outcome {
        match batch.commit_if_new(fingerprint, self.durability())? {
            Insertion::Inserted => self.added += 1,
            Insertion::DuplicateOf(matches) => {
                self.duplicates += 1;
                self.next_id -= u64::from(named);
                self.print(item, &matches)?;
            }
        }
        Ok(())
    }

    fn print(&mut self, item: &Item<F>, matches: &[Match<F>]) -> Outcome {
        let snapshot = self.store.snapshot();
        let name = |found: &Match<F>| found.id.map_or(Ok(None), |id| snapshot.name(id));
        if self.args.json {
            let earlier =
                |found: &Match<F>| Ok(Earlier { id: found.id, name: name(found)?, distance: found.distance });
            let duplicate_of = matches.iter().map(earlier).collect::<Result<_, simstore::Error>>()?;
            return self.output.json(&Duplicate { id: Id::from(&item.id), duplicate_of });
        }
        for found in matches {
            let id = found.id.map_or_else(|| found.fingerprint.to_hex(), |id| id.to_string());
            let earlier = name(found)?.unwrap_or(id);
            let id = item.id.to_string();
            self.output.line(format_args!("{}\t{}\t{}", column(&id), column(&earlier), found.distance))?;
        }
        Ok(())
    }

    fn report(mut self, counts: Counts, progress: &Progress) -> Outcome {
        if self.args.json {
            self.output.json(&Summary {
                store: &self.args.store.to_string_lossy(),
                documents: counts.read,
                added: self.added,
                duplicates: self.duplicates,
                carried_on: self.carried_on,
                empty: counts.empty,
                short: counts.short,
                bad: counts.bad,
                seconds: rounded(progress.seconds()),
            })?;
        } else {
            let mut line =
                format!("{}: {} added", self.args.store.display(), count_of(self.added, "document"));
            if self.args.if_new {
                line += &format!(", {} not", count_of(self.duplicates, "duplicate"));
            }
            if self.carried_on > 0 {
                line += &format!(", {} read before", count_of(self.carried_on, "document"));
            }
            progress.say(&format!("{line}, {:.1} s", progress.seconds()));
        }
        self.output.finish()
    }
}
