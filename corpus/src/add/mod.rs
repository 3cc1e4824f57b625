//! Documents and fingerprints into a store that may hold some already.

use std::path::Path;
use std::sync::Arc;

use self::adding::Adding;
use self::sources::Sources;
use crate::item::Malformed;
use crate::{Counts, InputKind, Inputs, Item, Watch};
use simstore::{Durability, Error, Fingerprint, Match, Result, Snapshot, Store};
use simstore_text::{Profile, SimilarDocument, SimilarSettings, Sketcher, StoredTexts};

mod adding;
mod known;
mod same_id;
mod similar;
mod sources;
mod trail;

pub use self::same_id::SameId;

/// How documents are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Add only what is within no stored fingerprint's distance or, in a store of similar documents, similar to none; goes with [`SameId::Both`] alone.
    pub if_new: bool,
    /// What becomes of a document whose id is stored with another fingerprint.
    pub same_id: SameId,
    /// When what was added counts as added.
    pub durability: Durability,
    /// Read files from their beginning, also if they have been read before.
    pub again: bool,
    /// Take every id as a name, also numbers.
    pub names: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// What was read, and what had been read before.
    pub counts: Counts,
    /// Documents that were stored.
    pub added: u64,
    /// Documents that were not stored, since something near is, under [`AddOptions::if_new`].
    pub duplicates: u64,
    /// Documents that took the place of others, by [`SameId::Replace`].
    pub replaced: u64,
    /// Documents that were stored before, with the same id and the same fingerprint.
    pub known: u64,
    /// Documents that an earlier call had already read.
    pub carried_on: u64,
    /// Files in which other documents stand than those that were read before.
    pub changed: u64,
}

/// Hears of documents that are not stored since something near is. `()` is one that does not care.
pub trait Listener<F: Fingerprint> {
    /// A document is not stored: these were within the distance, in this store, the nearest first.
    ///
    /// # Errors
    /// Any error ends the work; the document counts as not read.
    fn duplicate(&mut self, item: &Item<F>, earlier: &[Match<F>], store: &Snapshot<F>) -> Result<()>;

    /// A document is not stored: these are similar, in this store of similar documents, the most similar first.
    ///
    /// # Errors
    /// Any error ends the work; the document counts as not read.
    fn similar(&mut self, _item: &Item<F>, _earlier: &[SimilarDocument]) -> Result<()> {
        Ok(())
    }

    /// The documents that were told of are about to count as read: what was said of them has to be out, since no call will
    /// tell it again.
    ///
    /// # Errors
    /// Any error ends the work; the documents count as not read.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F: Fingerprint> Listener<F> for () {
    fn duplicate(&mut self, _: &Item<F>, _: &[Match<F>], _: &Snapshot<F>) -> Result<()> {
        Ok(())
    }
}

/// Adds documents, whose fingerprints are made by a profile, or fingerprints.
///
/// For each file the store keeps how many documents were read of it and a checksum of them, in the same step as the
/// documents. As long as these stand there, another call adds only what comes after them. If the last of them is another
/// now, such as a line that was not yet complete, that is read again; if others are, all of the file is. A document with the
/// id and the fingerprint of one that is stored changes nothing.
///
/// Ids are numbers or names, as in the store; a new store [decides](crate::Naming) by the first document. Names, and
/// fingerprints without an id, are numbered after the highest id that there ever was.
///
/// A store of [similar documents](simstore_text::open_similar) takes documents alone; an id is of one text there.
///
/// ```
/// use simstore::{Store, StoreOptions};
/// use simstore_corpus::add::{AddOptions, add};
/// use simstore_corpus::{DocumentOptions, Inputs};
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
/// As [`Inputs::visit`], and of the store and the listener. What was taken before something could not be read, or the watch
/// said to stop, is stored and counts as read: another call carries on there.
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
            "{}: a store of similar documents takes texts: the inputs hold fingerprints",
            store.snapshot().path().display()
        )));
    }
    if settings.is_some() && options.same_id != SameId::Both {
        return Err(Error::BadArgument(
            "option `same_id`: in a store of similar documents an id has one text: delete the document first"
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
    // Whoever adds a little, often, would else never merge.
    store.wait_for_background()?;
    Ok(added)
}
