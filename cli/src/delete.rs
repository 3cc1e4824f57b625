//! `simstore delete`: documents or fingerprints out of a store.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use simstore::{Durability, Fingerprint, Snapshot, Store, StoreOptions};
use simstore_corpus::{DocumentId, InputKind};
use simstore_text::Profile;

use crate::counts::warn;
use crate::failure::{Failure, Outcome};
use crate::inputs::{self, DocumentArgs, INPUTS_HELP, count_of};
use crate::live;
use crate::numbers::rounded;
use crate::output::Output;
use crate::progress::Progress;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
With --id and --ids, all pairs of these documents are deleted, whatever their fingerprints are. An id is what `dump` and \
`query` show: the name where a document has one, else the number. Those that are not in the store are printed to standard \
output, one a line, and the exit code is 1; all others are deleted. Ids have no index: all of them are read once, \
however many are asked for.

With --json, one object is printed at the end:
  store, read           the store, and how many documents, fingerprints or ids were read
  deleted, missing      how many of them were stored, and how many were not
  seconds               time taken
and before it, with --id and --ids, one for each that is missing
  missing_id            the id or name

Examples:
  simstore delete pages.simstore samples/zh.jsonl
  simstore delete pages.simstore --id desktop-src/AD/forests.md
  simstore dump pages.simstore | cut -f 2 | grep AD/ | simstore delete pages.simstore --ids -
  echo 'c0ffee0123456789	17' | simstore delete pages.simstore -
  echo 'c0ffee0123456789' | simstore delete --all-ids pages.simstore -";

/// Delete documents or fingerprints from a store
///
/// What is deleted is a fingerprint with an id: a document as it was added, a line HEX<TAB>ID, or all that is stored with
/// an id. It is not found any more from then on; its space comes back when segments are merged, at the latest by
/// `simstore compact`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{INPUTS_HELP}\n\n{EXAMPLES}"))]
pub(crate) struct DeleteArgs {
    /// The store
    store: PathBuf,
    /// Documents or fingerprints; `-` is standard input
    #[arg(required_unless_present_any = ["id", "ids"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Delete the document with this id or name; repeatable
    #[arg(long, value_name = "ID", conflicts_with = "inputs", allow_hyphen_values = true)]
    id: Vec<String>,
    /// Delete the documents whose ids or names are the lines of a file; `-` is standard input. Empty lines are left out
    #[arg(long, value_name = "FILE", conflicts_with = "inputs")]
    ids: Option<PathBuf>,
    /// Delete each fingerprint with all of its ids
    #[arg(long, conflicts_with_all = ["id", "ids"])]
    all_ids: bool,
    /// Print a summary as a JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

#[derive(Serialize)]
struct Summary<'a> {
    store: &'a str,
    read: u64,
    deleted: u64,
    missing: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct MissingId<'a> {
    missing_id: &'a str,
}

/// Items that are looked up in the store together.
const AT_ONCE: usize = 1 << 16;
/// A batch is committed when it takes so many bytes of the log.
const BATCH_BYTES: usize = 1 << 20;

pub(crate) fn run(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let bits = Bits::of_store(&args.store)?;
    if args.inputs.is_empty() {
        by_width!(bits, delete_ids(args, progress))
    } else {
        by_width!(bits, delete_inputs(args, progress))
    }
}

/// How many were stored, and how many were not.
#[derive(Default)]
struct Deleted {
    deleted: u64,
    missing: u64,
}

fn delete_inputs<F: Fingerprint>(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let inputs = args.documents.inputs(&args.inputs)?;
    let kind = inputs::kind(&inputs)?;
    let mut options = StoreOptions { create: false, ..StoreOptions::default() };
    let profile = match kind {
        InputKind::Documents => {
            let stored = Snapshot::<F>::open(&args.store)?;
            args.documents.profile.profile(Some(stored.profile()))?
        }
        InputKind::Fingerprints => Profile::default(),
    };
    if kind == InputKind::Documents {
        // Texts become other fingerprints by another profile: nothing would be found, or something else.
        options.profile = Some(profile.to_string());
    }
    let store = live::open::<F>(&args.store, options)?;
    let mut deleted = Deleted::default();
    let mut items = Vec::new();
    let counts = inputs::visit::<F>(&inputs, &profile, progress, |item| {
        items.extend(item.fingerprint.map(|fingerprint| (fingerprint, item.id)));
        if items.len() == AT_ONCE {
            delete_items(&store, &items, args.all_ids, &mut deleted)?;
            items.clear();
        }
        Ok(())
    })?;
    delete_items(&store, &items, args.all_ids, &mut deleted)?;
    store.sync()?;
    warn(&counts, kind, progress);
    report(args, Output::stdout(), counts.read, &deleted, "document", progress)
}

