//! Adds documents or fingerprints to a store.

use std::path::Path;
use std::sync::Arc;

use self::adder::DocumentAdder;
use self::source_files::SourceFiles;
use crate::inputs::item::MalformedHandler;
use crate::{InputKind, Inputs, Observer};
use simstore::{Error, Fingerprint, Result, Store};
use simstore_text::{DocumentComparer, MinHasher, Profile, SimilarSettings};

mod adder;
mod duplicate_observer;
mod name_cache;
mod options;
mod read_position;
mod same_id;
mod similar_lookup;
mod source_files;

pub use self::duplicate_observer::DuplicateObserver;
pub use self::options::{AddOptions, AddResult};
pub use self::same_id::SameIdPolicy;

/// Adds documents or fingerprints to a store. The profile makes the fingerprints of documents.
///
/// For each file, the store records the number of documents read and their checksum, atomically with the documents. If the
/// same file is added again, only the documents after the recorded ones are added. There are two exceptions:
/// - If only the last recorded document has changed, such as an incomplete line, it is read again.
/// - If other recorded documents have changed, the whole file is read again.
///
/// A document that is stored with the same id and fingerprint is not stored twice.
///
/// Ids are numbers or names, as in the store. In a new store, the first document [decides](crate::IdScheme). Documents with
/// names, and fingerprints without an id, get the numbers after the highest id ever used in the store.
///
/// A store of [similar documents](simstore_text::open_similar_store) accepts only documents. In such a store, an id belongs to one
/// text.
///
/// ```
/// use simstore::{Store, StoreOptions};
/// use simstore_corpus::add::{add, AddOptions};
/// use simstore_corpus::Inputs;
/// use simstore_io::DocumentOptions;
/// use simstore_text::Profile;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let (path, pages) = (folder.path().join("store"), folder.path().join("pages.jsonl"));
/// std::fs::write(&pages, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n").unwrap();
/// let store = Store::<u64>::open(&path, StoreOptions::default())?;
/// let inputs = Inputs::new(&[pages], DocumentOptions::default())?;
/// let mut add = || add(&store, &inputs, &Profile::default(), &AddOptions::default(), &mut (), &());
/// assert_eq!(add()?.added, 1);
/// assert_eq!(add()?.previously_read, 1);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// Errors of [`Inputs::visit`], of the store, and of the duplicate observer. Documents read before an error, or before the
/// observer cancelled the job, are stored and recorded as read. The next call for the same files continues after them.
pub fn add<F: Fingerprint>(
    store: &Store<F>,
    inputs: &Inputs,
    profile: &Profile,
    options: &AddOptions,
    duplicate_observer: &mut impl DuplicateObserver<F>,
    observer: &dyn Observer,
) -> Result<AddResult> {
    let settings = SimilarSettings::from_store(&store.snapshot())?;
    if settings.is_some() && inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument(format!(
            "{}: a store of similar documents needs texts, but the inputs are fingerprints",
            store.snapshot().path().display()
        )));
    }
    if settings.is_some() && options.same_id != SameIdPolicy::KeepBoth {
        return Err(Error::BadArgument(
            "option `same_id` does not work with a store of similar documents, where an id has one text: delete the document first"
                .to_owned(),
        ));
    }
    let comparer = match settings {
        Some(settings) => Some(DocumentComparer::new(&store.snapshot(), settings, profile.clone())?),
        None => None,
    };
    let hasher = settings.map(|_| MinHasher::new(profile.clone()));
    let with_texts = settings.is_some_and(|settings| settings.has_texts());
    let mut malformed = MalformedHandler::new(inputs.skips_malformed(), observer);
    let sources =
        Arc::new(SourceFiles::find(inputs, &store.snapshot(), options.reread, &mut malformed, observer)?);
    let mut adder = DocumentAdder::new(store, options, &sources, comparer, duplicate_observer, malformed)?;
    let to_read = inputs.with_paths(sources.to_read.iter().map(|source| source.path.clone()).collect());
    let files_to_read = Arc::clone(&sources);
    let is_wanted =
        move |path: &Path, line: u64| files_to_read.start_line(path).is_none_or(|start| line > start);
    let visited = to_read
        .visit_filtered(profile, hasher.as_ref(), with_texts, observer, is_wanted, |item| adder.take(item));
    let added = match visited {
        Ok(counts) => adder.finish(counts)?,
        Err(error) => {
            adder.write_taken()?;
            store.sync()?;
            return Err(error);
        }
    };
    store.sync()?;
    // Waits for merges: otherwise many short calls that add few documents would never merge.
    store.wait_for_background()?;
    Ok(added)
}
