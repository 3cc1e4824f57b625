//! Opening a store to write to it.

use std::path::Path;

use simstore::{Fingerprint, Store, StoreOptions};

use crate::failure::{Outcome, complain};

/// Opens a store to write to it; tells if that drops something which may have been damaged.
pub(crate) fn open<F: Fingerprint>(path: &Path, options: StoreOptions) -> Outcome<Store<F>> {
    let store = Store::open(path, options)?;
    tell_torn_end(&store);
    Ok(store)
}

/// Tells if the opening of a store dropped something which may have been damaged.
pub(crate) fn tell_torn_end<F: Fingerprint>(store: &Store<F>) {
    if let Some(torn_end) = store.torn_end() {
        complain(&format!("warning: {torn_end}"));
    }
}