/// Deletes what some items mean. The store is asked once for each fingerprint, and no name is read twice.
fn delete_items<F: Fingerprint>(
    store: &Store<F>,
    items: &[(F, DocumentId)],
    all_ids: bool,
    deleted: &mut Deleted,
) -> Outcome {
    let snapshot = store.snapshot();
    let mut fingerprints: Vec<F> = items.iter().map(|&(fingerprint, _)| fingerprint).collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    let found = snapshot.batch_query(&fingerprints, 0)?;
    let mut ids: Vec<u64> = found.iter().filter_map(|found| found.found.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let all = all_ids || !snapshot.keeps_ids();
    let names = if all { vec![None; ids.len()] } else { snapshot.names_of(&ids)? };
    // What each fingerprint is stored with; where only some ids are meant, by what these are called.
    let mut stored: HashMap<(F, Option<DocumentId>), Vec<u64>> = HashMap::new();
    for found in found.iter().map(|found| found.found) {
        let id = found.id.unwrap_or(0);
        let called = ids.binary_search(&id).ok().and_then(|at| names[at].clone()).map(DocumentId::Name);
        let called = if all { None } else { Some(called.unwrap_or(DocumentId::Number(id))) };
        stored.entry((found.fingerprint, called)).or_default().push(id);
    }
    let mut pairs = Vec::new();
    for (fingerprint, id) in items {
        let mut take = |called| stored.remove(&(*fingerprint, called));
        let meant = match id {
            _ if all => take(None),
            // In a store of names a number is one, too.
            DocumentId::Number(number) => {
                let named = take(Some(DocumentId::Name(number.to_string())));
                let numbered = take(Some(id.clone()));
                named.into_iter().chain(numbered).reduce(|named, numbered| [named, numbered].concat())
            }
            DocumentId::Name(_) => take(Some(id.clone())),
        };
        *(if meant.is_some() { &mut deleted.deleted } else { &mut deleted.missing }) += 1;
        pairs.extend(meant.into_iter().flatten().map(|id| (*fingerprint, id)));
    }
    delete_pairs(store, pairs)
}

/// Deletes pairs that are stored.
fn delete_pairs<F: Fingerprint>(store: &Store<F>, pairs: impl IntoIterator<Item = (F, u64)>) -> Outcome {
    let mut batch = store.transaction();
    for (fingerprint, id) in pairs {
        batch.delete(fingerprint, id);
        if batch.bytes() >= BATCH_BYTES {
            std::mem::replace(&mut batch, store.transaction()).commit(Durability::Os)?;
        }
    }
    Ok(batch.commit(Durability::Os)?)
}

fn delete_ids<F: Fingerprint>(args: &DeleteArgs, progress: &Progress) -> Outcome {
    let mut wanted = args.id.clone();
    if let Some(file) = &args.ids {
        wanted.extend(lines(file)?);
    }
    let mut names = HashSet::new();
    wanted.retain(|id| names.insert(id.clone()));
    let numbers: HashMap<u64, &String> = (wanted.iter())
        .filter_map(|id| id.parse::<u64>().ok().filter(|number| number.to_string() == *id).zip(Some(id)))
        .collect();

    let store = live::open::<F>(&args.store, StoreOptions { create: false, ..StoreOptions::default() })?;
    let snapshot = store.snapshot();
    if !snapshot.keeps_ids() {
        let store = args.store.display();
        return Err(Failure::Usage(format!("{store} keeps no ids: name fingerprints to delete")));
    }
    let mut found: HashSet<String> = HashSet::new();
    let mut pairs = Vec::new();
    for pair in snapshot.pairs_of_names(&names)? {
        found.extend(pair.name);
        pairs.push((pair.fingerprint, pair.id));
    }
    // What has a name is called by it alone.
    for pair in snapshot.pairs_of_ids(&numbers.keys().copied().collect())? {
        if pair.name.is_none() {
            found.insert(numbers[&pair.id].clone());
            pairs.push((pair.fingerprint, pair.id));
        }
    }
    delete_pairs(&store, pairs)?;
    store.sync()?;
    let mut output = Output::stdout();
    for id in wanted.iter().filter(|&id| !found.contains(id)) {
        if args.json { output.json(&MissingId { missing_id: id })? } else { output.line(id)? }
    }
    let missing = (wanted.len() - found.len()) as u64;
    let deleted = Deleted { deleted: found.len() as u64, missing };
    report(args, output, wanted.len() as u64, &deleted, "id", progress)?;
    if missing == 0 {
        return Ok(());
    }
    Err(Failure::Failed(format!("{}: {} not there", args.store.display(), count_of(missing, "id"))))
}

/// The lines of a file, or of standard input for `-`, but for empty ones.
fn lines(path: &Path) -> Outcome<Vec<String>> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    read.map_err(|error| Failure::Failed(format!("{}: cannot read: {error}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|&&byte| byte == b'\n').count() + 1;
        Failure::Failed(format!("{}:{line}: not UTF-8", path.display()))
    })?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn report(
    args: &DeleteArgs,
    mut output: Output,
    read: u64,
    Deleted { deleted, missing }: &Deleted,
    what: &str,
    progress: &Progress,
) -> Outcome {
    if args.json {
        output.json(&Summary {
            store: &args.store.to_string_lossy(),
            read,
            deleted: *deleted,
            missing: *missing,
            seconds: rounded(progress.seconds()),
        })?;
    } else {
        progress.say(&format!(
            "{}: {} deleted, {missing} not there, {:.1} s",
            args.store.display(),
            count_of(*deleted, what),
            progress.seconds()
        ));
    }
    output.finish()
}
