//! Documents and fingerprints into a store that may hold some already.

use std::path::Path;
use std::sync::Arc;

use self::adding::Adding;
use self::sources::Sources;
use crate::inputs::item::Malformed;
use crate::{InputKind, Inputs, Watch};
use simstore::{Error, Fingerprint, Result, Store};
use simstore_text::{Profile, SimilarSettings, Sketcher, StoredTexts};

mod adding;
mod known;
mod listener;
mod options;
mod read_position;
mod same_id;
mod similar;
mod sources;

pub use self::listener::Listener;
pub use self::options::{AddOptions, Added};
pub use self::same_id::SameId;

/// Adds documents, whose fingerprints are made by a profile, or fingerprints.
///
/// For each file the store records the number of documents read and their checksum, in the same step as the documents. As long
/// as these documents are unchanged in the file, another call adds only the documents after them. If only the last one has
/// changed, such as an incomplete line, it is read again; if others have changed, the whole file is read again. A document
/// whose id and fingerprint are stored already changes nothing.
///
/// Ids are numbers or names, as in the store; a new store [decides](crate::Naming) by the first document. Names, and
/// fingerprints without an id, are numbered after the highest id that there ever was.
///
/// A store of [similar documents](simstore_text::open_similar) takes documents alone; an id is of one text there.
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
/// assert_eq!(add()?.carried_on, 1);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// As [`Inputs::visit`], and of the store and the listener. Documents taken before a read error, or before the watch stopped
/// the call, are stored and count as read: another call resumes after them.
pub fn add<F: Fingerprint>(
    store: &Store<F>,
    inputs: &Inputs,
    profile: &Profile,
    options: &AddOptions,
    listener: &mut impl Listener<F>,
    watch: &dyn Watch,
) -> Result<Added> {
    let settings = SimilarSettings::of_store(&store.snapshot())?;
    if settings.is_some() && inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument(format!(
            "{}: a store of similar documents needs texts, but the inputs are fingerprints",
            store.snapshot().path().display()
        )));
    }
    if settings.is_some() && options.same_id != SameId::Both {
        return Err(Error::BadArgument(
            "option `same_id` does not work with a store of similar documents, where an id has one text: delete the document first"
                .to_owned(),
        ));
    }
    let texts = match settings {
        Some(settings) => Some(StoredTexts::new(&store.snapshot(), settings, profile.clone())?),
        None => None,
    };
    let sketcher = settings.map(|_| Sketcher::new(profile.clone()));
    let with_texts = settings.is_some_and(|settings| settings.has_texts());
    let mut malformed = Malformed::new(inputs.skips_bad(), watch);
    let sources = Arc::new(Sources::find(inputs, &store.snapshot(), options.again, &mut malformed, watch)?);
    let mut adding = Adding::new(store, options, &sources, texts, listener, malformed)?;
    let to_read = inputs.of_files(sources.to_read.iter().map(|source| source.path.clone()).collect());
    let of_files = Arc::clone(&sources);
    let wanted = move |path: &Path, line: u64| of_files.start_line(path).is_none_or(|start| line > start);
    let visited =
        to_read.visit_wanted(profile, sketcher.as_ref(), with_texts, watch, wanted, |item| adding.take(item));
    let added = match visited {
        Ok(counts) => adding.finish(counts)?,
        Err(error) => {
            adding.keep()?;
            store.sync()?;
            return Err(error);
        }
    };
    store.sync()?;
    // Waits for merges: otherwise many short calls that add few documents would never merge.
    store.wait_for_background()?;
    Ok(added)
}
