//! Opening a store to read it.

use std::path::Path;

use simstore::{Fingerprint, Snapshot};
use simstore_corpus::describe::torn_ends;

use crate::failure::{Outcome, complain};

/// Opens a store for reading. Warns if the tail of a log is torn, because results do not include the lost writes.
pub(crate) fn open<F: Fingerprint>(path: &Path) -> Outcome<Snapshot<F>> {
    // A log may look torn while another process writes it, and is complete a moment later.
    let store = Snapshot::<F>::open_settled(path)?;
    for torn in torn_ends(&store) {
        complain(&format!("warning: results do not include these lost writes: {torn}"));
    }
    Ok(store)
}
